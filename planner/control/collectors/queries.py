"""The questions to Prometheus, written from the table of names.

Each question groups by where a series is from, reads every name and spelling that says the same (the first that a
place has counts, so that nothing is counted twice), and asks for several namespaces at once. Series without
namespace are asked for too: their pod or label may tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from planner.control.collectors.label_names import LabelNames
from planner.control.collectors.names import (
    COMPLETED,
    DISPATCH,
    ENGINE_MEASURES,
    ENGINE_PREFIXES,
    POWER,
    PRESENCE,
    ROUTER_MEASURES,
    ROUTER_PREFIXES,
    STARTED,
    WORKER_LABELS,
    How,
    Measure,
    Way,
    engine_of,
    spellings,
)

__all__ = [
    "DOWN",
    "ENGINE_LABEL",
    "LAST_SEEN",
    "PRESENT",
    "SENT",
    "Questions",
]

PRESENT: Final = "present"
LAST_SEEN: Final = "last seen"
SENT: Final = "dispatch"
ENGINE_LABEL: Final = "fleetplan_engine"
"""Label that our own questions add: the kind of engine."""
DOWN: Final = "down"
"""What it is for a target that cannot be scraped."""

_SCRAPERS: Final = "job, endpoint, service, container, prometheus, prometheus_replica"
"""Labels in which a second scrape of the same page differs: what it brings is not another engine's."""
_RANKS: Final = ("engine", "dp_rank")
_PRESENT_NAMES: Final = "|".join(name for way in PRESENCE[:2] for name in spellings(way.series[0]))


