"""Records → the decision that asked for a pod, and the one that has it go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from models.cycle_record import CycleRecord, VariantDecision
from models.observation import Finding, VariantObservation
from models.tracing import Ground, PodTrace
from planner.control.tracing.series import series_of

__all__ = ["trace_pod"]

_SUFFIXES = 2
"""Parts that a Deployment adds to the names of its pods."""


@dataclass(slots=True)
class _Sightings:
    """What one pass over the records found of a pod."""

    pod: str
    namespace: str
    records: int = 0
    first_s: float | None = None
    last_s: float | None = None
    begins_s: float | None = None
    started_s: float | None = None
    variant: VariantObservation | None = None
    guessed: VariantObservation | None = None

    def take(self, record: CycleRecord) -> None:
        self.records += 1
        if self.begins_s is None:
            self.begins_s = record.at_s
        if record.observation is None:
            return
        mine = [each for each in record.observation.engines if self._is(each.pod, each.namespace)]
        engines = {each.variant for each in mine}
        started = [each.started_s for each in mine if each.started_s is not None]
        self.started_s = min([*started, *([] if self.started_s is None else [self.started_s])], default=None)
        for each in record.observation.variants:
            if self.namespace not in {"", each.namespace}:
                continue
            if self.pod in each.pods or each.name in engines:
                self.variant = each
                self.first_s = record.at_s if self.first_s is None else self.first_s
                self.last_s = record.at_s
            elif _may_own(each, self.pod):
                self.guessed = each

    @property
    def there_s(self) -> float | None:
        """When it was there at the latest: its engine started, or it was seen; s of the epoch."""
        known = [each for each in (self.first_s, self.started_s) if each is not None]
        return min(known, default=None)

    def _is(self, pod: str, namespace: str) -> bool:
        return pod == self.pod and self.namespace in {"", namespace}


def _may_own(variant: VariantObservation, pod: str) -> bool:
    """Whether a pod is named as the workload of a variant names its own."""
    rest = pod.removeprefix(f"{variant.target.name}-")
    return rest != pod and rest.count("-") < _SUFFIXES


def trace_pod(
    records: Callable[[], Iterable[CycleRecord]],
    pod: str,
    *,
    namespace: str = "",
    owner: VariantObservation | None = None,
) -> PodTrace:
    """From a pod back to the metric.

    The decision that asked for it is the last one before its engine started, or the pod was first seen, that wanted more replicas of its variant;
    the one that has it go is the last that names it among those that go first.

    Args:
        records: gives the records from the oldest on; asked twice.
        pod: its name.
        namespace: empty: of any.
        owner: its variant, as the cluster says now; None: nobody asked.
    """
    found = _Sightings(pod, namespace)
    for record in records():
        found.take(record)
    variant = found.variant or owner or found.guessed
    by = "record" if found.variant else "cluster" if owner else "name" if found.guessed else ""
    trace = PodTrace(
        pod=pod,
        namespace=variant.namespace if variant else namespace,
        cluster=variant.cluster if variant else None,
        variant=variant.name if variant else "",
        found_by=by,
        first_seen_s=found.first_s,
        last_seen_s=found.last_s,
        records=found.records,
    )
    if variant is None:
        return trace.but(missing=(_unknown(found),))
    came, goes = _grounds(records(), variant, pod, found.there_s)
    return trace.but(came=came, goes=goes, missing=tuple(_missing(found, came, by)))


def _grounds(
    records: Iterable[CycleRecord], variant: VariantObservation, pod: str, there_s: float | None
) -> tuple[Ground | None, Ground | None]:
    """The decisions that asked for the pod, and that have it go."""
    came: tuple[CycleRecord, VariantDecision] | None = None
    goes: tuple[CycleRecord, VariantDecision] | None = None
    for record in records:
        for decision in record.decisions:
            if decision.key != variant.key or not decision.changes:
                continue
            grows = (decision.desired or 0) > (decision.before or 0)
            if grows and (there_s is None or record.at_s < there_s):
                came = record, decision
            if pod in decision.victims:
                goes = record, decision
    return (
        None if came is None else _ground(*came),
        None if goes is None else _ground(*goes),
    )


def _ground(record: CycleRecord, decision: VariantDecision) -> Ground:
    seen = record.observation
    mine = (decision.cluster, decision.namespace, decision.model)
    variants = () if seen is None else seen.variants
    engines = tuple(
        each
        for each in (() if seen is None else seen.engines)
        if (each.cluster, each.namespace) == mine[:2] and each.model in {"", decision.model}
    )
    traffic = tuple(
        each
        for each in (() if seen is None else seen.traffic)
        if (each.cluster, each.namespace, each.model) == mine
    )
    variant = next((v for v in variants if v.key == decision.key), None)
    return Ground.of(
        record,
        decision,
        outcomes=tuple(
            each
            for each in record.outcomes
            if (each.cluster or "", each.namespace, each.name) == decision.key
        ),
        demands=tuple(
            each
            for each in record.demands
            if (each.namespace, each.model) == (decision.namespace, decision.model)
        ),
        variant=variant,
        engines=engines,
        traffic=traffic,
        series=series_of(engines, traffic, engine=variant.engine if variant else ""),
    )


def _unknown(found: _Sightings) -> Finding:
    if not found.records:
        problem, remedy = "there are no records", "name the folder of the controller's records (--records)"
    else:
        problem = "no record has this pod, and no variant's workload names its pods like that"
        remedy = (
            "is the name whole, and its variant the controller's? --kubernetes asks the cluster whose it is"
        )
    return Finding(subject=f"pod {found.pod}", problem=problem, remedy=remedy)


def _missing(found: _Sightings, came: Ground | None, by: str) -> Iterable[Finding]:
    """Links of the chain that are not there."""
    subject = f"pod {found.pod}"
    if by == "name":
        yield Finding(
            subject=subject,
            problem="no record has it; its variant is guessed from its name",
            remedy="--kubernetes asks the cluster whose it is",
        )
    if came is None:
        older = found.first_s is not None and found.first_s == found.begins_s
        yield Finding(
            subject="decision",
            problem="no recorded decision wanted more replicas before it was there",
            remedy="it is older than the records: look into older ones"
            if older
            else "somebody else raised the count: people, another scaler, or 'fleetplan apply' (its records say so)",
        )
        return
    if came.dry_run:
        yield Finding(
            subject="outcome",
            problem="the decision was a dry run, which carries nothing out",
            remedy="somebody else raised the count",
        )
    elif not any(each.applied for each in came.outcomes):
        yield Finding(
            subject="outcome",
            problem="no actuator reported that it carried the decision out",
            remedy="look at the findings of that cycle",
        )
    if came.variant is None:
        yield Finding(subject="observation", problem="the record has no observation of its service")
    elif not came.series:
        yield Finding(
            subject="series",
            problem="no engine and no router of its service told anything then",
            remedy="fleetplan observe --check names series that are absent",
        )
