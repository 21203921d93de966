"""The count of writes runs, and what does not change is not written."""

from __future__ import annotations

import pytest

from tests.benchmarks.write_counts import measured

pytestmark = pytest.mark.benchmark


def test_an_hour_in_small_writes_on_change_alone() -> None:
    found = measured(services=3, minutes=5)
    assert found.cycles == 20
    assert found.ours["patch deployments/scale"] == found.changes
    assert found.ours["patch variantautoscalings/status"] <= found.changes + 3
    assert found.ours["create events"] + found.ours["patch events"] <= found.changes
