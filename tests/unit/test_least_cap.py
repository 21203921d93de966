"""The least cap of unserved shares: proven from below, found from above."""

from __future__ import annotations

from itertools import product

import pytest

from planner.clock import FakeClock
from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.least_cap import CapSearch, Shares, stepped
from planner.optimization.levels import Descent
from planner.optimization.program import Column, IntegerProgram, Key, Row
from planner.optimization.protocol import SolveOptions, silent
from tests.engines import Enumerating

WHOLE = 8


class Knowing(Enumerating):
    """Tells what it can exclude as well, up to some cap."""

    def __init__(self, up_to: int) -> None:
        super().__init__()
        self.up_to = up_to
        self.excluded: list[int] = []

    def excludes(self, ask: Ask) -> bool:
        cap = next(row.upper for row in ask.program.rows if row.key[-1] == "cap")
        self.excluded.append(cap or 0)
        return cap is not None and cap <= self.up_to


class Blind(Enumerating):
    """Finds nothing without a cap or below some cap, and does not say that there is nothing."""

    def __init__(self, below: int) -> None:
        super().__init__()
        self.below = below

    def minimize(self, ask: Ask) -> Outcome:
        cap = next((row.upper for row in ask.program.rows if row.key[-1] == "cap"), 0)
        outcome = super().minimize(ask)
        return Outcome(Termination.TIMED_OUT) if cap is not None and cap < self.below else outcome


class BlindUnderCaps(Blind):
    """As blind, but not where there is no cap."""

    def minimize(self, ask: Ask) -> Outcome:
        capped = any(row.key[-1] == "cap" for row in ask.program.rows)
        return super().minimize(ask) if capped else Enumerating.minimize(self, ask)


def a_search(engine: Enumerating, gpus: int, needs: tuple[int, int], gap: float = 0.0) -> CapSearch:
    """Two services share GPUs: each needs some for all of its demand, and serves eighths of it."""
    shares: dict[str, dict[Key, int]] = {}
    columns, rows = [], []
    for name, need in zip("ab", needs, strict=True):
        n, z = ("n", name), ("z", name)
        columns += [Column(n, 0, gpus), Column(z, 0, WHOLE)]
        rows.append(Row(("rate", name), {n: WHOLE, z: need}, lower=WHOLE * need))
        shares[name] = {z: 1}
    rows.append(Row(("gpus",), {("n", "a"): 1, ("n", "b"): 1}, upper=gpus))
    program = IntegerProgram(tuple(columns), tuple(rows))
    clock = FakeClock()
    descent = Descent(engine, program, SolveOptions(time_limit_s=10.0, gap=gap), 0.0, clock, silent)
    return CapSearch(descent, _typed(shares), (), WHOLE, clock.monotonic_s() + 10.0)


def _typed(shares: dict[str, dict[Key, int]]) -> Shares:
    return shares


def the_least(gpus: int, needs: tuple[int, int]) -> int:
    """By trying every split."""
    splits = ((a, b) for a, b in product(range(gpus + 1), repeat=2) if a + b <= gpus)
    return min(
        max(next(z for z in range(WHOLE + 1) if WHOLE * n >= (WHOLE - z) * need) for n, need in zip(split, needs, strict=True))
        for split in splits
    )  # fmt: skip


@pytest.mark.parametrize("gpus", range(6))
@pytest.mark.parametrize("needs", [(1, 1), (2, 3), (4, 3), (5, 5)])
@pytest.mark.parametrize("up_to", [-1, 2, 99])
def test_the_least_cap_is_found_and_proven(gpus: int, needs: tuple[int, int], up_to: int) -> None:
    least = the_least(gpus, needs)
    engine = Knowing(min(up_to, least - 1))
    search = a_search(engine, gpus, needs)
    assert search.run() is None
    assert (search.value, search.bound) == (least, least)
    assert search.proven()


def test_what_can_be_excluded_is_not_looked_for() -> None:
    least = the_least(3, (4, 3))
    engine = Knowing(least - 1)
    a_search(engine, 3, (4, 3)).run()
    caps = [row.upper for ask in engine.asks for row in ask.program.rows if row.key[-1] == "cap"]
    assert caps
    assert min(cap for cap in caps if cap is not None) >= least


def test_caps_that_nothing_is_known_of_are_no_proof() -> None:
    least = the_least(3, (4, 3))
    search = a_search(Blind(least + 2), 3, (4, 3))
    assert search.run() is None
    assert search.value >= least + 2
    assert search.bound <= least
    assert not search.proven()


def test_one_search_for_the_largest_share_finds_and_proves_what_no_look_under_a_cap_could() -> None:
    least = the_least(4, (4, 3))
    engine = BlindUnderCaps(WHOLE)
    search = a_search(engine, 4, (4, 3))
    assert search.run() is None
    assert (search.value, search.bound) == (least, least)
    assert engine.asks[-1].goal.name == "largest"


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_caps_are_told_apart_by_whole_steps(step: int) -> None:
    least = stepped(the_least(4, (4, 3)), step)
    for engine in (Enumerating(), Knowing(least - step), BlindUnderCaps(WHOLE)):
        search = a_search(engine, 4, (4, 3))
        search.step = step
        assert search.run() is None
        assert (search.value, search.bound) == (least, least)


def test_where_no_cap_has_a_plan_the_outcome_says_so() -> None:
    search = a_search(Enumerating(), 3, (4, 3))
    search.held = (Row(("power",), {("n", "a"): 1}, lower=9),)
    outcome = search.run()
    assert outcome is not None
    assert outcome.termination is Termination.INFEASIBLE
