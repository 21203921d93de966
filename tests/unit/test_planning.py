"""Composing a report: what is trusted, what is compared, and where the seconds go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from models.explanation import Conflict, Explanation, Rejection
from models.problem import Problem
from models.report import Assessment
from models.solution import Proof, Solution, Status
from planner.clock import FakeClock
from planner.errors import InternalError
from planner.optimization.protocol import SolveOptions, SolveResult, silent
from planner.planning import (
    HEURISTICS,
    NOT_RUN,
    plan_problem,
    services_without_candidates,
    solve_with,
    unkept_promises,
)
from tests.builders import a_candidate, a_demand, a_problem, a_solution, fully_served

Answer = Callable[[Problem], Solution]


@dataclass
class Solvers:
    """Stands in for the solvers: answers by name, and moves the clock."""

    clock: FakeClock
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[tuple[str, bool]] = field(default_factory=list)
    limits_s: list[float] = field(default_factory=list)

    def names(self) -> tuple[str, ...]:
        return tuple(self.answers)

    def solve(
        self, problem: Problem, *, solver: str, options: SolveOptions, progress: Any = silent
    ) -> SolveResult:
        del progress
        self.limits_s.append(options.time_limit_s)
        self.asked.append((solver, problem.allow_unserved))
        self.clock.advance(3.0)
        return SolveResult(self.answers[solver](problem), formulate_s=1.0, solve_s=2.0)


def explained(
    problem: Problem,
    solution: Solution,
    assessment: Assessment | None,
    *,
    time_limit_s: float,
    rerate: object = None,
) -> Explanation:
    """Says which problem it was asked about, and conflicts where there is no plan."""
    assert rerate is None
    assert 0 <= time_limit_s <= SolveOptions().time_limit_s
    if assessment is None:
        return Explanation(conflict=Conflict(families=("demand", "gpus")))
    name = "scarce" if problem.allow_unserved else "promised"
    rejected = Rejection.model_validate(
        {"service": name, "variant": solution.proof.solver, "reason": "dearer"}
    )
    return Explanation(rejected=(rejected,))


@pytest.fixture
def solvers(monkeypatch: pytest.MonkeyPatch) -> Solvers:
    fake = Solvers(FakeClock())
    monkeypatch.setattr("planner.optimization.SOLVERS", fake)
    monkeypatch.setattr("planner.optimization.solve", fake.solve)
    monkeypatch.setattr("planner.optimization.explain", explained, raising=False)
    return fake


def so_many(replicas: int, share: float = 1.0) -> Answer:
    """A plan of so many replicas that claims to serve this share."""
    return lambda problem: a_solution(
        problem,
        {"chat/small@east": replicas},
        served=fully_served(problem, share),
        proof=Proof(solver="fake"),
    )


def nothing(status: Status) -> Answer:
    return lambda problem: Solution(
        status=status, proof=Proof(solver="fake"), derived_from=problem.fingerprint
    )


def infeasible_unless_scarce(problem: Problem) -> Solution:
    return so_many(8, 0.8)(problem) if problem.allow_unserved else nothing(Status.INFEASIBLE)(problem)


def test_a_plan_that_the_referee_accepts_is_the_answer(solvers: Solvers) -> None:
    solvers.answers = {"auto": so_many(10)}
    report = plan_problem(a_problem(), clock=solvers.clock)
    assert report.answer.assessment is not None
    assert report.answer.assessment.violations == ()
    assert report.answer.solution.counts == {"chat/small@east": 10}
    assert report.best_effort is None


@pytest.mark.parametrize("counts", [5, 100], ids=["serves-less-than-it-says", "more-gpus-than-there-are"])
def test_a_plan_of_ours_that_fails_the_referee_is_never_shown(solvers: Solvers, counts: int) -> None:
    solvers.answers = {"cp-sat": so_many(counts)}
    with pytest.raises(InternalError, match="solver 'cp-sat' fails the referee"):
        plan_problem(a_problem(), solver="cp-sat", clock=solvers.clock)
    with pytest.raises(InternalError, match="solver 'cp-sat' fails the referee"):
        solve_with(a_problem(), solver="cp-sat")


@pytest.mark.parametrize("name", HEURISTICS)
def test_a_plan_of_a_heuristic_is_shown_with_what_it_breaks(solvers: Solvers, name: str) -> None:
    solvers.answers = {name: so_many(100)}
    report = plan_problem(a_problem(), solver=name, clock=solvers.clock)
    assert report.answer.assessment is not None
    assert {violation.family for violation in report.answer.assessment.violations} >= {"gpus"}
    assert solve_with(a_problem(), solver=name).solution.count(report.problem.candidates[0].id) == 100


def test_an_infeasible_problem_is_planned_again_for_scarcity(solvers: Solvers) -> None:
    solvers.answers = {"auto": infeasible_unless_scarce, "greedy": so_many(8, 0.8)}
    report = plan_problem(a_problem(), clock=solvers.clock)
    assert solvers.asked == [("auto", False), ("auto", True), ("greedy", True)]
    assert report.answer.assessment is None
    assert report.best_effort is not None
    assert report.best_effort.assessment is not None
    assert report.best_effort.assessment.unserved_rps == pytest.approx(2.0)
    assert not report.problem.allow_unserved
    # Nobody promises anything under scarcity, so the baselines are judged without promises too.
    assert [each.assessment.violations for each in report.beside if each.assessment is not None] == [(), ()]


def test_the_time_limit_is_for_all_that_is_solved(solvers: Solvers) -> None:
    solvers.answers = {"auto": infeasible_unless_scarce}
    plan_problem(a_problem(), options=SolveOptions(time_limit_s=13.0), clock=solvers.clock)
    # Of 13 s the answer may take 80 %; it takes 3 s, and the best effort may take 70 % of the other 10.
    assert solvers.limits_s == pytest.approx([10.4, 7.0])


def test_time_that_is_used_up_leaves_a_moment(solvers: Solvers) -> None:
    solvers.answers = {"auto": infeasible_unless_scarce}
    plan_problem(a_problem(), options=SolveOptions(time_limit_s=1.0), clock=solvers.clock)
    assert 0 < solvers.limits_s[1] < 0.01


def test_what_a_heuristic_leaves_unserved_is_a_promise_not_kept_and_no_broken_limit(solvers: Solvers) -> None:
    solvers.answers = {"greedy": so_many(8, 0.8), "auto": so_many(10)}
    report = plan_problem(a_problem(), solver="greedy", clock=solvers.clock)
    assert report.answer.assessment is not None
    assert report.answer.assessment.violations == ()
    assert [violation.key for violation in unkept_promises(report)] == [("chat",)]
    asked_for = plan_problem(a_problem(), clock=solvers.clock)
    assert unkept_promises(asked_for) == ()
    assert [each.assessment.violations for each in asked_for.beside if each.assessment] == [(), ()]


def test_the_running_fleet_serves_what_it_carries_though_it_survives_no_loss(solvers: Solvers) -> None:
    solvers.answers = {"auto": so_many(0, 0.0)}
    demand = a_demand(survive={"share": 1.0, "failure_domains": ("east",)})
    problem = a_problem([demand], [a_candidate(current=10)], allow_unserved=True)
    now = plan_problem(problem, clock=solvers.clock).beside[-1].assessment
    assert now is not None
    assert now.unserved_rps == 0
    assert [violation.family for violation in now.violations] == ["survive"]


def test_an_infeasible_problem_is_explained_by_its_conflict_and_by_the_best_effort(solvers: Solvers) -> None:
    solvers.answers = {"auto": infeasible_unless_scarce}
    explanation = plan_problem(a_problem(), clock=solvers.clock).explanation
    assert explanation.conflict == Conflict(families=("demand", "gpus"))
    assert [rejection.service for rejection in explanation.rejected] == ["scarce"]


def test_scarcity_without_a_plan_leaves_the_conflict(solvers: Solvers) -> None:
    solvers.answers = {"auto": nothing(Status.INFEASIBLE)}
    report = plan_problem(a_problem(), clock=solvers.clock)
    assert report.best_effort is not None
    assert report.best_effort.assessment is None
    assert report.explanation.conflict is not None


@pytest.mark.parametrize("status", [Status.TIMED_OUT, Status.FAILED])
def test_without_an_answer_nothing_is_planned_again(solvers: Solvers, status: Status) -> None:
    solvers.answers = {"auto": nothing(status)}
    report = plan_problem(a_problem(), clock=solvers.clock)
    assert (report.answer.assessment, report.best_effort) == (None, None)
    assert solvers.asked == [("auto", False)]


def test_heuristics_and_the_running_fleet_stand_beside(solvers: Solvers) -> None:
    solvers.answers = {name: so_many(10) for name in ("auto", "rescale", "greedy", "a-plug-in")}
    beside = plan_problem(a_problem(), clock=solvers.clock).beside
    assert [each.name for each in beside] == ["greedy", "rescale", "now"]
    now = beside[-1]
    assert now.assessment is not None
    assert (now.solution.counts, now.assessment.unserved_rps) == ({}, 10.0)


def test_the_heuristic_that_was_asked_for_does_not_stand_beside_itself(solvers: Solvers) -> None:
    solvers.answers = {name: so_many(10) for name in ("rescale", "greedy")}
    beside = plan_problem(a_problem([a_demand()]), solver="greedy", clock=solvers.clock).beside
    assert [each.name for each in beside] == ["rescale", "now"]


def test_seconds_by_phase(solvers: Solvers) -> None:
    solvers.answers = {"auto": infeasible_unless_scarce, "greedy": so_many(8, 0.8)}
    seconds = plan_problem(a_problem(), clock=solvers.clock).seconds
    # Two answers at 1 s and 2 s each; the baseline took 3 s of the fake clock.
    assert seconds == {"size": 0.0, "formulate": 2.0, "solve": 4.0, "check": 0.0, "explain": 3.0}


def test_baselines_run_in_order_until_the_next_would_end_too_late(solvers: Solvers) -> None:
    solvers.answers = {name: so_many(10) for name in ("auto", *HEURISTICS)}
    beside = plan_problem(a_problem(), options=SolveOptions(time_limit_s=18.0), clock=solvers.clock).beside
    # The answer takes 3 s; of the 15 that are left baselines may take 7.5, and each takes 3.
    assert [each.name for each in beside] == [*HEURISTICS, "now"]
    assert [each.solution.proof.notes for each in beside] == [(), (), (NOT_RUN,), (NOT_RUN,), ()]
    assert [each.assessment is None for each in beside] == [False, False, True, True, False]
    assert {each.solution.status for each in beside[2:4]} == {Status.TIMED_OUT}


@pytest.mark.parametrize("name", ["greedy", "now"])
def test_no_plan_and_a_plan_that_keeps_every_promise_are_a_fault_of_ours(solvers: Solvers, name: str) -> None:
    greedy = so_many(10) if name == "greedy" else so_many(8, 0.8)
    solvers.answers = {"auto": infeasible_unless_scarce, "greedy": greedy}
    problem = a_problem(candidates=[a_candidate(current=10 if name == "now" else 0)])
    with pytest.raises(InternalError, match=f"'auto' found that no plan .* '{name}' does"):
        plan_problem(problem, clock=solvers.clock)


def test_a_baseline_that_serves_all_and_survives_no_loss_contradicts_nobody(solvers: Solvers) -> None:
    def none_survives(problem: Problem) -> Solution:
        return (so_many(0, 0.0) if problem.allow_unserved else nothing(Status.INFEASIBLE))(problem)

    solvers.answers = {"auto": none_survives, "greedy": so_many(10)}
    demand = a_demand(survive={"share": 1.0, "failure_domains": ("east",)})
    report = plan_problem(a_problem([demand]), clock=solvers.clock)
    assert report.answer.solution.status is Status.INFEASIBLE


@pytest.mark.parametrize(
    ("candidates", "missing"),
    [
        ([], ("both",)),
        ([{}], None),
        ([{"unrated": True}], ("both",)),
        ([{"max_replicas": 0}], ("both",)),
        ([{"role": "decode"}], ("prefill",)),
        ([{"role": "decode"}, {"role": "prefill", "variant": "other"}], None),
    ],
    ids=["none", "one", "nobody-rates-it", "none-allowed", "half-a-pair", "a-pair"],
)
def test_services_that_nothing_can_serve(
    candidates: list[dict[str, Any]], missing: tuple[str, ...] | None
) -> None:
    problem = a_problem(candidates=[a_candidate(**fields) for fields in candidates])
    found = services_without_candidates(problem)
    assert found == ({} if missing is None else {"chat": missing})


def test_who_asks_for_nothing_or_borrows_lacks_nothing() -> None:
    demands = (
        a_demand("idle", 0.0),
        a_demand("guest", kind="batch", shares_replicas_of="chat"),
        a_demand("chat"),
    )
    assert services_without_candidates(a_problem(demands)) == {}
