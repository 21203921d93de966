"""Services that may move -> a problem: the same demand as the published rules see, and an optimizer that is exact.

Demand and capacity of one replica are those of the analyzers; rates of the problem are thousands of tokens of KV cache. A
replica is rated at the share (τ - γ) / τ of its capacity (inside the trigger) and carries its capacity up to τ, which is
what δ is kept in. Where several analyzers vote, a replica carries the least that any of them grants it: no unit is ever
added to another.

Only services that γ lets move are asked about. The others keep their replicas, and the accelerators under them.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from models.hardware import NodeGrowth, Quota
from models.ids import NAME_PATTERN, AcceleratorId, DomainId, LlmId, NodeId, PoolId, ServiceId, VariantId
from models.observation import Finding, VariantObservation
from models.problem import (
    Candidate,
    CostUnit,
    Demand,
    DemandBucket,
    NodeState,
    PoolState,
    Problem,
    candidate_id,
)
from models.saturation import Headroom
from models.scenario import Mode, Objective, ObjectiveLevel
from models.variant import Role
from planner.control.analysis import Move, VariantRef, VariantSeen, ref_of
from planner.control.analysis.reading import MOST_REPLICAS, most_replicas
from planner.control.deciding.policy import Question
from planner.control.deciding.room import Room
from planner.control.deciding.token_groups import Group, groups_of, within_reach

__all__ = ["TokenProblem", "named", "token_problem"]

_UNIT: Final = 1000.0
_LEAST, _MOST = 1e-6, 1e7
_DEAREST: Final = 1e9
_MOST_GPUS: Final = 10**5
_MOST_QUOTA: Final = 10**9
_LONGEST_TOKENS: Final = 10**8
"""What people and engines may say is cut to what solvers can count; nothing real is anywhere near."""
_NAME: Final = re.compile(NAME_PATTERN)
_LONGEST: Final = 80
_UNKNOWN: Final = "unknown"
_LEVELS: Final = (ObjectiveLevel.UNSERVED, ObjectiveLevel.COST, ObjectiveLevel.CHANGES)
_TOLERANCE: Final = 1e-4
_Asked = Sequence[tuple[Group, VariantSeen]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenProblem:
    """A problem with who is who in it.

    Attributes:
        problem: for the solvers.
        groups: by demand.
        variants: by candidate.
        findings: services that are left out.
    """

    problem: Problem
    groups: Mapping[str, Group]
    variants: Mapping[str, VariantSeen]
    findings: tuple[Finding, ...] = ()


def token_problem(
    question: Question, *, tolerance: float = _TOLERANCE, yielding: float = -math.inf
) -> TokenProblem | None:
    """The problem of all services that may move; None: none may.

    Args:
        question: what is observed, and who may move.
        tolerance: share by which a plan may be dearer than the cheapest for the sake of fewer changes.
        yielding: services below this priority may give accelerators up though nothing of their own moves them.
    """
    found = (
        group
        for one in question.services
        for group in groups_of(one, yields=one.seen.rules.priority < yielding)
    )
    groups = sorted(found, key=lambda one: one.key)
    asked = [
        (group, seen) for group in groups for seen in group.service.seen.variants if seen.ref in group.carries
    ]
    if not asked:
        return None
    room = _room_of(question, asked)
    reach = {
        seen.ref: max(seen.wanted, min(most_replicas(seen.observed), room.fitting(seen.observed)))
        for _, seen in asked
    }
    groups = [within_reach(group, reach) for group in groups]
    pools = _Pools(room)
    floors = _floors(question, asked)
    made, findings = _candidates(groups, pools, floors)
    kept = {candidate.service for candidate, _ in made}
    groups = [group for group in groups if named(group.key) in kept]
    if not groups:
        return None
    priorities = sorted({group.service.seen.rules.priority for group in groups})
    problem = Problem(
        name="controller",
        mode=Mode.CONSTRAINED if room.free else Mode.UNCONSTRAINED,
        cost_unit=CostUnit.RELATIVE,
        demands=tuple(sorted(
            (_demand(one, priorities.index(one.service.seen.rules.priority)) for one in groups), key=lambda d: d.service
        )),
        candidates=tuple(sorted((candidate for candidate, _ in made), key=lambda c: c.id)),
        pools=pools.states(),
        quotas=_quotas(room, asked, floors),
        objective=Objective(levels=_LEVELS, tolerance=tolerance),
        allow_unserved=True,
    )  # fmt: skip
    return TokenProblem(
        problem=problem,
        groups={named(group.key): group for group in groups},
        variants={candidate.id: seen for candidate, seen in made},
        findings=findings,
    )


def _candidates(
    groups: Sequence[Group], pools: _Pools, floors: Mapping[VariantRef, int]
) -> tuple[list[tuple[Candidate, VariantSeen]], tuple[Finding, ...]]:
    """Candidates of all groups; one of which something cannot be counted with is left out as a whole, and held."""
    found: list[tuple[Candidate, VariantSeen]] = []
    findings: list[Finding] = []
    for group in groups:
        mine = [seen for seen in group.service.seen.variants if seen.ref in group.carries]
        try:
            found += [(_candidate(group, one, pools.of(one.observed), floors[one.ref]), one) for one in mine]
        except ValidationError as cause:
            where = ".".join(map(str, cause.errors(include_url=False, include_input=False)[0]["loc"]))
            findings.append(
                Finding(
                    subject=f"service {group.service.seen.key}",
                    problem=f"nothing can be counted with its {where}; it is held",
                )
            )
    return found, tuple(findings)


def _room_of(question: Question, asked: _Asked) -> Room:
    """What those who are asked about may use: what is free, and what they hold."""
    if question.room is None:
        return Room()
    refs = {seen.ref for _, seen in asked}
    others = [one for one in question.observation.variants if ref_of(one) not in refs]
    ours = [seen.observed for _, seen in asked]
    return question.room(others, ours)


def _floors(question: Question, asked: _Asked) -> dict[VariantRef, int]:
    """Replicas below which a variant does not go: what runs or starts of a role that grows; its minimum otherwise.

    Replicas on order that nothing has room for keep nobody from growing elsewhere.
    """
    starts = any(seen.observed.pending for _, seen in asked)
    room = None
    if question.room is not None and starts:
        ready = [
            one.model_copy(update={"pending": 0, "wanted": one.ready})
            for one in question.observation.variants
        ]
        room = question.room(ready, ())
    found = {}
    for group, seen in asked:
        floor = seen.observed.min_replicas
        if group.moves[seen.observed.role.value] is Move.UP:
            ready_now = min(seen.observed.ready, seen.wanted)
            pending = seen.wanted - ready_now
            floor = max(
                floor, ready_now + (pending if room is None else room.take(seen.observed, pending).replicas)
            )
        most = seen.observed.max_replicas
        found[seen.ref] = floor if most is None else min(floor, most)
    return found


def _candidate(group: Group, seen: VariantSeen, pool: PoolState, floor: int) -> Candidate:
    carries, observed = group.carries[seen.ref], seen.observed
    # A replica that carries next to nothing of the demand would need more replicas than anybody has.
    rated = min(_MOST, max(_LEAST, carries.rated / _UNIT, _load(group) / MOST_REPLICAS))
    most = max(MOST_REPLICAS, 2 * seen.wanted, floor)
    ready = min(observed.ready, seen.wanted)
    variant, service = VariantId(named(str(seen.ref))), ServiceId(named(group.key))
    return Candidate(
        id=candidate_id(service, variant, pool.id),
        service=service,
        variant=variant,
        role=observed.role if len(group.moves) > 1 else Role.BOTH,
        pool=pool.id,
        accelerator=pool.accelerator,
        pods_per_replica=min(_MOST_GPUS, observed.pods_per_replica),
        gpus_per_pod=min(_MOST_GPUS, max(1, observed.gpus // observed.pods_per_replica)),
        rated_rps=rated,
        surge_rps=max(rated, min(_MOST, carries.surge / _UNIT)),
        cost=min(_DEAREST, observed.cost),
        min_replicas=floor,
        max_replicas=most if observed.max_replicas is None else min(most, observed.max_replicas),
        current=ready,
        pending=seen.wanted - ready,
        object=observed.target,
        source="analyzers of the controller",
    )


def _demand(group: Group, priority: int) -> Demand:
    seen, traffic = group.service.seen, group.service.reading.traffic
    bucket = DemandBucket(
        id="tokens",
        arrival_rps=_load(group),
        input_tokens=_whole(traffic.input_tokens),
        output_tokens=_whole(traffic.output_tokens),
    )
    return Demand(
        service=ServiceId(named(group.key)),
        llm=LlmId(named(seen.model)),
        namespace=named(seen.namespace),
        priority=priority,
        buckets=(bucket,),
        headroom=_headroom(group),
    )


def _load(group: Group) -> float:
    return min(_MOST, _rounded_up(group.planned / _UNIT))


def _whole(tokens: float) -> int:
    return max(1, round(min(tokens, _LONGEST_TOKENS)))


def _headroom(group: Group) -> Headroom:
    """δ in the unit of the problem: a burst is a share of what arrives, tokens are tokens.

    Load and δ together stay within reach of what all replicas carry, as the load alone does.
    """
    delta = group.service.seen.roles[min(group.moves)].rules.delta
    free = max(0.0, group.most - group.planned)
    if delta.kv_tokens is not None:
        return Headroom(burst_rps=min(_MOST, free / _UNIT, delta.kv_tokens / _UNIT))
    most = min(_MOST, free / group.planned) if group.planned > 0 else _MOST
    if delta.burst_rps is not None:
        arrivals = group.service.seen.traffic.arrival_rps
        return (
            Headroom(relative=min(most, _rounded_up(delta.burst_rps / arrivals))) if arrivals else Headroom()
        )
    return delta if delta.relative is None or delta.relative <= most else Headroom(relative=most)


class _Pools:
    """Pools of the problem: all nodes of a type in a cluster are one, since a count is decided and not a place."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._made: dict[str, PoolState] = {}

    def of(self, variant: VariantObservation) -> PoolState:
        key = self._room.key_of(variant)
        # What no inventory speaks of is nobody's to share.
        where = str(ref_of(variant)) if key is None and self._room.free else key
        where = where or f"{variant.cluster or ''}/{variant.accelerator or _UNKNOWN}"
        if where not in self._made:
            self._made[where] = self._pool(where.strip("/"), key, variant)
        return self._made[where]

    def _pool(self, name: str, key: str | None, variant: VariantObservation) -> PoolState:
        pool = PoolId(named(name))
        return PoolState(
            id=pool,
            accelerator=AcceleratorId(named(variant.accelerator or _UNKNOWN)),
            cluster=variant.cluster,
            failure_domain=DomainId(pool),
            nodes=() if key is None else _nodes(self._room.free.get(key, {})),
            # Where no inventory speaks of a type nothing bounds it.
            growth=NodeGrowth(gpus_per_node=min(_MOST_GPUS, variant.gpus))
            if key is None and self._room.free
            else None,
        )

    def states(self) -> tuple[PoolState, ...]:
        return tuple(sorted(self._made.values(), key=lambda pool: pool.id))


