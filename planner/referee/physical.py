"""Rows on accelerators, nodes and counts: gpus, nodes, quota, bounds, safe_scale_in, ratio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from models.hardware import Quota
from models.ids import CandidateId, VariantId
from models.problem import Candidate, Demand, PoolState
from models.scenario import Mode
from models.variant import Role
from planner.referee.bays import Seat, seats_of
from planner.referee.index import Index, is_unlimited
from planner.referee.rows import Row
from planner.referee.tolerance import exact

__all__ = ["bounds", "gpus", "gpus_used", "may_grow", "nodes", "quota", "ratio", "safe_scale_in", "variants"]


def gpus_used(index: Index, pool: PoolState) -> int:
    """Σ_{c∈p} g_c·n_c."""
    return sum(candidate.gpus * index.count(candidate) for candidate in index.in_pool.get(pool.id, ()))


def gpus(index: Index) -> Iterator[Row]:
    """Σ_{c∈p} g_c·n_c ≤ free GPUs of nodes that hold and accept pods + GPUs of our pods kept on others + G_p·m_p."""
    smallest = _smallest_replica(index)
    seats = seats_of(index.problem)
    for pool in index.problem.pools:
        if is_unlimited(index.problem, pool.id):
            continue
        usable = sum(node.free_gpus for node in pool.nodes if node.holds_pods and node.accepts_pods)
        kept = _kept_on_closed_nodes(index, pool, seats)
        grown = (
            pool.growth.gpus_per_node * index.nodes_added.get(pool.id, 0) if pool.growth is not None else 0
        )
        yield Row(
            family="gpus",
            key=(pool.id,),
            found=Fraction(gpus_used(index, pool)),
            allowed=Fraction(usable + kept + grown),
            unit="GPU",
            say=f"Pool {pool.id} has {{allowed}} GPUs that we can use and the plan takes {{found}}.",
            step=None if may_grow(index, pool) else Fraction(smallest.get(pool.id, 0)),
        )


def may_grow(index: Index, pool: PoolState) -> bool:
    """Whether one more node may be added, so that the GPUs that are there limit nothing."""
    most = _most_nodes(index, pool)
    return most is None or index.nodes_added.get(pool.id, 0) < most


def _most_nodes(index: Index, pool: PoolState) -> int | None:
    """Nodes that may be added; None: as many as are asked for."""
    if pool.growth is None:
        return 0
    return None if index.problem.mode is Mode.UNCONSTRAINED else pool.growth.max_nodes


def _smallest_replica(index: Index) -> dict[str, int]:
    found: dict[str, int] = {}
    for candidate in index.problem.candidates:
        gpus = candidate.gpus
        if gpus < found.get(candidate.pool, gpus + 1):
            found[candidate.pool] = gpus
    return found


def _kept_on_closed_nodes(
    index: Index, pool: PoolState, seats: Mapping[CandidateId, tuple[Seat, ...]]
) -> int:
    """GPUs of pods that can stay on nodes that take no new ones, if the replicas that sit there stay first."""
    room = {node.id: node.free_gpus for node in pool.nodes if node.holds_pods and not node.accepts_pods}
    if not room:
        return 0
    used: dict[str, int] = dict.fromkeys(room, 0)
    for candidate in index.in_pool.get(pool.id, ()):
        inside = [
            ({n: pods for n, pods in seat.pods if n in room}, seat.replicas)
            for seat in seats.get(candidate.id, ())
        ]
        left = index.count(candidate)
        for pods, replicas in sorted(inside, key=lambda seat: -sum(seat[0].values())):
            stay = min(left, replicas)
            left -= stay
            for node, each in pods.items():
                used[node] += stay * each * candidate.gpus_per_pod
    return sum(min(used[node], room[node]) for node in room)


def nodes(index: Index) -> Iterator[Row]:
    """0 ≤ m_p ≤ max_p; a pool without growth gets none; no maximum in unconstrained mode."""
    for pool in index.problem.pools:
        added, most = index.nodes_added.get(pool.id, 0), _most_nodes(index, pool)
        if most is not None and (added or pool.growth is not None):
            yield Row(
                family="nodes",
                key=(pool.id,),
                found=Fraction(added),
                allowed=Fraction(most),
                unit="node",
                say=f"Pool {pool.id} may grow by {{allowed}} nodes and the plan adds {{found}}.",
                step=Fraction(1),
            )


def quota(index: Index) -> Iterator[Row]:
    """Σ g_c·n_c ≤ quota over the candidates it speaks of: accelerator, namespace of the service, cluster of the pool."""
    for limit in index.problem.quotas:
        meant = [candidate for candidate in index.problem.candidates if _speaks_of(index, limit, candidate)]
        yield Row(
            family="quota",
            key=(limit.id,),
            found=Fraction(sum(candidate.gpus * index.count(candidate) for candidate in meant)),
            allowed=Fraction(limit.gpus),
            unit="GPU",
            say=f"Quota {limit.id} allows {{allowed}} GPUs and the plan takes {{found}}.",
            step=Fraction(min((candidate.gpus for candidate in meant), default=0)),
        )


def _speaks_of(index: Index, limit: Quota, candidate: Candidate) -> bool:
    demand = index.problem.demand[candidate.service]
    return (
        limit.accelerator in (None, candidate.accelerator)
        and limit.namespace in (None, demand.namespace)
        and limit.cluster in (None, index.problem.pool[candidate.pool].cluster)
    )


def bounds(index: Index) -> Iterator[Row]:
    """Within bounds: min ≤ n ≤ max per candidate, per variant over pools, and per service over all its candidates."""
    for candidate in index.problem.candidates:
        low, high = candidate.min_replicas, candidate.max_replicas
        if low or high is not None:
            name = f"Candidate {candidate.id}"
            yield from _between((candidate.id,), name, (index.count(candidate), low, high))
    for demand in index.problem.demands:
        yield from _service_bounds(index, demand)


def _service_bounds(index: Index, demand: Demand) -> Iterator[Row]:
    if not demand.variants and not demand.min_replicas and demand.max_replicas is None:
        return
    by_variant: dict[VariantId, int] = {}
    for candidate in index.of_service[demand.service]:
        by_variant[candidate.variant] = by_variant.get(candidate.variant, 0) + index.count(candidate)
    for limit in demand.variants:
        key = (demand.service, limit.variant)
        name = f"Variant {limit.variant} of {demand.service}"
        yield from _between(
            key, name, (by_variant.get(limit.variant, 0), limit.min_replicas, limit.max_replicas)
        )
    total = sum(by_variant.values())
    yield from _between(
        (demand.service,), f"Service {demand.service}", (total, demand.min_replicas, demand.max_replicas)
    )


def _between(key: tuple[str, ...], name: str, numbers: tuple[int, int, int | None]) -> Iterator[Row]:
    n, low, high = numbers
    if n < low:
        say = f"{name} has {{found}} replicas and needs at least {{allowed}}."
        yield Row("bounds", key, Fraction(n), Fraction(low), "replica", say, least=True)
    if high is not None and n >= high:
        say = f"{name} has {{found}} replicas and may have {{allowed}}."
        yield Row("bounds", key, Fraction(n), Fraction(high), "replica", say, step=Fraction(1))


def safe_scale_in(index: Index) -> Iterator[Row]:
    """Where scale-in is not permitted: n_c ≥ ready replicas."""
    for candidate in index.problem.candidates:
        if not candidate.scale_in_permitted and index.count(candidate) < candidate.current:
            yield Row(
                family="safe_scale_in",
                key=(candidate.id,),
                found=Fraction(index.count(candidate)),
                allowed=Fraction(candidate.current),
                unit="replica",
                say=f"Candidate {candidate.id} may not shrink now: {{found}} replicas are planned and {{allowed}} are ready.",
                least=True,
            )


def ratio(index: Index) -> Iterator[Row]:
    """min·Σ_{decode} n ≤ Σ_{prefill} n ≤ max·Σ_{decode} n; without decode replicas there is no use to tell of."""
    for demand in index.problem.demands:
        if demand.ratio is None:
            continue
        prefill, decode = (
            sum(index.count(c) for c in index.by_role[demand.service, role])
            for role in (Role.PREFILL, Role.DECODE)
        )
        name = f"Service {demand.service} has {{found}} prefill replicas for {decode} of decode"
        low, high = demand.ratio.min, demand.ratio.max
        if low is not None:
            say = f"{name} and needs at least {{allowed}}."
            floor = exact(low) * decode
            key, step = (demand.service, "min"), Fraction(1) if decode else None
            yield Row("ratio", key, Fraction(prefill), floor, "replica", say, least=True, step=step)
        if high is not None:
            say = f"{name} and may have {{allowed}}."
            ceiling = exact(high) * decode
            key, step = (demand.service, "max"), Fraction(1) if decode else None
            yield Row("ratio", key, Fraction(prefill), ceiling, "replica", say, step=step)


def variants(index: Index) -> Iterator[Row]:
    """Of each role at most so many variants have replicas; a rule of one service alone, whose use is not reported."""
    for demand in index.problem.demands:
        for role in Role if demand.max_variants is not None else ():
            running = {candidate.variant for candidate in index.running.get((demand.service, role), ())}
            if demand.max_variants is None or not running:
                continue
            whose = demand.service if role is Role.BOTH else f"{demand.service} ({role})"
            yield Row(
                family="variants",
                key=(demand.service, role),
                found=Fraction(len(running)),
                allowed=Fraction(demand.max_variants),
                unit="variant",
                say=f"Service {whose} runs {{found}} variants at once and may run {{allowed}}.",
            )
