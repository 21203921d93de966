"""The policy ``planner``: what is observed becomes a problem, the optimizer answers it, its counts are the wishes.

Without a scenario file the problem is in the analyzers' own unit (:mod:`planner.control.deciding.token_problem`). It is solved
under scarcity always, since a controller must act, and from what the last solve left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import Field

from models.explanation import Fact
from models.ids import Name
from models.observation import Finding
from models.problem import Problem
from models.scenario import Mode
from models.solution import Solution, Status
from models.units import PositiveSeconds, Share
from models.value import Value
from planner.clock import Clock
from planner.control.analysis import Move, VariantRef, Voices
from planner.control.deciding.policy import Policy, Proposal, Proposed, Question
from planner.control.deciding.published import VoiceOption, voices_of
from planner.control.deciding.token_problem import TokenProblem, token_problem
from planner.control.options import options_of
from planner.optimization.protocol import SolveOptions
from planner.optimization.warm import WarmStart
from planner.planning import solve_with

__all__ = ["PlannerOptions", "policy"]

_SERVED: Final = 1e-3
"""Share of a demand that may stay unserved before a service counts as short."""


class PlannerOptions(Value):
    """Of ``planner``."""

    analyzers: tuple[VoiceOption, ...] = Field((), description="that vote beside the token analyzer")
    solver: Name = Field("auto", description="by name")
    time_limit_s: PositiveSeconds = Field(5.0, le=600, description="for one solve, s")
    gap: Share = Field(1e-3, description="relative gap at which a plan counts as proven")


def policy(options: Mapping[str, object], clock: Clock) -> Policy:
    """The policy ``planner``.

    Raises:
        ConfigurationError: an option is wrong.
    """
    return _Planner(options_of(PlannerOptions, "planner", options))


@dataclass(frozen=True, slots=True)
class _Planner:
    options: PlannerOptions

    @property
    def voices(self) -> Voices:
        return voices_of(self.options.analyzers)

    def propose(self, question: Question) -> Proposal:
        asked = token_problem(question)
        if asked is None:
            return Proposal(wishes={}, warm=question.warm)
        return _answered(asked, _solved(asked.problem, self.options, question.warm))


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a solver said.

    Attributes:
        problem: that was solved in the end.
        solution: its answer.
        warm: for the next one.
        findings: what was unusual.
    """

    problem: Problem
    solution: Solution
    warm: WarmStart | None
    findings: tuple[Finding, ...] = ()


def _solved(problem: Problem, options: PlannerOptions, warm: object | None) -> _Answer:
    """The answer; where what runs breaks a limit already, that of the same problem without limits of accelerators.

    Growth is granted from what is free afterwards, so nothing starts that has no room.
    """
    how = SolveOptions(
        time_limit_s=options.time_limit_s,
        gap=options.gap,
        warm=warm if isinstance(warm, WarmStart) else None,
    )
    result = solve_with(problem, solver=options.solver, options=how)
    if result.solution.status is not Status.INFEASIBLE or problem.mode is Mode.UNCONSTRAINED:
        return _Answer(problem, result.solution, result.warm)
    loose = problem.but(mode=Mode.UNCONSTRAINED, quotas=())
    result = solve_with(loose, solver=options.solver, options=replace(how, warm=None))
    finding = Finding(
        subject="policy planner",
        problem="what runs and starts breaks a limit already: planned without limits, growth is granted from what is free",
        remedy="quotas or nodes that were lowered below what runs, or counts of accelerators that do not agree",
    )
    return _Answer(loose, result.solution, result.warm, (finding,))


def _answered(asked: TokenProblem, answer: _Answer) -> Proposal:
    solution = answer.solution
    if not solution.has_plan:
        finding = Finding(
            subject="policy planner",
            problem=f"no plan was found ({solution.status}); its services are held",
            remedy="more time (time_limit_s), or another solver",
        )
        return Proposal(
            wishes={}, problem=answer.problem, findings=(*asked.findings, *answer.findings, finding)
        )
    short = _short(asked, solution)
    facts: dict[str, Fact] = {"solver": solution.proof.solver, "status": solution.status.value}
    gap = next((level.gap for level in solution.proof.levels if level.name == "cost"), None)
    wishes: dict[VariantRef, Proposed] = {}
    for candidate in answer.problem.candidates:
        seen = asked.variants[candidate.id]
        group = asked.groups[candidate.service]
        count = solution.count(candidate.id)
        wishes[seen.ref] = Proposed(
            replicas=count,
            why="planned" if count != seen.wanted else "best-as-it-is",
            short=short.get(seen.ref, 0),
            facts=facts
            | {
                "move": group.moves[seen.observed.role.value].value,
                "carries_tokens": round(candidate.rated_rps * 1000, 3),
            }
            | ({} if gap is None else {"gap": gap}),
        )
    return Proposal(
        wishes=wishes,
        problem=answer.problem,
        solution=solution,
        findings=(*asked.findings, *answer.findings),
        warm=answer.warm,
    )


def _short(asked: TokenProblem, solution: Solution) -> dict[VariantRef, int]:
    """Replicas that are missing where a demand is not served whole, by the variant that is cheapest for what it carries."""
    served: dict[str, float] = {}
    for one in solution.served:
        served[one.service] = served.get(one.service, 0.0) + one.share
    found: dict[VariantRef, int] = {}
    for name, group in asked.groups.items():
        missing = 1.0 - served.get(name, 0.0)
        if missing > _SERVED and group.tokens > 0 and Move.UP in group.moves.values():
            costs = {seen.ref: seen.observed.cost for seen in group.service.seen.variants}
            best = min(group.carries, key=lambda ref: (costs[ref] / group.carries[ref].rated, ref))
            found[best] = math.ceil(missing * group.tokens / group.carries[best].rated)
    return found
