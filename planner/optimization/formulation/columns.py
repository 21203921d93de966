"""Columns with bounds: no optimal plan needs more replicas of a candidate than its bound."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import ceil, inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.problem import Candidate, Demand, PoolState
from models.variant import Role
from models.workload import Routing, ServiceKind
from planner.optimization.formulation.by_length import failure_share
from planner.optimization.formulation.index import (
    Index,
    added,
    borrowed,
    down,
    replicas,
    served,
    unserved,
)
from planner.optimization.formulation.traffic import guest_load, headroom_target
from planner.optimization.program import Column, Key
from planner.optimization.scaling import GRID, exact

__all__ = ["columns", "upper_bounds"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_WHOLE: Final = 2.0**53
"""Floats up to here are whole numbers without a doubt."""


def upper_bounds(index: Index, *, roomy: bool = False) -> dict[Key, int]:
    """Bounds of n and m.

    A candidate never needs more replicas than cover every demand of its role alone, raised to what
    minima, ratios and the running fleet ask for, and (unless ``roomy``) cut at what its pool holds.
    """
    most = _wanted(index)
    bounds = dict(zip(index.figures.keys, most.tolist(), strict=True))
    growing = [pool for pool in index.problem.pools if pool.growth is not None]
    nodes = {added(pool): _most_added(index, pool, bounds, roomy=roomy) for pool in growing}
    if roomy:
        return bounds | nodes
    rooms = [_room(index, pool, nodes) for pool in index.problem.pools]
    # Replicas that run on nodes which take no new pods count beside the room of the others.
    figures = index.figures
    fit = np.floor(np.array(rooms, dtype=np.float64)[figures.pool] / figures.gpus)
    fitting = np.minimum(most, np.maximum(fit, figures.on_order)).astype(most.dtype)
    return dict(zip(figures.keys, fitting.tolist(), strict=True)) | nodes


def _wanted(index: Index) -> Ints:
    """Replicas of each candidate that cover, alone, every demand of its role, and what else may be asked of it."""
    figures, demands = index.figures, index.problem.demands
    floors = [max([d.min_replicas, *(b.min_replicas for b in d.variants)]) for d in demands]
    floor = np.array(floors, dtype=np.int64)
    np.maximum.at(floor, figures.demand, figures.min_replicas)
    usual = [_is_usual(index, demand) for demand in demands]
    load = np.array([d.arrival_rps for d in demands])[figures.demand]
    surge = np.array([_surge_target(d) if one else 0.0 for d, one in zip(demands, usual, strict=True)])
    batch = np.array([d.kind is ServiceKind.BATCH for d in demands], dtype=bool)[figures.demand]
    rate = np.where(batch, figures.surge_rps, figures.rated_rps)
    need = np.maximum(load / rate, surge[figures.demand] / figures.surge_rps)
    _occupied(index, need, surge[figures.demand] / np.where(load > 0, load, np.inf))
    need = np.ceil(need) + 1
    need = np.where(figures.unrated, 0, need)
    most = np.maximum(np.maximum(need, floor[figures.demand]), figures.on_order)
    wanted: Ints = most.astype(np.int64 if most.max(initial=0.0) < _WHOLE else object)
    others = [demand for demand, one in zip(demands, usual, strict=True) if not one]
    own = {key: count for demand in others for key, count in _of_its_own(index, demand).items()}
    for position, key in enumerate(figures.keys) if own else ():
        if key in own:
            wanted[position] = own[key]
    return wanted


def _occupied(index: Index, need: Floats, surged: Floats) -> None:
    """Replace the needs of candidates of services that are routed by length by what their buckets occupy."""
    lengths = index.lengths
    if lengths.candidates:
        position = {key: number for number, key in enumerate(index.figures.keys)}
        at = np.array([position[replicas(c)] for c in lengths.candidates], dtype=np.int64)
        need[at] = lengths.whole * np.maximum(1.0, surged[at])


def _is_usual(index: Index, demand: Demand) -> bool:
    """Whether rates alone say how many replicas a demand may need."""
    return (
        demand.headroom.kv_tokens is None and demand.ratio is None and demand.service not in index.guests_of
    )


def _of_its_own(index: Index, demand: Demand) -> dict[Key, int]:
    """The same for a demand of which more must be known."""
    group = index.problem.candidates_of[demand.service]
    alone = _covers_alone(index, demand, group)
    floor = _asked_for(index, demand, alone)
    return {replicas(c): max(alone[replicas(c)], floor, c.on_order) for c in group}


def _surge_target(demand: Demand) -> float:
    """Rate that must be carried up to tau, whatever happens, req/s."""
    return max(
        float(headroom_target(demand)), (demand.survive.share if demand.survive else 0.0) * demand.arrival_rps
    )


def _covers_alone(index: Index, demand: Demand, candidates: Iterable[Candidate]) -> dict[Key, int]:
    """Replicas with which each candidate alone satisfies every covering row that it is in."""
    load = demand.arrival_rps
    surge_target = _surge_target(demand)
    loans: dict[Role, float] = defaultdict(float)
    for path, role, group in index.path_roles(demand) if index.guests_of.get(demand.service) else ():
        loans[role] += float(sum(guest_load(index, demand, path, group).values()))
    by_length = demand.routing is Routing.BY_LENGTH
    holds_tokens = demand.headroom.kv_tokens is not None
    found = {}
    for candidate in candidates:
        if candidate.unrated:
            found[replicas(candidate)] = candidate.on_order
            continue
        surge_rps = candidate.surge_rps
        if by_length:
            need = _occupies(demand, candidate) * max(1.0, surge_target / load if load else 1.0)
        else:
            need = max(load / index.capacity(demand, candidate), surge_target / surge_rps)
        if loans:
            need += loans[candidate.role] / surge_rps
        if holds_tokens:
            need = max(need, _covers_tokens(demand, candidate, index.role(demand, candidate.role)))
        found[replicas(candidate)] = ceil(need) + 1
    return found


def _occupies(demand: Demand, candidate: Candidate) -> float:
    """Replicas that all buckets which a candidate can serve occupy."""
    return sum(
        max(bucket.arrival_rps / rating.rated_rps, bucket.arrival_rps / rating.surge_rps)
        for bucket in demand.buckets
        if (rating := candidate.by_bucket.get(bucket.id))
    )


def _covers_tokens(demand: Demand, candidate: Candidate, group: tuple[Candidate, ...]) -> float:
    if demand.headroom.kv_tokens is None or not candidate.kv_capacity_tokens:
        return 0.0
    per_rps = max(
        [c.kv_tokens_per_rps or 0.0 for c in group]
        + [r.kv_tokens_per_rps or 0.0 for c in group for r in c.by_bucket.values()]
    )
    return (demand.arrival_rps * per_rps + demand.headroom.kv_tokens) / candidate.kv_capacity_tokens


def _asked_for(index: Index, demand: Demand, alone: Mapping[Key, int]) -> int:
    """Replicas that minima and ratios may ask of one candidate beyond its traffic."""
    group = index.problem.candidates_of[demand.service]
    asked = max(
        [demand.min_replicas, *(b.min_replicas for b in demand.variants), *(c.min_replicas for c in group), 0]
    )
    if demand.ratio is None:
        return asked
    most = {
        role: max([alone[replicas(c)] for c in index.role(demand, role)] + [asked])
        for role in (Role.PREFILL, Role.DECODE)
    }
    low, high = demand.ratio.min, demand.ratio.max
    need_prefill = ceil(exact(low) * most[Role.DECODE]) if low else 0
    need_decode = ceil(most[Role.PREFILL] / exact(high)) if high else 0
    return max(asked, need_prefill, need_decode)


def _most_added(index: Index, pool: PoolState, bounds: Mapping[Key, int], *, roomy: bool) -> int:
    """Nodes that hold every replica that the pool's candidates can have, or (unless ``roomy``) the pool's own limit."""
    growth = pool.growth
    if growth is None:
        return 0
    alone = sum(
        ceil(bounds[replicas(c)] * c.pods_per_replica / (growth.gpus_per_node // c.gpus_per_pod))
        for c in index.by_pool[pool.id]
        if c.gpus_per_pod <= growth.gpus_per_node
    )
    most = index.most_nodes(pool)
    return alone if most is None or roomy else min(most, alone)


def _room(index: Index, pool: PoolState, nodes: Mapping[Key, int]) -> float:
    """Accelerators that the pool can have at most; infinite: not counted."""
    if not index.bounded(pool):
        return inf
    free = sum(node.free_gpus for node in pool.nodes if node.holds_pods)
    return free + (pool.growth.gpus_per_node * nodes[added(pool)] if pool.growth else 0)


def columns(index: Index, bounds: Mapping[Key, int]) -> Iterator[Column]:
    """All columns but those of placement: n, m, y, w, z, a, down."""
    problem = index.problem
    figures = index.figures
    for n, candidate, on_order in zip(
        figures.keys, problem.candidates, figures.on_order.tolist(), strict=True
    ):
        yield Column(n, 0, bounds[n])
        if on_order:
            yield Column(down(candidate), 0, on_order)
    for pool in problem.pools:
        if pool.growth is not None:
            yield Column(added(pool), 0, bounds[added(pool)])
    for demand in problem.demands:
        yield from _shares(index, demand)


def _shares(index: Index, demand: Demand) -> Iterator[Column]:
    promised = index.problem.promised(demand)
    loans = index.host_paths(demand)
    paths = index.paths(demand)
    # One way to serve and no way not to: the share is no decision.
    fixed = promised and len(paths) == 1 and not loans
    for bucket in index.buckets(demand):
        yield Column(unserved(demand, bucket), 0, 0 if promised else GRID)
        for path in paths:
            yield Column(served(demand, path, bucket), GRID if fixed else 0, GRID)
    for path in loans:
        yield Column(borrowed(demand, path), 0, GRID)
    if demand.routing is Routing.BY_LENGTH:
        yield from _bucket_shares(index, demand)


def _bucket_shares(index: Index, demand: Demand) -> Iterator[Column]:
    keys = index.bucket_shares
    domains = demand.survive.failure_domains if demand.survive else ()
    for _, _, group in index.path_roles(demand):
        for candidate in group:
            outside = [d for d in domains if index.problem.pool[candidate.pool].failure_domain != d]
            for bucket in (b.id for b in demand.buckets if b.id in candidate.by_bucket):
                yield Column(keys[candidate.id][bucket], 0, GRID)
                for domain in outside:
                    yield Column(failure_share(candidate, bucket, domain), 0, GRID)
