"""Engines and routers as a Prometheus (or Thanos, Mimir, VictoriaMetrics) has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import Field

from models.ids import Name
from models.observation import Finding, VariantObservation
from models.units import PositiveCount, PositiveSeconds
from planner.clock import Clock
from planner.collecting import collection_paused
from planner.control.collectors import queries
from planner.control.collectors.access import Access, Fault, Trouble, checked
from planner.control.collectors.assembling import assemble
from planner.control.collectors.checking import check
from planner.control.collectors.label_names import LabelNames
from planner.control.collectors.prometheus_api import Answer, Labels, PrometheusApi, Sample
from planner.control.collectors.queries import Questions
from planner.control.collectors.sightings import RouterRow, Sightings
from planner.control.collectors.vectors import Vectors
from planner.control.options import options_of
from planner.control.protocols import MetricsReading

__all__ = ["PrometheusOptions", "PrometheusSource", "source"]

_UNUSABLE: Final = frozenset({Trouble.UNREACHABLE, Trouble.TIMEOUT, Trouble.TLS, Trouble.DENIED})
"""Troubles of one question that every other one would have too."""


_QUEUED: Final = "queued"
_OPTIONAL: Final = frozenset({"power_w", "hit_share", "queued_bytes", queries.SENT})
"""Questions without whose answer decisions are as good."""
_REMARK: Final = "PromQL"
"""How warnings begin that are about the question and not about missing data."""
_MOST_STEPS: Final = 10_000
"""Points of one series that servers give at most, with room."""
Arrivals = dict[tuple[str, str], tuple[tuple[float, float], ...]]


class PrometheusOptions(Access):
    """How to read a Prometheus."""

    namespaces: tuple[Name, ...] = Field((), description="namespaces to read beside those of the variants")
    labels: LabelNames = Field(LabelNames(), description="labels that tell where a series is from")
    retention_s: PositiveSeconds = Field(
        600.0, le=30 * 86_400, description="period over which arrived and completed requests are counted, s"
    )
    retentions: Mapping[str, PositiveSeconds] = Field(
        {}, description="the same by service (namespace/model), s, where it differs"
    )
    pools: Mapping[str, Name] = Field(
        {}, description="namespace by InferencePool, for routers whose series have no namespace"
    )
    within_s: PositiveSeconds = Field(30.0, le=3600, description="time for one reading with all tries, s")
    parallel: PositiveCount = Field(4, le=16, description="questions asked at once")
    power: bool = Field(True, description="whether to ask for the power of accelerators (dcgm-exporter)")


@dataclass(slots=True)
class _Asked:
    """What became of the questions of one reading, which must be answered by ``end_s`` (monotonic, s)."""

    end_s: float
    answers: dict[str, Answer[Sample]] = field(default_factory=dict)
    known: dict[bytes, Labels] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    complete: bool = True
    hopeless: Fault | None = None

    def failed(self, name: str, fault: Fault) -> None:
        """Note a question that has no answer; many that fail alike are one finding."""
        self.complete = self.complete and name in _OPTIONAL
        if str(fault) not in {each.problem for each in self.findings}:
            self.findings.append(
                Finding(subject=f"Prometheus: {name}", problem=str(fault), remedy=_REMEDIES[fault.trouble])
            )


_REMEDIES: Final = {
    Trouble.UNREACHABLE: "is it running, and is the address right? Replicas are held until it answers",
    Trouble.TIMEOUT: "it is overloaded, or the question is too large for it; replicas are held until it answers",
    Trouble.TLS: "name the certificate that signs it (ca_file), the name in it (server_name), or use http",
    Trouble.DENIED: "give a token or certificate that may read queries (verb get, on OpenShift: cluster-monitoring-view)",
    Trouble.REFUSED: "is this the address of the query API (…/api/v1/query)?",
    Trouble.BUSY: "it will be asked again in the next cycle; replicas are held until then",
    Trouble.TOO_LARGE: "read fewer namespaces, or allow more with most_bytes",
    Trouble.GARBLED: "is this the address of the query API, and not of its web page or another server?",
}


class PrometheusSource:
    """Reads engines and routers with a fixed number of questions, however many there are.

    Args:
        options: how.
        clock: for waits.
        api: in place of one over HTTP.
    """

    def __init__(self, options: PrometheusOptions, clock: Clock, *, api: PrometheusApi | None = None) -> None:
        self.options = options
        self.api = api if api is not None else PrometheusApi(options, clock, within_s=options.within_s)

    def close(self) -> None:
        """Let go of the connections."""
        self.api.close()

    def questions(self, variants: Sequence[VariantObservation]) -> Questions:
        """The questions for these variants."""
        namespaces = {each.namespace for each in variants} | set(self.options.namespaces)
        return Questions(self.options.labels, tuple(sorted(namespaces)))

    def read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        """See :class:`planner.control.protocols.MetricsSource`."""
        # An answer is a hundred thousand small objects that all stay until the reading is made.
        with collection_paused():
            return self._read(variants, now_s)

    def _read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        asked = _Asked(self.api.limit())
        questions = self.questions(variants)
        self._ask(asked, {queries.PRESENT: questions.present()})
        if queries.PRESENT in asked.answers:
            self._ask(asked, self._rest(questions))
            self._ask_about_the_lost(asked, questions)
        seen = Sightings()
        self._fill(seen, asked)
        return assemble(
            seen, variants, now_s, pools=self.options.pools, findings=asked.findings, complete=asked.complete
        )

    def queues(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        """What routers hold now, and nothing else: one question, for those who ask many times a second.

        Args:
            variants: of services that sleep.
            now_s: seconds of the epoch.
        """
        asked = _Asked(self.api.limit())
        self._ask(asked, {_QUEUED: self.questions(variants).routers(self.options.retention_s)[_QUEUED]})
        seen = Sightings()
        Vectors(seen, self.options.labels).routers(asked.answers, {})
        return assemble(
            seen, variants, now_s, pools=self.options.pools, findings=asked.findings, complete=asked.complete
        )

    def check(self, variants: Sequence[VariantObservation]) -> tuple[Finding, ...]:
        """Which expected series are absent, and the likeliest reason of each."""
        return check(self.api, self.questions(variants))

    def _rest(self, questions: Questions) -> dict[str, str]:
        retention_s = self.options.retention_s
        rest = questions.engines() | questions.routers(retention_s)
        rest |= {
            queries.SENT: questions.dispatch(),
            "completed": questions.completed(retention_s),
        }
        for period in sorted(set(self.options.retentions.values()) - {retention_s}):
            rest[f"completed {period:g}"] = questions.completed(period)
            rest[f"arrived {period:g}"] = questions.routers(period)["arrived"]
        if self.options.power:
            rest["power_w"] = questions.power()
        return rest

    def _ask(self, asked: _Asked, named: Mapping[str, str]) -> None:
        def one(name: str) -> tuple[str, Answer[Sample] | Fault]:
            if asked.hopeless is not None:
                return name, asked.hopeless
            try:
                return name, self.api.query(named[name], asked.known, end_s=asked.end_s)
            except Fault as fault:
                if fault.trouble in _UNUSABLE:
                    asked.hopeless = fault
                return name, fault

        for name, answer in self._each(one, named):
            if isinstance(answer, Fault):
                asked.failed(name, answer)
                continue
            asked.answers[name] = answer
            for warning in answer.warnings:
                if not warning.startswith(_REMARK):
                    asked.failed(name, Fault(Trouble.BUSY, f"it answered in part: {warning}"))

    def _each(
        self, one: Callable[[str], tuple[str, Answer[Sample] | Fault]], names: Iterable[str]
    ) -> Iterator[tuple[str, Answer[Sample] | Fault]]:
        ordered = list(names)
        if len(ordered) == 1 or self.options.parallel == 1:
            return map(one, ordered)
        with ThreadPoolExecutor(min(self.options.parallel, len(ordered))) as pool:
            return iter(list(pool.map(one, ordered)))

    def _ask_about_the_lost(self, asked: _Asked, questions: Questions) -> None:
        """Where targets cannot be scraped, when their engines were last seen: they are there, and not removed."""
        if any(
            labels.get(queries.ENGINE_LABEL) == queries.DOWN
            for labels, _, _ in asked.answers[queries.PRESENT].result
        ):
            self._ask(asked, {queries.LAST_SEEN: questions.last_seen()})

    def _fill(self, seen: Sightings, asked: _Asked) -> None:
        answers = asked.answers
        vectors = Vectors(seen, self.options.labels)
        vectors.presence(answers.get(queries.PRESENT))
        vectors.lost(answers.get(queries.LAST_SEEN))
        vectors.engines(answers)
        vectors.routers(answers, self._periods("arrived"))
        vectors.power(answers.get("power_w"))
        vectors.dispatch(answers.get(queries.SENT))
        vectors.completed(answers, self._periods("completed"))

    def _periods(self, name: str) -> dict[str, str]:
        """The question that counts for a service, where it is not the usual one."""
        usual = self.options.retention_s
        return {
            service: f"{name} {period:g}"
            for service, period in self.options.retentions.items()
            if period != usual
        }

    def arrivals(
        self, variants: Sequence[VariantObservation], start_s: float, end_s: float, *, step_s: float
    ) -> tuple[Arrivals, tuple[Finding, ...]]:
        """Past arrivals, for forecasts.

        Args:
            variants: whose namespaces are read.
            start_s: seconds of the epoch.
            end_s: seconds of the epoch.
            step_s: between two points, s; more where there would be too many.

        Returns:
            Times (s of the epoch) and req/s by namespace and model, and why there are none.
        """
        question = self.questions(variants).routers(self.options.retention_s)["arrival_rps"]
        step_s = max(step_s, (end_s - start_s) / _MOST_STEPS)
        try:
            answer = self.api.query_range(question, start_s=start_s, end_s=end_s, step_s=step_s)
        except Fault as fault:
            remedy = _REMEDIES[fault.trouble]
            return {}, (Finding(subject="Prometheus: past arrivals", problem=str(fault), remedy=remedy),)
        history: dict[tuple[str, str], dict[float, float]] = {}
        for labels, points in answer.result:
            row = RouterRow.of(labels, self.options.labels)
            sums = history.setdefault((row.namespace, row.model), {})
            for time_s, value in points:
                if math.isfinite(value):
                    sums[time_s] = sums.get(time_s, 0.0) + value
        return {service: tuple(sorted(points.items())) for service, points in history.items()}, ()


def source(options: Mapping[str, Any], clock: Clock) -> PrometheusSource:
    """Make the source of these options.

    Raises:
        ConfigurationError: lists everything that is wrong with them.
    """
    read = options_of(PrometheusOptions, "prometheus", options)
    checked(read)
    return PrometheusSource(read, clock)
