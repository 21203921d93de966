"""An elastic variant becomes several: what stays, each size it can change to on each way, and further replicas.

Which sizes can be reached, and what a way takes, is known by :mod:`planner.elastic`. Each of them is an ordinary
variant from then on, so that every limit, every analyzer and every solver treats it as any other; that a replica
cannot stay and go is one family of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from models.elastic import Dialect, ElasticDeployment, ElasticShape, ResizeMode
from models.explanation import Reason, Rejection
from models.fleet import RunningVariant
from models.hardware import Pool
from models.ids import DomainId, PoolId, ServiceId, VariantId
from models.llm import Llm
from models.problem import Resize, candidate_id
from models.resizing import ResizeEstimate, SizeVerdict
from models.scenario import Scenario
from models.variant import Capacity, Cost, Variant
from models.workload import Service
from planner.elastic import (
    ResizeQuestion,
    estimate_resize,
    judge_size,
    largest_ranks,
    measured_sizes,
    mode_of,
    rate_at,
    reachable_sizes,
    refusal_text,
)
from planner.errors import ConfigurationError, Finding
from planner.performance.weights import routed_parameters, weight_bytes_per_accelerator
from planner.sizing.money import price_of
from planner.sizing.names import Names
from planner.sizing.references import finding

__all__ = ["Expanded", "Way", "elastic_findings", "expanded", "resize_question", "shape_of"]

_SECONDS_PER_H = 3600.0
_LAUNCHES_AT_MOST = 64


@dataclass(frozen=True, slots=True)
class Way:
    """One way of the replicas of one variant in one pool to another size.

    Attributes:
        of: variant that they are now.
        pool: that they run in.
        estimate: what it takes.
        hindered: requests that are lost or delayed.
        deployment: as it is stated.
    """

    of: VariantId
    pool: PoolId
    estimate: ResizeEstimate
    hindered: float
    deployment: ElasticDeployment

    def resize(self, service: ServiceId, domain: DomainId | None) -> Resize:
        """As a candidate holds it."""
        estimate = self.estimate
        return Resize(
            of=candidate_id(service, self.of, self.pool, domain),
            mode=estimate.mode,
            from_ranks=estimate.from_ranks,
            to_ranks=estimate.to_ranks,
            downtime_s=estimate.downtime.expected_s,
            lead_s=estimate.lead_s,
            idle_gpu_seconds=estimate.idle_gpu_seconds,
            hindered_requests=self.hindered,
            engine=self.deployment.engine,
            url=self.deployment.url,
            moving_gpus=estimate.peak_gpus,
        )


@dataclass(frozen=True, slots=True)
class Expanded:
    """A scenario without elastic variants, and what became of them.

    Attributes:
        scenario: with what they became.
        ways: by service and variant.
        staying: variants that running elastic replicas are; no more of these than run.
        refused: sizes that were measured and cannot be reached.
    """

    scenario: Scenario
    ways: Mapping[tuple[ServiceId, VariantId], Way]
    staying: frozenset[tuple[ServiceId, VariantId]]
    refused: tuple[Rejection, ...]


def shape_of(variant: Variant, elastic: ElasticDeployment, llm: Llm) -> ElasticShape:
    """What decides its sizes.

    Raises:
        ConfigurationError: the LLM has no experts that are known; :func:`elastic_findings` says so with its place.
    """
    if llm.moe is None:
        raise ConfigurationError(f"{llm.id} has no experts, so {variant.id} has no sizes")
    launch = variant.parallelism.dp
    per_pod = launch // variant.pods_per_replica if launch % variant.pods_per_replica == 0 else 1
    together = math.lcm(elastic.rank_group, per_pod if variant.pods_per_replica > 1 else 1)
    return ElasticShape(
        experts=llm.moe.experts,
        launch_ranks=launch,
        redundant_experts=variant.engine_arguments.redundant_experts,
        tensor_parallel=variant.parallelism.tp,
        max_ranks=elastic.max_ranks,
        rank_group=min(together, 4096),
    )


def elastic_findings(scenario: Scenario, names: Names) -> Iterator[Finding]:
    """What contradicts itself in elastic variants and their replicas."""
    for i, service in enumerate(scenario.services):
        for j, variant in enumerate(service.variants):
            if variant.elastic is not None:
                yield from _variant_findings(f"services[{i}].variants[{j}]", variant, names.llms[service.llm])
    elastic = {(s.id, v.id) for s in scenario.services for v in s.variants if v.elastic is not None}
    for i, row in enumerate(scenario.fleet.running):
        if row.ranks is not None and (row.service, row.variant) not in elastic:
            yield finding(
                f"fleet.running[{i}].ranks",
                f"a size of {row.service}/{row.variant}, which is not elastic",
                allowed="ranks where the variant has elastic",
            )


def _variant_findings(path: str, variant: Variant, llm: Llm) -> Iterator[Finding]:
    if llm.moe is None:
        yield finding(
            f"{path}.elastic",
            f"an elastic deployment of {llm.id}, which has no experts",
            allowed="an LLM with experts (moe)",
        )
    if variant.parallelism.pp > 1:
        yield finding(
            f"{path}.parallelism.pp",
            f"{variant.parallelism.pp} pipeline stages in an elastic deployment",
            allowed="1",
        )
    for name in ("min_replicas", "max_replicas"):
        if getattr(variant, name) not in (None, 0):
            yield finding(
                f"{path}.{name}",
                "bounds of an elastic variant, which becomes several",
                allowed="bounds of its service",
            )
    if variant.elastic is not None and variant.elastic.rates and variant.capacity != Capacity():
        yield finding(f"{path}.capacity", "a capacity beside rates by size", allowed="one of capacity and elastic.rates")  # fmt: skip


def expanded(scenario: Scenario, names: Names) -> Expanded:
    """Every elastic variant as what it can be; the scenario itself where there is none.

    Args:
        scenario: normalized, without findings.
        names: accelerators and LLMs.
    """
    if not any(v.elastic is not None for s in scenario.services for v in s.variants):
        return Expanded(scenario, {}, frozenset(), ())
    pools = {pool.id: pool for pool in scenario.pools}
    rows: dict[tuple[ServiceId, VariantId], list[RunningVariant]] = {}
    for row in scenario.fleet.running:
        rows.setdefault((row.service, row.variant), []).append(row)
    made = [
        _Expansion(service, variant, rows.get((service.id, variant.id), []), pools, names)
        for service in scenario.services
        for variant in service.variants
        if variant.elastic is not None
    ]
    by_variant = {(one.service.id, one.variant.id): one for one in made}
    return Expanded(
        scenario=_with(scenario, by_variant),
        ways={key: way for one in made for key, way in one.ways.items()},
        staying=frozenset(key for one in made for key in one.staying),
        refused=tuple(rejection for one in made for rejection in one.refused),
    )


def _with(scenario: Scenario, by_variant: Mapping[tuple[ServiceId, VariantId], _Expansion]) -> Scenario:
    services = []
    for service in scenario.services:
        variants: list[Variant] = []
        for variant in service.variants:
            one = by_variant.get((service.id, variant.id))
            variants += [variant] if one is None else one.variants
        services.append(service.but(variants=tuple(variants)))
    running = tuple(
        row if (one := by_variant.get((row.service, row.variant))) is None else one.row(row)
        for row in scenario.fleet.running
    )
    return scenario.but(services=tuple(services), fleet=scenario.fleet.but(running=running))


class _Expansion:
    """What one elastic variant becomes."""

    def __init__(
        self,
        service: Service,
        variant: Variant,
        rows: list[RunningVariant],
        pools: Mapping[PoolId, Pool],
        names: Names,
    ) -> None:
        self.service, self.variant = service, variant
        self._elastic = variant.elastic or ElasticDeployment()
        self._llm = names.llms[service.llm]
        shape = shape_of(variant, self._elastic, self._llm)
        self._shape, self._names = shape, names
        self.ways: dict[tuple[ServiceId, VariantId], Way] = {}
        self.refused: list[Rejection] = []
        # Of one deployment in two pools each has ways of its own, since a way is of one pool.
        self._scattered = len({row.pool for row in rows if row.on_order}) > 1
        made: dict[VariantId, Variant] = {}
        for row in sorted((row for row in rows if row.on_order), key=lambda row: row.pool):
            size = row.ranks or shape.launch_ranks
            stays = self._name_of(size)
            known = made.get(stays)
            where = (row.pool, *(known.pools if known else ()))
            made[stays] = self._sized(stays, size, launched=size == shape.launch_ranks).but(
                pools=tuple(sorted(set(where)))
            )
            made |= self._ways_of(stays, size, pools[row.pool])
        self.staying = {
            (service.id, self._name_of(row.ranks or shape.launch_ranks)) for row in rows if row.on_order
        }
        further = VariantId(variant.id if variant.id not in made else f"{variant.id}:new")
        made[further] = self._further(further, pools) if rows else self._launched(further)
        self.variants = [made[name] for name in sorted(made)]

    def row(self, row: RunningVariant) -> RunningVariant:
        """A row of the fleet under the name that its replicas have now."""
        size = row.ranks or self._shape.launch_ranks
        return row.but(variant=self._name_of(size), ranks=None)

    def _name_of(self, size: int) -> VariantId:
        launched = size == self._shape.launch_ranks
        return VariantId(self.variant.id if launched else f"{self.variant.id}:{size}")

    def _launched(self, name: VariantId) -> Variant:
        return self._sized(name, self._shape.launch_ranks, launched=True).but(pools=self.variant.pools)

    def _further(self, name: VariantId, pools: Mapping[PoolId, Pool]) -> Variant:
        """A further replica; beside ways that count accelerators that wait, those that start must count too."""
        ranks = self._shape.launch_ranks
        variant = self._launched(name)
        launch = estimate_resize(self._question((ranks + 1, ranks), ResizeMode.REDEPLOY))
        may = [p for p in pools.values() if (p.id in variant.pools or not variant.pools)]
        where = [p for p in may if p.accelerator == variant.accelerator]
        costs = [self._transition_cost(variant, pool, launch, 0.0) for pool in where]
        return variant.but(
            startup_s=max(variant.startup_s, launch.total.expected_s),
            startup_cost_usd=variant.startup_cost_usd + min(costs, default=0.0),
        )

    def _sized(self, name: VariantId, ranks: int, *, launched: bool, copies: int | None = None) -> Variant:
        """The variant at a size: ``launched`` there, or resized to it, which keeps experts on ranks as they are."""
        variant, shape = self.variant, self._shape
        parallelism = variant.parallelism
        ep = ranks * parallelism.tp if parallelism.ep > 1 else 1
        held = shape.slots_per_rank * ranks * shape.tensor_parallel - shape.experts
        redundant = int(held) if copies is None else copies
        pods = variant.pods_per_replica
        return variant.but(
            id=name,
            parallelism=parallelism.but(dp=ranks, ep=ep),
            # What is placed on a node is a rank, whoever bundles ranks in pods said so.
            pods_per_replica=pods * ranks // shape.launch_ranks if pods > 1 else ranks,
            engine_arguments=variant.engine_arguments.but(redundant_experts=max(0, redundant)),
            capacity=self._capacity(ranks, launched=launched),
            cost=_scaled(variant.cost, ranks / shape.launch_ranks),
            elastic=None,
        )

    def _capacity(self, ranks: int, *, launched: bool) -> Capacity:
        rate = rate_at(self._elastic.rates, ranks, redeployed=launched)
        if rate is None:
            return self.variant.capacity
        return Capacity(
            rated_rps=rate.rated_rps,
            surge_rps=rate.surge_rps,
            kv_tokens=rate.kv_tokens,
            residence_s=self.variant.capacity.residence_s,
            power_w=None,
        )

    def _ways_of(self, stays: VariantId, size: int, pool: Pool) -> dict[VariantId, Variant]:
        """Every size that replicas of this size in this pool can change to, on every way."""
        made: dict[VariantId, Variant] = {}
        mode = mode_of(self._elastic.engine)
        engine, shape = self._elastic.engine, self._shape
        if mode is not None:
            for ranks in reachable_sizes(shape, engine=engine, current=size):
                if ranks != size and self._is_rated(ranks, launched=False):
                    made |= self._way(stays, (size, ranks), mode, pool)
        for ranks in self._launches():
            if ranks != size and self._is_rated(ranks, launched=True):
                for launch in (ResizeMode.REDEPLOY, ResizeMode.RESTART):
                    made |= self._way(stays, (size, ranks), launch, pool)
        for ranks in measured_sizes(self._elastic.rates):
            verdict = judge_size(shape, ranks, engine=engine, current=size)
            if not verdict.reachable:
                self.refused.append(self._rejection(verdict, size, pool))
        return made

    def _is_rated(self, ranks: int, *, launched: bool) -> bool:
        return not self._elastic.rates or rate_at(self._elastic.rates, ranks, redeployed=launched) is not None

    def _launches(self) -> list[int]:
        """Sizes at which it could be launched: each holds every expert once and divides them evenly, or was measured."""
        tp, experts = self._shape.tensor_parallel, self._shape.experts
        most = max(largest_ranks(self._shape, self._elastic.engine), 2 * self._shape.launch_ranks)
        measured = measured_sizes(self._elastic.rates)
        even = [n for n in range(1, most + 1) if experts % (n * tp) == 0]
        whole = [n for n in sorted({*even, *measured}) if n % self._shape.rank_group == 0 and n * tp > 1]
        return whole[-_LAUNCHES_AT_MOST:]

    def _way(
        self, stays: VariantId, sizes: tuple[int, int], mode: ResizeMode, pool: Pool
    ) -> dict[VariantId, Variant]:
        size, ranks = sizes
        place = f"@{pool.id}" if self._scattered else ""
        name = VariantId(f"{self.variant.id}:{size}-{ranks}-{mode.value}{place}")
        launched = mode.launches
        ep = ranks * self._shape.tensor_parallel
        copies = -(-self._shape.experts // ep) * ep - self._shape.experts if launched else None
        variant = self._sized(name, ranks, launched=launched, copies=copies)
        estimate = estimate_resize(self._question(sizes, mode))
        hindered = self._hindered(estimate)
        self.ways[self.service.id, name] = Way(stays, pool.id, estimate, hindered, self._elastic)
        return {
            name: variant.but(
                pools=(pool.id,),
                startup_s=estimate.lead_s,
                startup_cost_usd=self._transition_cost(variant, pool, estimate, hindered),
            )
        }

    def _question(self, sizes: tuple[int, int], mode: ResizeMode) -> ResizeQuestion:
        return resize_question(self._elastic, self._shape, sizes, mode, llm=self._llm, variant=self.variant)

    def _hindered(self, estimate: ResizeEstimate) -> float:
        arrival_rps = sum(bucket.arrival_rps for bucket in self.service.buckets)
        own = rate_at(self._elastic.rates, estimate.from_ranks, redeployed=False)
        share_rps = arrival_rps if own is None else min(arrival_rps, own.rated_rps)
        leaving = max(0, estimate.from_ranks - estimate.to_ranks) / estimate.from_ranks
        drains = self._elastic.engine.drains or self._elastic.engine.dialect is Dialect.SGLANG
        residence_s = self.variant.capacity.residence_s or 0.0
        aborted = 0.0 if estimate.mode.launches or drains else share_rps * residence_s * leaving
        return estimate.hindered(share_rps, aborted=aborted)

    def _transition_cost(
        self, variant: Variant, pool: Pool, estimate: ResizeEstimate, hindered: float
    ) -> float:
        """(Lost or delayed requests x their value + idle accelerator-seconds x price), in the money of the costs."""
        price = price_of(variant, pool, self._names.accelerators[variant.accelerator])
        per_gpu_h = 0.0 if price is None else price.value / variant.parallelism.gpus
        relative = variant.cost is not None and variant.cost.relative is not None
        requests = 0.0 if relative else hindered * self._elastic.request_value_usd
        return requests + estimate.idle_gpu_seconds / _SECONDS_PER_H * per_gpu_h

    def _rejection(self, verdict: SizeVerdict, size: int, pool: Pool) -> Rejection:
        return Rejection(
            service=self.service.id,
            variant=self.variant.id,
            pool=pool.id,
            reason=Reason.SIZE_NOT_REACHABLE,
            facts={
                "from_ranks": size,
                "to_ranks": verdict.ranks,
                "because": " ".join(refusal_text(each) for each in verdict.refusals),
            },
        )


def resize_question(
    elastic: ElasticDeployment,
    shape: ElasticShape,
    sizes: tuple[int, int],
    mode: ResizeMode,
    *,
    llm: Llm,
    variant: Variant,
) -> ResizeQuestion:
    """What is asked about one way between two sizes of a variant."""
    slots = shape.slots_per_rank
    if mode.launches:
        slots = -(-shape.experts // (sizes[1] * shape.tensor_parallel))
    slot_gb, dense_gb = _bytes_of(llm, variant)
    return ResizeQuestion(
        mode=mode,
        from_ranks=sizes[0],
        to_ranks=sizes[1],
        tensor_parallel=shape.tensor_parallel,
        slots_per_rank=int(slots),
        slot_gb=slot_gb,
        dense_gb=dense_gb,
        conditions=elastic.conditions,
        measured=elastic.measured,
    )


def _scaled(cost: Cost | None, factor: float) -> Cost | None:
    if cost is None:
        return None
    if cost.relative is not None:
        return Cost(relative=cost.relative * factor)
    return Cost(usd_per_h=(cost.usd_per_h or 0.0) * factor)


def _bytes_of(llm: Llm, variant: Variant) -> tuple[float | None, float | None]:
    """Bytes of one expert over all layers, and of what every rank holds beside its experts, GB; None: unknown."""
    if llm.opaque or routed_parameters(llm) == 0 or llm.moe is None:
        return None, None

    def held(ranks: int, experts: int) -> float:
        """Weights of one rank that holds so many experts."""
        alone = variant.parallelism.but(tp=1, pp=1, dp=ranks, ep=ranks)
        redundant = variant.engine_arguments.but(redundant_experts=experts * ranks - total)
        return (
            weight_bytes_per_accelerator(llm, variant.but(parallelism=alone, engine_arguments=redundant))
            / 1e9
        )

    total = llm.moe.experts
    few, many = held(total, 1), held(total, 2)
    return many - few, max(0.0, 2 * few - many)
