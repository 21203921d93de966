"""The command line: arguments become calls, answers become screens, JSON and exit codes."""

from __future__ import annotations

try:
    from planner.cli.app import app, main
except KeyboardInterrupt:
    # Loading takes a second or more, and nobody else is there yet to hear Ctrl-C.
    raise SystemExit(130) from None

__all__ = ["app", "main"]
