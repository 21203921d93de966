"""Replicas of one variant as pods: single ones, or groups with a leader; and what is known of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from models.observation import Observation, VariantObservation
from models.variant import KubernetesObject
from planner.control.actuators.draining import Replica, Scene
from planner.control.actuators.marking import (
    DRAINING,
    gate_of,
    has_gate,
    is_spared_until_s,
    kept_of,
)
from planner.control.actuators.routing import Router, owned_keys
from planner.control.cluster import Api
from planner.control.cluster.kinds import GROUP_INDEX, PODS, WORKER_INDEX, WORKLOADS
from planner.control.cluster.reading import (
    Object,
    at,
    controller_of,
    count_at,
    is_ending,
    is_finished,
    is_ready,
    labels_of,
    mapping_of,
    name_of,
    pod_selector,
    texts_of,
)
from planner.control.protocols import Decision

__all__ = ["Crew", "Load", "Loads", "Unit", "crew_of", "loads_of"]

PodKey = tuple[str | None, str, str]
"""Cluster, namespace and name of a pod."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a pod has to do.

    Attributes:
        requests: that run and wait; None: it does not say.
        seen_s: when it was so, seconds of the epoch; None: never.
    """

    requests: float | None
    seen_s: float | None


Loads = Mapping[PodKey, Load]


def loads_of(observation: Observation) -> Loads:
    """What every pod with an engine has to do; one rank of it that does not say leaves the whole open."""
    found: dict[PodKey, Load] = {}
    for engine in observation.engines:
        key = (engine.cluster, engine.namespace, engine.pod)
        known = engine.running is not None and engine.waiting is not None and engine.age_s is not None
        requests = (engine.running or 0.0) + (engine.waiting or 0.0) if known else None
        seen_s = observation.at_s - engine.age_s if engine.age_s is not None else None
        load = Load(requests, seen_s)
        found[key] = load if key not in found else _both(found[key], load)
    return found


def _both(one: Load, other: Load) -> Load:
    open_end = one.requests is None or other.requests is None
    seen = [each.seen_s for each in (one, other) if each.seen_s is not None]
    return Load(
        None if open_end else (one.requests or 0.0) + (other.requests or 0.0),
        min(seen) if len(seen) == 2 else None,  # noqa: PLR2004 - both
    )


@dataclass(frozen=True, slots=True)
class Unit:
    """One replica.

    Attributes:
        name: of its pod, or of its leader.
        pods: all of it, the leader first.
        rank: its ordinal; None: it has none.
    """

    name: str
    pods: tuple[Object, ...]
    rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """All replicas of one variant that are not ending.

    Attributes:
        units: by name.
        ordered: ordinals say which goes first.
        first: ordinal of the first one.
        owned: labels by which the workload knows its pods.
        template: labels that it gives them.
        routers: of the namespace.
    """

    units: Mapping[str, Unit]
    ordered: bool
    first: int
    owned: frozenset[str]
    template: Mapping[str, str]
    routers: Sequence[Router]

    def scene(self, decision: Decision, loads: Loads) -> Scene:
        """The variant as the rules of draining see it."""
        variant = decision.variant
        return Scene(
            replicas=[self._replica(each, variant, loads) for _, each in sorted(self.units.items())],
            wanted=variant.wanted or 0,
            desired=decision.desired,
            first=self.first if self.ordered else None,
            victims=decision.victims,
        )

    def _replica(self, unit: Unit, variant: VariantObservation, loads: Loads) -> Replica:
        leader = unit.pods[0]
        touched = DRAINING in labels_of(leader)
        kept = kept_of(leader) if touched else None
        load = _load(unit, variant, loads)
        return Replica(
            name=unit.name,
            ready=all(is_ready(pod) for pod in unit.pods),
            rank=unit.rank,
            mark=None if kept is None else kept.mark,
            spoiled=touched and kept is None,
            out=all(self._is_out(pod) for pod in unit.pods),
            load=load.requests,
            seen_s=load.seen_s,
            spared_until_s=is_spared_until_s(leader),
        )

    def _is_out(self, pod: Object) -> bool:
        if has_gate(pod):
            # Where costs are not known it goes first only once it is not ready.
            return gate_of(pod) is False and not is_ready(pod)
        return not any(each.selects(labels_of(pod)) for each in self.routers)


def _load(unit: Unit, variant: VariantObservation, loads: Loads) -> Load:
    """The load of a replica: its leader has to say, and whoever else does is added."""
    namespace = variant.namespace
    known = [loads.get((variant.cluster, namespace, name_of(pod))) for pod in unit.pods]
    if known[0] is None:
        return Load(None, None)
    found = known[0]
    for each in known[1:]:
        found = found if each is None else _both(found, each)
    return found


def crew_of(api: Api, variant: VariantObservation, routers: Sequence[Router]) -> Crew:
    """Read the replicas of a variant.

    Args:
        api: of its cluster.
        variant: whose.
        routers: of its namespace.

    Raises:
        ClusterFault: it cannot be told.
    """
    target = variant.target
    workload = api.get(WORKLOADS[target.kind], variant.namespace, target.name)
    grouped = target.kind == "LeaderWorkerSet"
    labels = pod_selector(workload, target.kind)
    # Without a selector these would be all pods of the namespace.
    pods = api.list(PODS, variant.namespace, labels=labels).items if labels else ()
    living = [pod for pod in pods if not is_ending(pod) and not is_finished(pod) and _is_own(pod, target)]
    units = _groups(living, variant) if grouped else _singles(living, target.kind)
    return Crew(
        units={each.name: each for each in units},
        ordered=target.kind != "Deployment",
        first=0 if grouped else count_at(workload, "spec", "ordinals", "start") or 0,
        owned=owned_keys(workload),
        template=_template(workload, grouped=grouped),
        routers=routers,
    )  # fmt: skip


def _is_own(pod: Object, target: KubernetesObject) -> bool:
    """Whether a workload controls a pod: labels of two workloads may overlap, and owners tell them apart."""
    controller = controller_of(pod)
    if controller is None or target.kind == "LeaderWorkerSet":
        return True
    if target.kind == "StatefulSet":
        return controller == ("StatefulSet", target.name)
    kind, name = controller
    return kind == "ReplicaSet" and name == f"{target.name}-{labels_of(pod).get('pod-template-hash', '')}"


def _template(workload: Object, *, grouped: bool) -> Mapping[str, str]:
    spec = (
        mapping_of(at(workload, "spec", "leaderWorkerTemplate"))
        if grouped
        else mapping_of(workload.get("spec"))
    )
    template = spec.get("leaderTemplate") or spec.get("workerTemplate") if grouped else spec.get("template")
    return texts_of(at(template, "metadata", "labels"))


def _singles(pods: Iterable[Object], kind: str) -> list[Unit]:
    ranked = kind == "StatefulSet"
    return [
        Unit(name_of(pod), (pod,), _number(name_of(pod).rpartition("-")[2]) if ranked else None)
        for pod in pods
    ]


def _groups(pods: Iterable[Object], variant: VariantObservation) -> list[Unit]:
    """Groups whose leader is there; one that lost it serves nothing."""
    found: dict[str, list[Object]] = {}
    for pod in pods:
        found.setdefault(labels_of(pod).get(GROUP_INDEX, ""), []).append(pod)
    units = []
    for index, members in found.items():
        order = sorted(members, key=lambda pod: _number(labels_of(pod).get(WORKER_INDEX, "")))
        if labels_of(order[0]).get(WORKER_INDEX) == "0":
            units.append(Unit(name_of(order[0]), tuple(order), _number(index)))
    return units


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0  # noqa: PLR2004 - ordinals
