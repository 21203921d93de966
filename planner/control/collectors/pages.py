"""Metrics pages of engines, routers and exporters -> a reading. What direct scraping, files and pushes have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from models.observation import Finding, VariantObservation
from planner.control.collectors.assembling import assemble
from planner.control.collectors.diagnosing import about_page
from planner.control.collectors.exposition import Page, PageLimits, Sample, parse
from planner.control.collectors.label_names import LabelNames
from planner.control.collectors.ledger import Ledger
from planner.control.collectors.names import (
    COMPLETED,
    DISPATCH,
    ENGINE_MEASURES,
    POWER,
    PRESENCE,
    ROUTER_MEASURES,
    STARTED,
    How,
    engine_of,
    plain,
)
from planner.control.collectors.sightings import (
    LONGEST_LABEL,
    Place,
    RouterRow,
    Row,
    Sightings,
    without_rank,
)
from planner.control.protocols import MetricsReading

__all__ = ["Origin", "PageBook"]

_MOST_PLACES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a page is from; labels on its lines say more where they are there.

    Attributes:
        instance: host:port, or a name.
        namespace: of the pod; empty: unknown.
        pod: its name; empty: unknown.
        cluster: empty: the only one.
        variant: name of its variant; empty: unknown.
    """

    instance: str
    namespace: str = ""
    pod: str = ""
    cluster: str = ""
    variant: str = ""


class _RouterKey(NamedTuple):
    origin: Origin
    instance: str
    namespace: str
    pool: str
    model: str


class _DispatchKey(NamedTuple):
    origin: Origin
    namespace: str
    pod: str
    port: str


@dataclass(slots=True)
class _Said:
    """What a page said last: places of engines with their labels, times, power, and what was odd."""

    at_s: float
    rows: dict[Place, Row] = field(default_factory=dict)
    power_w: dict[tuple[str, str, str, str], float] = field(default_factory=dict)
    routers: set[_RouterKey] = field(default_factory=set)
    dispatch: set[_DispatchKey] = field(default_factory=set)
    findings: tuple[Finding, ...] = ()


_SERIES: Final[dict[str, str]] = {
    plain(name): name
    for measure in (*ENGINE_MEASURES, COMPLETED, *ROUTER_MEASURES, STARTED, POWER)
    for way in measure.ways
    for name in way.series
}
"""Names as the table has them, by what OpenMetrics leaves of them."""
_FILTERS: Final = {
    way.series[0]: way.labels for measure in ROUTER_MEASURES for way in measure.ways if way.labels
}
_GAUGES: Final = frozenset(
    way.series[0]
    for measure in ENGINE_MEASURES
    for way in measure.ways
    if measure.how_of(way) in {How.NOW, How.PEAK}
)
_SIZES: Final = {
    way.series[0]: tuple(name for name, _ in way.labels)
    for measure in ENGINE_MEASURES
    for way in measure.ways
    if measure.how_of(way) is How.SIZE
}
_PRESENCE: Final = frozenset(way.series[0] for way in PRESENCE)
_ROUTED: Final = frozenset(name for measure in ROUTER_MEASURES for way in measure.ways for name in way.series)
_SENT: Final = frozenset(way.series[0] for way in DISPATCH.ways)
_STARTED: Final = STARTED.ways[0].series[0]
_POWER: Final = POWER.ways[0].series[0]


