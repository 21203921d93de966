"""Everything that is seen in one cycle: clusters and metrics, joined; what did not answer is said, and never guessed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Thread
from typing import Any, Final, TypeVar

from models.observation import (
    EngineObservation,
    Finding,
    Observation,
    TrafficObservation,
    VariantObservation,
)
from planner.control.analysis.identity import VariantRef, ref_of
from planner.control.protocols import (
    CapacityDiscovery,
    ClusterReading,
    FleetDiscovery,
    Inventory,
    MetricsReading,
    MetricsSource,
)

__all__ = ["Eyes", "Sight", "joined"]

_Result = TypeVar("_Result")
_MOST_FINDINGS: Final = 500
_PIECE_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Sight:
    """One look.

    Attributes:
        observation: what was seen, and what not.
        clusters: what clusters said of it.
        unseen: variants that are in the observation as they were seen before: their cluster did not answer.
    """

    observation: Observation
    clusters: ClusterReading
    unseen: frozenset[VariantRef] = frozenset()


@dataclass(slots=True)
class Eyes:
    """Looks at clusters and metrics. Whatever a plug-in does, raising or never coming back, is a finding.

    Args:
        fleet: tells of variants and accelerators.
        capacity: tells of accelerators in its place; None: nobody.
        sources: of metrics, by name.
        within_s: longest time of one look of each, s.
        stopping: says that there is no time left.
    """

    fleet: FleetDiscovery | None
    sources: Mapping[str, MetricsSource]
    capacity: CapacityDiscovery | None = None
    within_s: float = 60.0
    stopping: Callable[[], bool] = lambda: False
    _known: dict[VariantRef, VariantObservation] = field(default_factory=dict)
    _late: dict[str, Future[Any]] = field(default_factory=dict)

    def clusters(self, now_s: float) -> ClusterReading:
        """What clusters say now."""
        reading = ClusterReading()
        if self.fleet is not None:
            seen = self._within("the cluster discovery", partial(self.fleet.see, now_s))
            reading = _silent(seen) if isinstance(seen, Finding) else seen
        if self.capacity is not None:
            found = self._within("the capacity discovery", partial(self.capacity.discover, now_s))
            inventory = Inventory(findings=(found,), complete=False) if isinstance(found, Finding) else found
            reading = replace(reading, inventory=inventory)
        return reading

    def look(self, now_s: float) -> Sight:
        """Clusters first, then what engines and routers of their variants say.

        Variants of a cluster that did not answer are those of the last look; one that a complete answer lacks is gone.
        """
        clusters = self.clusters(now_s)
        variants, unseen = self._remembered(clusters)
        metrics = self._metrics(variants, now_s)
        inventory = clusters.inventory
        findings = (*clusters.findings, *inventory.findings, *metrics.findings)
        observation = Observation(
            at_s=now_s,
            engines=metrics.engines,
            variants=variants,
            traffic=metrics.traffic,
            pools=inventory.pools,
            quotas=inventory.quotas,
            findings=tuple(dict.fromkeys(findings))[:_MOST_FINDINGS],
            complete=clusters.complete and inventory.complete and metrics.complete,
        )
        return Sight(observation, clusters, unseen)

    def queues(self, variants: Sequence[VariantObservation], now_s: float) -> tuple[TrafficObservation, ...]:
        """What routers hold for these variants; of sources that know a short way, that one."""
        found: list[MetricsReading] = []
        for name, source in self.sources.items():
            answer = self._within(f"the metrics source {name}", _queues(source, variants, now_s))
            if not isinstance(answer, Finding):
                found.append(answer)
        return joined(found).traffic

    def close(self) -> None:
        """Let go of everything; what never came back is left behind."""
        for each in (*self.sources.values(), self.fleet, self.capacity):
            close = getattr(each, "close", None)
            if callable(close):
                try:
                    close()
                except Exception:  # noqa: S112 - whatever a plug-in raises, the others are to be closed too
                    continue

    def _remembered(
        self, clusters: ClusterReading
    ) -> tuple[tuple[VariantObservation, ...], frozenset[VariantRef]]:
        seen = {ref_of(each): each for each in clusters.variants}
        if clusters.complete:
            self._known = seen
            return clusters.variants, frozenset()
        unseen = frozenset(self._known.keys() - seen.keys())
        self._known = self._known | seen
        return (*clusters.variants, *(self._known[key] for key in sorted(unseen))), unseen

    def _metrics(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        waiting = {
            name: self._begun(f"the metrics source {name}", partial(source.read, variants, now_s))
            for name, source in self.sources.items()
        }
        readings = []
        for name, begun in waiting.items():
            found = self._ended(f"the metrics source {name}", begun)
            if isinstance(found, Finding):
                found = MetricsReading(findings=(found,), complete=False)
            readings.append(found)
        return joined(readings)

    def _result(self, begun: Future[_Result]) -> _Result:
        """What comes back, waited for in pieces so that an end is noticed."""
        left_s = self.within_s
        while left_s > _PIECE_S and not self.stopping():
            try:
                return begun.result(_PIECE_S)
            except LateError:
                if begun.done():
                    raise
                left_s -= _PIECE_S
        return begun.result(0.0 if self.stopping() else max(0.0, left_s))

    def _within(self, what: str, ask: Callable[[], _Result]) -> _Result | Finding:
        return self._ended(what, self._begun(what, ask))

    def _begun(self, what: str, ask: Callable[[], _Result]) -> Future[_Result] | None:
        """None: it was asked before and did not come back yet; asking again would only fill up threads."""
        late = self._late.get(what)
        if late is not None and not late.done():
            return None
        self._late.pop(what, None)
        return _in_a_thread(ask)

    def _ended(self, what: str, begun: Future[_Result] | None) -> _Result | Finding:
        if begun is None:
            return Finding(subject=what, problem="it was asked in an earlier cycle and has not answered yet")
        try:
            return self._result(begun)
        except LateError:
            self._late[what] = begun
            problem = (
                "it was not waited for: the controller ends"
                if self.stopping()
                else f"no answer within {self.within_s:g} s"
            )
            return Finding(subject=what, problem=problem)
        except Exception as cause:
            # Its words may hold what nobody may read.
            return Finding(
                subject=what, problem=f"it broke ({type(cause).__name__})", remedy="see its documentation"
            )


def joined(readings: Sequence[MetricsReading]) -> MetricsReading:
    """Readings of several sources as one.

    An engine counts once, as its freshest reading tells; figures of traffic that one source lacks are those of the next.
    """
    if len(readings) == 1:
        return readings[0]
    engines: dict[tuple[str | None, str], EngineObservation] = {}
    traffic: dict[tuple[str | None, str, str], TrafficObservation] = {}
    for reading in readings:
        for engine in reading.engines:
            key = (engine.cluster, engine.instance)
            engines[key] = _fresher(engines.get(key), engine)
        for row in reading.traffic:
            place = (row.cluster, row.namespace, row.model)
            traffic[place] = _filled(traffic.get(place), row)
    return MetricsReading(
        engines=tuple(engines.values()),
        traffic=tuple(traffic.values()),
        findings=tuple(each for reading in readings for each in reading.findings),
        complete=all(reading.complete for reading in readings),
    )


def _fresher(known: EngineObservation | None, other: EngineObservation) -> EngineObservation:
    if known is None or known.age_s is None:
        return other
    return other if other.age_s is not None and other.age_s < known.age_s else known


def _filled(known: TrafficObservation | None, other: TrafficObservation) -> TrafficObservation:
    if known is None:
        return other
    missing = {
        name: getattr(other, name)
        for name in type(known).model_fields
        if getattr(known, name) is None and getattr(other, name) is not None
    }
    return known.model_copy(update=missing) if missing else known


def _queues(
    source: MetricsSource, variants: Sequence[VariantObservation], now_s: float
) -> Callable[[], MetricsReading]:
    short: Callable[[Sequence[VariantObservation], float], MetricsReading] | None = getattr(
        source, "queues", None
    )
    return partial(source.read if short is None else short, variants, now_s)


def _in_a_thread(ask: Callable[[], _Result]) -> Future[_Result]:
    """Ask in a thread that does not keep the program from ending, as those of a pool would."""
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(ask())
        except Exception as cause:
            future.set_exception(cause)

    Thread(target=run, name="look", daemon=True).start()
    return future


def _silent(finding: Finding) -> ClusterReading:
    return ClusterReading(inventory=Inventory(complete=False), findings=(finding,), complete=False)
