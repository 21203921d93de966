"""What is known of the elastic deployments of a scenario: sizes, ways, checks before a resize, and the resize itself.

Both entrances ask here. Sizes and times are those that planning uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from models.elastic import ElasticDeployment, ResizeMode
from models.resize_operation import OperationLimits, ResizeOperation
from models.resizing import ElasticPicture, Preflight, ResizeEstimate, Schedule, SizeLine
from models.scenario import Scenario
from planner.errors import ConfigurationError, Finding, nearest
from planner.picturing import scenario_catalog

if TYPE_CHECKING:
    from models.fleet import RunningVariant
    from models.forecast import Forecast
    from models.ids import NodeId
    from models.llm import Llm
    from models.problem import PoolState
    from models.variant import Variant
    from models.workload import Service
    from planner.elastic import PreflightFacts, Room
    from planner.sizing.names import Names

__all__ = ["elastic_pictures", "ordered", "picked", "preflight_of", "scheduled", "ways_to"]

_SIZES_AT_MOST: Final = 128


def elastic_pictures(scenario: Scenario) -> tuple[ElasticPicture, ...]:
    """Every elastic deployment, by service, variant and pool; one that does not run is shown as launched.

    Raises:
        ConfigurationError: the scenario contradicts itself; every finding at once.
    """
    from planner.sizing.elastic import elastic_findings
    from planner.sizing.names import Names, normalized
    from planner.sizing.references import reference_findings

    catalog = scenario_catalog(scenario)
    names = Names(scenario, catalog)
    findings = [*reference_findings(scenario, names, catalog.profiles)]
    findings = findings or [*elastic_findings(scenario, names)]
    if findings:
        raise ConfigurationError.from_findings(findings)
    return tuple(_pictures(normalized(scenario, names), names))


@dataclass(frozen=True, slots=True)
class _Known:
    """A variant with what its sizes rest on."""

    service: Service
    variant: Variant
    llm: Llm

    def estimate(self, sizes: tuple[int, int], mode: ResizeMode) -> ResizeEstimate:
        """What one way from one size to another takes."""
        from planner.elastic import estimate_resize
        from planner.sizing.elastic import resize_question, shape_of

        elastic = self.variant.elastic or ElasticDeployment()
        shape = shape_of(self.variant, elastic, self.llm)
        question = resize_question(elastic, shape, sizes, mode, llm=self.llm, variant=self.variant)
        return estimate_resize(question)


def _known(scenario: Scenario, names: Names) -> Iterator[_Known]:
    """Elastic variants of a normalized scenario, by service and variant."""
    for service in sorted(scenario.services, key=lambda each: each.id):
        for variant in sorted(service.variants, key=lambda each: each.id):
            if variant.elastic is not None:
                yield _Known(service, variant, names.llms[service.llm])


def _known_of(scenario: Scenario, picture: ElasticPicture) -> _Known:
    from planner.sizing.names import Names, normalized

    names = Names(scenario, scenario_catalog(scenario))
    wanted = (picture.service, picture.variant)
    return next(
        each
        for each in _known(normalized(scenario, names), names)
        if (each.service.id, each.variant.id) == wanted
    )


def _pictures(scenario: Scenario, names: Names) -> Iterator[ElasticPicture]:
    rows: dict[tuple[str, str], list[RunningVariant]] = {}
    for row in scenario.fleet.running:
        if row.on_order:
            rows.setdefault((row.service, row.variant), []).append(row)
    for known in _known(scenario, names):
        found: list[RunningVariant | None] = [*rows.get((known.service.id, known.variant.id), ())]
        for running in found or [None]:
            yield _picture(scenario, names, known, running)


def _picture(scenario: Scenario, names: Names, known: _Known, row: RunningVariant | None) -> ElasticPicture:
    from planner.elastic import mode_of
    from planner.sizing.elastic import shape_of

    service, variant = known.service, known.variant
    elastic = variant.elastic or ElasticDeployment()
    shape = shape_of(variant, elastic, known.llm)
    room = _room(scenario, names, row)
    picture = ElasticPicture(
        service=service.id,
        variant=variant.id,
        pool=None if row is None else row.pool,
        deployment=elastic,
        shape=shape,
        mode=mode_of(elastic.engine),
        current=(row.ranks if row is not None else None) or shape.launch_ranks,
        free_gpus=() if room is None else tuple(room.domain),
        arrival_rps=sum(bucket.arrival_rps for bucket in service.buckets),
        notes=tuple(_notes(elastic, variant, service)),
    )
    return picture.but(lines=tuple(_lines(picture, room, known)))


def _notes(elastic: ElasticDeployment, variant: Variant, service: Service) -> Iterator[str]:
    if not elastic.rates and variant.capacity.rated_rps is None:
        yield "No rate by size is stated: what a size carries comes from profiles or formulas, where they know it."
    anew = {rate.ranks: rate.rated_rps for rate in elastic.rates if rate.redeployed}
    resized = {rate.ranks: rate.rated_rps for rate in elastic.rates if not rate.redeployed}
    better = sorted(n for n, rate in anew.items() if rate > resized.get(n, rate))
    if better:
        sizes = ", ".join(map(str, better))
        yield (
            f"Launched at {sizes} ranks {service.id} carries more than resized to it: KV cache per rank grows in a "
            "redeploy alone."
        )


def _lines(picture: ElasticPicture, room: Room | None, known: _Known) -> Iterator[SizeLine]:
    from planner.elastic import floor_ranks, judge_size, largest_ranks, measured_sizes, rate_at, refusal_text

    shape, elastic = picture.shape, picture.deployment
    most = max(largest_ranks(shape, elastic.engine), picture.current, *measured_sizes(elastic.rates), 1)
    least = min(floor_ranks(shape), picture.current, *measured_sizes(elastic.rates), most)
    for ranks in range(least, min(most, least + _SIZES_AT_MOST) + 1):
        verdict = judge_size(shape, ranks, engine=elastic.engine, current=picture.current, room=room)
        rate = rate_at(elastic.rates, ranks, redeployed=not verdict.reachable)
        yield SizeLine(
            verdict=verdict,
            texts=tuple(refusal_text(each) for each in verdict.refusals),
            rated_rps=None if rate is None else rate.rated_rps,
            ways=tuple(_ways(picture, ranks, known, in_place=verdict.reachable)),
        )


def _ways(picture: ElasticPicture, ranks: int, known: _Known, *, in_place: bool) -> Iterator[ResizeEstimate]:
    if ranks == picture.current:
        return
    modes = [picture.mode] if in_place and picture.mode is not None else []
    for mode in (*modes, ResizeMode.REDEPLOY, ResizeMode.RESTART):
        yield known.estimate((picture.current, ranks), mode)


def ways_to(scenario: Scenario, picture: ElasticPicture, ranks: int) -> tuple[ResizeEstimate, ...]:
    """Every way of which times are known, side by side: A, B and C, restart and redeploy, whichever the engine goes.

    Raises:
        ConfigurationError: it has this size.
    """
    if ranks == picture.current:
        raise ConfigurationError(f"{picture.service}/{picture.variant} has {ranks} ranks already")
    known = _known_of(scenario, picture)
    return tuple(known.estimate((picture.current, ranks), mode) for mode in ResizeMode)


def scheduled(
    scenario: Scenario, picture: ElasticPicture, made: Forecast, *, quantile: float, now_s: float
) -> Schedule:
    """When to call for which size, so that a quantile of a forecast is carried.

    Args:
        scenario: of the deployment.
        picture: the deployment, with rates by size.
        made: the forecast of its load, req/s.
        quantile: of it.
        now_s: seconds of the epoch.
    """
    from planner.elastic.scheduling import Expected, ScheduleQuestion, schedule

    known = _known_of(scenario, picture)
    # Nothing is asked about a deployment that cannot be resized.
    mode = picture.mode or ResizeMode.RESTART
    question = ScheduleQuestion(
        deployment=picture.deployment,
        shape=picture.shape,
        current=picture.current,
        now_s=now_s,
        estimate=lambda before, after: known.estimate((before, after), mode),
        room=_free(picture),
    )
    expected = Expected(start_s=made.made_at_s, step_s=made.step_s, rates_rps=made.at(quantile))
    return schedule(question, expected)


def _free(picture: ElasticPicture) -> Room | None:
    """Room in its fabric domain; None: it does not run, so nobody knows where."""
    from planner.elastic import Room

    return None if picture.pool is None else Room(picture.free_gpus)


def _room(scenario: Scenario, names: Names, row: RunningVariant | None) -> Room | None:
    """Accelerators that nobody of the scenario uses, on nodes of the pool; None: it does not run."""
    from planner.elastic import Room
    from planner.sizing.pools import pool_state

    if row is None:
        return None
    pool = next(each for each in scenario.pools if each.id == row.pool)
    state = pool_state(pool, names.accelerators[pool.accelerator], scenario.limits.power_basis)
    free = {node.id: node.free_gpus for node in state.nodes if node.accepts_pods and node.holds_pods}
    homeless = _seat_all(scenario, state, free)
    for node in sorted(free, key=lambda name: -free[name]):
        taken = min(free[node], homeless)
        free[node] -= taken
        homeless -= taken
    domain = _domain(state, row)
    inside = [
        free[node.id] for node in state.nodes if node.id in free and domain in (None, node.fabric_domain)
    ]
    outside = [
        free[node.id]
        for node in state.nodes
        if node.id in free and domain is not None and node.fabric_domain != domain
    ]
    return Room(inside, outside)


def _seat_all(scenario: Scenario, state: PoolState, free: dict[NodeId, int]) -> int:
    """Take off what runs where it is known to sit; accelerators of what sits nobody knows where."""
    variants = {(s.id, v.id): v for s in scenario.services for v in s.variants}
    homeless = 0
    for row in scenario.fleet.running:
        if row.pool != state.id:
            continue
        variant = variants[row.service, row.variant]
        ranks = row.ranks or variant.parallelism.dp
        gpus = variant.parallelism.gpus // variant.parallelism.dp * ranks
        seated = [each for each in row.details if each.nodes and all(node in free for node in each.nodes)]
        for replica in seated:
            for node in replica.nodes:
                free[node] = max(0, free[node] - gpus // len(replica.nodes))
        homeless += gpus * (row.on_order - len(seated))
    return homeless


def _domain(state: PoolState, row: RunningVariant) -> str | None:
    """The fabric domain that its ranks are in; that of most nodes where nobody said."""
    domains = {node.id: node.fabric_domain for node in state.nodes}
    known = [domains.get(node) for each in row.details for node in each.nodes]
    named = [each for each in known if each is not None] or [d for d in domains.values() if d is not None]
    return max(sorted(set(named)), key=named.count, default=None)


def picked(pictures: tuple[ElasticPicture, ...], name: str | None) -> ElasticPicture:
    """The deployment that is meant: ``service/variant`` or ``service/variant@pool``; the only one without a name.

    Raises:
        ConfigurationError: there is none, or several.
    """
    names = {name_of: each for each in pictures for name_of in (f"{each.service}/{each.variant}", each.name)}
    if name is None and len(pictures) == 1:
        return pictures[0]
    if name is not None and name in names and _alone(pictures, name):
        return names[name]
    allowed = ", ".join(each.name for each in pictures) or "a variant with elastic"
    found = repr(name) if name is not None else "no name" if pictures else "no elastic deployment"
    raise ConfigurationError.from_findings(
        [Finding("", None, "--variant", found, allowed, nearest(name, names) if name else None)]
    )


def _alone(pictures: tuple[ElasticPicture, ...], name: str) -> bool:
    return "@" in name or sum(f"{p.service}/{p.variant}" == name for p in pictures) == 1


def preflight_of(picture: ElasticPicture, ranks: int, facts: PreflightFacts | None = None) -> Preflight:
    """Everything that would make a resize fail."""
    from planner.elastic import PreflightFacts, PreflightQuestion, preflight

    known = facts or PreflightFacts()
    if known.room is None:
        known = replace(known, room=_free(picture))
    return preflight(
        PreflightQuestion(
            deployment=picture.deployment,
            shape=picture.shape,
            current=picture.current,
            wanted=ranks,
            facts=known,
        )
    )


def ordered(
    picture: ElasticPicture, ranks: int, *, urls: tuple[str, ...], name: str, now_s: float
) -> ResizeOperation:
    """The operation that carries a resize out.

    Raises:
        ConfigurationError: no address is known, or there is nothing to do.
    """
    line = picture.line(ranks)
    if not urls:
        found = Finding(
            "", None, "--url", "no address", "that of its API server, or elastic.url in the variant"
        )
        raise ConfigurationError.from_findings([found])
    if ranks == picture.current or line is None or not line.verdict.reachable:
        texts = " ".join(line.texts) if line is not None else ""
        why = (
            f"it has {ranks} ranks already" if ranks == picture.current else texts or "it is beyond all sizes"
        )
        raise ConfigurationError(f"{name} cannot be resized to {ranks} ranks in place: {why}")
    return ResizeOperation(
        id=f"{picture.current}-{ranks}-{now_s:.0f}",
        deployment=name,
        engine=picture.deployment.engine,
        urls=urls,
        from_ranks=picture.current,
        to_ranks=ranks,
        limits=OperationLimits(
            total_s=max(line.ways[0].total.high_s, 1.0), balance_s=line.ways[0].balance.high_s
        ),
        started_s=now_s,
        since_s=now_s,
    )
