"""Rows of budgets that tie services together: quota, power, spend."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction

from models.hardware import PowerDomain, Quota
from models.problem import Candidate, PoolState, Problem
from models.scenario import PowerBasis
from planner.optimization.formulation.index import Index, added, replicas
from planner.optimization.program import Key, Row
from planner.optimization.scaling import exact, limit

__all__ = ["domain_pools", "power_rows", "power_terms", "quota_rows", "quota_speaks_of", "spend_rows"]


def quota_rows(index: Index) -> Iterator[Row]:
    """Σ g[c]·n[c] ≤ quota  over the candidates that the quota speaks of."""
    for quota in index.problem.quotas:
        terms = {
            replicas(c): c.gpus for c in index.problem.candidates if quota_speaks_of(index.problem, quota, c)
        }
        yield Row(("quota", quota.id), terms, upper=quota.gpus)


def quota_speaks_of(problem: Problem, quota: Quota, candidate: Candidate) -> bool:
    """Whether the accelerators of a candidate count against a quota."""
    return (
        quota.accelerator in (None, candidate.accelerator)
        and quota.namespace in (None, problem.demand[candidate.service].namespace)
        and quota.cluster in (None, problem.pool[candidate.pool].cluster)
    )


def power_rows(index: Index) -> Iterator[Row]:
    """tdp: Σ power[c]·n[c] ≤ cap.  expected: Σ power·n + idle·(GPUs not in use) + overhead·nodes ≤ cap."""
    for domain in index.problem.power:
        use, constant = power_terms(index, domain_pools(index.problem, domain))
        if use:
            terms, cap = limit(use, exact(domain.cap_w) - constant)
            yield Row(("power", domain.id), terms, upper=cap)
        elif constant > domain.cap_w:
            yield Row(("power", domain.id), {}, upper=-1)


def domain_pools(problem: Problem, domain: PowerDomain) -> tuple[PoolState, ...]:
    """Pools whose draw a power domain caps: those it names, else those that name it."""
    if domain.pools:
        return tuple(pool for pool in problem.pools if pool.id in domain.pools)
    return tuple(pool for pool in problem.pools if pool.power_domain == domain.id)


def power_terms(index: Index, pools: Iterable[PoolState]) -> tuple[dict[Key, Fraction], Fraction]:
    """Draw of some pools in W, as terms and a constant. Replicas of unknown power count nothing."""
    expected = index.problem.power_basis is PowerBasis.EXPECTED
    use: dict[Key, Fraction] = defaultdict(Fraction)
    constant = Fraction(0)
    for pool in pools:
        # In a pool without limits what is not used need not exist: nothing idles there.
        idle_w = exact(pool.idle_gpu_w if expected and index.bounded(pool) else 0.0)
        draws: dict[tuple[float | None, int], Fraction] = {}  # a pool has many candidates and few figures
        for candidate in index.by_pool[pool.id]:
            figures = candidate.power_w, candidate.gpus
            if figures not in draws:
                draws[figures] = exact(candidate.power_w or 0.0) - candidate.gpus * idle_w
            use[replicas(candidate)] = draws[figures]
        if expected:
            holding = [node for node in pool.nodes if node.holds_pods]
            constant += sum(node.gpus * idle_w + exact(pool.node_overhead_w) for node in holding)
            if pool.growth is not None:
                use[added(pool)] += pool.growth.gpus_per_node * idle_w + exact(pool.growth.overhead_w)
    return {key: value for key, value in use.items() if value}, constant


def spend_rows(index: Index) -> Iterator[Row]:
    """Σ π[c]·n[c] + Σ π[p]·m[p] ≤ budget."""
    problem = index.problem
    if problem.spend_usd_per_h is None:
        return
    use = {replicas(c): c.cost for c in problem.candidates if c.cost}
    use |= {added(p): p.growth.usd_per_node_h for p in problem.pools if p.growth and p.growth.usd_per_node_h}
    if use:
        terms, budget = limit(use, problem.spend_usd_per_h)
        yield Row(("spend",), terms, upper=budget)
