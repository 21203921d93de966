"""Kernels that are compiled in the middle of a plan take nothing from its time limit, whoever watches it."""

from __future__ import annotations

import time

import pytest

import planner
from planner.clock import SolvingClock
from planner.optimization.backends.column_generation import engine
from planner.optimization.protocol import SolveOptions


@pytest.fixture
def compiled_once(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Clocks jump by 1,000 s while the kernels are loaded for the first time; tells of each jump."""
    jumps: list[float] = []
    really, load = vars(time)["monotonic"], engine.compile_all

    def compiling() -> None:
        load()
        if not jumps:
            with SolvingClock.standing_still():
                jumps.append(1000.0)

    monkeypatch.setattr(time, "monotonic", lambda: really() + sum(jumps))
    monkeypatch.setattr(engine, "compile_all", compiling)
    return jumps


def test_a_plan_that_nothing_can_keep_still_says_what_conflicts(compiled_once: list[float]) -> None:
    report = planner.plan("data/scenarios/03-power-cap.yaml", options=SolveOptions(time_limit_s=60.0))
    assert compiled_once
    assert report.explanation.conflict
    assert sum(report.seconds.values()) < 1000.0
