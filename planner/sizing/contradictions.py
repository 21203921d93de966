"""What a scenario asks for and no plan can give, whatever the fleet: found before anything is sized."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from models.scenario import Scenario
from models.variant import Role
from models.workload import Service, ServiceKind
from planner.errors import Finding, nearest
from planner.sizing.names import Names
from planner.sizing.references import finding

__all__ = ["contradiction_findings"]


def contradiction_findings(scenario: Scenario, names: Names) -> Iterator[Finding]:
    """Contradictions between parts of a scenario whose names are all known.

    Args:
        scenario: as the user wrote it.
        names: what accelerators and LLMs are called.
    """
    services: dict[str, Service] = {service.id: service for service in scenario.services}
    domains = sorted({pool.failure_domain or pool.id for pool in scenario.pools})
    for i, service in enumerate(scenario.services):
        path = f"services[{i}]"
        yield from _host(path, service, services, names)
        yield from _roles(path, service)
        yield from _bounds(path, service)
        for name in service.survive.failure_domains if service.survive is not None else ():
            if name not in domains:
                where = f"{path}.survive.failure_domains"
                yield finding(
                    where, repr(name), allowed=", ".join(domains), suggestion=nearest(name, domains)
                )
    yield from _running_elsewhere(scenario, names)


def _host(path: str, service: Service, services: Mapping[str, Service], names: Names) -> Iterator[Finding]:
    """A guest needs a host: an online service of the same LLM."""
    name = service.shares_replicas_of
    if name is None:
        return
    where = f"{path}.shares_replicas_of"
    online = sorted(other.id for other in services.values() if other.kind is ServiceKind.ONLINE)
    host = services.get(name)
    if host is None or host.kind is not ServiceKind.ONLINE:
        yield finding(
            where,
            repr(name),
            allowed=f"an online service: {', '.join(online)}",
            suggestion=nearest(name, online),
        )
    elif names.llms[host.llm].id != names.llms[service.llm].id:
        yield finding(where, f"{name!r}, which serves {host.llm}", allowed=f"a service of {service.llm}")


def _roles(path: str, service: Service) -> Iterator[Finding]:
    """Prefill without decode, or the other way round, serves nothing."""
    roles = {variant.role for variant in service.variants}
    halves = {Role.PREFILL, Role.DECODE}
    if len(roles & halves) == 1:
        (there,) = roles & halves
        (lacking,) = halves - roles
        yield finding(
            f"{path}.variants", f"role {there} without role {lacking}", allowed="both, or role both"
        )


def _bounds(path: str, service: Service) -> Iterator[Finding]:
    """Bounds of the variants that cannot meet those of their service."""
    least = sum(variant.min_replicas for variant in service.variants)
    if service.max_replicas is not None and least > service.max_replicas:
        found = f"{service.max_replicas}, and min_replicas of the variants add up to {least}"
        yield finding(f"{path}.max_replicas", found, allowed=f"at least {least}")
    most = [variant.max_replicas for variant in service.variants]
    known = [limit for limit in most if limit is not None]
    if len(known) == len(most) and sum(known) < service.min_replicas:
        found = f"{service.min_replicas}, and max_replicas of the variants add up to {sum(known)}"
        yield finding(f"{path}.min_replicas", found, allowed=f"at most {sum(known)}")


def _running_elsewhere(scenario: Scenario, names: Names) -> Iterator[Finding]:
    """A variant cannot run on accelerators that it is not made for."""
    pools = {pool.id: names.accelerators[pool.accelerator].id for pool in scenario.pools}
    variants = {
        (service.id, variant.id): names.accelerators[variant.accelerator].id
        for service in scenario.services
        for variant in service.variants
    }
    for i, row in enumerate(scenario.fleet.running):
        needs, has = variants[row.service, row.variant], pools[row.pool]
        if needs != has:
            yield finding(f"fleet.running[{i}].pool", f"{row.pool!r} of {has}", allowed=f"a pool of {needs}")
