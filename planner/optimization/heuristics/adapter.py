"""From a problem to what the published heuristics read, and from their targets back to counts.

Every service and role is told in shares of its demand: a replica's capacity is the share of the demand
that it covers inside SLO and trigger, and of the load with headroom up to τ (the smaller of the two).
Required is what the running fleet leaves uncovered of 1, spare is what it has above 1, and the residual
headroom is (capacity - load) / capacity. Where a service has both paths, the aggregated one is asked first and the other
one for the share that is left. A pool is a GPU type of its own, so that the heuristics know
where GPUs are free. What they were never told (nodes, power, money, failures) they do not keep; the
referee says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from models.hardware import Quota
from models.ids import CandidateId, PoolId, ServiceId
from models.problem import PATHS, Candidate, Demand, PoolState, Problem, ServingPath
from models.variant import Role
from planner.optimization.formulation.budgets import quota_speaks_of
from planner.optimization.formulation.index import Index
from planner.optimization.formulation.traffic import headroom_target
from planner.optimization.heuristics.capacity import UNBOUNDED, AnalyzerSignal, ServiceState, VariantState
from planner.optimization.heuristics.limiters import Budget

__all__ = [
    "RoleGroup",
    "budget_of",
    "ceiling_of",
    "counts_from",
    "free_gpus",
    "headroom_of",
    "required",
    "rest_groups",
    "role_groups",
    "service_states",
    "spare",
    "variant_state",
]

Counts = Mapping[CandidateId, int]

EXACT: Final = 1e-9
"""Shares closer to 0 than this are 0: sums of decimals are not exact."""


@dataclass(frozen=True, slots=True)
class RoleGroup:
    """The candidates of one role of a service with the share of the demand that one replica of each covers.

    ``elsewhere`` is the share that the other path of the service covers already.
    """

    demand: Demand
    role: Role
    covers: Mapping[CandidateId, float]
    candidates: tuple[Candidate, ...]
    elsewhere: float = 0.0

    def capacity(self, counts: Counts) -> float:
        """Share of the demand that these counts cover, with what is covered elsewhere."""
        return self.elsewhere + sum(share * counts.get(name, 0) for name, share in self.covers.items())


def role_groups(index: Index) -> Iterator[RoleGroup]:
    """Every role that the demand of a service needs; of two paths the aggregated one, as published."""
    for demand in index.problem.demands:
        paths = index.paths(demand)
        if not paths or demand.arrival_rps <= 0:
            continue
        path = ServingPath.AGGREGATED if ServingPath.AGGREGATED in paths else paths[0]
        yield from _groups(index, demand, path)


def rest_groups(index: Index, counts: Counts) -> Iterator[RoleGroup]:
    """Of services with both paths: the roles that are asked for what the aggregated one leaves uncovered.

    The published rules know one path per service. What runs there comes first; the other one is asked for the rest
    only, by the same rules.
    """
    for group in role_groups(index):
        missing = required(group, counts)
        if missing and group.role is Role.BOTH and ServingPath.DISAGGREGATED in index.paths(group.demand):
            yield from _groups(index, group.demand, ServingPath.DISAGGREGATED, elsewhere=1.0 - missing)


def _groups(
    index: Index, demand: Demand, path: ServingPath, *, elsewhere: float = 0.0
) -> Iterator[RoleGroup]:
    for role in PATHS[path]:
        group = index.role(demand, role)
        covers = {c.id: _covers(index, demand, c) for c in group}
        yield RoleGroup(demand, role, covers, group, elsewhere)


def _covers(index: Index, demand: Demand, candidate: Candidate) -> float:
    return min(
        index.capacity(demand, candidate) / demand.arrival_rps,
        candidate.surge_rps / float(headroom_target(demand)),
    )


def required(group: RoleGroup, counts: Counts) -> float:
    """Share of the demand that nobody covers."""
    missing = 1.0 - group.capacity(counts)
    return missing if missing > EXACT else 0.0


def spare(group: RoleGroup, counts: Counts) -> float:
    """Share above the demand."""
    above = group.capacity(counts) - 1.0
    return above if above > EXACT else 0.0


def headroom_of(group: RoleGroup, counts: Counts) -> float:
    """Residual headroom δ = (capacity - load) / capacity; -inf where there is load and no capacity."""
    capacity = group.capacity(counts)
    return (capacity - 1.0) / capacity if capacity > 0 else -inf


def free_gpus(index: Index, counts: Counts) -> dict[str, int]:
    """Free GPUs by pool, with the nodes that may be added; -1 is unlimited."""
    used: dict[PoolId, int] = defaultdict(int)
    for candidate, count in _running(index.problem, counts):
        used[candidate.pool] += candidate.gpus * count
    return {pool.id: _free(index, pool, used[pool.id]) for pool in index.problem.pools}


def _running(problem: Problem, counts: Counts) -> Iterator[tuple[Candidate, int]]:
    """Candidates with replicas: few of all, and a cycle asks often."""
    return ((problem.candidate[name], count) for name, count in counts.items() if count)


def _free(index: Index, pool: PoolState, used: int) -> int:
    most = index.most_nodes(pool)
    if not index.bounded(pool) or most is None:
        return -1
    usable = sum(node.free_gpus for node in pool.nodes if node.accepts_pods and node.holds_pods)
    grown = pool.growth.gpus_per_node * most if pool.growth else 0
    return max(0, usable + grown - used)


def variant_state(candidate: Candidate, covers: float, count: int, ceiling: int | None) -> VariantState:
    """A candidate as the heuristics read it: its pool is its GPU type."""
    floor = max(candidate.min_replicas, 0 if candidate.scale_in_permitted else candidate.current)
    if candidate.max_step_down is not None:
        floor = max(floor, candidate.on_order - candidate.max_step_down)
    if candidate.max_step_up is not None:
        step = candidate.on_order + candidate.max_step_up
        ceiling = step if ceiling is None else min(ceiling, step)
    return VariantState(
        name=candidate.id,
        accelerator=candidate.pool,
        cost=candidate.cost,
        # A ceiling of 0 reads as none to the published rules: a candidate that may have no replica gets no capacity.
        per_replica_capacity=0.0 if ceiling == 0 else covers,
        current=count,
        role=candidate.role,
        pending=candidate.pending,
        min_replicas=floor,
        max_replicas=ceiling,
        gpus_per_replica=candidate.gpus,
    )


def ceiling_of(problem: Problem, candidate: Candidate, counts: Counts) -> int | None:
    """The most replicas of a candidate that its own, its variant's and its service's maxima leave; None: no limit."""
    demand = problem.demand[candidate.service]
    group = problem.candidates_of[candidate.service]
    own = counts.get(candidate.id, 0)
    limits = [candidate.max_replicas]
    for bounds in demand.variants:
        if bounds.variant == candidate.variant and bounds.max_replicas is not None:
            others = sum(counts.get(c.id, 0) for c in group if c.variant == candidate.variant) - own
            limits.append(bounds.max_replicas - others)
    if demand.max_replicas is not None:
        limits.append(demand.max_replicas - sum(counts.get(c.id, 0) for c in group) + own)
    known = [limit for limit in limits if limit is not None]
    return max(0, min(known)) if known else None


def service_states(index: Index, groups: tuple[RoleGroup, ...], counts: Counts) -> tuple[ServiceState, ...]:
    """Every service with the word of one analyzer on what is required and spare by role."""
    by_service: dict[ServiceId, list[RoleGroup]] = {}
    for group in groups:
        by_service.setdefault(group.demand.service, []).append(group)
    return tuple(_state(index, of_service, counts) for of_service in by_service.values())


def _state(index: Index, groups: list[RoleGroup], counts: Counts) -> ServiceState:
    demand = groups[0].demand
    variants = tuple(
        variant_state(c, g.covers[c.id], counts.get(c.id, 0), ceiling_of(index.problem, c, counts))
        for g in groups
        for c in g.candidates
    )
    signal = AnalyzerSignal(
        required={group.role: required(group, counts) for group in groups},
        spare={group.role: spare(group, counts) for group in groups},
        demand={group.role: 1.0 - group.elsewhere for group in groups},
    )
    return ServiceState(
        name=demand.service,
        namespace=demand.namespace,
        priority=float(max(demand.priority, 0)),
        variants=variants,
        signals=(signal,),
    )


def budget_of(index: Index, counts: Counts) -> Budget:
    """Free GPUs by pool, as pools and quotas leave them, for the cluster and for each namespace with a quota.

    Published quotas are per GPU type. Ours are told to every pool of that type, which is exact where a
    type has one pool; what is handed out too much where it has several, the referee finds.
    """
    free = free_gpus(index, counts)
    cluster = {name: UNBOUNDED if gpus < 0 else gpus for name, gpus in free.items()}
    closed: dict[str, dict[str, int]] = {}
    for quota in index.problem.quotas:
        left = max(0, quota.gpus - _used(index.problem, quota, counts))
        lists = cluster
        if quota.namespace is not None:
            lists = closed.setdefault(quota.namespace, dict.fromkeys(free, UNBOUNDED))
        for pool in index.problem.pools:
            if quota.accelerator in (None, pool.accelerator) and quota.cluster in (None, pool.cluster):
                lists[pool.id] = min(lists[pool.id], left)
    return Budget(cluster, closed)


def _used(problem: Problem, quota: Quota, counts: Counts) -> int:
    running = _running(problem, counts)
    return sum(c.gpus * count for c, count in running if quota_speaks_of(problem, quota, c))


def counts_from(targets: Mapping[str, int], counts: Counts) -> dict[CandidateId, int]:
    """Counts with the targets of some candidates put in."""
    return dict(counts) | {CandidateId(name): target for name, target in targets.items()}
