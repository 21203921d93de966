"""Which RBAC rules a controller with these settings needs, and what does not work without each.

The rules of the deploy kit are held against this table, and this table against the calls that are really made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from models.controller import ControllerSettings
from planner.control.cluster import Kind, Rule
from planner.control.cluster.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EARLIER_INFERENCE_OBJECTIVES,
    EARLIER_INFERENCE_POOLS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    INFERENCE_OBJECTIVES,
    INFERENCE_POOLS,
    LEASES,
    NODES,
    PODS,
    SCALED_OBJECTS,
    SERVICES,
    VARIANT_AUTOSCALINGS,
    WORKLOADS,
)
from planner.control.discovery.snapshot import CAPACITY_KINDS, KINDS
from planner.control.running.leading import lease_name
from planner.control.running.triggering import WATCHED
from planner.errors import ConfigurationError

__all__ = ["OPTIONAL_KINDS", "Need", "needs_of", "served_needs"]

OPTIONAL_KINDS: Final = frozenset(
    {
        SCALED_OBJECTS, VARIANT_AUTOSCALINGS, WORKLOADS["LeaderWorkerSet"], INFERENCE_OBJECTIVES,
        EARLIER_INFERENCE_OBJECTIVES, INFERENCE_POOLS, EARLIER_INFERENCE_POOLS,
    }
)  # fmt: skip
"""Kinds that a cluster need not have; rules about one that it has not are needed by nobody."""
_Pair = tuple[Kind, str, str]
"""Kind, verb, subresource."""
_SCALE: Final[tuple[_Pair, ...]] = tuple(
    (kind, verb, "scale") for kind in WORKLOADS.values() for verb in ("get", "patch")
)
_BY_ACTUATOR: Final[Mapping[str, tuple[_Pair, ...]]] = {
    "scale": _SCALE,
    "hpa": (
        (HORIZONTAL_POD_AUTOSCALERS, "get", ""),
        (HORIZONTAL_POD_AUTOSCALERS, "patch", ""),
        *_SCALE,
    ),
    "keda": ((SCALED_OBJECTS, "get", ""), (SCALED_OBJECTS, "patch", "")),
    "variantautoscaling": (
        (VARIANT_AUTOSCALINGS, "get", ""),
        (VARIANT_AUTOSCALINGS, "patch", "status"),
    ),
    "draining": (
        (PODS, "get", ""),
        (PODS, "patch", ""),
        (PODS, "patch", "status"),
        *((kind, "get", "") for kind in WORKLOADS.values()),
        *((kind, "list", "") for kind in (SERVICES, INFERENCE_POOLS, EARLIER_INFERENCE_POOLS)),
    ),
}
_TOLD_ABOUT: Final = (
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
    VARIANT_AUTOSCALINGS,
    *WORKLOADS.values(),
)
_OF_PICKERS: Final[tuple[_Pair, ...]] = tuple(
    (kind, verb, "")
    for kind in (INFERENCE_OBJECTIVES, EARLIER_INFERENCE_OBJECTIVES)
    for verb in ("get", "patch")
)


@dataclass(frozen=True, slots=True)
class Need:
    """A rule, and what it is for.

    Attributes:
        rule: that RBAC has to allow.
        why: what needs it, as a phrase.
        must: False: without it something is not known, and everything else works.
    """

    rule: Rule
    why: str
    must: bool = True


def needs_of(
    settings: ControllerSettings, *, home: str | None, cluster: str | None = None
) -> tuple[Need, ...]:
    """Every rule that a controller with these settings needs in a cluster, each once, in a stable order.

    Args:
        settings: of the controller.
        home: namespace that it runs in; None: lease and live settings are in another cluster.
        cluster: its name; None: the only one.
    """
    found: dict[Rule, Need] = {}
    own = () if home is None else _own(settings, home)
    for need in (*_reading(settings), *own, *_acting(settings, cluster)):
        kept = found.get(need.rule)
        if kept is None or (need.must and not kept.must):
            found[need.rule] = need
    return tuple(found.values())


def served_needs(needs: Iterable[Need], absent: Sequence[Kind]) -> tuple[Need, ...]:
    """The needs without those about kinds that a cluster has not."""
    return tuple(need for need in needs if need.rule.kind not in absent)


def _reading(settings: ControllerSettings) -> Iterator[Need]:
    """What discovery lists, and what is watched so that news start a cycle."""
    elsewhere = settings.discovery.name != "kubernetes"
    for kind in KINDS:
        if kind is NODES and elsewhere:
            continue
        must = (kind.namespaced or kind in CAPACITY_KINDS) and kind is not LEASES
        if kind is PODS and settings.namespaces:
            yield Need(Rule(kind, "list"), "GPUs that pods of other namespaces hold", must=False)
        for namespace in _spaces(settings, kind):
            yield Need(Rule(kind, "list", namespace), f"discovery reads {kind.resource}", must=must)
    for kind in WATCHED:
        for namespace in _spaces(settings, kind):
            yield Need(Rule(kind, "watch", namespace), "cycles that start with news", must=False)


def _own(settings: ControllerSettings, home: str) -> Iterator[Need]:
    """Leader election and live settings."""
    if settings.act and settings.lease.enabled:
        where, name = settings.lease.namespace or home, lease_name(settings)
        yield Need(Rule(LEASES, "create", where), "election of a leader")
        for verb in ("get", "update"):
            yield Need(Rule(LEASES, verb, where, name=name), "election of a leader")
    if settings.live is not None:
        where = settings.live.namespace or home
        yield Need(Rule(CONFIG_MAPS, "get", where), "settings that are read live")
        for verb in ("list", "watch"):
            yield Need(Rule(CONFIG_MAPS, verb, where), "edits of settings that count at once", must=False)


def _acting(settings: ControllerSettings, cluster: str | None) -> Iterator[Need]:
    """What actuators write."""
    if settings.act:
        yield from _telling(settings)
    for actuator in settings.actuators:
        why = f"the actuator {actuator.name}"
        for kind, verb, subresource in _BY_ACTUATOR.get(actuator.name, ()):
            for namespace in settings.namespaces or ("",):
                yield Need(Rule(kind, verb, namespace, subresource), why)
        if actuator.name == "epp":
            yield from _picking(actuator.options, cluster)


def _telling(settings: ControllerSettings) -> Iterator[Need]:
    """Events, and the note that people hold a workload."""
    for namespace in settings.namespaces or ("",):
        for verb in ("create", "patch") if settings.records.events else ():
            yield Need(Rule(EVENTS, verb, namespace), "events that tell why", must=False)
        for kind in _TOLD_ABOUT if settings.records.events else ():
            yield Need(Rule(kind, "get", namespace), "events that stand at their object", must=False)
        for kind in WORKLOADS.values() if settings.respect_manual else ():
            yield Need(Rule(kind, "patch", namespace), "notes at what people set by hand", must=False)


def _spaces(settings: ControllerSettings, kind: Kind) -> tuple[str, ...]:
    return (settings.namespaces if kind.namespaced else ()) or ("",)


def _picking(options: Mapping[str, object], cluster: str | None) -> Iterator[Need]:
    from planner.control.actuators.epp_options import EppOptions
    from planner.control.options import options_of

    try:
        services = options_of(EppOptions, "epp", options).services
    except ConfigurationError:
        # What is wrong with options is told where the actuator is opened.
        return
    for service in services:
        if service.cluster not in {None, cluster}:
            continue
        pairs = list(_OF_PICKERS) if service.priorities else []
        for name, kind in ((service.config_map, CONFIG_MAPS), (service.deployment, DEPLOYMENTS)):
            pairs += [(kind, verb, "") for verb in ("get", "patch") if name is not None]
        for kind, verb, subresource in pairs:
            yield Need(
                Rule(kind, verb, service.where, subresource), f"the endpoint picker of {service.service}"
            )
