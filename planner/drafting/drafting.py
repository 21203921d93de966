"""Observation → Scenario: a draft to plan from, with everything in it that nobody observed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from models.fleet import Fleet
from models.hardware import Pool
from models.ids import PoolId
from models.observation import Observation, VariantObservation
from models.scenario import Limits, Scenario
from models.variant import KubernetesObject, Variant
from models.workload import Service
from planner.catalog import Catalog
from planner.drafting.capacity import Engines
from planner.drafting.notes import Notes
from planner.drafting.places import places_of
from planner.drafting.services import Served, services_of
from planner.errors import ConfigurationError, Finding
from planner.scenario import check_scenario

__all__ = ["Draft", "draft_scenario"]


@dataclass(frozen=True, slots=True)
class Draft:
    """A scenario of what was observed.

    Attributes:
        scenario: to plan from; its description says the same.
        assumptions: sentences on what was not observed.
    """

    scenario: Scenario
    assumptions: tuple[str, ...]


def draft_scenario(
    seen: Observation, catalog: Catalog, *, name: str = "observed", accelerator: str | None = None
) -> Draft:
    """The scenario of what was observed.

    Args:
        seen: variants, engines, traffic, accelerators.
        catalog: knows LLMs and accelerators by their aliases.
        name: of the scenario.
        accelerator: of variants and engines that nobody names one of; None: these are left out.

    Raises:
        ConfigurationError: nothing in it can be planned, or what it says cannot be; lists all of it.
    """
    notes = Notes()
    if not seen.complete:
        notes.take("a source did not answer in full: what it knows is missing here")
    chosen = None if accelerator is None else catalog.accelerator(accelerator).id
    engines = Engines(seen.engines)
    variants = _variants(seen, engines, catalog, chosen, notes)
    if not variants:
        raise ConfigurationError.from_findings([_nothing(seen)])
    served = services_of(seen, variants, engines, catalog, notes)
    places = places_of(seen, served.seated, engines, catalog, notes)
    assumptions = tuple(notes.sentences())
    moment = datetime.fromtimestamp(seen.at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    scenario = Scenario(
        name=name,
        description=f"Drafted from what was observed at {moment}. Assumed: {'; '.join(assumptions)}.",
        services=tuple(_in_own_cluster(each, served, places.pools) for each in served.services),
        pools=places.pools,
        fleet=Fleet(running=places.running),
        limits=Limits(quotas=places.quotas),
        llms=served.llms,
    )
    # Held to all that a file is held to: what programs say may contradict itself.
    checked = check_scenario(scenario.model_dump(mode="json", exclude_defaults=True), catalog=catalog)
    return Draft(checked, assumptions)


def _in_own_cluster(service: Service, served: Served, pools: tuple[Pool, ...]) -> Service:
    """The service with variants that stay in their cluster, where others have their accelerator too."""
    clusters = {(one.service, one.variant): one.seen.cluster for one in served.seated}
    return service.but(
        variants=tuple(
            variant.but(pools=_reachable(variant, clusters[service.id, variant.id], pools))
            for variant in service.variants
        )
    )


def _reachable(variant: Variant, cluster: str | None, pools: tuple[Pool, ...]) -> tuple[PoolId, ...]:
    fitting = [pool for pool in pools if pool.accelerator == variant.accelerator]
    own = tuple(pool.id for pool in fitting if pool.cluster == cluster)
    return own if len(own) < len(fitting) else ()


def _variants(
    seen: Observation, engines: Engines, catalog: Catalog, chosen: str | None, notes: Notes
) -> tuple[VariantObservation, ...]:
    """Variants on accelerators of the catalog, under its names; engines without a variant make one of their own."""
    found = []
    for variant in seen.variants or tuple(_of_engines(engines, notes)):
        known = catalog.find_accelerator(variant.accelerator) if variant.accelerator else None
        label = f"{variant.namespace}/{variant.name}"
        if known is None and chosen is None:
            why = "the catalog does not know" if variant.accelerator else "nobody names"
            notes.take(f"left out, since {why} its accelerator", label)
            continue
        if known is None:
            notes.take(f"{chosen} is assumed, since nobody names its accelerator", label)
        if not variant.target.name or variant.wanted is None:
            notes.take("left out, since its workload was not found", label)
            continue
        found.append(variant.but(accelerator=known.id if known is not None else chosen))
    return tuple(found)


def _of_engines(engines: Engines, notes: Notes) -> list[VariantObservation]:
    """A variant for every model that engines serve, where no cluster was asked."""
    found = []
    for namespace, model in engines.models:
        mine = engines.of_model(namespace, model)
        pods = tuple(dict.fromkeys(each.pod or each.instance for each in mine))
        notes.take("one GPU each, since no cluster says how many its replicas have", f"{namespace}/{model}")
        found.append(
            VariantObservation(
                name="observed",
                namespace=namespace or "default",
                model=model,
                target=KubernetesObject(name="observed"),
                wanted=len(pods),
                ready=len(pods),
                min_replicas=0,
                pods=pods,
            )
        )
    return found


def _nothing(seen: Observation) -> Finding:
    """Why there is nothing to plan."""
    if not seen.variants:
        found = "engines alone" if seen.engines else "nothing that is served"
        if not seen.complete and seen.findings:
            found += (
                f", since a source did not answer ({seen.findings[0].subject}: {seen.findings[0].problem})"
            )
        allowed = "what 'fleetplan observe --kubernetes -o FILE' wrote, or the name of an accelerator (--accelerator)"
        return Finding("", None, "variants", found, allowed)
    named = sorted({each.accelerator for each in seen.variants if each.accelerator})
    what = (
        f"accelerators {', '.join(named)}, which the catalog does not know"
        if named
        else "no accelerator that is named"
    )
    allowed = "the name of one in the catalog (--accelerator)"
    return Finding("", None, "variants", f"{len(seen.variants)} variants with {what}", allowed)
