"""Settings -> a controller: clusters, sources, policies, actuators, election, records. Everything wrong is said at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from models.controller import ControllerSettings
from models.cycle_record import CycleRecord
from planner.catalog import load_catalog
from planner.clock import Clock
from planner.control.actuators import Actuators, Connections, actuators_from
from planner.control.cluster import Api, ClusterOptions, connect_all
from planner.control.collectors import open_source
from planner.control.deciding import Decider, Deciding
from planner.control.discovery import open_discovery
from planner.control.discovery.kubernetes import DiscoveryOptions, KubernetesDiscovery
from planner.control.options import options_of
from planner.control.protocols import CapacityDiscovery, FleetDiscovery, MetricsSource
from planner.control.running.controller import Controller
from planner.control.running.events import Events
from planner.control.running.fencing import Fenced
from planner.control.running.holding import Notes
from planner.control.running.layering import Layer
from planner.control.running.leading import Alone, Election, LeaseElection, identity, lease_name
from planner.control.running.live import LiveConfiguration
from planner.control.running.loop import Loop, Parts
from planner.control.running.memory import LoopMemory
from planner.control.running.metering import Meters
from planner.control.running.observing import Eyes
from planner.control.running.recording import Records
from planner.control.running.waking import Waking
from planner.errors import ConfigurationError, Finding

__all__ = [
    "KUBERNETES",
    "PROMETHEUS_TOKEN",
    "Opening",
    "home_namespace",
    "open_apis",
    "open_controller",
    "own_discovery",
    "with_token",
]

KUBERNETES: Final = "kubernetes"
PROMETHEUS_TOKEN: Final = "FLEETPLAN_PROMETHEUS_TOKEN"  # noqa: S105 - the name of a variable
_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_REMEMBERED_S: Final = 3600.0
"""Windows of stabilization reach back so far at most."""
_Made = TypeVar("_Made")


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What a controller is made of; tests hand in what they want instead of what settings name.

    Attributes:
        layers: of settings, the least important first.
        clock: for everything.
        apis: of the clusters; None: those that settings name.
        sources: of metrics, by name; None: those that settings name.
        deciding: decides; None: policies by name.
        who: a name that no other controller has; None: one is made.
        told: is given every record.
        environ: variables; None: those of the process.
    """

    layers: Sequence[Layer]
    clock: Clock
    apis: tuple[Api, ...] | None = None
    sources: Mapping[str, MetricsSource] | None = None
    deciding: Deciding | None = None
    who: str | None = None
    told: Callable[[CycleRecord], None] = lambda _: None
    environ: Mapping[str, str] | None = None


@dataclass(slots=True)
class _Gathered:
    """Tries everything, and keeps what refuses."""

    findings: list[Finding] = field(default_factory=list)

    def attempt(self, what: str, make: Callable[[], _Made]) -> _Made | None:
        try:
            return make()
        except ConfigurationError as error:
            self.findings += error.findings or [Finding("", None, what, str(error))]
            return None

    def check(self) -> None:
        if self.findings:
            raise ConfigurationError.from_findings(dict.fromkeys(self.findings))


def open_controller(opening: Opening) -> Controller:
    """A controller that is ready to run; nothing was written anywhere yet, but in its own folder.

    Raises:
        ConfigurationError: lists everything that is wrong with settings, clusters, sources and actuators.
        TemporaryError: a port of a source is taken.
    """
    clock, gathered = opening.clock, _Gathered()
    first = LiveConfiguration(opening.layers)
    settings = first.settings
    apis = opening.apis
    if apis is None:
        apis = gathered.attempt("clusters", lambda: open_apis(settings, clock)) or ()
    who = opening.who or identity(clock)
    home = home_namespace(opening.environ)
    eyes = gathered.attempt("sources", lambda: _eyes(settings, apis, opening))
    election = gathered.attempt("lease", lambda: _election(settings, apis, clock, who=who, home=home))
    records = gathered.attempt(
        "records.folder", lambda: Records(settings.records, who=who, unix_s=clock.unix_s())
    )

    def may_write() -> bool:
        return settings.act and election is not None and election.leading

    fenced = tuple(replace(api, transport=Fenced(api.transport, may_write)) for api in apis)
    actuators = gathered.attempt("actuators", lambda: _actuators(settings, fenced, clock))
    gathered.check()
    if eyes is None or election is None or records is None or actuators is None:
        raise ConfigurationError("the controller cannot be opened")
    meters = Meters()
    by_name = {api.name: api for api in fenced}
    events = Events(by_name, clock, who=who, meters=meters) if settings.records.events and fenced else None
    live = LiveConfiguration(opening.layers, apis[0] if apis else None, namespace=home)
    parts = Parts(
        who=who,
        clock=clock,
        live=live,
        eyes=eyes,
        deciding=opening.deciding or Decider(clock=clock),
        actuators=actuators,
        election=election,
        records=records,
        meters=meters,
        events=events,
        notes=Notes(by_name) if fenced else None,
    )
    loop = Loop(parts, memory=_remembered(records, clock.unix_s()))
    return Controller(parts, loop, apis=apis, waking=Waking(), told=opening.told)


