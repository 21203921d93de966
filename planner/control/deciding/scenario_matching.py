"""Who of a scenario is who of a cluster: by the object that is scaled, else by model, accelerator and role.

A scenario says what replicas can do, cost and promise; a cluster says what runs. Services and variants of the scenario that
nothing in the cluster answers to are left out, and told of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from models.ids import AcceleratorId
from models.observation import Finding, VariantObservation
from models.scenario import Scenario
from models.variant import Variant
from models.workload import Service as Stated
from planner.catalog import Catalog
from planner.control.analysis import Service, VariantSeen

__all__ = ["Matched", "match"]

_Place = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """What was found.

    Attributes:
        services: of the cluster, by service of the scenario.
        variants: of the cluster, by service and variant of the scenario.
        findings: what of the scenario is not there, and what of the cluster the scenario does not know.
    """

    services: Mapping[str, Service] = field(default_factory=dict)
    variants: Mapping[_Place, VariantSeen] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def match(scenario: Scenario, services: Sequence[Service], catalog: Catalog) -> Matched:
    """Find the services and variants of a scenario among those of a cluster; each variant once."""
    names = _Names(scenario, catalog)
    found: dict[str, Service] = {}
    variants: dict[_Place, VariantSeen] = {}
    for stated in scenario.services:
        mine = next((one for one in services if _serves(one, stated, names)), None)
        if mine is None:
            continue
        taken: set[object] = set()
        for variant in stated.variants:
            seen = _variant_of(mine, stated, variant, names, taken)
            if seen is not None:
                taken.add(seen.ref)
                variants[stated.id, variant.id] = seen
        if taken:
            found[stated.id] = mine
    return Matched(services=found, variants=variants, findings=tuple(_missing(scenario, found, variants)))


class _Names:
    """One name for each accelerator and LLM, whatever either side calls it."""

    def __init__(self, scenario: Scenario, catalog: Catalog) -> None:
        self._catalog = catalog
        self._own_llms = {name.casefold(): one.id for one in scenario.llms for name in (one.id, *one.aliases)}
        self._own_types = {
            name.casefold(): one.id for one in scenario.accelerators for name in (one.id, *one.aliases)
        }

    def llm(self, name: str) -> str:
        own = self._own_llms.get(name.casefold())
        entry = self._catalog.find_llm(name) if own is None else None
        return (own or (name if entry is None else entry.id)).casefold()

    def accelerator(self, name: str) -> AcceleratorId:
        known = self._own_types.get(name.casefold())
        if known is None:
            entry = self._catalog.find_accelerator(name)
            known = AcceleratorId(name) if entry is None else entry.id
        return known


def _serves(service: Service, stated: Stated, names: _Names) -> bool:
    """Whether a service of the cluster is the stated one: an object of it says so, or model and namespace do."""
    for variant in stated.variants:
        if variant.object is not None and any(
            _is_object(one.observed, stated, variant) for one in service.seen.variants
        ):
            return True
    same_place = stated.namespace in {service.seen.namespace, "default"}
    return same_place and names.llm(stated.llm) == names.llm(service.seen.model)


def _is_object(seen: VariantObservation, stated: Stated, variant: Variant) -> bool:
    thing = variant.object
    if thing is None:
        return False
    namespace = thing.namespace or stated.namespace
    return (seen.target.kind, seen.target.name, seen.namespace) == (thing.kind, thing.name, namespace)


def _variant_of(
    service: Service, stated: Stated, variant: Variant, names: _Names, taken: set[object]
) -> VariantSeen | None:
    free = [one for one in service.seen.variants if one.ref not in taken and one.resolved]
    by_object = [one for one in free if _is_object(one.observed, stated, variant)]
    if by_object or variant.object is not None:
        return by_object[0] if by_object else None
    kind = names.accelerator(variant.accelerator)
    alike = [
        one
        for one in free
        if one.observed.role is variant.role and names.accelerator(one.observed.accelerator or "?") == kind
    ]
    exact = [one for one in alike if one.observed.gpus == variant.parallelism.gpus]
    chosen = exact or alike
    return chosen[0] if len(chosen) == 1 else None


def _missing(
    scenario: Scenario, found: Mapping[str, Service], variants: Mapping[_Place, VariantSeen]
) -> list[Finding]:
    findings = []
    for stated in scenario.services:
        if stated.id not in found:
            findings.append(
                Finding(
                    subject=f"service {stated.id}",
                    problem="nothing in the cluster is this service of the scenario",
                    remedy="name its objects in the scenario (object), or use the same model identifier and namespace",
                )
            )
            continue
        mine = {one.id: variants.get((stated.id, one.id)) for one in stated.variants}
        unknown = [variant for variant, seen in mine.items() if seen is None]
        if unknown:
            problem = (
                f"variants {', '.join(unknown[:3])} of the scenario are not in the cluster, or not one alone"
            )
            findings.append(
                Finding(subject=f"service {stated.id}", problem=problem, remedy="name their objects (object)")
            )
        known = {seen.ref for seen in mine.values() if seen is not None}
        strange = [one.name for one in found[stated.id].seen.variants if one.ref not in known and one.wanted]
        if strange:
            problem = (
                f"variants {', '.join(strange[:3])} run and the scenario does not know them: they are held"
            )
            findings.append(
                Finding(subject=f"service {stated.id}", problem=problem, remedy="add them to the scenario")
            )
    return findings
