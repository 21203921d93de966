"""The benchmark of actuators still runs, and a round without change writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.actuator_speed import ACTUATORS, rounds

pytestmark = pytest.mark.benchmark


@pytest.mark.parametrize("name", ACTUATORS)
def test_a_round_without_change_writes_nothing(name: str, tmp_path: Path) -> None:
    first, same, some = rounds(name, 20, str(tmp_path))
    assert same[2] == 0
    assert same[1] <= max(2, first[1])
    if name in {"hpa", "keda", "variantautoscaling"}:
        assert (first[2], some[2]) == (20, 2)