class PageBook:
    """Remembers pages and makes readings of them.

    Args:
        labels: how labels are called on pages that were gathered by others.
        retention_s: period over which arrived and completed requests are counted, s.
        pools: namespace by InferencePool.
        limits: of each page.
    """

    def __init__(
        self,
        *,
        labels: LabelNames | None = None,
        retention_s: float = 600.0,
        pools: Mapping[str, str] | None = None,
        limits: PageLimits | None = None,
    ) -> None:
        self._labels = labels or LabelNames()
        self._pools = dict(pools or {})
        self._limits = limits or PageLimits()
        windows = {"completed": retention_s, "arrived": retention_s}
        self._engines = Ledger((*ENGINE_MEASURES, COMPLETED), windows)
        self._routers = Ledger(ROUTER_MEASURES, windows)
        self._sent = Ledger([DISPATCH])
        self._said: dict[Origin, _Said] = {}

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Whose pages are known."""
        return tuple(self._said)

    def last_s(self, origin: Origin) -> float | None:
        """When a page of an origin came, s of the epoch; None: never."""
        said = self._said.get(origin)
        return None if said is None else said.at_s

    def take(self, origin: Origin, text: str, at_s: float) -> Page:
        """Note a page. Engines that it named before and does not name now are gone."""
        page = parse(text, lambda name: plain(name) in _SERIES, limits=self._limits)
        before = self._said.get(origin)
        said = _Said(at_s)
        before_s = None if before is None else before.at_s
        self._take_engines(origin, page, said, before_s)
        self._take_routers(origin, page, said, before_s)
        said.findings = about_page(origin.instance, page)
        if before is not None:
            self._drop(before, said)
        self._said[origin] = said
        return page

    def forget(self, origin: Origin) -> None:
        """Drop everything of an origin."""
        said = self._said.pop(origin, None)
        if said is not None:
            self._drop(said, _Said(said.at_s))

    def _drop(self, before: _Said, now: _Said) -> None:
        for place in before.rows.keys() - now.rows.keys():
            self._engines.drop(place)
        for routed in before.routers - now.routers:
            self._routers.drop(routed)
        for sent in before.dispatch - now.dispatch:
            self._sent.drop(sent)

    def _take_engines(self, origin: Origin, page: Page, said: _Said, before_s: float | None) -> None:
        values: dict[Place, dict[str, float]] = {}
        starts: dict[Place, float] = {}
        watts: dict[tuple[str, str, str, str], float] = {}
        for sample in page.samples:
            name = _SERIES[plain(sample.name)]
            if name in _ROUTED:
                continue
            if name == _POWER:
                _take_power(watts, sample)
                continue
            place = self._place(origin, sample.labels)
            if name == _STARTED:
                starts[place.whole] = sample.value
                continue
            if name in _PRESENCE and len(said.rows) < _MOST_PLACES:
                self._see(said, place, sample, engine_of(name))
            _put(values.setdefault(place, {}), name, sample)
        said.power_w = watts
        self._note(said, values, starts, before_s)

    def _note(
        self,
        said: _Said,
        values: dict[Place, dict[str, float]],
        starts: Mapping[Place, float],
        before_s: float | None,
    ) -> None:
        wholes: dict[Place, dict[str, float]] = {
            place: found for place, found in values.items() if place not in said.rows and not place.rank
        }
        ranks: dict[Place, int] = {}
        for place in said.rows:
            ranks[place.whole] = ranks.get(place.whole, 0) + 1
        for place, row in said.rows.items():
            # A process speaks for all of its ranks where a series has none; counters are shared evenly.
            shared = {
                name: value if name in _GAUGES else value / ranks[place.whole]
                for name, value in wholes.get(place.whole, {}).items()
            }
            started_s = starts.get(place.whole)
            if started_s is not None:
                row.values["started_s"] = started_s
            stamp_s = said.at_s if row.age_s is None else said.at_s - row.age_s
            found = shared | values.get(place, {})
            self._engines.add(place, stamp_s, found, started_s=started_s, before_s=before_s)

    def _see(self, said: _Said, place: Place, sample: Sample, engine: str) -> None:
        row = said.rows.get(place)
        if row is None:
            row = said.rows[place] = Row.of(sample.labels, self._labels, engine=engine)
        if sample.time_s is not None and math.isfinite(sample.time_s):
            age_s = min(max(0.0, said.at_s - sample.time_s), 1e8)
            row.age_s = age_s if row.age_s is None else min(row.age_s, age_s)

    def _place(self, origin: Origin, labels: Mapping[str, str]) -> Place:
        names = self._labels
        return Place(
            labels.get(names.namespace, origin.namespace)[:LONGEST_LABEL],
            labels.get(names.pod, origin.pod)[:LONGEST_LABEL],
            labels.get(names.instance, origin.instance)[:LONGEST_LABEL],
            (labels.get("engine") or labels.get("dp_rank") or "")[:LONGEST_LABEL],
            origin.cluster or names.cluster_name or "",
        )

    def _take_routers(self, origin: Origin, page: Page, said: _Said, before_s: float | None) -> None:
        values: dict[_RouterKey, dict[str, float]] = {}
        sent: dict[_DispatchKey, dict[str, float]] = {}
        older = _older({_SERIES[plain(sample.name)] for sample in page.samples})
        for sample in page.samples:
            name = _SERIES[plain(sample.name)]
            labels = sample.labels
            if (
                name not in _ROUTED
                or name in older
                or any(labels.get(key) != value for key, value in _FILTERS.get(name, ()))
            ):
                continue
            row = RouterRow.of(labels, self._labels)
            if row.model:
                instance = labels.get(self._labels.instance, origin.instance)
                key = _RouterKey(origin, instance, row.namespace or origin.namespace, row.pool, row.model)
                _sum(values.setdefault(key, {}), name, sample.value)
            pod = without_rank(labels.get("endpoint_name") or labels.get("pod_name", ""))
            if name in _SENT and pod:
                to = _DispatchKey(origin, row.namespace, pod, labels.get("port", ""))
                _sum(sent.setdefault(to, {}), name, sample.value)
        said.routers, said.dispatch = set(values), set(sent)
        for routed, found in values.items():
            self._routers.add(routed, said.at_s, found, before_s=before_s)
        for endpoint, found in sent.items():
            self._sent.add(endpoint, said.at_s, found, before_s=before_s)

    def reading(
        self,
        variants: Sequence[VariantObservation],
        now_s: float,
        *,
        findings: Iterable[Finding] = (),
        complete: bool = True,
    ) -> MetricsReading:
        """What the newest pages and those before say.

        Args:
            variants: whose engines they may be.
            now_s: seconds of the epoch; ages are counted to then.
            findings: found amiss so far.
            complete: whether every page was there.
        """
        seen = Sightings()
        told = [*findings]
        gpus: dict[tuple[str, str, str, str], tuple[float, float]] = {}
        for origin, said in self._said.items():
            told += said.findings
            self._fill(seen, origin, said, now_s)
            for key, value in said.power_w.items():
                gpus[key] = max(gpus.get(key, (-1.0, 0.0)), (said.at_s, value))
        for (namespace, pod, _, _), (_, value) in gpus.items():
            watts = seen.believe("power_w", value)
            if watts is not None and not math.isnan(watts):
                whose = (self._labels.cluster_name or "", namespace, pod)
                seen.power_w[whose] = seen.power_w.get(whose, 0.0) + watts
        return assemble(seen, variants, now_s, pools=self._pools, findings=told, complete=complete)

    def _fill(self, seen: Sightings, origin: Origin, said: _Said, now_s: float) -> None:
        cluster = origin.cluster or self._labels.cluster_name or ""
        for place, row in said.rows.items():
            values = _believed(seen, self._engines.measured(place) | row.values)
            completed = values.pop("completed", math.nan)
            if not math.isnan(completed):
                whose = (place.cluster, place.namespace, row.model)
                seen.completed[whose] = seen.completed.get(whose, 0.0) + completed
            age_s = min(max(0.0, now_s - said.at_s) + (row.age_s or 0.0), 1e8)
            variant = row.variant or origin.variant
            seen.rows[place] = Row(row.model, variant, row.engine, row.worker, age_s, values)
        for routed in said.routers:
            values = _believed(seen, self._routers.measured(routed))
            seen.routers.append(RouterRow(cluster, routed.namespace, routed.pool, routed.model, values))
        for sent in said.dispatch:
            rate = _believed(seen, self._sent.measured(sent)).get("dispatch_rps", math.nan)
            if not math.isnan(rate):
                to = (cluster, sent.namespace, sent.pod, sent.port)
                seen.dispatch_rps[to] = seen.dispatch_rps.get(to, 0.0) + rate


def _older(names: set[str]) -> frozenset[str]:
    """Series of routers that a page has under a newer name too; one picker is read under one name."""
    older: set[str] = set()
    for measure in ROUTER_MEASURES:
        there = [way.series[0] for way in measure.ways if way.series[0] in names]
        older.update(there[1:])
    return frozenset(older)


def _believed(seen: Sightings, values: Mapping[str, float]) -> dict[str, float]:
    found = {name: seen.believe(name, raw) for name, raw in values.items()}
    return {name: value for name, value in found.items() if value is not None}


def _put(values: dict[str, float], name: str, sample: Sample) -> None:
    """Add a sample of an engine: gauges that ranks repeat count once, counters of several label sets are summed."""
    value = sample.value
    if name in _SIZES:
        try:
            value = math.prod(float(sample.labels[label]) for label in _SIZES[name])
        except (KeyError, ValueError):
            value = math.nan
    if name in _GAUGES or name in _SIZES:
        values[name] = value if name not in values or math.isnan(values[name]) else max(values[name], value)
    else:
        _sum(values, name, value)


def _sum(values: dict[str, float], name: str, value: float) -> None:
    values[name] = values.get(name, 0.0) + value


def _take_power(watts: dict[tuple[str, str, str, str], float], sample: Sample) -> None:
    labels = sample.labels
    pod = labels.get("exported_pod") or labels.get("pod", "")
    if pod:
        namespace = labels.get("exported_namespace") or labels.get("namespace", "")
        watts[namespace, pod, labels.get("UUID", ""), labels.get("gpu", "")] = sample.value