def open_apis(settings: ControllerSettings, clock: Clock) -> tuple[Api, ...]:
    """The clusters that settings name; where they name none, the one at hand.

    Raises:
        ConfigurationError: lists everything that is wrong with them.
    """
    given = [
        options_of(ClusterOptions, f"clusters[{place}]", raw) for place, raw in enumerate(settings.clusters)
    ]
    needed = settings.discovery.name == KUBERNETES or given or (settings.act and settings.lease.enabled)
    return connect_all(given or [ClusterOptions()], clock) if needed else ()


def home_namespace(environ: Mapping[str, str] | None = None) -> str:
    """The namespace that we run in: ``POD_NAMESPACE``, that of the service account, else ``default``."""
    named = (os.environ if environ is None else environ).get("POD_NAMESPACE", "").strip()
    if named:
        return named
    try:
        return _NAMESPACE_FILE.read_text(encoding="ascii").strip() or "default"
    except (OSError, UnicodeDecodeError):
        return "default"


def _eyes(settings: ControllerSettings, apis: tuple[Api, ...], opening: Opening) -> Eyes:
    gathered, clock = _Gathered(), opening.clock
    sources = opening.sources
    if sources is None:
        sources = gathered.attempt("sources", partial(_sources, settings, opening)) or {}
    fleet, capacity = gathered.attempt("discovery", partial(_discovery, settings, apis, clock)) or (
        None,
        None,
    )
    if gathered.findings:
        Eyes(None, sources).close()
    gathered.check()
    return Eyes(fleet, sources, capacity=capacity, within_s=settings.timeout_s)


def _sources(settings: ControllerSettings, opening: Opening) -> dict[str, MetricsSource]:
    gathered = _Gathered()
    sources: dict[str, MetricsSource] = {}
    environ = os.environ if opening.environ is None else opening.environ
    for each in settings.sources:
        name = each.name if each.name not in sources else f"{each.name}-{len(sources)}"
        options = with_token(each.name, each.options, environ)
        made = gathered.attempt(f"sources.{name}", partial(open_source, each.name, options, opening.clock))
        if made is not None:
            sources[name] = made
    if not settings.sources:
        gathered.findings.append(
            Finding("", None, "sources", "no source of metrics", "at least one, e.g. --prometheus URL")
        )
    if gathered.findings:
        Eyes(None, sources).close()
    gathered.check()
    return sources


def _discovery(
    settings: ControllerSettings, apis: tuple[Api, ...], clock: Clock
) -> tuple[FleetDiscovery | None, CapacityDiscovery | None]:
    """Who tells of variants, and who tells of accelerators in its place."""
    wanted = settings.discovery
    if wanted.name == KUBERNETES:
        return own_discovery(settings, apis), None
    opened = open_discovery(wanted.name, wanted.options, clock)
    if hasattr(opened, "see"):
        return cast("FleetDiscovery", opened), None
    return own_discovery(settings, apis) if apis else None, opened


def own_discovery(settings: ControllerSettings, apis: Sequence[Api]) -> KubernetesDiscovery:
    """What tells of our variants in clusters; its options count where settings name it and no other.

    Raises:
        ConfigurationError: lists every option that is wrong.
    """
    ours: dict[str, Any] = {
        "namespaces": settings.namespaces,
        "exclude": settings.exclude,
        "controller_instance": settings.sharding.instance,
    }
    told = settings.discovery.options if settings.discovery.name == KUBERNETES else {}
    return KubernetesDiscovery(
        apis, options_of(DiscoveryOptions, "discovery.options", {**ours, **told}), load_catalog()
    )


def _election(
    settings: ControllerSettings, apis: tuple[Api, ...], clock: Clock, *, who: str, home: str
) -> Election:
    """A dry run takes no lease: it writes nothing, and would keep from leading whoever acts."""
    if not settings.act or not settings.lease.enabled:
        return Alone(who)
    if not apis:
        found = "an election without a cluster"
        raise ConfigurationError.from_findings(
            [Finding("", None, "lease", found, "lease.enabled: false, or a cluster")]
        )
    place = (settings.lease.namespace or home, lease_name(settings))
    return LeaseElection(apis[0], settings.lease, place=place, who=who, clock=clock)


def _actuators(settings: ControllerSettings, apis: tuple[Api, ...], clock: Clock) -> Actuators:
    connections = Connections(clock=clock, apis=apis, instance=settings.sharding.instance)
    return actuators_from([(each.name, each.options) for each in settings.actuators], connections)


def with_token(name: str, options: Mapping[str, Any], environ: Mapping[str, str]) -> Mapping[str, Any]:
    """The options of a source; the token of a Prometheus may be in a variable, as ``observe`` takes it."""
    token = environ.get(PROMETHEUS_TOKEN, "")
    if name != "prometheus" or not token or options.keys() & {"bearer_token", "token_file"}:
        return options
    return {**options, "bearer_token": token}


def _remembered(records: Records, now_s: float) -> LoopMemory:
    """What the controller before remembered; what is damaged, or older than its worth, is as good as nothing."""
    text = records.read_state()
    try:
        found = LoopMemory() if text is None else LoopMemory.from_json(text)
    except ValueError:
        return LoopMemory()
    return found if 0 <= now_s - found.at_s <= _REMEMBERED_S else LoopMemory()
