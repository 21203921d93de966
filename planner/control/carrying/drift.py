"""Planned versus actual: what differs, since when, and the same as series for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from models.applied import Drift, ObjectState
from planner.control.carrying.objects import counted_object
from planner.control.carrying.review import scaled_targets
from planner.manifests import Route
from planner.manifests.targets import TargetKey

__all__ = ["Watch", "drift_of", "gauge_text"]


def drift_of(route: Route, states: Mapping[TargetKey, ObjectState]) -> tuple[Drift, ...]:
    """Objects that ask for, or have ready, another count than the plan ends with; those that were not read are left out.

    Args:
        route: with the counts at its end.
        states: objects as they are.
    """
    planned = {change.target.key: change.new for change in route.ends}
    return tuple(
        Drift(
            object=counted_object(target),
            planned=planned[target.key],
            wanted=state.wanted,
            ready=state.ready,
        )
        for target in scaled_targets(route)
        if (state := states.get(target.key)) is not None
        and (state.wanted or 0, state.ready) != (planned[target.key], planned[target.key])
    )


@dataclass(slots=True)
class Watch:
    """Remembers since when objects differ.

    Args:
        after_s: a difference that lasts shorter is no drift: pods restart, s.
    """

    after_s: float = 60.0
    _since: dict[str, float] = field(default_factory=dict)

    def look(self, drifts: Iterable[Drift], now_s: float) -> tuple[Drift, ...]:
        """All differences, each with its time.

        Args:
            drifts: of now.
            now_s: of a clock that never goes back, s.
        """
        found = {str(each.object): each for each in drifts}
        self._since = {name: self._since.get(name, now_s) for name in found}
        return tuple(each.but(for_s=now_s - self._since[name]) for name, each in found.items())

    def alarms(self, drifts: Iterable[Drift]) -> tuple[Drift, ...]:
        """Those that last."""
        return tuple(each for each in drifts if each.for_s >= self.after_s)


def gauge_text(route: Route, states: Mapping[TargetKey, ObjectState], drifts: Sequence[Drift]) -> str:
    """Planned and actual replicas as Prometheus reads them; what was not read has no series.

    Args:
        route: with the counts at its end.
        states: objects as they are.
        drifts: differences with their times.
    """
    return "".join(f"{line}\n" for line in _lines(route, states, {str(each.object): each for each in drifts}))


def _lines(
    route: Route, states: Mapping[TargetKey, ObjectState], drifts: Mapping[str, Drift]
) -> Iterator[str]:
    planned = {change.target.key: change.new for change in route.ends}
    rows = [
        (_labels(state), planned[target.key], state, drifts.get(str(state.object)))
        for target in scaled_targets(route)
        if (state := states.get(target.key)) is not None
    ]
    yield from _head("fleetplan_plan_replicas", "Replicas that the plan which was carried out wants.")
    yield from (f"fleetplan_plan_replicas{{{labels}}} {count}" for labels, count, _, _ in rows)
    yield from _head("fleetplan_plan_replicas_wanted", "Replicas that the object asks for.")
    yield from (
        f"fleetplan_plan_replicas_wanted{{{labels}}} {state.wanted or 0}" for labels, _, state, _ in rows
    )
    yield from _head("fleetplan_plan_replicas_ready", "Replicas that are ready.")
    yield from (f"fleetplan_plan_replicas_ready{{{labels}}} {state.ready}" for labels, _, state, _ in rows)
    yield from _head("fleetplan_plan_drift_seconds", "Since when they differ from the plan; 0: they do not.")
    for labels, _, _, drift in rows:
        # A difference that was just seen has lasted for no time, and is one all the same.
        yield f"fleetplan_plan_drift_seconds{{{labels}}} {0 if drift is None else max(drift.for_s, 0.001):g}"


def _head(name: str, means: str) -> Iterator[str]:
    yield f"# HELP {name} {means}"
    yield f"# TYPE {name} gauge"


def _labels(state: ObjectState) -> str:
    service, _, variant = state.object.label.partition("/")
    pairs = {
        "cluster": state.object.cluster or "",
        "namespace": state.object.namespace,
        "kind": state.object.kind,
        "name": state.object.name,
        "service": service,
        "variant": variant,
    }
    return ",".join(f'{key}="{_escaped(value)}"' for key, value in pairs.items())


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
