"""From a problem to what the published heuristics read, and from their targets back to counts.

Every service and role is told in tokens: its demand holds so many, and a replica has the capacity for the share of them
that it covers inside SLO and trigger, or of the load with headroom up to τ (the smaller share of the two). One unit
serves all services of a problem, because the rules weigh them by demand; see :func:`tokens_of`. Required is what the
running fleet leaves uncovered, spare is what it has above the demand, and the residual headroom is
(capacity - load) / capacity. All amounts are exact fractions of the decimals that people wrote, so that three
replicas of 1/3 are a whole.

Where a service has both paths, the aggregated one is asked first and the other one for what is left. A pool is a
GPU type of its own, so that the heuristics know where GPUs are free. What they were never told (nodes, power, money,
failures) they do not keep; the referee says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Final

from models.hardware import Quota
from models.ids import CandidateId, PoolId, ServiceId
from models.problem import PATHS, Candidate, Demand, PoolState, Problem, ServingPath
from models.variant import Role
from planner.optimization.formulation.index import Index
from planner.optimization.formulation.traffic import headroom_target, load_of
from planner.optimization.scaling import Number, exact
from planner.saturation.published.capacity import UNBOUNDED, AnalyzerSignal, ServiceState, VariantState
from planner.saturation.published.limiters import Budget

__all__ = [
    "RoleGroup",
    "budget_of",
    "ceiling_of",
    "counts_from",
    "counts_resident",
    "free_gpus",
    "headroom_of",
    "required",
    "rest_groups",
    "role_groups",
    "service_states",
    "spare",
    "tokens_of",
    "variant_state",
]

Counts = Mapping[CandidateId, int]

ZERO: Final = Fraction(0)


@dataclass(frozen=True, slots=True)
class RoleGroup:
    """The candidates of one role of a service, in tokens.

    Attributes:
        demand: of the service.
        role: the role.
        tokens: what the role is asked for in all.
        covers: what one replica of each candidate covers.
        candidates: who may serve.
        elsewhere: share of the demand that the other path of the service covers already.
    """

    demand: Demand
    role: Role
    tokens: Fraction
    covers: Mapping[CandidateId, Fraction]
    candidates: tuple[Candidate, ...]
    elsewhere: Fraction = ZERO

    @property
    def asked(self) -> Fraction:
        """Tokens that are left to these candidates."""
        return self.tokens * (1 - self.elsewhere)

    def capacity(self, counts: Counts) -> Fraction:
        """Tokens that these counts cover, with what is covered elsewhere."""
        running = ((covers, counts.get(name, 0)) for name, covers in self.covers.items())
        own = sum((covers * count for covers, count in running if count), ZERO)
        return own + self.tokens * self.elsewhere


def tokens_of(index: Index, demand: Demand, role: Role, *, resident: bool) -> Fraction:
    """The demand of a role in tokens.

    Resident tokens are what it holds in KV caches, as the published token analyzer counts: load x tokens per req/s of
    the candidate that holds them longest (the κ of a headroom in tokens); 0 where no candidate knows. Else tokens per
    second of traffic: each request with its input and half its output, the mean length while it is generated; prefill
    has the input part and decode the output part, so that a service weighs the same on either path.
    """
    if resident:
        known = (c.kv_tokens_per_rps or 0.0 for c in index.role(demand, role))
        return load_of(demand) * exact(max(known, default=0.0))
    inputs = sum((exact(b.arrival_rps) * b.input_tokens for b in demand.buckets), ZERO)
    outputs = sum((exact(b.arrival_rps) * b.output_tokens for b in demand.buckets), ZERO) / 2
    return {Role.PREFILL: inputs, Role.DECODE: outputs}.get(role, inputs + outputs)


def counts_resident(index: Index) -> bool:
    """Whether every role that may be asked knows the tokens that its demand holds; one that does not takes the unit from all."""
    return all(
        tokens_of(index, demand, role, resident=True) > 0
        for demand in index.problem.demands
        if demand.arrival_rps > 0
        for _, role, _ in index.path_roles(demand)
    )


def role_groups(index: Index) -> Iterator[RoleGroup]:
    """Every role that the demand of a service needs; of two paths the aggregated one, as published."""
    resident = counts_resident(index)
    for demand in index.problem.demands:
        paths = index.paths(demand)
        if not paths or demand.arrival_rps <= 0:
            continue
        path = ServingPath.AGGREGATED if ServingPath.AGGREGATED in paths else paths[0]
        yield from _groups(index, demand, path, resident=resident)


def rest_groups(index: Index, counts: Counts) -> Iterator[RoleGroup]:
    """Of services with both paths: the roles that are asked for what the aggregated one leaves uncovered.

    The published rules know one path per service. What runs there comes first; the other one is asked for the rest
    only, by the same rules.
    """
    resident = counts_resident(index)
    for group in role_groups(index):
        missing = required(group, counts)
        if missing and group.role is Role.BOTH and ServingPath.DISAGGREGATED in index.paths(group.demand):
            elsewhere = 1 - missing / group.tokens
            path = ServingPath.DISAGGREGATED
            yield from _groups(index, group.demand, path, resident=resident, elsewhere=elsewhere)


def _groups(
    index: Index, demand: Demand, path: ServingPath, *, resident: bool, elsewhere: Fraction = ZERO
) -> Iterator[RoleGroup]:
    load, target = load_of(demand), headroom_target(demand)
    for role in PATHS[path]:
        group = index.role(demand, role)
        tokens = tokens_of(index, demand, role, resident=resident)
        at_trigger, at_tau = tokens / load, tokens / target
        covers = {
            c.id: min(exact(index.capacity(demand, c)) * at_trigger, exact(c.surge_rps) * at_tau)
            for c in group
        }
        yield RoleGroup(demand, role, tokens, covers, group, elsewhere)


def required(group: RoleGroup, counts: Counts) -> Fraction:
    """Tokens that nobody covers."""
    return max(ZERO, group.tokens - group.capacity(counts))


def spare(group: RoleGroup, counts: Counts) -> Fraction:
    """Tokens above the demand."""
    return max(ZERO, group.capacity(counts) - group.tokens)


def headroom_of(group: RoleGroup, counts: Counts) -> Number:
    """Residual headroom δ = (capacity - load) / capacity; -inf where there is load and no capacity."""
    capacity = group.capacity(counts)
    return 1 - group.tokens / capacity if capacity > 0 else -inf


def free_gpus(index: Index, counts: Counts) -> dict[str, int]:
    """Free GPUs by pool, with the nodes that may be added; -1 is unlimited."""
    return _free(index, _used_in(index.problem, counts))


def _used_in(problem: Problem, counts: Counts) -> Mapping[tuple[str, PoolId], int]:
    """GPUs of the replicas of a namespace in a pool."""
    used: dict[tuple[str, PoolId], int] = defaultdict(int)
    for name, count in counts.items():
        if count:  # few candidates have any, and a cycle asks often
            candidate = problem.candidate[name]
            namespace = problem.demand[candidate.service].namespace
            used[namespace, candidate.pool] += candidate.gpus * count
    return used


def _free(index: Index, used: Mapping[tuple[str, PoolId], int]) -> dict[str, int]:
    in_pool: dict[PoolId, int] = defaultdict(int)
    for (_, pool), gpus in used.items():
        in_pool[pool] += gpus
    return {
        pool: -1 if room is None else max(0, room - in_pool[pool])
        for pool, room in index.once(_rooms, _ROOM_INPUTS).items()
    }


_ROOM_INPUTS: Final = frozenset({"mode", "pools"})


def _rooms(index: Index) -> dict[PoolId, int | None]:
    """GPUs that a pool has for replicas, with the nodes that may be added; None is unlimited."""
    return {pool.id: _room(index, pool) for pool in index.problem.pools}


def _room(index: Index, pool: PoolState) -> int | None:
    most = index.most_nodes(pool)
    if not index.bounded(pool) or most is None:
        return None
    usable = sum(node.free_gpus for node in pool.nodes if node.accepts_pods and node.holds_pods)
    return usable + (pool.growth.gpus_per_node * most if pool.growth else 0)


def variant_state(candidate: Candidate, covers: Number, count: int, ceiling: int | None) -> VariantState:
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
        cost=exact(candidate.cost),
        # A ceiling of 0 reads as none to the published rules: a candidate that may have no replica gets no capacity.
        per_replica_capacity=0 if ceiling == 0 else covers,
        current=count,
        role=candidate.role,
        pending=candidate.pending,
        min_replicas=floor,
        max_replicas=ceiling,
        gpus_per_replica=candidate.gpus,
    )


def ceiling_of(problem: Problem, candidate: Candidate, counts: Counts) -> int | None:
    """The most replicas of a candidate that its own, its variant's and its service's maxima leave; None: no limit.

    The published rules know replicas that start and stop, and none that changes its size.
    """
    if candidate.resize is not None:
        return 0
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
        demand={group.role: group.asked for group in groups},
    )
    return ServiceState(
        name=demand.service,
        namespace=demand.namespace,
        priority=max(demand.priority, 0),
        variants=variants,
        signals=(signal,),
    )


def budget_of(index: Index, counts: Counts) -> Budget:
    """Free GPUs by pool, as pools and quotas leave them, for the cluster and for each namespace with a quota.

    Published quotas are per GPU type. Ours are told to every pool of that type, which is exact where a
    type has one pool; what is handed out too much where it has several, the referee finds.
    """
    used = _used_in(index.problem, counts)
    free = _free(index, used)
    cluster = {name: UNBOUNDED if gpus < 0 else gpus for name, gpus in free.items()}
    closed: dict[str, dict[str, int]] = {}
    for quota in index.problem.quotas:
        pools = [pool.id for pool in index.problem.pools if _speaks_of(quota, pool)]
        taken = (
            gpus
            for (namespace, pool), gpus in used.items()
            if quota.namespace in (None, namespace) and pool in pools
        )
        left = max(0, quota.gpus - sum(taken))
        lists = cluster
        if quota.namespace is not None:
            lists = closed.setdefault(quota.namespace, dict.fromkeys(free, UNBOUNDED))
        for name in pools:
            lists[name] = min(lists[name], left)
    return Budget(cluster, closed)


def _speaks_of(quota: Quota, pool: PoolState) -> bool:
    """Whether GPUs of a pool count against a quota, whoever has them."""
    return quota.accelerator in (None, pool.accelerator) and quota.cluster in (None, pool.cluster)


def counts_from(targets: Mapping[str, int], counts: Counts) -> dict[CandidateId, int]:
    """Counts with the targets of some candidates put in."""
    return dict(counts) | {CandidateId(name): target for name, target in targets.items()}
