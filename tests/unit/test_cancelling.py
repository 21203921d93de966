"""Whoever asked may want an end: every engine stops soon, with the best plan so far and what is proven."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import pytest

from models.solution import Status
from planner.clock import FakeClock
from planner.optimization import SOLVERS, solve
from planner.optimization.backends.cpsat import CpSat
from planner.optimization.backends.engine import Engine, Termination
from planner.optimization.backends.interruption import stopping
from planner.optimization.backends.pulp import PulpCbc, PulpHighs
from planner.optimization.backends.race import Relay
from planner.optimization.backends.scip import Scip
from planner.optimization.exact import WholeProgram
from planner.optimization.protocol import ProgressEvent, SolveOptions, never
from planner.referee import check
from tests.benchmarks.registry import Family, instance
from tests.builders import a_problem
from tests.engines import Said, Scripted, an_ask
from tests.unit.test_backends import hard

LONG: Final = 60.0
ENGINES: Final[dict[str, Callable[[], Engine]]] = {
    "cp-sat": CpSat,
    "highs": PulpHighs,
    "cbc": PulpCbc,
    "scip": Scip,
}


class FirstPlan:
    """Wants an end as soon as there is a plan."""

    def __init__(self) -> None:
        self.seen = threading.Event()

    def report(self, value: int | None, bound: float | None, *, columns: int | None = None) -> None:
        if value is not None:
            self.seen.set()

    def progress(self, event: ProgressEvent) -> None:
        if event.value is not None:
            self.seen.set()


@pytest.mark.parametrize("make", ENGINES.values(), ids=list(ENGINES))
def test_an_engine_ends_with_its_plan(make: Callable[[], Engine]) -> None:
    program, goal = hard(60)
    first = FirstPlan()
    outcome = make().minimize(
        an_ask(program, goal, seconds=LONG, report=first.report, cancelled=first.seen.is_set)
    )
    assert outcome.values is not None
    assert program.broken(outcome.values) == ()
    assert outcome.termination is Termination.FEASIBLE
    assert outcome.bound is None or outcome.bound <= goal.activity(outcome.values)


@pytest.mark.parametrize("make", ENGINES.values(), ids=list(ENGINES))
def test_an_engine_that_is_not_wanted_says_nothing_false(make: Callable[[], Engine]) -> None:
    program, goal = hard(60)
    outcome = make().minimize(an_ask(program, goal, seconds=LONG, cancelled=lambda: True))
    assert outcome.termination in (Termination.TIMED_OUT, Termination.FEASIBLE)


@pytest.mark.parametrize("solver", ["auto", "column-generation"])
def test_a_solver_with_several_engines_ends_with_the_plan_of_the_levels_that_were_solved(solver: str) -> None:
    problem, levels = instance(Family.SCARCE_45, 20), set[str]()
    options = SolveOptions(time_limit_s=LONG, gap=0.01, cancelled=lambda: len(levels) > 1)
    solution = solve(problem, solver=solver, options=options, progress=lambda e: levels.add(e.level)).solution
    assert len(levels) > 1
    assert solution.status is Status.FEASIBLE
    assert check(problem, solution) == ()


@pytest.mark.parametrize("solver", ["cp-sat", "pulp", "pulp-cbc", "scip"])
def test_a_solver_ends_with_the_best_plan_so_far_and_its_bound(solver: str) -> None:
    problem, first = instance(Family.TIGHT, 20), FirstPlan()
    options = SolveOptions(time_limit_s=LONG, gap=0.0, cancelled=first.seen.is_set)
    solution = solve(problem, solver=solver, options=options, progress=first.progress).solution
    assert solution.status is Status.FEASIBLE
    assert next(level for level in solution.proof.levels if level.name == "cost").bound is not None


@pytest.mark.parametrize(
    "solver", [name for name in SOLVERS.names() if name not in ("rescale", "fair-share")]
)
def test_who_cancels_at_once_is_given_what_is_at_hand(solver: str) -> None:
    options = SolveOptions(time_limit_s=LONG, cancelled=lambda: True)
    solution = solve(a_problem(), solver=solver, options=options).solution
    assert solution.status in (Status.FEASIBLE, Status.TIMED_OUT)


def test_no_turn_begins_after_the_end_was_asked_for() -> None:
    program, goal = hard(2)
    clock, first = FakeClock(), FirstPlan()
    engine = Scripted(clock, [Said(Termination.FEASIBLE, dict.fromkeys(program.column, 20), takes_s=1.0)])
    relay = Relay([lambda: engine, lambda: engine], clock=clock)
    ask = an_ask(program, goal, report=first.report, cancelled=first.seen.is_set)
    assert relay.minimize(ask).termination is Termination.FEASIBLE
    assert len(engine.asks) == 1


def test_no_level_is_asked_after_the_end_was_asked_for() -> None:
    clock = FakeClock()
    engine = Scripted(clock, [])
    options = SolveOptions(cancelled=lambda: True)
    solution = WholeProgram(engine, name="test", clock=clock)(a_problem(), options).solution
    assert engine.asks == []
    assert solution.status is Status.FEASIBLE  # greedy has a plan, and nothing is proven of it


def test_without_anybody_who_may_cancel_no_thread_looks() -> None:
    before = threading.active_count()
    with stopping(never, pytest.fail):
        assert threading.active_count() == before
