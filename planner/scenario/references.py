"""Names that point at something: inside the scenario, and in the catalog.

All of it works on the written-out document and not on the models, so that a wrong name is found beside a wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Final

from planner.catalog import Catalog
from planner.scenario.tree import ANY, Complaints, Entry, below

__all__ = [
    "check_performance_names",
    "check_references",
    "node_count",
    "node_names",
    "resolve_catalog_names",
]

_ACCELERATORS: Final = (
    ("pools", ANY, "accelerator"),
    ("services", ANY, "variants", ANY, "accelerator"),
    ("services", ANY, "places", "allow_accelerators", ANY),
    ("services", ANY, "places", "deny_accelerators", ANY),
    ("limits", "quotas", ANY, "accelerator"),
)
_LLMS: Final = (("services", ANY, "llm"),)
_POOLS: Final = (
    ("services", ANY, "variants", ANY, "pools", ANY),
    ("services", ANY, "places", "allow_pools", ANY),
    ("services", ANY, "places", "deny_pools", ANY),
    ("limits", "power", ANY, "pools", ANY),
    ("fleet", "running", ANY, "pool"),
)
_NODES_SHOWN: Final = 1000
_DIGITS: Final = 12
_ALLOWED_PLACES: Final = (
    ("allow_regions", "region"),
    ("allow_clusters", "cluster"),
    ("residency", "residency"),
)


def resolve_catalog_names(document: Entry, catalog: Catalog, complaints: Complaints) -> Entry:
    """The document with every accelerator and LLM under its id; unknown ones are complained about."""
    accelerators = _names(document, "accelerators", catalog.accelerators)
    llms = _names(document, "llms", catalog.llms)
    for paths, noun, names in ((_ACCELERATORS, "accelerator", accelerators), (_LLMS, "LLM", llms)):
        for path in paths:
            document = _replaced(document, path, _resolver(noun, names, complaints))
    return document


def _names(document: Entry, section: str, entries: Mapping[str, object]) -> dict[str, str]:
    """Id by every name, folded; ids go before aliases, the scenario's own before the catalog's."""
    catalog = [(name, tuple(getattr(entry, "aliases", ()))) for name, entry in entries.items()]
    own = [
        (entry.named("id") or "", tuple(alias.name for alias in below(entry, "aliases", ANY) if alias.name))
        for entry in below(document, section, ANY)
    ]
    names: dict[str, str] = {}
    for source in (catalog, own):
        names |= {alias.casefold(): name for name, aliases in source for alias in aliases}
        names |= {name.casefold(): name for name, _ in source if name}
    return names


def _resolver(noun: str, names: Mapping[str, str], complaints: Complaints) -> Callable[[Entry], Entry]:
    def resolve(entry: Entry) -> Entry:
        if entry.name is None:
            return entry
        found = names.get(entry.name.casefold())
        if found is None:
            complaints.unknown(entry, noun, entry.name, names.values())
            return entry
        return entry.but(found)

    return resolve


def _replaced(entry: Entry, path: tuple[str, ...], change: Callable[[Entry], Entry]) -> Entry:
    if not path:
        return change(entry)
    if path[0] == ANY:
        return (
            entry.but(tuple(_replaced(item, path[1:], change) for item in entry.items))
            if entry.items
            else entry
        )
    child = entry.fields.get(path[0])
    return (
        entry if child is None else entry.but({**entry.fields, path[0]: _replaced(child, path[1:], change)})
    )


def check_references(document: Entry, complaints: Complaints) -> None:
    """Complain about every name that points at nothing, or at something that does not fit."""
    pools = _by_id(below(document, "pools", ANY))
    services = _by_id(below(document, "services", ANY))
    for path in _POOLS:
        for entry in below(document, *path):
            if entry.name is not None and entry.name not in pools:
                complaints.unknown(entry, "pool", entry.name, pools)
    for service in services.values():
        _check_variant_pools(service, pools, complaints)
        _check_host(service, services, complaints)
        _check_places(service, pools, complaints)
        _check_roles(service, complaints)
    _check_domains(document, pools, complaints)
    _check_running(document, services, pools, complaints)


def check_performance_names(document: Entry, catalog: Catalog, complaints: Complaints) -> None:
    """Complain about sources that nobody has installed and profile tables that nobody has.

    Files beside the scenario bring the tables that they are called after; what a folder or a YAML file brings is known
    when it is read.
    """
    asked = [entry for entry in below(document, "performance", "sources", ANY) if entry.name is not None]
    if asked:
        from planner.performance.sources import SOURCES

        for entry in asked:
            if entry.name is not None and entry.name not in SOURCES:
                complaints.unknown(entry, "source", entry.name, SOURCES.names())
    files = [Path(entry.name) for entry in below(document, "profiles", ANY) if entry.name is not None]
    if all(path.suffix == ".csv" for path in files):
        tables = {*catalog.profiles, *(path.stem for path in files)}
        for entry in below(document, "performance", "profiles", ANY):
            if entry.name is not None and entry.name not in tables:
                complaints.unknown(entry, "profile", entry.name, tables)


def _by_id(entries: Iterable[Entry]) -> dict[str, Entry]:
    return {name: entry for entry in entries if (name := entry.named("id")) is not None}


def _check_variant_pools(service: Entry, pools: Mapping[str, Entry], complaints: Complaints) -> None:
    for variant in below(service, "variants", ANY):
        accelerator = variant.named("accelerator")
        for entry in below(variant, "pools", ANY):
            pool = pools.get(entry.name or "")
            held = pool.named("accelerator") if pool is not None else None
            if accelerator is not None and held is not None and held != accelerator:
                complaints.about(entry, f"pool {entry.name!r} of {held}", allowed=f"a pool of {accelerator}")


def _check_host(service: Entry, services: Mapping[str, Entry], complaints: Complaints) -> None:
    entry = service.fields.get("shares_replicas_of")
    if entry is None or entry.name is None:
        return
    host = services.get(entry.name)
    online = {name for name, other in services.items() if other.named("kind") in {None, "online"}}
    if host is None:
        complaints.unknown(entry, "service", entry.name, online)
    elif entry.name not in online:
        complaints.about(
            entry, f"{entry.name!r}, which is not online", allowed="an online service of the same LLM"
        )
    elif host.named("llm") != service.named("llm"):
        allowed = f"an online service of {service.named('llm')}"
        complaints.about(entry, f"{entry.name!r}, which serves {host.named('llm')}", allowed=allowed)


def _check_places(service: Entry, pools: Mapping[str, Entry], complaints: Complaints) -> None:
    for key, attribute in _ALLOWED_PLACES:
        there = {name for pool in pools.values() if (name := pool.named(attribute)) is not None}
        for entry in below(service, "places", key, ANY):
            if entry.name is not None and entry.name not in there:
                complaints.unknown(entry, attribute, entry.name, there)
    domains = {pool.named("failure_domain") or name for name, pool in pools.items()}
    for entry in below(service, "survive", "failure_domains", ANY):
        if entry.name is not None and entry.name not in domains:
            complaints.unknown(entry, "failure domain", entry.name, domains)


def _check_roles(service: Entry, complaints: Complaints) -> None:
    ratio = service.fields.get("ratio")
    if ratio is None or ratio.value is None:
        return
    missing = {"prefill", "decode"} - {variant.named("role") for variant in below(service, "variants", ANY)}
    if missing:
        complaints.about(
            ratio,
            f"a ratio without a variant for {' and '.join(sorted(missing))}",
            allowed="variants of both roles",
        )


def _check_domains(document: Entry, pools: Mapping[str, Entry], complaints: Complaints) -> None:
    named = {name for pool in pools.values() if (name := pool.named("power_domain")) is not None}
    for domain in below(document, "limits", "power", ANY):
        name = domain.named("id")
        if name is not None and name not in named and not list(below(domain, "pools", ANY)):
            complaints.unknown(domain, "power domain of a pool", name, named)
    clusters = {name for pool in pools.values() if (name := pool.named("cluster")) is not None}
    for entry in below(document, "limits", "quotas", ANY, "cluster"):
        if entry.name is not None and entry.name not in clusters:
            complaints.unknown(entry, "cluster", entry.name, clusters)


def _check_running(
    document: Entry, services: Mapping[str, Entry], pools: Mapping[str, Entry], complaints: Complaints
) -> None:
    for running in below(document, "fleet", "running", ANY):
        for entry in below(running, "service"):
            if entry.name is not None and entry.name not in services:
                complaints.unknown(entry, "service", entry.name, services)
        service = services.get(running.named("service") or "")
        variants = _by_id(below(service, "variants", ANY)) if service is not None else {}
        variant, pool = variants.get(running.named("variant") or ""), pools.get(running.named("pool") or "")
        for entry in below(running, "variant"):
            if service is not None and entry.name is not None and variant is None:
                complaints.unknown(entry, f"variant of {service.named('id')}", entry.name, variants)
        if pool is not None:
            _check_running_in(running, variant, pool, complaints)


def _check_running_in(running: Entry, variant: Entry | None, pool: Entry, complaints: Complaints) -> None:
    wanted, held = variant.named("accelerator") if variant is not None else None, pool.named("accelerator")
    if wanted is not None and held is not None and wanted != held:
        entry = running.fields["pool"]
        complaints.about(entry, f"pool {entry.name!r} of {held}", allowed=f"a pool of {wanted}")
    nodes = list(below(pool, "nodes", ANY))
    for entry in below(running, "details", ANY, "nodes", ANY):
        if entry.name is not None and not any(_stands_for(node, entry.name) for node in nodes):
            some = islice(chain.from_iterable(map(node_names, nodes)), _NODES_SHOWN)
            complaints.unknown(entry, f"node of pool {pool.named('id')}", entry.name, some)


def node_count(node: Entry) -> int:
    """How many nodes an entry stands for; 1 if what it says is no count."""
    count = next((entry.value for entry in below(node, "count")), 1)
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else 1


def node_names(node: Entry) -> Iterator[str]:
    """Names of the nodes that an entry stands for: ``id``, or ``id-0``, ``id-1``, ... if there are several."""
    name, count = node.named("id"), node_count(node)
    if name is None:
        return iter(())
    return iter([name]) if count == 1 else (f"{name}-{index}" for index in range(count))


def _stands_for(node: Entry, name: str) -> bool:
    own, count = node.named("id"), node_count(node)
    if own is None or count == 1:
        return own == name
    index = name.removeprefix(f"{own}-")
    return index != name and index.isdecimal() and str(int(index[:_DIGITS])) == index and int(index) < count