def _nodes(free: Mapping[int, int]) -> tuple[NodeState, ...]:
    return tuple(
        NodeState(id=NodeId(f"{size}-free-{place}"), gpus=size, free_gpus=size)
        for size, count in sorted(free.items())
        if size > 0
        for place in range(count)
    )


def _quotas(room: Room, asked: _Asked, floors: Mapping[VariantRef, int]) -> tuple[Quota, ...]:
    """Quotas as those who are asked about may use them: what is left, and what they hold themselves."""
    found: list[Quota] = []
    for place, (quota, left) in enumerate(room.quotas):
        bound = [seen for _, seen in asked if room.binds(quota, seen.observed)]
        held = sum(max(seen.observed.ready, floors[seen.ref]) * seen.observed.gpus for seen in bound)
        types = {seen.observed.accelerator for seen in bound}
        there = {seen.observed.accelerator for _, seen in asked if seen.observed.namespace == quota.namespace}
        kinds = [None] if types == there else sorted(types)
        found += [
            Quota(
                id=f"quota-{place}{'' if kind is None else f'-{named(kind or _UNKNOWN)}'}",
                gpus=min(_MOST_QUOTA, left + held),
                accelerator=None if kind is None else AcceleratorId(named(kind or _UNKNOWN)),
                namespace=named(quota.namespace),
                cluster=quota.cluster,
            )
            for kind in kinds
            if bound
        ]
    return tuple(sorted(found, key=lambda one: one.id))


def named(text: str) -> str:
    """A text as a name that stays the same from cycle to cycle, whatever people wrote."""
    if len(text) <= _LONGEST and _NAME.match(text):
        return text
    return f"x{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"


def _rounded_up(value: float) -> float:
    """Three digits, upwards: noise makes no other problem, and nothing is owed less than is asked for."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.3g}")
