"""What in a scenario points nowhere, or stands there twice: found before anything is sized."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from models.fleet import RunningVariant
from models.scenario import Scenario
from models.variant import Variant
from models.workload import Service
from planner.errors import Finding, nearest
from planner.sizing.names import Entry, Lexicon, Names
from planner.sizing.pools import MOST_NODES, node_ids

__all__ = ["finding", "reference_findings"]


def finding(path: str, found: str, *, allowed: str = "", suggestion: str | None = None) -> Finding:
    """A finding about the scenario as a value: without file and line, which only its reader knew."""
    return Finding("", None, path, found, allowed, suggestion)


def reference_findings(scenario: Scenario, names: Names, profiles: Iterable[str]) -> Iterator[Finding]:
    """Every name that nothing has, and every identity that two have.

    Args:
        scenario: as the user wrote it.
        names: what accelerators and LLMs are called.
        profiles: names of the profile tables.
    """
    yield from _duplicates(scenario)
    yield from _nodes(scenario)
    for path, name in _accelerators(scenario):
        yield from _outside(names.accelerators, path, name)
    for i, service in enumerate(scenario.services):
        yield from _outside(names.llms, f"services[{i}].llm", service.llm)
    pools = [pool.id for pool in scenario.pools]
    for path, name in _pools(scenario):
        yield from _unknown(path, name, pools)
    tables = sorted(profiles)
    for path, variant in _variants(scenario):
        if variant.profile is not None:
            yield from _unknown(f"{path}.profile", variant.profile, tables)
    services: dict[str, Service] = {service.id: service for service in scenario.services}
    for i, row in enumerate(scenario.fleet.running):
        yield from _running(f"fleet.running[{i}]", row, services)


def _duplicates(scenario: Scenario) -> Iterator[Finding]:
    limits = scenario.limits
    yield from _twice("services", [service.id for service in scenario.services])
    yield from _twice("pools", [pool.id for pool in scenario.pools])
    yield from _twice("limits.quotas", [quota.id for quota in limits.quotas])
    yield from _twice("limits.power", [domain.id for domain in limits.power])
    rows = [f"{row.service}/{row.variant}@{row.pool}" for row in scenario.fleet.running]
    yield from _twice("fleet.running", rows)
    yield from _twice("accelerators", [accelerator.id for accelerator in scenario.accelerators])
    yield from _twice("llms", [llm.id for llm in scenario.llms])
    for i, service in enumerate(scenario.services):
        yield from _twice(f"services[{i}].variants", [variant.id for variant in service.variants])
        yield from _twice(f"services[{i}].buckets", [bucket.id for bucket in service.buckets])


def _nodes(scenario: Scenario) -> Iterator[Finding]:
    for i, pool in enumerate(scenario.pools):
        number = sum(node.count for node in pool.nodes)
        if number > MOST_NODES:
            yield finding(f"pools[{i}].nodes", f"{number} nodes", allowed=f"at most {MOST_NODES}")
        else:
            yield from _twice(f"pools[{i}].nodes", [name for node in pool.nodes for name in node_ids(node)])


def _twice(path: str, identities: Iterable[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for identity in identities:
        if identity in seen:
            yield finding(path, f"{identity!r} more than once", allowed="each id once")
        seen.add(identity)


def _variants(scenario: Scenario) -> Iterator[tuple[str, Variant]]:
    for i, service in enumerate(scenario.services):
        for j, variant in enumerate(service.variants):
            yield f"services[{i}].variants[{j}]", variant


def _accelerators(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for i, pool in enumerate(scenario.pools):
        yield f"pools[{i}].accelerator", pool.accelerator
    for path, variant in _variants(scenario):
        yield f"{path}.accelerator", variant.accelerator
    for i, quota in enumerate(scenario.limits.quotas):
        if quota.accelerator is not None:
            yield f"limits.quotas[{i}].accelerator", quota.accelerator
    for i, service in enumerate(scenario.services):
        places = service.places
        yield from _listed(f"services[{i}].places.allow_accelerators", places.allow_accelerators)
        yield from _listed(f"services[{i}].places.deny_accelerators", places.deny_accelerators)


def _pools(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for path, variant in _variants(scenario):
        yield from _listed(f"{path}.pools", variant.pools)
    for i, domain in enumerate(scenario.limits.power):
        yield from _listed(f"limits.power[{i}].pools", domain.pools)
    for i, service in enumerate(scenario.services):
        yield from _listed(f"services[{i}].places.allow_pools", service.places.allow_pools)
        yield from _listed(f"services[{i}].places.deny_pools", service.places.deny_pools)
    for i, row in enumerate(scenario.fleet.running):
        yield f"fleet.running[{i}].pool", row.pool


def _listed(path: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    yield from ((f"{path}[{k}]", name) for k, name in enumerate(names))


def _outside(lexicon: Lexicon[Entry], path: str, name: str) -> Iterator[Finding]:
    if name not in lexicon:
        yield finding(
            path,
            repr(name),
            allowed="an id or alias of the scenario or the catalog",
            suggestion=lexicon.nearest(name),
        )


def _unknown(path: str, name: str, known: Iterable[str]) -> Iterator[Finding]:
    allowed = tuple(known)
    if name not in allowed:
        listed = ", ".join(sorted(allowed)[:12]) or "nothing: there is none"
        yield finding(path, repr(name), allowed=listed, suggestion=nearest(name, allowed))


def _running(path: str, row: RunningVariant, services: dict[str, Service]) -> Iterator[Finding]:
    service = services.get(row.service)
    if service is None:
        yield from _unknown(f"{path}.service", row.service, services)
    else:
        yield from _unknown(f"{path}.variant", row.variant, [variant.id for variant in service.variants])
