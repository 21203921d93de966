"""The policy ``planner``: what is observed becomes a problem, the optimizer answers it, its counts are the wishes.

Without a scenario file the problem is in the analyzers' own unit (:mod:`planner.control.deciding.token_problem`). With one,
services that it knows are sized as it says (:mod:`planner.control.deciding.scenario_problem`), and the others as without. It is
solved under scarcity always, since a controller must act, and from what the last solve left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
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
from planner.catalog import Catalog
from planner.clock import Clock, SystemClock
from planner.control.analysis import Move, VariantRef, VariantSeen, Voices
from planner.control.deciding.policy import Policy, Proposal, Proposed, Question
from planner.control.deciding.published import VoiceOption, token_policy, voices_of
from planner.control.deciding.scenario_matching import match
from planner.control.deciding.scenario_problem import ScenarioSizes, demand_rps, scenario_problem
from planner.control.deciding.token_problem import TokenProblem, token_problem
from planner.control.options import options_of
from planner.errors import FleetPlanError, TemporaryError
from planner.optimization import SOLVERS
from planner.optimization.protocol import SolveOptions
from planner.optimization.warm import WarmStart
from planner.planning import known_catalog, solve_with
from planner.scenario import load_scenario

__all__ = ["PlannerOptions", "PlannerPolicy", "policy"]

_SERVED: Final = 1e-3
"""Share of a demand that may stay unserved before a service counts as short."""


class PlannerOptions(Value):
    """Of ``planner``."""

    analyzers: tuple[VoiceOption, ...] = Field((), description="that vote beside the token analyzer")
    scenario: Path | None = Field(
        None,
        description="scenario file that says what replicas carry, cost and promise; None: the analyzers do",
    )
    drain_s: PositiveSeconds = Field(
        60.0, le=3600, description="with a scenario: what waits is to be served within so long, s"
    )
    solver: Name = Field("auto", description="by name")
    time_limit_s: PositiveSeconds = Field(5.0, le=600, description="for one solve, s")
    gap: Share = Field(5e-3, description="relative gap at which a plan counts as proven")
    tolerance: Share = Field(
        0.01,
        description="share by which a plan may be dearer than the cheapest if fewer replicas start and stop; "
        "with a scenario its own objective says so",
    )


def policy(options: Mapping[str, object], clock: Clock) -> Policy:
    """The policy ``planner``.

    Raises:
        ConfigurationError: an option is wrong.
    """
    told = options_of(PlannerOptions, "planner", options)
    if told.solver not in SOLVERS:
        SOLVERS.get(told.solver)  # says which there are
    if told.scenario is None:
        return PlannerPolicy(told)
    catalog = known_catalog()
    return PlannerPolicy(told, ScenarioSizes(load_scenario(told.scenario, catalog=catalog)), catalog)


@dataclass(frozen=True, slots=True)
class PlannerPolicy:
    """See the module.

    Attributes:
        options: how it works.
        sizes: of a scenario; None: there is none.
        catalog: names of accelerators and LLMs, where there is a scenario.
    """

    options: PlannerOptions
    sizes: ScenarioSizes | None = None
    catalog: Catalog | None = None

    @property
    def voices(self) -> Voices:
        """See :class:`~planner.control.deciding.policy.Policy`."""
        return voices_of(self.options.analyzers)

    def propose(self, question: Question) -> Proposal:
        """See :class:`~planner.control.deciding.policy.Policy`; where no plan can be made, what ``wva-v2`` proposes."""
        try:
            return self._planned(question)
        except (FleetPlanError, ValueError, ArithmeticError) as cause:
            # One service of which nobody can make a plan must not hold all others.
            finding = Finding(
                subject="policy planner",
                problem=f"no plan could be made ({_words(cause)}); wva-v2 decides in this cycle",
                remedy="more time (time_limit_s), another solver, or costs, sizes and counts that are real",
            )
            return replace(token_policy({}, SystemClock()).propose(question), findings=(finding,))

    def _planned(self, question: Question) -> Proposal:
        warm = question.warm if isinstance(question.warm, _Warm) else _Warm()
        stated, left = self._stated(question, warm)
        asked = token_problem(left, tolerance=self.options.tolerance)
        if asked is None:
            return stated or Proposal(wishes={}, warm=warm)
        mine = self._in_tokens(left, asked, warm.tokens)
        if stated is None:
            return replace(mine, warm=replace(warm, tokens=mine.warm))
        before = stated.warm if isinstance(stated.warm, _Warm) else warm
        return replace(
            stated,
            wishes={**mine.wishes, **stated.wishes},
            findings=(*stated.findings, *mine.findings),
            warm=replace(before, tokens=mine.warm),
        )

    def _in_tokens(self, question: Question, asked: TokenProblem, warm: object | None) -> Proposal:
        """The answer; where a service is short, less important ones that would stay are asked to give way."""
        first = _answered(asked, _solved(asked.problem, self.options, warm))
        short = {ref for ref, wish in first.wishes.items() if wish.short > 0}
        lacking = [
            one.seen.rules.priority
            for one in question.services
            if any(variant.ref in short for variant in one.seen.variants)
        ]
        if not lacking or all(one.seen.rules.priority >= max(lacking) for one in question.services):
            return first
        again = token_problem(question, tolerance=self.options.tolerance, yielding=max(lacking))
        if again is None or again.groups.keys() == asked.groups.keys():
            return first
        return _answered(again, _solved(again.problem, self.options, first.warm))

    def _stated(self, question: Question, warm: _Warm) -> tuple[Proposal | None, Question]:
        """Wishes for the services that the scenario knows, and the question about the others."""
        if self.sizes is None or self.catalog is None:
            return None, question
        matched = match(self.sizes.scenario, question.services, self.catalog)
        known = {
            name: rate
            for name, service in matched.services.items()
            if (rate := demand_rps(service, drain_s=self.options.drain_s)) is not None
        }
        if not known:
            return None if not matched.findings else Proposal(
                wishes={}, findings=matched.findings, warm=warm
            ), question
        problem, variants = scenario_problem(question, self.sizes, matched, rates=known)
        answer = _solved(problem, self.options, warm.scenario)
        taken = {matched.services[name].seen.key for name in known}
        left = tuple(one for one in question.services if one.seen.key not in taken)
        proposal = _counted(answer, variants, matched.findings)
        return replace(proposal, warm=replace(warm, scenario=answer.warm)), replace(question, services=left)


def _words(cause: Exception) -> str:
    """What may be repeated of a fault."""
    return str(cause)[:500] if isinstance(cause, FleetPlanError) else type(cause).__name__


@dataclass(frozen=True, slots=True)
class _Warm:
    """What the last solves left: of the scenario's problem, and of that in tokens."""

    scenario: object | None = None
    tokens: object | None = None


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
        return _Answer(problem, _plan_of(result.solution), result.warm)
    loose = problem.but(mode=Mode.UNCONSTRAINED, quotas=(), power=(), spend_usd_per_h=None, max_changes=None)
    result = solve_with(loose, solver=options.solver, options=replace(how, warm=None))
    finding = Finding(
        subject="policy planner",
        problem="what runs and starts breaks a limit already: planned without limits, growth is granted from what is free",
        remedy="quotas or nodes that were lowered below what runs, or counts of accelerators that do not agree",
    )
    return _Answer(loose, _plan_of(result.solution), result.warm, (finding,))


