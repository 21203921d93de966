"""What every test starts from, on whichever screen it runs."""

from __future__ import annotations

import os
from typing import Final

import pytest
from hypothesis import settings

SCREEN: Final = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")

# A check that lands a change is the same check twice; people's own runs look at other examples every time.
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture(autouse=True)
def _no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output is as wide as a pipe's: workers of a parallel run are told a width, a plain run is not."""
    for name in SCREEN:
        monkeypatch.delenv(name, raising=False)
