"""Traffic of services: what routers say, each queue once, and what their engines hold and have completed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

from models.observation import Finding, TrafficObservation, VariantObservation
from planner.control.collectors.attributing import Attribution
from planner.control.collectors.sightings import Place, RouterRow, Row, Sightings

__all__ = ["Served", "traffic_of"]

_ROUTED: Final = ("arrival_rps", "queued", "queued_bytes", "arrived")
_STAND_INS: Final = {"arrival_rps": "requested_rps", "arrived": "attempted"}
"""What says the same where a router does not have the usual series; never both."""
_MOST: Final = {"arrival_rps": 1e7, "queued": 1e12, "queued_bytes": 1e18, "arrived": 1e15}
"""Bounds of sums, above which nothing is believed."""
Service = tuple[str, str, str]


class Served(NamedTuple):
    """What one engine adds to its service.

    Attributes:
        cluster: of the engine, as clusters are compared.
        namespace: of the engine.
        model: of its variant, else as it says.
        said: served model name, as the engine says it.
        requests: running and waiting now; None: unknown.
    """

    cluster: str
    namespace: str
    model: str
    said: str
    requests: float | None

    @classmethod
    def of(cls, place: Place, row: Row, owner: VariantObservation | None, *, cluster: str) -> Self:
        """The share of one engine."""
        running, waiting = row.values.get("running", math.nan), row.values.get("waiting_now", math.nan)
        known = not math.isnan(running + waiting)
        return cls(
            cluster,
            place.namespace if owner is None else owner.namespace,
            row.model if owner is None else owner.model,
            row.model,
            running + waiting if known else None,
        )


def traffic_of(
    sightings: Sightings, served: Sequence[Served], whose: Attribution, *, pools: Mapping[str, str]
) -> tuple[tuple[TrafficObservation, ...], tuple[Finding, ...]]:
    """Traffic by model and namespace.

    Args:
        sightings: what routers said and engines completed.
        served: each engine.
        whose: which namespaces serve a model.
        pools: namespace by InferencePool.
    """
    services: dict[Service, dict[str, float]] = {}
    called = _models_by_served_name(served)
    homes = _homes(served)
    homeless: dict[str, RouterRow] = {}
    for row in sightings.routers:
        namespace = row.namespace or _namespace_of(row, homes, whose, pools)
        if namespace is None:
            homeless[row.model] = row
            continue
        cluster = whose.cluster_of(row.cluster)
        model = called.get((cluster, namespace, row.model), row.model)
        values = services.setdefault((cluster, namespace, model), {})
        for field, value in row.values.items():
            if not math.isnan(value):
                values[field] = values.get(field, 0.0) + value
    held = _held(served)
    for (at, namespace, said), count in sightings.completed.items():
        cluster = whose.cluster_of(at)
        model = called.get((cluster, namespace, said), said)
        values = services.setdefault((cluster, namespace, model), {})
        values["completed"] = values.get("completed", 0.0) + count
    rows = tuple(
        _row(service, services.get(service, {}), held.get(service), cluster=whose.name_of(service[0]))
        for service in sorted({*services, *held})
        if service[2]
    )
    return rows, tuple(_about_homeless(row) for row in homeless.values())


def _row(
    service: Service, values: Mapping[str, float], held: float | None, *, cluster: str | None
) -> TrafficObservation:
    _, namespace, model = service
    values = {
        other: values[other_name] for other, other_name in _STAND_INS.items() if other_name in values
    } | {**values}
    return TrafficObservation(
        model=model,
        namespace=namespace,
        cluster=cluster,
        completed=values.get("completed"),
        in_flight=held if held is not None else values.get("in_flight"),
        **{field: min(values[field], _MOST[field]) for field in _ROUTED if field in values},
    )


def _models_by_served_name(served: Sequence[Served]) -> dict[Service, str]:
    """Model of the variants by served name, where all engines of that name in a namespace agree."""
    found: dict[Service, set[str]] = {}
    for each in served:
        found.setdefault((each.cluster, each.namespace, each.said), set()).add(each.model)
    return {key: next(iter(models)) for key, models in found.items() if len(models) == 1}


def _held(served: Sequence[Served]) -> dict[Service, float | None]:
    """Requests in engines by service; None where one of its engines does not say."""
    held: dict[Service, float | None] = {}
    for each in served:
        service = (each.cluster, each.namespace, each.model)
        sofar = held.get(service, 0.0)
        held[service] = None if sofar is None or each.requests is None else sofar + each.requests
    return held


def _homes(served: Sequence[Served]) -> dict[tuple[str, str], set[str]]:
    """Namespaces with engines that serve a model, by cluster and name of the model."""
    homes: dict[tuple[str, str], set[str]] = {}
    for each in served:
        for name in {each.model, each.said}:
            homes.setdefault((each.cluster, name), set()).add(each.namespace)
    return homes


def _namespace_of(
    row: RouterRow,
    homes: Mapping[tuple[str, str], set[str]],
    whose: Attribution,
    pools: Mapping[str, str],
) -> str | None:
    """Where a queue without namespace belongs: by its pool, else the only namespace that serves the model."""
    if row.pool in pools:
        return pools[row.pool]
    cluster = whose.cluster_of(row.cluster)
    known = whose.namespaces_of(cluster, row.model) or homes.get((cluster, row.model), set())
    return next(iter(known)) if len(known) == 1 else None


def _about_homeless(row: RouterRow) -> Finding:
    pool = f" (pool {row.pool})" if row.pool else ""
    return Finding(
        subject=f"router of {row.model[:100]}{pool}",
        problem="its series have no namespace and the model is served in several or none; it is counted nowhere",
        remedy="let the scrape attach the label namespace, or name the namespace of the pool (pools)",
    )
