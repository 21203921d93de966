"""What every test starts from, on whichever screen it runs."""

from __future__ import annotations

from typing import Final

import pytest

SCREEN: Final = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


@pytest.fixture(autouse=True)
def _no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output is as wide as a pipe's: workers of a parallel run are told a width, a plain run is not."""
    for name in SCREEN:
        monkeypatch.delenv(name, raising=False)
