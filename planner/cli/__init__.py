"""The command line: arguments become calls, answers become screens, JSON and exit codes."""

from __future__ import annotations

from planner.cli.app import app, main

__all__ = ["app", "main"]
