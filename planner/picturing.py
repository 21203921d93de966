"""A variant of a scenario with all that is known of it: what it holds, carries, costs and draws, and from where.

Every entrance asks here, so that a number reads alike on a terminal and on a page, and as planning uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from models.hardware import Pool
from models.performance import PerformanceChoice, Rating, RatingQuestion
from models.picture import CandidatePicture, PlacePicture, SourceAnswer, VariantPicture
from models.problem import Problem
from models.scenario import Scenario
from models.variant import Variant
from models.workload import Bucket, Service
from planner.errors import ConfigurationError, Finding, nearest
from planner.planning import known_catalog

if TYPE_CHECKING:
    from models.picture import LoadCurve
    from planner.catalog import Catalog

__all__ = ["busiest", "look_at", "picture_candidate", "question_of", "scenario_catalog", "service_alone"]

_USUAL: Final = ("measured", "queueing", "roofline")
"""Sources whose curves stand beside those that a scenario asks for."""


def scenario_catalog(scenario: Scenario | None, profiles: Iterable[str] = ()) -> Catalog:
    """What is known, a scenario's own entries and profiles before the others.

    Args:
        scenario: None: the catalog alone.
        profiles: more profile files.

    Raises:
        ConfigurationError: a file is wrong.
    """
    if scenario is None:
        return known_catalog(profiles)
    catalog = known_catalog([*scenario.profiles, *profiles])
    return replace(
        catalog,
        accelerators={**catalog.accelerators, **{each.id: each for each in scenario.accelerators}},
        llms={**catalog.llms, **{each.id: each for each in scenario.llms}},
    )


def busiest(service: Service) -> Bucket:
    """The bucket of a service at which most requests arrive."""
    return max(service.buckets, key=lambda bucket: bucket.arrival_rps)


def question_of(service: Service, variant: Variant, catalog: Catalog, *, bucket: Bucket) -> RatingQuestion:
    """What planning asks of a variant at one bucket of its service.

    Raises:
        CatalogError: the LLM or the accelerator has a name that nobody knows.
    """
    from planner.sizing.rating import question_about

    llm, accelerator = catalog.llm(service.llm), catalog.accelerator(variant.accelerator)
    return question_about(service, bucket, variant=variant, llm=llm, accelerator=accelerator)


def look_at(question: RatingQuestion, catalog: Catalog, choice: PerformanceChoice) -> VariantPicture:
    """Memory, what each source says, and rows over load.

    Raises:
        ConfigurationError: the choice names a source or a table that is not there.
    """
    from planner.performance import Knowledge, chosen_sources
    from planner.performance.picture import look

    sources = chosen_sources(choice, catalog.profiles, queueing=catalog.queueing)
    return look(question, Knowledge(choice, catalog.profiles, catalog.queueing), sources)


def _curves(
    question: RatingQuestion, catalog: Catalog, choice: PerformanceChoice
) -> tuple[tuple[SourceAnswer, ...], tuple[LoadCurve, ...]]:
    """Answers of sources that the scenario does not ask, and the curves of all: a look costs nothing."""
    from planner.performance import Knowledge, chosen_sources
    from planner.performance.curves import load_curves
    from planner.performance.picture import look

    others = tuple(name for name in _USUAL if name not in choice.sources)
    both = choice.but(sources=(*choice.sources, *others))
    sources = chosen_sources(both, catalog.profiles, queueing=catalog.queueing)
    knowledge = Knowledge(choice, catalog.profiles, catalog.queueing)
    unasked = [source for source in sources if source.name in others]
    return look(question, knowledge, unasked).answers, load_curves(question, knowledge, sources)


def service_alone(scenario: Scenario, service_id: str) -> Scenario:
    """The scenario with one service, the one whose replicas it shares, and what runs of them.

    What a candidate carries, costs and draws depends on nothing else.

    Raises:
        ConfigurationError: there is no such service.
    """
    known: dict[str, Service] = {each.id: each for each in scenario.services}
    if service_id not in known:
        raise _unknown("service", service_id, known)
    kept = {service_id, known[service_id].shares_replicas_of}
    running = tuple(row for row in scenario.fleet.running if row.service in kept)
    return scenario.but(
        services=tuple(each for each in scenario.services if each.id in kept),
        fleet=scenario.fleet.but(running=running),
    )


def picture_candidate(
    scenario: Scenario, service_id: str, variant_id: str, *, bucket: Bucket | None = None
) -> CandidatePicture:
    """A variant at one request shape, in every pool that it may use or runs in.

    Args:
        scenario: what the user states.
        service_id: name of the service.
        variant_id: name of one of its variants.
        bucket: request shape to look at; None: the one at which most requests arrive.

    Raises:
        ConfigurationError: there is no such service or variant, or the scenario cannot be sized; every finding at once.
    """
    from planner.performance.picture import takes_shape
    from planner.sizing import size

    alone = service_alone(scenario, service_id)
    service = next(each for each in alone.services if each.id == service_id)
    variants: dict[str, Variant] = {each.id: each for each in service.variants}
    if variant_id not in variants:
        raise _unknown("variant", variant_id, variants)
    variant = variants[variant_id]
    catalog = scenario_catalog(alone)
    # Sizing comes first: it refuses names that nobody knows, all at once.
    problem = size(alone, known_catalog(alone.profiles))
    question = question_of(service, variant, catalog, bucket=bucket or busiest(service))
    picture = look_at(question, catalog, alone.performance)
    unasked, curves = _curves(question, catalog, alone.performance)
    fits = picture.memory is None or not picture.memory.missing_bytes
    return CandidatePicture(
        service=service.id,
        picture=picture,
        unasked=unasked,
        curves=curves if fits and takes_shape(picture.answer) else (),
        nearest=_nearest(question, catalog, alone.performance),
        places=tuple(_places(alone, problem, service_id, picture)),
        nowhere=tuple(
            each
            for each in problem.rejected
            if each.service == service_id and each.variant == variant_id and each.pool is None
        ),
        codes=_codes(question, alone, catalog),
    )


def _nearest(question: RatingQuestion, catalog: Catalog, choice: PerformanceChoice) -> tuple[int, int] | None:
    """The nearest measured shape of this setup, whichever tables planning may use of it."""
    from planner.performance import Knowledge
    from planner.performance.picture import nearest_rows

    rows = nearest_rows(question, Knowledge(choice, catalog.profiles))
    return (rows[0].input_tokens, rows[0].output_tokens) if rows else None


def _unknown(what: str, name: str, known: Mapping[str, object]) -> ConfigurationError:
    finding = Finding("", None, what, repr(name), ", ".join(known), nearest(name, known))
    return ConfigurationError.from_findings([finding])


def _places(
    scenario: Scenario, problem: Problem, service_id: str, picture: VariantPicture
) -> Iterator[PlacePicture]:
    variant = picture.question.variant
    own = [c for c in problem.candidates if c.service == service_id and c.variant == variant.id]
    out = [r for r in problem.rejected if r.service == service_id and r.variant == variant.id]
    pools = {pool.id: pool for pool in scenario.pools}
    for name in sorted({c.pool for c in own} | {r.pool for r in out if r.pool is not None}):
        candidates = tuple(each for each in own if each.pool == name)
        rejections = tuple(each for each in out if each.pool == name)
        found = PlacePicture(pool=name, candidates=candidates, rejections=rejections)
        yield _with_figures(found, pools[name], scenario, picture)


def _with_figures(
    place: PlacePicture, pool: Pool, scenario: Scenario, picture: VariantPicture
) -> PlacePicture:
    """The place with price and power, as sizing finds them."""
    from planner.sizing.money import price_of
    from planner.sizing.power import draw_of

    question, answer = picture.question, picture.answer
    price = price_of(question.variant, pool, question.accelerator)
    rated = answer if isinstance(answer, Rating) else None
    draw = draw_of(
        question.variant,
        question.accelerator,
        scenario.limits.power_basis,
        rated_w=None if rated is None else rated.power_w,
        source=None if rated is None else rated.power_source,
    )
    # A candidate's draw is that of all its shapes, the largest.
    power_w = place.candidates[0].power_w if place.candidates else draw.power_w
    found = place.but(power_w=power_w, power_source=draw.source)
    if price is None:
        return found
    return found.but(cost=price.value, cost_unit=price.unit, cost_source=price.source)


def _codes(question: RatingQuestion, scenario: Scenario, catalog: Catalog) -> dict[str, str]:
    """Where figures of the catalog are from; those that the scenario states itself are its own."""
    parts = (
        ("accelerator", f"accelerators/{question.accelerator.id}", question.accelerator.id),
        ("llm", f"llms/{question.llm.id}", question.llm.id),
    )
    own = {each.id for each in scenario.accelerators} | {each.id for each in scenario.llms}
    return {
        f"{part}.{name}": code
        for part, key, identity in parts
        if identity not in own
        for name, code in catalog.sources.get(key, {}).items()
    }
