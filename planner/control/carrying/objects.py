"""Objects of a plan as their clusters have them now: counts, what holds their scalers, who else scales them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from models.applied import CountedObject, ObjectState
from models.observation import Finding
from planner.control.carrying.clusters import Apis
from planner.control.cluster import Api, ClusterFault, Kind, Trouble
from planner.control.cluster.faults import PASSING
from planner.control.cluster.kinds import (
    HORIZONTAL_POD_AUTOSCALERS,
    NAMESPACES,
    PODS,
    SCALED_OBJECTS,
    VARIANT_AUTOSCALINGS,
    WORKLOADS,
)
from planner.control.cluster.reading import (
    Object,
    annotations_of,
    at,
    controller_of,
    count_at,
    is_finished,
    name_of,
    pod_selector,
    scaled_by,
)
from planner.control.discovery.scalers import PAUSED, PINNED, is_true
from planner.manifests import Target
from planner.manifests.orders import FORMER_BOUNDS, FORMER_PAUSE
from planner.manifests.orders import PAUSED as KEDA_PAUSED
from planner.manifests.targets import TargetKey

__all__ = ["SCALER_KINDS", "ObjectReading", "counted_object", "fault_finding", "pods_left", "read_objects"]

SCALER_KINDS: Final[dict[str, Kind]] = {
    "hpa": HORIZONTAL_POD_AUTOSCALERS,
    "keda": SCALED_OBJECTS,
    "variantautoscaling": VARIANT_AUTOSCALINGS,
}


@dataclass(frozen=True, slots=True)
class ObjectReading:
    """Objects as they are now.

    Attributes:
        states: by object; those that could not be read are missing.
        findings: why they are.
        passing: whether all of these may be gone in a moment.
    """

    states: dict[TargetKey, ObjectState] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    passing: bool = False


def counted_object(target: Target) -> CountedObject:
    """What names it."""
    return CountedObject(
        cluster=target.cluster,
        namespace=target.namespace,
        kind=target.object.kind,
        name=target.object.name,
        label=target.label,
    )


def fault_finding(subject: str, fault: ClusterFault) -> Finding:
    """A fault of a cluster as a finding; where access was denied the remedy is the missing rule."""
    return Finding(subject=subject[:500], problem=fault.message[:1000], remedy=fault.remedy)


def read_objects(apis: Apis, targets: Iterable[Target], *, counts_alone: bool = False) -> ObjectReading:
    """Read every object, its scaler, and who else scales it. What cannot be read is a finding.

    A cluster that does not answer is not asked again: it would be waited for once for every object.

    Args:
        apis: of the clusters.
        targets: objects of a plan.
        counts_alone: leave out scalers and pauses; for those who look again and again.
    """
    readers = {name: _Reader(api) for name, api in apis.items()}
    states: dict[TargetKey, ObjectState] = {}
    findings: list[Finding] = []
    troubles: list[Trouble] = []
    away: set[str] = set()
    for target in targets:
        cluster = target.cluster or ""
        if cluster in away:
            continue
        try:
            states[target.key] = readers[cluster].state(target, counts_alone=counts_alone)
        except ClusterFault as fault:
            findings.append(fault_finding(str(counted_object(target)), fault))
            troubles.append(fault.trouble)
            away |= {cluster} if fault.trouble in PASSING else set()
    return ObjectReading(states, tuple(findings), bool(troubles) and set(troubles) <= PASSING)


@dataclass(slots=True)
class _Reader:
    """Reads one cluster; what is asked for a namespace is asked once."""

    api: Api
    _scalers: dict[str, tuple[Object, ...]] = field(default_factory=dict)
    _paused: dict[str, bool] = field(default_factory=dict)

    def state(self, target: Target, *, counts_alone: bool) -> ObjectState:
        found = self.api.find(WORKLOADS[target.object.kind], target.namespace, target.object.name)
        named = counted_object(target)
        if found is None:
            return ObjectState(object=named)
        wanted = count_at(found, "spec", "replicas")
        state = ObjectState(
            object=named,
            wanted=1 if wanted is None else wanted,
            ready=count_at(found, "status", "readyReplicas") or 0,
            held=count_at(found, "status", "replicas") or 0,
            settled=_is_settled(found),
        )
        return state if counts_alone else self._held(target, found, state)

    def _held(self, target: Target, workload: Object, state: ObjectState) -> ObjectState:
        """The same, with who holds its count."""
        scaler = self._scaler(target)
        notes = annotations_of(scaler or {})
        spec = at(scaler, "spec")
        least, most = count_at(spec, "minReplicas"), count_at(spec, "maxReplicas")
        return state.but(
            paused_by=self._pause(target, workload, notes),
            controlled_by=f"a controller (annotation {PINNED})" if PINNED in notes else "",
            bounds=None if most is None else (1 if least is None else least, most),
            pause=notes.get(KEDA_PAUSED, ""),
            former=notes.get(FORMER_BOUNDS) or notes.get(FORMER_PAUSE) or "",
            rivals=tuple(self._rivals(target)),
        )

    def _scaler(self, target: Target) -> Object | None:
        kind = SCALER_KINDS.get(target.object.scaler)
        if kind is None:
            return None
        found = self.api.find(kind, target.namespace, target.scaler_name)
        if found is None:
            raise ClusterFault(
                Trouble.NOT_FOUND, f"there is no {kind.name} {target.namespace}/{target.scaler_name}"
            )
        return found

    def _pause(self, target: Target, workload: Object, scaler_notes: dict[str, str]) -> str:
        if is_true(annotations_of(workload).get(PAUSED)):
            return f"annotation {PAUSED} of the {target.object.kind}"
        if is_true(scaler_notes.get(PAUSED)):
            return f"annotation {PAUSED} of its scaler {target.scaler_name}"
        if self._namespace_paused(target.namespace):
            return f"annotation {PAUSED} of namespace {target.namespace}"
        return ""

    def _namespace_paused(self, namespace: str) -> bool:
        if namespace not in self._paused:
            try:
                found = self.api.find(NAMESPACES, "", namespace)
            except ClusterFault as fault:
                # Namespaces are of the cluster, which a role of one namespace may not read.
                if fault.trouble is not Trouble.DENIED:
                    raise
                found = None
            self._paused[namespace] = is_true(annotations_of(found or {}).get(PAUSED))
        return self._paused[namespace]

    def _rivals(self, target: Target) -> Iterator[str]:
        """Scalers of the same workload that the plan does not name; each would take the count back."""
        expected = SCALER_KINDS.get(target.object.scaler)
        for thing in self._scalers_in(target.namespace):
            kind = str(thing.get("kind"))
            if scaled_by(thing) != (target.object.kind, target.object.name):
                continue
            named = expected is not None and (kind, name_of(thing)) == (expected.name, target.scaler_name)
            # KEDA scales through an HPA of its own; a VariantAutoscaling through one that reads its gauge.
            through = kind == "HorizontalPodAutoscaler" and (
                target.object.scaler == "variantautoscaling"
                or (controller_of(thing) or ("",))[0] == "ScaledObject"
            )
            if not named and not through:
                yield f"{kind} {name_of(thing)}"

    def _scalers_in(self, namespace: str) -> tuple[Object, ...]:
        if namespace not in self._scalers:
            found: list[Object] = []
            for kind in (HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS):
                listing = self.api.list_if_served(kind, namespace)
                found += [{**each, "kind": kind.name} for each in (listing.items if listing else ())]
            self._scalers[namespace] = tuple(found)
        return self._scalers[namespace]


def _is_settled(workload: Object) -> bool:
    """Whether its status is that of its spec; kinds that count no generations always are."""
    wanted, seen = (
        count_at(workload, "metadata", "generation"),
        count_at(workload, "status", "observedGeneration"),
    )
    return wanted is None or seen is None or seen >= wanted


def pods_left(api: Api, target: Target) -> tuple[int, float]:
    """Pods of an object that are not finished, those that are ending included, and their grace period, s.

    Raises:
        ClusterFault: they could not be read, or nobody can tell which pods are its own.
    """
    workload = api.get(WORKLOADS[target.object.kind], target.namespace, target.object.name)
    labels = pod_selector(workload, target.object.kind)
    if not labels:
        raise ClusterFault(
            Trouble.GARBLED,
            f"{target.object.kind} {target.namespace}/{target.object.name} does not say which pods are its own",
        )
    pods = [each for each in api.list(PODS, target.namespace, labels=labels).items if not is_finished(each)]
    template = at(workload, "spec", "template") or at(
        workload, "spec", "leaderWorkerTemplate", "workerTemplate"
    )
    grace = count_at(template, "spec", "terminationGracePeriodSeconds")
    return len(pods), 30.0 if grace is None else float(grace)