def _quoted(text: str) -> str:
    """A text as a string of PromQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _literal(text: str) -> str:
    """A text as a regular expression of RE2 that matches it alone."""
    return "".join(letter if letter.isalnum() or letter in "-_" else f"\\{letter}" for letter in text)


@dataclass(frozen=True)
class Questions:
    """Writes the questions of one reading.

    Args:
        labels: how the scrape calls things.
        namespaces: to read; empty: all.
        lookback_s: how long an engine that cannot be scraped is remembered, s.
    """

    labels: LabelNames
    namespaces: Sequence[str] = ()
    lookback_s: int = 300

    @property
    def place(self) -> tuple[str, ...]:
        """Labels that tell where a series is from."""
        names = (self.labels.namespace, self.labels.pod, self.labels.instance, *_RANKS)
        return names if self.labels.cluster is None else (self.labels.cluster, *names)

    def _by(self, *names: str) -> str:
        """A list of labels, behind that of the cluster where the scrape has one."""
        return ", ".join(names if self.labels.cluster is None else (self.labels.cluster, *names))

    @property
    def _router(self) -> str:
        return self._by(
            self.labels.namespace, self.labels.instance, "exported_namespace", "inference_pool", "name", "model_name",
            "target_model_name",
        )  # fmt: skip

    def present(self) -> str:
        """When each engine was last scraped, seconds of the epoch, with everything that tells whose it is.

        With it, marked as :data:`DOWN`, targets that cannot be scraped: asked apart, an engine that fails or comes back
        in between would be in neither answer.
        """
        down = f'label_replace({self.targets_down()}, "{ENGINE_LABEL}", "{DOWN}", "", "")'
        return f"{self._times('timestamp({})')} or {down}"

    def last_seen(self) -> str:
        """As :meth:`present`, of engines that cannot be scraped now but could a while ago."""
        return self._times(f"max_over_time(timestamp({{}})[{self.lookback_s}s:5s])")

    def _times(self, form: str) -> str:
        by = ", ".join((*self.place, "model_name", self.labels.variant, *WORKER_LABELS))
        return _first_of(
            f'label_replace(max by ({by})({form.format(self._selected(name))}), "{ENGINE_LABEL}", "{engine_of(name)}", "", "")'
            for way in PRESENCE
            for name in spellings(way.series[0])
        )

    def targets_down(self) -> str:
        """Targets that cannot be scraped."""
        by = self._by(self.labels.namespace, self.labels.pod, self.labels.instance)
        return f"max by ({by})(up{self._braces()}) == 0"

    def targets_known(self) -> str:
        """How many targets each namespace has."""
        return f"count by ({self.labels.namespace})(up{self._braces()})"

    def names(self, *, anywhere: bool = False) -> str:
        """A selector of every series that may be of an engine, a router or an accelerator."""
        prefixes = "|".join((*ENGINE_PREFIXES, *ROUTER_PREFIXES, *(way.series[0] for way in POWER.ways)))
        braces = "" if anywhere else self._braces()
        others = f", {braces[1:-1]}" if braces else ""
        return f'{{__name__=~"({prefixes}).*"{others}}}'

    def engines_without(self, label: str) -> str:
        """How many series of engines lack a label."""
        return f'count({{__name__=~"{_PRESENT_NAMES}", {label}=""}})'

    def engines_by(self, label: str) -> str:
        """How many engines there are by a label, wherever they are."""
        return f'count by ({label})({{__name__=~"{_PRESENT_NAMES}"}})'

    def one_engine(self) -> str:
        """A series of an engine with all of its labels, wherever it is."""
        return f'topk(1, {{__name__=~"{_PRESENT_NAMES}"}})'

    def engine(self, measure: Measure) -> str:
        """One value of every engine."""
        by = ", ".join(self.place)
        return _first_of(self._value(measure, way, by, measure.window_s) for way in _spelled(measure.ways))

    def engines(self) -> dict[str, str]:
        """Every value of engines by field, and when their processes started."""
        return {each.field: self.engine(each) for each in (*ENGINE_MEASURES, STARTED)}

    def completed(self, retention_s: float) -> str:
        """Requests completed in a period, by namespace and served model; engines that are gone count."""
        by = self._by(self.labels.namespace, "model_name")
        return _first_of(self._value(COMPLETED, way, by, retention_s) for way in _spelled(COMPLETED.ways))

    def routers(self, retention_s: float) -> dict[str, str]:
        """Every value of routers by field."""
        return {
            each.field: self._routed(each, retention_s if each.how is How.GROWTH else each.window_s)
            for each in ROUTER_MEASURES
        }

    def _routed(self, measure: Measure, window_s: float) -> str:
        """A value under its new name, and under older ones of routers that do not know the new one."""
        own = self._by(self.labels.namespace, self.labels.instance)
        parts: list[str] = []
        for way in measure.ways:
            value = self._value(measure, way, self._router, window_s)
            newer = " or ".join(self._selected(each.series[0]) for each in measure.ways[: len(parts)])
            parts.append(f"({value} unless on ({own}) ({newer}))" if parts else value)
        return _first_of(parts)

    def dispatch(self) -> str:
        """Requests per second that routers send to each engine."""
        parts = []
        for way, pod in zip(DISPATCH.ways, ("endpoint_name", "pod_name"), strict=True):
            by = self._by(self.labels.namespace, "exported_namespace", pod, "port")
            rate = self._value(DISPATCH, way, by, DISPATCH.window_s)
            parts.append(f'label_replace({rate}, "to", "$1", "{pod}", "(.*)")')
        new, old = parts
        places = self._by(self.labels.namespace, "exported_namespace", "to", "port")
        return f"max by ({places})({new}) or max by ({places})({old})"

    def power(self) -> str:
        """Draw of the accelerators of each pod, W; the exporter's own labels where they were kept apart."""
        by = self._by("exported_namespace", "exported_pod", self.labels.namespace, self.labels.pod)
        name = POWER.ways[0].series[0]
        once = f'max by ({by}, UUID)({name}{{{self.labels.pod}!=""}})'
        return f"sum by ({by})({once})"

    def _value(self, measure: Measure, way: Way, by: str, window_s: float) -> str:
        window = round(window_s)
        match measure.how_of(way):
            case How.NOW:
                return self._now(measure, way, by)
            case How.PEAK:
                return f"max by ({by})(max_over_time({self._selected(way.series[0])}[{window}s]))"
            case How.MEAN:
                over, under = (
                    f"sum by ({by})(max without ({_SCRAPERS})({_rate(self._selected(name), window)}))"
                    for name in way.series
                )
                return f"({over} / {under})"
            case How.RATE:
                rate = _rate(self._selected(way.series[0], way.labels), window)
                return f"sum by ({by})(max without ({_SCRAPERS})({rate}))"
            case How.GROWTH:
                return self._growth(way, by, window)
            case How.SIZE:
                labels = ", ".join(name for name, _ in way.labels)
                return f"max by ({by}, {labels})({self._selected(way.series[0])})"

    def _now(self, measure: Measure, way: Way, by: str) -> str:
        selected = self._selected(way.series[0], way.labels)
        if measure in ROUTER_MEASURES:
            return f"sum by ({by})(max without ({_SCRAPERS})({selected}))"
        return f"max by ({by})({selected})"

    def _growth(self, way: Way, by: str, window: int) -> str:
        """Growth of a counter. One that was not there at the start began at 0, which ``increase`` does not know."""
        selected = self._selected(way.series[0], way.labels)
        began = f"({selected} unless {selected} offset {window}s)"
        return f"sum by ({by})(max without ({_SCRAPERS})({began} or increase({selected}[{window}s])))"

    def _selected(self, name: str, labels: Iterable[tuple[str, str]] = ()) -> str:
        return f"{name}{self._braces(labels)}"

    def _braces(self, labels: Iterable[tuple[str, str]] = ()) -> str:
        matchers = [*self._whose, *(f"{name}={_quoted(value)}" for name, value in labels)]
        return f"{{{', '.join(matchers)}}}" if matchers else ""

    @cached_property
    def _whose(self) -> tuple[str, ...]:
        """The matcher of the namespaces; series without namespace match too."""
        if not self.namespaces:
            return ()
        any_of = "|".join([*map(_literal, sorted(set(self.namespaces))), ""])
        return (f"{self.labels.namespace}=~{_quoted(any_of)}",)


def _rate(selected: str, window: int) -> str:
    return f"rate({selected}[{window}s])"


def _spelled(ways: Sequence[Way]) -> list[Way]:
    """The ways, each also with the names that OpenMetrics leaves; preferred names first."""
    found = []
    for way in ways:
        found.append(way)
        changed = tuple(spellings(name)[-1] for name in way.series)
        if changed != way.series:
            found.append(Way(changed, way.labels, way.how))
    return found


def _first_of(questions: Iterable[str]) -> str:
    """What the first question answers, and for places that it does not know what the next one does."""
    return " or ".join(questions)
