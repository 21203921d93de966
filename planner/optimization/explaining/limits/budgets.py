"""Budgets that tie services together: quotas, power caps, money."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil

from models.hardware import PowerDomain, Quota
from models.problem import Problem
from planner.optimization.explaining.limits.limit import Limit, Use
from planner.optimization.formulation import Formulation
from planner.optimization.formulation.budgets import domain_pools, power_terms, quota_speaks_of
from planner.optimization.formulation.goals import cost_goal
from planner.optimization.formulation.index import replicas
from planner.optimization.program import Goal, Key
from planner.optimization.scaling import Number, exact

__all__ = ["power", "quotas", "spend"]


def quotas(problem: Problem) -> Iterator[Limit]:
    """Larger quotas."""
    for quota in problem.quotas:
        yield _quota(problem, quota)


def _quota(problem: Problem, quota: Quota) -> Limit:
    terms = {replicas(c): c.gpus for c in problem.candidates if quota_speaks_of(problem, quota, c)}

    def goal(_: Formulation) -> Goal:
        return Goal("quota", terms)

    def moved(needed: float) -> Problem:
        larger = quota.but(gpus=round(needed))
        return problem.but(quotas=tuple(larger if each.id == quota.id else each for each in problem.quotas))

    row = ("quota", quota.id)
    return Limit(
        family="quota",
        key=(quota.id,),
        value=quota.gpus,
        unit="GPUs",
        rows=(row,),
        moved=moved,
        search=Use(goal, problem, frozenset({row})),
    )


def power(problem: Problem) -> Iterator[Limit]:
    """Higher power caps."""
    for domain in problem.power:
        yield _cap(problem, domain)


def _cap(problem: Problem, domain: PowerDomain) -> Limit:
    def goal(formulation: Formulation) -> Goal:
        return _draw(*power_terms(formulation.index, domain_pools(problem, domain)))

    def moved(needed: float) -> Problem:
        higher = domain.but(cap_w=needed)
        return problem.but(power=tuple(higher if each.id == domain.id else each for each in problem.power))

    row = ("power", domain.id)
    return Limit(
        family="power",
        key=(domain.id,),
        value=domain.cap_w,
        unit="W",
        rows=(row,),
        moved=moved,
        search=Use(goal, problem, frozenset({row})),
    )


def _draw(use: Mapping[Key, Number], constant: Number) -> Goal:
    terms = {key: ceil(exact(watts) * 1000) for key, watts in use.items()}
    return Goal("power", terms, ceil(exact(constant) * 1000), unit=1e-3)


def spend(problem: Problem) -> Iterator[Limit]:
    """A larger budget."""
    if problem.spend_usd_per_h is None:
        return
    # Starts are no part of the budget; without them the cost goal is exactly the spend row.
    unpriced = problem.but(
        candidates=tuple(c.but(startup_cost=0.0) if c.startup_cost else c for c in problem.candidates)
    )
    yield Limit(
        family="spend",
        key=(),
        value=problem.spend_usd_per_h,
        unit="$/h",
        rows=(("spend",),),
        moved=lambda needed: problem.but(spend_usd_per_h=needed),
        search=Use(
            lambda formulation: cost_goal(formulation.index), unpriced, frozenset({("spend",)}), step=0.01
        ),
    )
