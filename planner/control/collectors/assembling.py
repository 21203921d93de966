"""Sightings -> a reading: whose each engine is, what it lacks, and the traffic of each service."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from models.observation import EngineObservation, Finding, VariantObservation
from planner.control.collectors.attributing import Attribution
from planner.control.collectors.names import ENGINE_MEASURES
from planner.control.collectors.sightings import Place, Row, Sightings
from planner.control.collectors.traffic import Served, traffic_of
from planner.control.protocols import MetricsReading

__all__ = ["assemble"]

_WINDOW_S: Final = 60.0
_SHOWN: Final = 3
_MOST_FINDINGS: Final = 100
_BESIDE: Final = "waiting_now"
"""Nobody decides by it alone."""
_NEEDED: Final = frozenset(each.field for each in ENGINE_MEASURES if each.needed and each.field != _BESIDE)


def assemble(
    sightings: Sightings,
    variants: Sequence[VariantObservation],
    now_s: float,
    *,
    pools: Mapping[str, str] | None = None,
    findings: Iterable[Finding] = (),
    complete: bool = True,
) -> MetricsReading:
    """The reading of what was seen.

    Args:
        sightings: used up by this.
        variants: whose engines they may be; empty: all are kept.
        now_s: seconds of the epoch.
        pools: namespace by InferencePool, for routers whose series have no namespace.
        findings: what was found amiss so far.
        complete: whether every question was answered.
    """
    whose = Attribution(variants)
    whose.drop_workers(sightings)
    sightings.share_extras()
    _share_pod_values(sightings)
    engines: list[EngineObservation] = []
    served: list[Served] = []
    names = _instance_names(sightings.rows)
    for place, row in sightings.rows.items():
        owner = whose.variant_of(place, row)
        _forget_the_last_process(row.values, now_s)
        cluster = whose.cluster_of(place.cluster)
        served.append(Served.of(place, row, owner, cluster=cluster))
        engines.append(_engine(place, row, owner, (names[place], whose.name_of(cluster))))
    unseen = whose.unseen(sightings.rows)
    engines += [_unseen(owner, pod) for owner, pod in unseen]
    served += [
        Served(whose.cluster_of(owner.cluster), owner.namespace, owner.model, owner.model, None)
        for owner, _ in unseen
    ]
    traffic, about_traffic = traffic_of(sightings, served, whose, pools=pools or {})
    told = [
        *findings,
        *_about_unseen(unseen),
        *_about_fields(sightings.rows),
        *_about_ignored(sightings.ignored),
        *_about_strangers(engines, variants),
        *about_traffic,
    ]
    return MetricsReading(
        engines=tuple(sorted(engines, key=_order)),
        traffic=traffic,
        findings=tuple(told[:_MOST_FINDINGS]),
        complete=complete,
    )


def _order(engine: EngineObservation) -> tuple[str, str, str]:
    return engine.cluster or "", engine.namespace, engine.instance


def _share_pod_values(sightings: Sightings) -> None:
    """Give engines the power of their pod (ranks share it) and the rate that routers send them."""
    ranks = Counter((place.cluster, place.namespace, place.pod) for place in sightings.rows if place.pod)
    for place, row in sightings.rows.items():
        whose = (place.cluster, place.namespace, place.pod)
        if whose in sightings.power_w:
            row.values["power_w"] = sightings.power_w[whose] / ranks[whose]
    if not sightings.dispatch_rps:
        return
    sharing = Counter((*place[:2], place.cluster, _port(place.instance)) for place in sightings.rows)
    for place, row in sightings.rows.items():
        port = _port(place.instance)
        sent = sightings.dispatch_rps.get((place.cluster, place.namespace, place.pod, port))
        if sent is not None:
            row.values["request_rps"] = sent / sharing[(*place[:2], place.cluster, port)]


def _port(instance: str) -> str:
    return instance.rpartition(":")[2]


def _forget_the_last_process(values: dict[str, float], now_s: float) -> None:
    """Where the process is younger than the window, its maxima are those of the process before it."""
    started_s = values.get("started_s")
    if started_s is None or not now_s - _WINDOW_S < started_s <= now_s:
        return
    for peak, now in (("kv_usage", "kv_now"), ("waiting", "waiting_now")):
        if now in values:
            values[peak] = values[now]


def _engine(
    place: Place, row: Row, owner: VariantObservation | None, named: tuple[str, str | None]
) -> EngineObservation:
    """One engine; ``named`` is its name and that of its cluster."""
    values: dict[str, Any] = row.values
    if any(map(math.isnan, values.values())):
        values = {field: value for field, value in values.items() if not math.isnan(value)}
    name, cluster = named
    return EngineObservation(
        instance=name,
        cluster=cluster,
        namespace=place.namespace or (owner.namespace if owner is not None else ""),
        pod=place.pod,
        variant=row.variant if owner is None else owner.name,
        model=row.model,
        age_s=row.age_s,
        **values,
    )


def _unseen(owner: VariantObservation, pod: str) -> EngineObservation:
    return EngineObservation(
        instance=pod,
        cluster=owner.cluster,
        namespace=owner.namespace,
        pod=pod,
        variant=owner.name,
        model=owner.model,
    )


def _instance_names(rows: Iterable[Place]) -> dict[Place, str]:
    """``pod:port`` (the address where no pod is known), ``/rank`` for ranks above 0, the namespace where names repeat."""
    names = {place: _instance_name(place) for place in rows}
    uses = Counter((place.cluster, name) for place, name in names.items())
    if len(uses) == len(names):
        return names
    return {
        place: name if uses[place.cluster, name] == 1 else f"{place.namespace}/{name}"
        for place, name in names.items()
    }


def _instance_name(place: Place) -> str:
    colon = place.instance.rfind(":")
    name = place.instance
    if place.pod:
        name = place.pod if colon < 0 else f"{place.pod}{place.instance[colon:]}"
    return f"{name}/{place.rank}" if place.rank.isdigit() and place.rank != "0" else name


def _about_unseen(unseen: Sequence[tuple[VariantObservation, str]]) -> list[Finding]:
    pods: dict[tuple[str, str], list[str]] = defaultdict(list)
    for owner, pod in unseen:
        pods[owner.namespace, owner.name].append(pod)
    return [
        Finding(
            subject=f"variant {namespace}/{name}",
            problem=f"no metrics of {_some(missing)}, which {'is' if len(missing) == 1 else 'are'} ready",
            remedy="not scraped, or scraped at another port or under other pod labels; "
            "'fleetplan observe --check' looks for the reason",
        )
        for (namespace, name), missing in pods.items()
    ]


def _about_fields(rows: Mapping[Place, Row]) -> list[Finding]:
    """One finding for each needed series that engines lack, by kind of engine."""
    sizes = Counter(row.engine for row in rows.values())
    lacking: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for place, row in rows.items():
        if not row.values.keys() >= _NEEDED:
            for name in _NEEDED - row.values.keys():
                lacking[row.engine, name].append(place)
    return [
        Finding(
            subject=_series_of(field, engine),
            problem=f"missing at {_some([_instance_name(place) for place in places[:_SHOWN]], len(places))} "
            f"of {sizes[engine]} engines, so {field} is unknown there",
            remedy="renamed, dropped by a relabelling rule, or not offered by this version of the engine; "
            "'fleetplan observe --check' looks for the reason",
        )
        for (engine, field), places in sorted(lacking.items())
    ]


def _series_of(field: str, engine: str) -> str:
    measure = next(each for each in ENGINE_MEASURES if each.field == field)
    ours = [way.series[0] for way in measure.ways if way.series[0].startswith(engine)]
    return (ours or [measure.ways[0].series[0]])[0]


def _about_ignored(ignored: Mapping[str, int]) -> list[Finding]:
    return [
        Finding(
            subject=field,
            problem=f"{count} value{'s' * (count > 1)} that no engine can have, ignored",
            remedy="another unit (percent in place of a share), or a broken exporter",
        )
        for field, count in sorted(ignored.items())
    ]


def _about_strangers(
    engines: Iterable[EngineObservation], variants: Sequence[VariantObservation]
) -> list[Finding]:
    if not variants:
        return []
    strangers = [each.instance for each in engines if not each.variant]
    if not strangers:
        return []
    return [
        Finding(
            subject="attribution",
            problem=f"{_some(strangers)} in these namespaces belong to no variant and count for none",
            remedy="engines that nothing scales, pods that end, or series without the label of their pod",
        )
    ]


def _some(names: Sequence[str], count: int | None = None) -> str:
    """The first names, and how many there are (None: as many as given)."""
    shown = ", ".join(name[:100] for name in names[:_SHOWN])
    many = len(names) if count is None else count
    return shown if many <= _SHOWN else f"{many} ({shown}, …)"
