"""Names of accelerators and LLMs become identities: the scenario's own entries first, then the catalog's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from models.hardware import Accelerator, Pool, Quota
from models.llm import Llm
from models.scenario import Scenario
from models.workload import AllowedPlaces, Service
from planner.catalog.catalog import Catalog, names_of
from planner.errors import nearest

__all__ = ["Entry", "Lexicon", "Names", "normalized"]

Entry = TypeVar("Entry", Accelerator, Llm)


class Lexicon(Generic[Entry]):
    """Entries of one kind by every name they have; case does not count.

    Args:
        own: entries of the scenario; any name of theirs goes before every name of the catalog.
        catalog: entries of the catalog by id.
    """

    def __init__(self, own: Iterable[Entry], catalog: Mapping[str, Entry]) -> None:
        ours: dict[str, Entry] = {entry.id: entry for entry in own}
        self._entries: dict[str, Entry] = {**catalog, **ours}
        self._ids = names_of(catalog) | names_of(ours)

    def __contains__(self, name: str) -> bool:
        return name.casefold() in self._ids

    def __getitem__(self, name: str) -> Entry:
        return self._entries[self._ids[name.casefold()]]

    def nearest(self, name: str) -> str | None:
        """The id whose name looks most like this one; None if none is close."""
        close = nearest(name, self._ids)
        return None if close is None else self._ids[close]


class Names:
    """Both lexicons of one scenario."""

    def __init__(self, scenario: Scenario, catalog: Catalog) -> None:
        self.accelerators: Lexicon[Accelerator] = Lexicon(scenario.accelerators, catalog.accelerators)
        self.llms: Lexicon[Llm] = Lexicon(scenario.llms, catalog.llms)


def normalized(scenario: Scenario, names: Names) -> Scenario:
    """The same scenario with every accelerator and LLM under its identity, so that names compare as they are.

    Raises:
        KeyError: a name is unknown; :func:`planner.sizing.references.reference_findings` finds these first.
    """
    limits = scenario.limits
    return scenario.but(
        services=tuple(_service(service, names) for service in scenario.services),
        pools=tuple(_pool(pool, names) for pool in scenario.pools),
        limits=limits.but(quotas=tuple(_quota(quota, names) for quota in limits.quotas)),
    )


def _service(service: Service, names: Names) -> Service:
    variants = tuple(v.but(accelerator=names.accelerators[v.accelerator].id) for v in service.variants)
    return service.but(
        llm=names.llms[service.llm].id, variants=variants, places=_places(service.places, names)
    )


def _places(places: AllowedPlaces, names: Names) -> AllowedPlaces:
    return places.but(
        allow_accelerators=tuple(names.accelerators[name].id for name in places.allow_accelerators),
        deny_accelerators=tuple(names.accelerators[name].id for name in places.deny_accelerators),
    )


def _pool(pool: Pool, names: Names) -> Pool:
    return pool.but(accelerator=names.accelerators[pool.accelerator].id)


def _quota(quota: Quota, names: Names) -> Quota:
    return (
        quota
        if quota.accelerator is None
        else quota.but(accelerator=names.accelerators[quota.accelerator].id)
    )
