"""The check before the first start: may it, can it see, does anything follow what it says. Everything at once, with remedies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, cast

from models.controller import ControllerSettings, Extension
from models.observation import VariantObservation
from planner.clock import Clock
from planner.control.actuators import Connections, open_actuator
from planner.control.cluster import Api, ClusterFault, Kind
from planner.control.cluster.kinds import (
    EARLIER_INFERENCE_OBJECTIVES,
    HORIZONTAL_POD_AUTOSCALERS,
    INFERENCE_OBJECTIVES,
    LEASES,
    SCALED_OBJECTS,
    VARIANT_AUTOSCALINGS,
    WORKLOADS,
)
from planner.control.cluster.reading import Object, at, count_at, items_of, text_at
from planner.control.deciding import open_policy
from planner.control.discovery import open_discovery
from planner.control.protocols import CapacityDiscovery, FleetDiscovery
from planner.control.running.checking_metrics import checked_sources
from planner.control.running.checking_result import Area, Checked, bad, finding, good, made, note
from planner.control.running.checking_rules import OPTIONAL_KINDS, Need, needs_of, served_needs
from planner.control.running.checking_scalers import checked_hpas, checked_scaled_objects, managed
from planner.control.running.leading import lease_name
from planner.control.running.opening import KUBERNETES, open_apis, own_discovery
from planner.errors import ConfigurationError
from planner.wording import counted

__all__ = ["Checking", "checked", "checked_before_start"]

_EXTERNAL_METRICS: Final = Kind(
    "ExternalMetricValueList", "externalmetrics", "external.metrics.k8s.io", ("v1beta1",)
)
_SHOWN: Final = 3
_GRACE_S: Final = 60
"""Requests of LLMs take longer than the usual half minute."""


def checked_before_start(settings: ControllerSettings, clock: Clock, *, home: str) -> tuple[Checked, ...]:
    """As :func:`checked`, of the clusters that settings name; that one cannot be connected to is a problem like others."""
    apis: tuple[Api, ...] = ()
    told: tuple[Checked, ...] = ()
    try:
        apis = open_apis(settings, clock)
    except ConfigurationError as error:
        said = [str(each) for each in error.findings] or [str(error)]
        told = tuple(bad(Area.CLUSTER, "clusters", each) for each in said)
    return (*told, *checked(settings, apis, clock, home=home))


def checked(
    settings: ControllerSettings, apis: Sequence[Api], clock: Clock, *, home: str
) -> tuple[Checked, ...]:
    """Everything that a controller with these settings needs, as it is found; it changes nothing and never raises for it.

    Args:
        settings: of the controller.
        apis: of the clusters; the first one holds lease, live settings and records.
        clock: for waits and limits.
        home: namespace that the controller runs in.
    """
    found = list(Checking(settings, tuple(apis), clock, home).run())
    order = tuple(Area)
    return tuple(sorted(found, key=lambda each: order.index(each.area)))


@dataclass(slots=True)
class Checking:
    """One check; see :func:`checked`."""

    settings: ControllerSettings
    apis: tuple[Api, ...]
    clock: Clock
    home: str
    _variants: tuple[VariantObservation, ...] = field(default=())

    def run(self) -> Iterator[Checked]:
        """All parts, one after the other; a cluster that is away is told once."""
        reached = []
        for place, api in enumerate(self.apis):
            try:
                answers = list(self._cluster(api, first=place == 0))
            except ClusterFault as fault:
                yield bad(Area.CLUSTER, _named(api), fault.message, fault.remedy)
            else:
                reached.append(api)
                yield good(Area.CLUSTER, _named(api), "answers")
                yield from answers
        yield from self._variants_seen(reached)
        yield from self._extensions()
        yield from checked_sources(self.settings, self._variants, self.clock)

    def _cluster(self, api: Api, *, first: bool) -> Iterator[Checked]:
        absent = [
            kind for kind in sorted(OPTIONAL_KINDS, key=lambda kind: kind.resource) if not api.serves(kind)
        ]
        yield from self._permissions(api, absent, first=first)
        yield from self._kinds(api, absent)
        if first and self.settings.act and self.settings.lease.enabled:
            yield from _unless_denied(Area.LEADER, "lease", lambda: self._lease(api))
        yield from _unless_denied(Area.SCALERS, "scalers", lambda: self._scalers(api, absent))

    def _permissions(self, api: Api, absent: Sequence[Kind], *, first: bool) -> Iterator[Checked]:
        home = self.home if first else None
        asked = served_needs(needs_of(self.settings, home=home, cluster=api.name), absent)
        missing = [need for need in asked if not api.may(need.rule)]
        if len(missing) < len(asked):
            yield good(
                Area.PERMISSIONS, _named(api), f"{len(asked) - len(missing)} of {len(asked)} rules are there"
            )
        yield from (_lacking(need) for need in missing)

    def _kinds(self, api: Api, absent: Sequence[Kind]) -> Iterator[Checked]:
        acting = {each.name for each in self.settings.actuators}
        pickers = {INFERENCE_OBJECTIVES, EARLIER_INFERENCE_OBJECTIVES}
        wanted: list[tuple[str, Iterable[Kind], str]] = [
            ("keda", (SCALED_OBJECTS,), "install KEDA, or act in another way"),
            (
                "variantautoscaling",
                (VARIANT_AUTOSCALINGS,),
                "kubectl apply -f deploy/base/variantautoscalings.yaml, or act in another way",
            ),
        ]
        if _sets_priorities(self.settings.actuators):
            wanted.append(
                ("epp", pickers, "install llm-d's router or the inference extension, or set no priorities")
            )
        for name, kinds, remedy in wanted:
            if name not in acting:
                continue
            lacking = [kind for kind in kinds if kind in absent]
            if len(lacking) == len(list(kinds)):
                said = f"not served, and the actuator {name} writes them"
                yield bad(Area.KINDS, f"{lacking[0].resource} of {_named(api)}", said, remedy)
            else:
                yield good(Area.KINDS, f"{next(iter(kinds)).plural} of {_named(api)}", "served")

    def _lease(self, api: Api) -> Iterator[Checked]:
        namespace, name = self.settings.lease.namespace or self.home, lease_name(self.settings)
        subject = f"Lease {namespace}/{name}"
        found = api.find(LEASES, namespace, name)
        holder = text_at(found, "spec", "holderIdentity")
        if found is None or not holder:
            yield good(Area.LEADER, subject, "nobody leads yet")
            return
        said = f"{holder} leads, renewed {text_at(found, 'spec', 'renewTime') or 'at an unknown time'}"
        yield note(Area.LEADER, subject, said, "a further controller waits until it is gone")

    def _scalers(self, api: Api, absent: Sequence[Kind]) -> Iterator[Checked]:
        if not any(each.name == "gauge" for each in self.settings.actuators):
            return
        hpas = self._listed(api, HORIZONTAL_POD_AUTOSCALERS)
        yield from checked_hpas(hpas)
        if SCALED_OBJECTS not in absent:
            yield from checked_scaled_objects(self._listed(api, SCALED_OBJECTS))
        if managed(hpas) and not api.serves(_EXTERNAL_METRICS):
            yield bad(
                Area.SCALERS, f"external metrics of {_named(api)}",
                "no API serves them, so HPAs cannot read the gauge",
                "install prometheus-adapter with deploy/monitoring/prometheus-adapter.yaml, or let KEDA scale",
            )  # fmt: skip

    def _listed(self, api: Api, kind: Kind) -> tuple[Object, ...]:
        spaces = self.settings.namespaces or ("",)
        return tuple(each for space in spaces for each in api.list(kind, space).items)

    def _variants_seen(self, reached: Sequence[Api]) -> Iterator[Checked]:
        extension = self.settings.discovery
        subject = f"discovery {extension.name}"
        capacity: CapacityDiscovery | None = None
        discovery: FleetDiscovery | None = yield from made(
            Area.SETTINGS, subject, partial(own_discovery, self.settings, reached)
        )
        if extension.name != KUBERNETES:
            capacity = yield from made(
                Area.SETTINGS, subject, partial(open_discovery, extension.name, extension.options, self.clock)
            )
        if callable(getattr(capacity, "see", None)):
            # A discovery of others that knows variants too.
            discovery, capacity = cast("FleetDiscovery", capacity), None
        if capacity is not None:
            found = yield from made(Area.VARIANTS, subject, partial(capacity.discover, self.clock.unix_s()))
            yield from (finding(Area.VARIANTS, each) for each in (found.findings if found else ()))
        if discovery is None or not reached:
            return
        reading = yield from made(Area.VARIANTS, subject, partial(discovery.see, self.clock.unix_s()))
        if reading is None:
            return
        self._variants = reading.variants
        # What may not be read is told among the permissions.
        told = (*reading.findings, *(() if capacity else reading.inventory.findings))
        yield from (
            finding(Area.VARIANTS, each) for each in told if not each.remedy.startswith("add the rule")
        )
        if not self._variants:
            remedy = "annotate HPAs or ScaledObjects with llm-d.ai/managed and llm-d.ai/model-id, or make VariantAutoscalings"
            yield bad(Area.VARIANTS, "variants", "nothing is declared to be scaled", remedy)
            return
        services = len({(each.cluster, each.service) for each in self._variants})
        yield good(
            Area.VARIANTS,
            "variants",
            f"{counted(len(self._variants), 'variant')} of {counted(services, 'service')}",
        )
        yield from self._graces(reached)

    def _graces(self, reached: Sequence[Api]) -> Iterator[Checked]:
        """Workloads whose pods are killed in the middle of requests."""
        ours = {(each.cluster, each.target.kind, each.namespace, each.target.name) for each in self._variants}
        short: list[str] = []
        for api in reached:
            for name in ("Deployment", "StatefulSet"):
                try:
                    things = self._listed(api, WORKLOADS[name])
                except ClusterFault:
                    continue
                for thing in things:
                    space, own = text_at(thing, "metadata", "namespace"), text_at(thing, "metadata", "name")
                    if (api.name, name, space, own) in ours and _ends_early(thing):
                        short.append(f"{space}/{own}")
        if short:
            said = f"{_some(short)}: pods get less than {_GRACE_S} s to end, or have no preStop, so requests may be cut"
            yield note(Area.VARIANTS, "grace", said, "see deploy/samples/engine.yaml")

    def _extensions(self) -> Iterator[Checked]:
        settings = self.settings
        policies = {settings.rules.policy, *(each.policy for each in settings.overrides if each.policy)}
        for name in sorted(policies):
            options = settings.policies.get(name, {})
            yield from made(Area.SETTINGS, f"policy {name}", partial(open_policy, name, options, self.clock))
        connections = Connections(clock=self.clock, apis=self.apis)
        for each in self.settings.actuators:
            yield from made(
                Area.SETTINGS,
                f"actuator {each.name}",
                partial(open_actuator, each.name, each.options, connections),
            )


def _unless_denied(area: Area, subject: str, look: Callable[[], Iterator[Checked]]) -> Iterator[Checked]:
    """What a look finds; what may not be looked at is told among the permissions."""
    lines: list[Checked] = []
    try:
        lines += look()
    except ClusterFault as fault:
        if fault.rule is None:
            lines.append(bad(area, subject, fault.message, fault.remedy))
    yield from lines


def _lacking(need: Need) -> Checked:
    told = bad if need.must else note
    return told(
        Area.PERMISSIONS,
        f"{need.rule.verb} {need.rule.resource}",
        f"denied; needed for {need.why}",
        f"add the rule {need.rule}",
    )


def _sets_priorities(actuators: Iterable[Extension]) -> bool:
    for each in actuators:
        services = each.options.get("services") if each.name == "epp" else None
        if isinstance(services, list | tuple) and any(at(one, "priorities") for one in services):
            return True
    return False


def _ends_early(workload: Object) -> bool:
    spec = at(workload, "spec", "template", "spec")
    grace_s = count_at(spec, "terminationGracePeriodSeconds")
    containers = list(items_of(at(spec, "containers")))
    stops = any(at(each, "lifecycle", "preStop") is not None for each in containers)
    return not stops or (30 if grace_s is None else grace_s) < _GRACE_S


def _named(api: Api) -> str:
    return f"cluster {api.name}" if api.name else "the cluster"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
