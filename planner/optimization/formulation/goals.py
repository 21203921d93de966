"""What is made small: cost, power, changes, and the load that stays unserved."""

from __future__ import annotations

from typing import Final

from models.problem import CostUnit, Demand
from planner.optimization.formulation.budgets import power_terms
from planner.optimization.formulation.counts import change_terms
from planner.optimization.formulation.index import Index, added, down, replicas, unserved
from planner.optimization.program import Goal, Key
from planner.optimization.scaling import GRID, MICRO, exact, micro

__all__ = [
    "GOAL_INPUTS",
    "WEIGHT",
    "changes_goal",
    "cost_goal",
    "power_goal",
    "unserved_load_goal",
    "unserved_share",
]

GOAL_INPUTS: Final = frozenset(
    {
        "candidates",
        "cost_unit",
        "incumbents",
        "incumbents_rule",
        "mode",
        "objective",
        "pools",
        "power_basis",
    }
)
"""Fields of the problem that cost, power and changes speak of: no demand is among them."""

WEIGHT = 1000
"""Grid on which the buckets of a service that is routed by length weigh in its unserved share."""


def cost_goal(index: Index) -> Goal:
    """Σ π[c]·n[c] + Σ π[p]·m[p] + Σ startup[c]·max(0, n[c] − on order[c]) / horizon, in millionths.

    Starts are n − on order + down, which takes no column of its own.
    """
    problem = index.problem
    terms: dict[Key, int] = {replicas(c): micro(c.cost) for c in problem.candidates if c.cost}
    for pool in problem.pools:
        if pool.growth is not None and pool.growth.usd_per_node_h:
            terms[added(pool)] = micro(pool.growth.usd_per_node_h)
    constant = 0
    for candidate in index.unusual.starting:
        start, on_order = micro(candidate.startup_cost / problem.objective.horizon_h), candidate.on_order
        terms[replicas(candidate)] = terms.get(replicas(candidate), 0) + start
        if on_order:
            terms[down(candidate)] = start
            constant -= start * on_order
    unit = "$/h" if problem.cost_unit is CostUnit.USD_PER_H else "cost"
    return Goal("cost", terms, constant, unit=MICRO, unit_name=unit)


def power_goal(index: Index) -> Goal:
    """The draw of the whole fleet on the power basis of the problem, in milliwatts."""
    use, constant = power_terms(index, index.problem.pools)
    milliwatts = {watts: round(watts * 1000) for watts in set(use.values())}
    terms = {key: milliwatts[watts] for key, watts in use.items()}
    return Goal("power", terms, round(exact(constant) * 1000), unit=1e-3, unit_name="W")


def changes_goal(index: Index) -> Goal:
    """Replicas started, stopped or moved."""
    terms, constant = change_terms(index)
    return Goal("changes", terms, constant, unit_name="replicas")


def unserved_share(demand: Demand, index: Index) -> dict[Key, int]:
    """The unserved share of one service in steps of 1 / (GRID · WEIGHT): its buckets weighed by their load."""
    buckets = index.buckets(demand)
    if buckets == (None,):
        return {unserved(demand): WEIGHT}
    load = demand.arrival_rps
    weights = {
        unserved(demand, bucket.id): max(
            1, round(WEIGHT * (bucket.arrival_rps / load if load else 1 / len(buckets)))
        )
        for bucket in demand.buckets
        # A bucket without traffic counts nothing beside one that has some: no replica starts for nobody.
        if bucket.arrival_rps or not load
    }
    # Weights sum to WEIGHT, so that a whole service is a whole share: the largest one takes what rounding left over.
    heaviest = max(weights, key=lambda key: weights[key])
    weights[heaviest] += WEIGHT - sum(weights.values())
    return weights


def unserved_load_goal(index: Index, demands: tuple[Demand, ...], name: str) -> Goal:
    """Σ λ·z over some services, in req/s."""
    terms: dict[Key, int] = {}
    rates: dict[Key, float] = {}
    for demand in demands:
        for bucket in index.buckets(demand):
            rate = demand.arrival_rps if bucket is None else _rate_of(demand, bucket)
            rates[unserved(demand, bucket)] = rate
    total = sum(rates.values())
    if total <= 0:
        return Goal(name, {}, unit_name="req/s")
    # One integer unit is a billionth of the load of one grid step, so that rounding is far below one step.
    unit = total / 1e9
    for key, rate in rates.items():
        if rate:
            terms[key] = max(1, round(rate / unit))
    return Goal(name, terms, unit=unit / GRID, unit_name="req/s")


def _rate_of(demand: Demand, bucket: str) -> float:
    return next(b.arrival_rps for b in demand.buckets if b.id == bucket)
