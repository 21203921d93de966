"""``ui``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from planner.cli.edge import Common, ExitCode
from planner.cli.terminal import note

__all__ = ["UiOptions", "ui"]

_LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class UiOptions(Common):
    """Options of ``ui``."""

    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SCENARIO]",
            help="Scenario file (YAML) to open; default: an example.",
            show_default=False,
        ),
    ] = None
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = _LOOPBACK
    port: Annotated[int, typer.Option(min=1, max=65535, metavar="PORT", help="Port to listen on.")] = 8501
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = (
        True
    )


def ui(options: UiOptions) -> ExitCode:
    """Start the what-if app: plan, compare, trade off and explain in a browser."""
    from planner.ui.launch import launch

    if options.scenario is not None:
        from planner import load_scenario

        load_scenario(options.scenario)  # what is wrong with it belongs on this screen, not on the page
    if options.host not in (_LOOPBACK, "localhost", "::1"):
        note(
            f"listening on {options.host}: whoever reaches this address can use the app; it asks for no password"
        )
    launch(options.scenario, host=options.host, port=options.port, headless=not options.browser)