def _plan_of(solution: Solution) -> Solution:
    """A solution that has a plan.

    Raises:
        TemporaryError: it has none; the next cycle may find one.
    """
    if not solution.has_plan:
        raise TemporaryError(f"{solution.status} after all the time that there was")
    return solution


def _answered(asked: TokenProblem, answer: _Answer) -> Proposal:
    solution = answer.solution
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
            carries=group.carries[seen.ref].rated,
            asked=group.tokens,
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


def _counted(answer: _Answer, variants: Mapping[str, VariantSeen], findings: tuple[Finding, ...]) -> Proposal:
    """Wishes from a plan over pools: a variant is to have what it has in all of them."""
    solution, problem = answer.solution, answer.problem
    told = (*findings, *answer.findings)
    counts: dict[VariantRef, int] = {}
    carries: dict[VariantRef, float] = {}
    asked: dict[VariantRef, float] = {}
    for candidate in problem.candidates:
        seen = variants.get(candidate.id)
        if seen is not None:
            counts[seen.ref] = counts.get(seen.ref, 0) + solution.count(candidate.id)
            carries[seen.ref] = max(carries.get(seen.ref, 0.0), candidate.rated_rps)
            asked[seen.ref] = problem.demand[candidate.service].arrival_rps
    short = _short_of(problem, solution, variants)
    facts: dict[str, Fact] = {"solver": solution.proof.solver, "status": solution.status.value}
    wanted = {seen.ref: seen.wanted for seen in variants.values()}
    wishes = {
        ref: Proposed(
            replicas=count,
            why="planned" if count != wanted[ref] else "best-as-it-is",
            short=short.get(ref, 0),
            carries=carries[ref],
            asked=asked[ref],
            facts=facts | {"carries_rps": carries[ref], "asked_rps": asked[ref]},
        )
        for ref, count in counts.items()
    }
    return Proposal(wishes=wishes, problem=problem, solution=solution, findings=told, warm=answer.warm)


def _served(solution: Solution) -> dict[str, float]:
    """Share of each service's demand that is served."""
    shares: dict[str, list[float]] = {}
    for one in solution.served:
        shares.setdefault(one.service, []).append(one.share)
    return {service: math.fsum(each) for service, each in shares.items()}


def _short_of(
    problem: Problem, solution: Solution, variants: Mapping[str, VariantSeen]
) -> dict[VariantRef, int]:
    """Replicas that are missing by service, at the variant that is cheapest for its rate."""
    found: dict[VariantRef, int] = {}
    served = _served(solution)
    for demand in problem.demands:
        able = [
            one for one in problem.candidates_of[demand.service] if one.id in variants and not one.unrated
        ]
        missing = (1.0 - served.get(demand.service, 0.0)) * demand.arrival_rps
        if able and missing > _SERVED * demand.arrival_rps:
            best = min(able, key=lambda one: (one.cost / one.rated_rps, one.id))
            found[variants[best.id].ref] = math.ceil(missing / best.rated_rps)
    return found


def _short(asked: TokenProblem, solution: Solution) -> dict[VariantRef, int]:
    """Replicas that are missing where a demand is not served whole, by the variant that is cheapest for what it carries."""
    served = _served(solution)
    found: dict[VariantRef, int] = {}
    for name, group in asked.groups.items():
        missing = 1.0 - served.get(name, 0.0) * (group.planned / group.tokens if group.tokens > 0 else 1.0)
        if missing > _SERVED and group.tokens > 0 and Move.UP in group.moves.values():
            costs = {seen.ref: seen.observed.cost for seen in group.service.seen.variants}
            best = min(group.carries, key=lambda ref: (costs[ref] / group.carries[ref].rated, ref))
            found[best] = math.ceil(missing * group.tokens / group.carries[best].rated)
    return found
