"""A scenario file and what is observed -> a problem: capacity as sizing rates it, demand as it arrives and waits.

The scenario says what replicas carry within their promises, what they cost and which limits there are. The cluster says
what arrives, how long requests are, what runs, which bounds people wrote and which nodes there are. γ says whether a
service may move down, and up; it may move up too where what is rated does not carry what arrives. Between nothing moves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from models.hardware import Node, Pool
from models.ids import NodeId, PoolId, VariantId
from models.observation import Observation
from models.problem import Candidate, Demand, DemandBucket, Incumbent, Problem, VariantBounds
from models.scenario import Mode, Scenario
from models.workload import Bucket
from models.workload import Service as Stated
from planner.control.analysis import Move, Service, VariantRef, VariantSeen, ref_of
from planner.control.deciding.policy import Question
from planner.control.deciding.scenario_matching import Matched
from planner.planning import sized

__all__ = ["ScenarioSizes", "demand_rps", "scenario_problem"]

_WITHIN: Final = 1.1
"""Lengths that differ by less are taken to be the same."""
_LONGEST: Final = 10**8
_MOST_RPS: Final = 1e7
_BY_A_HAIR: Final = 1e-2
_Lengths = tuple[int, int]


@dataclass(slots=True)
class ScenarioSizes:
    """Sized problems by what they were sized for, so that a cycle in which no length changed sizes nothing.

    Attributes:
        scenario: as stated.
        kept: the last problems.
    """

    scenario: Scenario
    kept: dict[str, Problem] = field(default_factory=dict)

    def sized(self, stated: Scenario) -> Problem:
        """The problem of a scenario, sized once."""
        key = stated.fingerprint
        if key not in self.kept:
            if len(self.kept) >= 8:  # noqa: PLR2004 - lengths go back and forth over few steps
                self.kept.pop(next(iter(self.kept)))
            self.kept[key] = sized(stated, allow_unserved=True)
        return self.kept[key]


def demand_rps(service: Service, *, drain_s: float) -> float | None:
    """Requests per second: those that arrive, and those that wait over the time in which they are to be served.

    None: nobody tells what arrives.
    """
    traffic = service.seen.traffic
    engines = [one for variant in service.seen.variants for one in variant.engines]
    arrivals = traffic.arrival_rps
    if arrivals is None:
        rates = [one.request_rps for one in engines]
        if not rates or None in rates:
            return None
        arrivals = math.fsum(rate for rate in rates if rate is not None) * service.growth
    waiting = 0.0 if service.stuck else math.fsum(one.waiting_now or one.waiting or 0.0 for one in engines)
    return min(_MOST_RPS, arrivals + ((traffic.queued or 0.0) + waiting) / drain_s)


def scenario_problem(
    question: Question, sizes: ScenarioSizes, matched: Matched, *, rates: Mapping[str, float]
) -> tuple[Problem, Mapping[str, VariantSeen]]:
    """The problem of the services that were found, and their variants by candidate.

    Args:
        question: with what is observed.
        sizes: of the scenario.
        matched: who is who.
        rates: demand by service of the scenario, req/s; others are left out.
    """
    scenario = _as_observed(sizes.scenario, question, matched, rates)
    base = sizes.sized(scenario)
    of_candidate: dict[str, VariantSeen] = {
        one.id: matched.variants[one.service, one.variant]
        for one in base.candidates
        if (one.service, one.variant) in matched.variants
    }
    pools = {pool.id: {node.id for node in pool.nodes} for pool in base.pools}
    seated = tuple(sorted(_seated(base, of_candidate), key=lambda one: (one.candidate, one.nodes)))
    candidates = tuple(_running(one, of_candidate.get(one.id), base, pools) for one in base.candidates)
    of_service: dict[str, list[Candidate]] = {one.service: [] for one in base.demands}
    for candidate in candidates:
        of_service[candidate.service].append(candidate)
    demands = tuple(
        _demand(one, matched, of_service[one.service], rate=rates[one.service]) for one in base.demands
    )
    return base.but(
        candidates=candidates, demands=demands, incumbents=seated, name="controller", allow_unserved=True
    ), of_candidate


def _as_observed(
    scenario: Scenario, question: Question, matched: Matched, rates: Mapping[str, float]
) -> Scenario:
    """The scenario with the services that are there, lengths as they are seen, and the nodes of now."""
    there = [one for one in scenario.services if one.id in rates]
    names = {one.id for one in there}
    there = [one for one in there if one.shares_replicas_of is None or one.shares_replicas_of in names]
    services = tuple(_with_lengths(one, matched.services[one.id]) for one in there)
    ours = {seen.ref for seen in matched.variants.values()}
    changes: dict[str, object] = {"services": services, "fleet": scenario.fleet.but(running=())}
    if question.room is None:
        changes["mode"] = Mode.UNCONSTRAINED
    elif question.observation.pools:
        foreign = _held_by_others(question.observation, ours)
        changes["pools"] = tuple(
            _pool_now(one, scenario.pools, question.observation, foreign) for one in scenario.pools
        )
    return scenario.but(**changes)


def _with_lengths(stated: Stated, service: Service) -> Stated:
    """One shape of the lengths that are seen, on a coarse scale; as stated where they are near, or not known."""
    seen = service.reading.traffic
    rate = stated.arrival_rps
    if seen.input_tokens <= 0 or seen.output_tokens <= 0:
        return stated
    if rate > 0:
        means = [
            math.fsum(b.arrival_rps * getattr(b, name) for b in stated.buckets) / rate
            for name in ("input_tokens", "output_tokens")
        ]
        found = (seen.input_tokens, seen.output_tokens)
        if all(abs(math.log(a / b)) <= math.log(_WITHIN) for a, b in zip(found, means, strict=True)):
            return stated
    bucket = Bucket(
        id="seen",
        arrival_rps=max(rate, 1.0),
        input_tokens=_coarse(seen.input_tokens),
        output_tokens=_coarse(seen.output_tokens),
        cached_share=stated.buckets[0].cached_share,
    )
    return stated.but(buckets=(bucket,))


def _coarse(tokens: float) -> int:
    """On a scale of steps of 10 %, so that noise sizes nothing again."""
    step = round(math.log(min(_LONGEST, max(1.0, tokens))) / math.log(_WITHIN))
    return min(_LONGEST, max(1, round(_WITHIN**step)))


def _held_by_others(observation: Observation, ours: set[VariantRef]) -> dict[str, int]:
    """Accelerators by node that variants hold which are not asked about."""
    held: dict[str, int] = {}
    for variant in observation.variants:
        if ref_of(variant) not in ours:
            for node in variant.nodes:
                held[node] = held.get(node, 0) + max(1, variant.gpus // variant.pods_per_replica)
    return held


def _pool_now(
    pool: Pool, stated: Sequence[Pool], observation: Observation, foreign: Mapping[str, int]
) -> Pool:
    """A stated pool with the nodes that there are: those that it names, else those of its type, cluster and place."""
    alike = [
        node
        for seen in observation.pools
        if seen.accelerator == pool.accelerator
        and pool.cluster in (None, seen.cluster)
        and _same_place(pool, seen, stated)
        for node in seen.nodes
    ]
    names = {node.id for node in pool.nodes}
    named = [node for node in alike if node.id in names]
    return pool.but(nodes=tuple(_node(node, foreign.get(node.id, 0)) for node in (named or alike)))


def _same_place(pool: Pool, seen: Pool, stated: Sequence[Pool]) -> bool:
    """Whether nodes of an observed pool are those of a stated one; with one stated pool of a type all are."""
    rivals = [one for one in stated if (one.accelerator, one.cluster) == (pool.accelerator, pool.cluster)]
    if len(rivals) == 1:
        return True
    ids = {node.id for node in seen.nodes}
    if any(node.id in ids for one in rivals for node in one.nodes):
        return any(node.id in ids for node in pool.nodes)
    if pool.failure_domain is not None and seen.failure_domain is not None:
        return pool.failure_domain == seen.failure_domain and pool.offering.market == seen.offering.market
    return pool is rivals[0]


def _node(node: Node, held: int) -> Node:
    return node.but(foreign_gpus=min(node.gpus, node.foreign_gpus + held)) if held else node


def _running(
    candidate: Candidate, seen: VariantSeen | None, base: Problem, pools: Mapping[PoolId, set[NodeId]]
) -> Candidate:
    """A candidate with the replicas that run in its pool; one that is not in the cluster may have none."""
    if seen is None:
        return candidate.but(min_replicas=0, max_replicas=0, current=0, pending=0, scale_in_permitted=True)
    ready, pending = _replicas_in(seen, candidate, base, pools)
    return candidate.but(
        min_replicas=0, max_replicas=None, current=ready, pending=pending, scale_in_permitted=True
    )


def _replicas_in(
    seen: VariantSeen, candidate: Candidate, base: Problem, pools: Mapping[PoolId, set[NodeId]]
) -> tuple[int, int]:
    """Ready replicas by the nodes that they are on; those of which no node is known, and those on order, in the first pool."""
    mine = [one for one in base.candidates_of[candidate.service] if one.variant == candidate.variant]
    ready = min(seen.observed.ready, seen.wanted)
    nodes = seen.observed.nodes[:ready]
    where = [next((one.id for one in mine if node in pools.get(one.pool, set())), None) for node in nodes]
    here = sum(one == candidate.id for one in where)
    if candidate.id == mine[0].id:
        known = sum(one is not None for one in where)
        return here + ready - known, seen.wanted - ready
    return here, 0


def _seated(base: Problem, of_candidate: Mapping[str, VariantSeen]) -> Iterator[Incumbent]:
    """Replicas on nodes that take no pods any more: what they hold there is theirs, and nobody else's.

    Others have no seat: where they are is no concern of a count, and whoever grants growth looks at nodes as they are.
    """
    closed = {
        (pool.id, node.id)
        for pool in base.pools
        for node in pool.nodes
        if node.holds_pods and not node.accepts_pods
    }
    for candidate in base.candidates:
        seen = of_candidate.get(candidate.id)
        if seen is None or candidate.pods_per_replica != 1:
            continue
        on = Counter(seen.observed.nodes[: min(seen.observed.ready, seen.wanted)])
        for node, count in on.items():
            if (candidate.pool, node) in closed:
                yield Incumbent(candidate=candidate.id, nodes=(NodeId(node),), count=count)


def _demand(demand: Demand, matched: Matched, mine: Sequence[Candidate], *, rate: float) -> Demand:
    """A demand at the rate of now, with bounds by which way its variants may move; ``mine`` are its candidates."""
    service = matched.services[demand.service]
    rate = min(_MOST_RPS, max(rate, _shown_rps(service, mine)))
    return demand.but(
        buckets=_at_rate(demand, rate),
        variants=tuple(
            _bounds(variant, seen, _move(service, seen, mine, rate))
            for variant in sorted({one.variant for one in mine})
            if (seen := matched.variants.get((demand.service, variant))) is not None
        ),
        headroom=demand.headroom if _says_nothing(service) else service.seen.rules.delta,
        min_replicas=0,
        max_replicas=None,
    )


def _shown_rps(service: Service, mine: Sequence[Candidate]) -> float:
    """The rate that the fullness of its replicas shows, by what they are rated for: where ratings promise too much, it counts.

    Full to the trigger (τ - γ) is as much as rated; where only a queue asks for more, a hair more than what is on order.
    """
    shown = 0.0
    for role in service.seen.roles:
        step = service.step(service.tokens, role)
        if step is None or service.move(role) is Move.HOLD:
            continue
        usable = service.seen.roles[role].usable
        of_role = [one for one in mine if one.role == role and not one.unrated]
        ready = math.fsum(one.rated_rps * one.current for one in of_role)
        on_order = math.fsum(one.rated_rps * one.on_order for one in of_role)
        if service.move(role) is Move.UP:
            full = step.demand / (usable * step.anticipated) if step.anticipated > 0 else 0.0
            shown = max(shown, on_order * max(full, 1.0 + _BY_A_HAIR))
        elif step.supply > 0:
            shown = max(shown, ready * (step.demand + step.hidden) / (usable * step.supply))
    return shown


def _says_nothing(service: Service) -> bool:
    delta = service.seen.rules.delta
    return delta.relative is None and delta.burst_rps is None and delta.kv_tokens is None


def _move(service: Service, seen: VariantSeen, mine: Sequence[Candidate], rate: float) -> Move:
    role = seen.observed.role
    move = service.move(role.value)
    rated = math.fsum(one.rated_rps * one.on_order for one in mine if one.role is role and not one.unrated)
    return Move.UP if rated < rate else move


def _bounds(variant: str, seen: VariantSeen, move: Move) -> VariantBounds:
    observed = seen.observed
    most = observed.max_replicas
    least = observed.min_replicas if most is None else min(observed.min_replicas, most)
    if seen.paused or move is Move.HOLD:
        least = most = seen.wanted
    elif move is Move.UP:
        least = max(least, seen.wanted)
        most = None if most is None else max(most, least)
    return VariantBounds(variant=VariantId(variant), min_replicas=least, max_replicas=most)


def _at_rate(demand: Demand, rate: float) -> tuple[DemandBucket, ...]:
    """Its shapes in the same shares; three digits, so that equal traffic gives equal plans."""
    total, wanted = demand.arrival_rps, float(f"{rate:.3g}")
    share = 1 / len(demand.buckets)
    return tuple(
        bucket.but(arrival_rps=wanted * (bucket.arrival_rps / total if total > 0 else share))
        for bucket in demand.buckets
    )
