"""The controller's own figures, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Final, Literal

__all__ = ["CONTENT_TYPE", "Meters"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX: Final = "fleetplan_controller_"
_HELP: Final[Mapping[str, tuple[Literal["counter", "gauge"], str]]] = {
    "cycles_total": ("counter", "Cycles by kind: decided, heartbeat, failed, woken."),
    "cycle_seconds_total": ("counter", "Time spent by phase, s."),
    "cycle_seconds": ("gauge", "Time of the last cycle by phase, s."),
    "late_cycles_total": ("counter", "Cycles that took longer than their limit and changed nothing."),
    "triggers_total": ("counter", "What started cycles."),
    "decisions_total": (
        "counter",
        "Decisions by reason; one that is as in the cycle before is not counted again.",
    ),
    "variants": ("gauge", "Variants by the reason of their last decision."),
    "outcomes_total": ("counter", "What came of decisions, by actuator and code."),
    "api_writes_total": ("counter", "Writes to cluster APIs, by verb and resource."),
    "findings": ("gauge", "Findings of the last cycle: what could not be seen or done."),
    "findings_total": ("counter", "Findings that the cycle before did not have."),
    "leader": ("gauge", "1: this controller leads."),
    "leader_changes_total": ("counter", "How often this controller began to lead."),
    "engines": ("gauge", "Engines by the freshness of their metrics."),
    "complete": ("gauge", "1: every source answered in the last cycle."),
    "last_cycle_timestamp_seconds": ("gauge", "When the last cycle ended, s of the epoch."),
    "last_complete_timestamp_seconds": ("gauge", "When every source answered last, s of the epoch."),
    "configuration_refused_total": ("counter", "Edits of the live configuration that were refused."),
    "configuration_changes_total": ("counter", "Edits of the live configuration that were taken."),
    "record_failures_total": ("counter", "Records that could not be written."),
    "events_total": ("counter", "Kubernetes events by what became of them: written, dropped, failed."),
    "wakings_total": ("counter", "Services at zero that were woken."),
    "forecast_expected": ("gauge", "What is planned for, of the forecast; services that ask for one."),
    "forecast_observed": ("gauge", "What is observed, in the unit of the forecast."),
    "forecast_trusted": ("gauge", "1: the forecast counts; 0: what is observed does, see the records."),
    "held_by_people": ("gauge", "Variants that people hold: paused, set by hand, outside of hours."),
    "requests_refused_total": ("counter", "Requests to this server that were refused, by reason."),
}


class Meters:
    """Counters and gauges; names that nobody declared are a fault of ours."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Add to a counter."""
        key = (name, tuple(sorted(labels.items())))
        with self._lock:
            self._values[key] = self._values.get(key, 0.0) + amount

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge, or a counter that somebody else counts."""
        with self._lock:
            self._values[name, tuple(sorted(labels.items()))] = value

    def set_all(self, name: str, label: str, values: Mapping[str, float]) -> None:
        """Set a gauge for these values of a label; it has no others then."""
        self.set_rows(name, {((label, value),): amount for value, amount in values.items()})

    def set_rows(self, name: str, rows: Mapping[tuple[tuple[str, str], ...], float]) -> None:
        """Set a gauge for these sets of labels, each by the names of its labels; it has no others then."""
        with self._lock:
            for key in [key for key in self._values if key[0] == name]:
                del self._values[key]
            for labels, amount in rows.items():
                self._values[name, tuple(sorted(labels))] = amount

    def of(self, name: str, **labels: str) -> float:
        """A value; 0 where there is none."""
        with self._lock:
            return self._values.get((name, tuple(sorted(labels.items()))), 0.0)

    def exposition(self) -> bytes:
        """All of it in the text format."""
        with self._lock:
            rows = sorted(self._values.items())
        lines: list[str] = []
        told = ""
        for (name, labels), value in rows:
            if name != told:
                kind, said = _HELP[name]
                lines += [f"# HELP {_PREFIX}{name} {said}", f"# TYPE {_PREFIX}{name} {kind}"]
                told = name
            lines.append(f"{_PREFIX}{name}{_labels(labels)} {value:.15g}")
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    shown = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{shown}}}" if shown else ""


def _escaped(text: str) -> str:
    return text[:200].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
