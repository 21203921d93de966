"""Starting the app: a Streamlit server on this machine alone, unless the user says otherwise."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NoReturn

from planner.errors import PermanentError

__all__ = ["OPTIONS", "SCENARIO_VARIABLE", "command", "launch"]

SCENARIO_VARIABLE: Final = "FLEETPLAN_UI_SCENARIO"
"""Scenario file that a first visit opens instead of the example."""

OPTIONS: Final[Mapping[str, str]] = {
    "server.address": "127.0.0.1",
    "server.maxUploadSize": "20",
    "server.fileWatcherType": "none",
    "browser.gatherUsageStats": "false",
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "theme.headingFontSizes": '["2.75rem", "1.75rem", "1.5rem"]',
    "theme.metricValueFontSize": "1.75rem",
    # Captions are the color of texts at 60 %, what is chosen is the first color on a breath of it: with Streamlit's own
    # they are too faint to be read by everybody (WCAG 2.2, 1.4.3).
    "theme.light.textColor": "#0b0c10",
    "theme.light.primaryColor": "#0b5cad",
    "theme.dark.primaryColor": "#1f6fc4",
}
"""What differs from Streamlit's defaults; ``.streamlit/config.toml`` says the same for ``streamlit run app.py``."""


def command(*, host: str, port: int, headless: bool) -> list[str]:
    """The command line of the server."""
    options = {
        **OPTIONS,
        "server.address": host,
        "server.port": str(port),
        "server.headless": str(headless).lower(),
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    return [
        sys.executable,
        "-m",
        "planner.ui.entry",
        "run",
        str(Path(__file__).parent / "entry" / "app.py"),
        *flags,
    ]


def launch(scenario: Path | None = None, *, host: str, port: int, headless: bool) -> NoReturn:
    """Become the server.

    Args:
        scenario: opened by first visits; None: the example.
        host: address to listen on.
        port: port to listen on.
        headless: do not open a browser.

    Raises:
        PermanentError: Streamlit is not installed.
    """
    if find_spec("streamlit") is None:
        raise PermanentError("the app needs an extra; install it with: pip install 'fleetplan[ui]'")
    environment = dict(os.environ)
    if scenario is not None:
        environment[SCENARIO_VARIABLE] = str(scenario.resolve())
    arguments = command(host=host, port=port, headless=headless)
    os.execve(arguments[0], arguments, environment)  # noqa: S606 - our own Python, no shell wanted
