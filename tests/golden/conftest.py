"""Golden texts: what a screen said when somebody looked at it and agreed.

``FLEETPLAN_UPDATE_GOLDEN=1 pytest tests/golden`` writes them anew; look at the difference before it is committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

EXPECTED: Final = Path(__file__).parent / "expected"
UPDATE: Final = "FLEETPLAN_UPDATE_GOLDEN"

Golden = Callable[[str, str], None]


@pytest.fixture
def golden() -> Golden:
    """Compare a text with the file ``expected/NAME``; spaces at the end of lines do not count."""

    def compare(name: str, text: str) -> None:
        said = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
        path = EXPECTED / name
        if os.environ.get(UPDATE):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(said, encoding="utf-8")
        assert said == path.read_text(encoding="utf-8")

    return compare
