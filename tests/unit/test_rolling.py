"""Composing the way to a plan: which plans are rolled out, what is near by, and what there is no time for."""

from __future__ import annotations

from typing import Any

import pytest

from models.plan import WaveLimits
from models.problem import Problem
from models.report import FewestMoves, Report
from models.solution import Solution, Status
from planner.clock import FakeClock
from planner.errors import ConfigurationError
from planner.optimization.protocol import SolveOptions, SolveResult
from planner.planning import plan_problem
from planner.rolling import FEWEST_MOVES, with_rollout
from tests.builders import a_candidate, a_demand, a_pool, a_problem
from tests.reports import a_timed_out_report

OLD, NEW = "chat/old@east", "chat/new@east"


def fleet(old_cost: float = 1.005, current: int = 4, **fields: Any) -> Problem:
    """Replicas of a variant that run, beside another that is a little cheaper."""
    candidates = [
        a_candidate(variant="old", current=current, cost=old_cost, startup_s=90.0),
        a_candidate(variant="new", startup_s=90.0),
    ]
    return a_problem([a_demand(rps=4.0)], candidates, **fields)


def planned(problem: Problem, **options: Any) -> Report:
    return with_rollout(plan_problem(problem, solver="pulp"), **options)


def found_in(report: Report) -> FewestMoves:
    assert report.fewest_moves is not None
    return report.fewest_moves


def test_the_waves_lead_to_the_answer() -> None:
    report = planned(fleet())
    assert report.rollout is not None
    assert report.rollout.derived_from == report.answer.solution.fingerprint
    last = {step.candidate: step.after for wave in report.rollout.waves for step in wave.steps}
    assert last == {OLD: 0, NEW: 4}
    assert report.rollout.proven_fewest


def test_limits_are_kept_and_told() -> None:
    limits = WaveLimits(max_surge_replicas=1, drain_s=7.0)
    free, report = planned(fleet()), planned(fleet(), limits=limits)
    assert free.rollout is not None
    assert report.rollout is not None
    assert report.rollout.limits == limits
    assert len(report.rollout.waves) > len(free.rollout.waves)
    with pytest.raises(ConfigurationError, match="max_step_gpus"):
        planned(a_problem(candidates=[a_candidate(gpus_per_pod=2)]), limits=WaveLimits(max_step_gpus=1))


def test_a_plan_near_by_stands_beside_with_its_own_way() -> None:
    report = planned(fleet())
    near, found = report.beside[0], found_in(report)
    assert (near.name, found.name, found.proven) == (FEWEST_MOVES, FEWEST_MOVES, True)
    assert near.assessment is not None
    assert (near.solution.counts, near.assessment.changes, near.assessment.violations) == ({OLD: 4}, 0, ())
    assert found.rollout is not None
    assert found.rollout.waves == ()


@pytest.mark.parametrize(("old_cost", "within"), [(1.05, 0.01), (1.005, 0.001)])
def test_that_nothing_near_changes_less_is_proven(old_cost: float, within: float) -> None:
    report = planned(fleet(old_cost), within=within)
    assert report.fewest_moves == FewestMoves(within=within, proven=True)
    assert FEWEST_MOVES not in {each.name for each in report.beside}


def test_a_width_of_nothing_looks_for_nothing() -> None:
    report = planned(fleet(), within=0.0)
    assert report.fewest_moves is None
    assert "alternative" not in report.seconds
    assert report.rollout is not None


def test_where_nothing_changes_nothing_is_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    report = plan_problem(fleet(old_cost=1.0, current=4), solver="pulp")
    monkeypatch.setattr("planner.rolling.solve_with", lambda *_, **__: pytest.fail("solved again"))
    found = with_rollout(report)
    assert found.fewest_moves == FewestMoves(within=0.01, proven=True)
    assert found.rollout is not None
    assert (found.rollout.waves, found.rollout.stuck) == ((), None)


def test_the_best_effort_is_what_is_reached_where_there_is_no_answer() -> None:
    report = planned(fleet(pools=[a_pool(nodes=1, gpus=3)], current=2))
    assert report.answer.solution.status is Status.INFEASIBLE
    assert report.best_effort is not None
    assert report.rollout is not None
    assert report.rollout.derived_from == report.best_effort.solution.fingerprint


def test_without_a_plan_there_is_no_way() -> None:
    report = a_timed_out_report()
    assert with_rollout(report) == report


class HastyClock(FakeClock):
    """A second passes with every look at it."""

    def monotonic_s(self) -> float:
        self.advance(1.0)
        return super().monotonic_s()


def test_what_there_is_no_time_for_is_left_out() -> None:
    report = plan_problem(fleet(), solver="pulp")
    hasty = with_rollout(report, options=SolveOptions(time_limit_s=4.0), clock=HastyClock())
    assert (hasty.rollout, hasty.fewest_moves) == (None, None)
    assert hasty.seconds["rollout"] > 0
    assert hasty.beside == report.beside


@pytest.mark.parametrize(("changes", "proven"), [(0, False), (8, None)])
def test_what_is_not_proven_is_not_said_to_be(
    monkeypatch: pytest.MonkeyPatch, changes: int, proven: bool | None
) -> None:
    report = plan_problem(fleet(), solver="pulp")
    asked: list[float] = []

    def hurried(problem: Problem, *, solver: str, options: SolveOptions) -> SolveResult:
        assert solver == "pulp"
        asked.append(options.time_limit_s)
        counts = {OLD: 4} if changes == 0 else {NEW: 4}
        solution = replaced(report.answer.solution, counts, problem)
        return SolveResult(solution, formulate_s=0.0, solve_s=0.0)

    monkeypatch.setattr("planner.rolling.solve_with", hurried)
    found = with_rollout(report, options=SolveOptions(time_limit_s=40.0)).fewest_moves
    assert asked == [2.0]
    assert (None if found is None else found.proven) == proven


def replaced(solution: Solution, counts: dict[str, int], problem: Problem) -> Solution:
    return solution.but(status=Status.FEASIBLE, counts=counts, derived_from=problem.fingerprint)


def test_an_answer_that_took_all_the_time_leaves_a_twentieth_for_the_waves_and_nothing_for_another_plan() -> (
    None
):
    late = plan_problem(fleet(), solver="pulp").but(seconds={"solve": 60.0})
    for clock, known in ((FakeClock(), True), (HastyClock(), False)):
        found = with_rollout(late, clock=clock, options=SolveOptions(time_limit_s=60.0))
        assert (found.rollout is not None, found.fewest_moves) == (known, None)
