"""Rows on money and electric power, and the figures they are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from models.hardware import PowerDomain
from models.problem import Candidate, PoolState, Problem
from models.scenario import PowerBasis
from planner.referee.index import Index, is_unlimited
from planner.referee.physical import gpus_used
from planner.referee.rows import Row
from planner.referee.tolerance import exact

__all__ = ["cost_of", "power", "power_of", "running_cost", "spend", "switching_cost"]

ZERO = Fraction(0)


def running_cost(index: Index) -> Fraction:
    """Σ π_c·n_c + Σ π_p·m_p, in the cost unit of the problem."""
    candidates = index.problem.candidate
    replicas = sum((exact(candidates[c].cost) * n for c, n in index.counts.items()), ZERO)
    added = ((index.problem.pool[pool].growth, m) for pool, m in index.nodes_added.items())
    return replicas + sum(
        (exact(growth.usd_per_node_h) * m for growth, m in added if growth is not None), ZERO
    )


def cost_of(index: Index, candidate: Candidate) -> Fraction:
    """π_c·n_c and a part of what the nodes added to its pool cost: the part of the GPUs in use there that it uses.

    Over all candidates this sums to the running cost, unless nodes are added where nothing runs.
    """
    n, pool = index.count(candidate), index.problem.pool[candidate.pool]
    nodes = index.nodes_added.get(pool.id, 0)
    own = exact(candidate.cost) * n
    if pool.growth is None or not nodes or not n:
        return own
    return own + exact(pool.growth.usd_per_node_h) * nodes * candidate.gpus * n / gpus_used(index, pool)


def switching_cost(index: Index) -> Fraction:
    """Σ startup_cost_c·max(0, n_c − on order_c) / horizon: starts, spread over the horizon."""
    starts = ZERO
    for candidate, n in index.counts.items():
        one = index.problem.candidate[candidate]
        starts += exact(one.startup_cost) * max(0, n - one.on_order)
    return starts / exact(index.problem.objective.horizon_h)


def spend(index: Index) -> Iterator[Row]:
    """Σ π_c·n_c + Σ π_p·m_p ≤ budget; starts are not spend. Sizing refuses a budget beside relative costs."""
    budget = index.problem.spend_usd_per_h
    if budget is None:
        return
    prices = (candidate.cost for candidate in index.problem.candidates)
    yield Row(
        family="spend",
        key=(),
        found=running_cost(index),
        allowed=exact(budget),
        unit="$/h",
        say="The budget is {allowed} $/h and the plan spends {found} $/h.",
        step=exact(min(prices, default=0.0)),
    )


def power_of(index: Index, pools: Iterable[PoolState]) -> Fraction | None:
    """Draw in W of these pools on the problem's power basis; None: the power of a replica is unknown.

    tdp: Σ power_c·n_c. expected: also idle_p for each GPU on ready or added nodes that no replica of ours uses, and
    the overhead of these nodes. A pool without limits has no idle ones:
    what is not used there need not exist.
    """
    draw = ZERO
    for pool in pools:
        for candidate in index.in_pool.get(pool.id, ()):
            if candidate.power_w is None:
                return None
            draw += exact(candidate.power_w) * index.count(candidate)
        if index.problem.power_basis is PowerBasis.EXPECTED:
            draw += _standing_draw(index, pool)
    return draw


def _standing_draw(index: Index, pool: PoolState) -> Fraction:
    added = index.nodes_added.get(pool.id, 0) if pool.growth is not None else 0
    ready = [node for node in pool.nodes if node.holds_pods]
    present = sum(node.gpus for node in ready)
    grown, overhead = (
        (pool.growth.gpus_per_node, pool.growth.overhead_w) if pool.growth is not None else (0, 0.0)
    )
    unlimited = is_unlimited(index.problem, pool.id)
    idle = 0 if unlimited else max(0, present + grown * added - gpus_used(index, pool))
    return exact(pool.idle_gpu_w) * idle + exact(pool.node_overhead_w) * len(ready) + exact(overhead) * added


def power(index: Index) -> Iterator[Row]:
    """The draw of a power domain ≤ its cap; a replica of unknown power cannot run under a cap."""
    for domain in index.problem.power:
        pools = _pools_of(index.problem, domain)
        inside = {pool.id for pool in pools}
        unknown = [c for pool in pools for c in index.in_pool.get(pool.id, ()) if c.power_w is None]
        for candidate in unknown:
            yield Row(
                family="power",
                key=(domain.id, candidate.id),
                found=Fraction(index.count(candidate)),
                allowed=ZERO,
                unit="replica",
                say=f"Candidate {candidate.id} runs {{found}} replicas of unknown power under the cap of {domain.id}.",
            )
        draw = power_of(index, pools)
        if draw is not None:
            yield Row(
                family="power",
                key=(domain.id,),
                found=draw,
                allowed=exact(domain.cap_w),
                unit="W",
                say=f"Power domain {domain.id} is capped at {{allowed}} W and the plan draws {{found}} W.",
                step=_smallest_draw(index.problem, [c for c in index.problem.candidates if c.pool in inside]),
            )


def _pools_of(problem: Problem, domain: PowerDomain) -> list[PoolState]:
    """Pools under a cap: those it names, or where it names none, those that name it."""
    named = set(domain.pools)
    return [pool for pool in problem.pools if (pool.id in named if named else pool.power_domain == domain.id)]


def _smallest_draw(problem: Problem, candidates: Sequence[Candidate]) -> Fraction:
    """The least that one more replica adds, in W: on the expected basis its GPUs are idle no more."""
    expected = problem.power_basis is PowerBasis.EXPECTED
    draws = [
        c.power_w - (problem.pool[c.pool].idle_gpu_w * c.gpus if expected else 0.0)
        for c in candidates
        if c.power_w is not None
    ]
    return exact(max(0.0, min(draws, default=0.0)))
