"""Giving back everything that actuators hold in clusters, before a controller is removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from models.controller import ControllerSettings
from models.observation import Finding
from planner.clock import Clock
from planner.control.actuators import Connections, actuators_from
from planner.control.cluster import Api, ClusterFault
from planner.control.cluster.kinds import LEASES
from planner.control.cluster.reading import text_at
from planner.control.protocols import Outcome, OutcomeCode
from planner.control.running.leading import lease_name
from planner.control.running.opening import open_apis, own_discovery
from planner.control.running.sharding import ours_of
from planner.errors import SafetyGateError

__all__ = ["Released", "release_all"]

_HOLDING: Final = ("draining", "hpa", "keda")
"""Actuators that may have held something under earlier settings."""


@dataclass(frozen=True, slots=True)
class Released:
    """What was given back, or would be.

    Attributes:
        outcomes: for every variant of which something was held.
        findings: what could not be read.
        complete: everything could be.
    """

    outcomes: tuple[Outcome, ...]
    findings: tuple[Finding, ...]
    complete: bool

    @property
    def left(self) -> tuple[Outcome, ...]:
        """What could not be given back."""
        good = {OutcomeCode.DONE, OutcomeCode.WOULD, OutcomeCode.SAME, OutcomeCode.GONE}
        return tuple(each for each in self.outcomes if each.code not in good)


def release_all(
    settings: ControllerSettings, clock: Clock, *, home: str, act: bool, apis: tuple[Api, ...] | None = None
) -> Released:
    """Give bounds and pauses back to scalers, pods back to routing, settings back to endpoint pickers.

    What people paused is not touched, nor what other shards hold.

    Args:
        settings: of the controller.
        clock: for waits.
        home: namespace of its lease, where settings name none.
        act: do it; otherwise tell what would be done.
        apis: of the clusters; None: those that settings name.

    Raises:
        ConfigurationError: lists everything that is wrong with settings and clusters.
        SafetyGateError: a controller leads, and would take all of it again.
    """
    connected = open_apis(settings, clock) if apis is None else apis
    leader = _leader(settings, connected[0], clock, home) if act and connected else ""
    if leader:
        raise SafetyGateError(
            f"the controller {leader} leads and would take everything again: stop it first, e.g. by scaling its Deployment to 0"
        )
    named = {each.name: each.options for each in settings.actuators}
    wanted = {name: named.get(name, {}) for name in dict.fromkeys((*_HOLDING, *named)) if name != "files"}
    fleet = actuators_from(wanted.items(), Connections(clock=clock, apis=connected, within_s=60.0))
    seen = ours_of(own_discovery(settings, connected).see(clock.unix_s()), settings.sharding)
    outcomes = fleet.release(seen.variants, dry_run=not act)
    fleet.close()
    told = tuple(each for each in outcomes if each.code is not OutcomeCode.SAME)
    return Released(told, seen.findings, seen.complete)


def _leader(settings: ControllerSettings, api: Api, clock: Clock, home: str) -> str:
    """Who renews the lease; empty: nobody does. Clocks of two machines are not compared: it is looked at twice."""
    if not settings.lease.enabled:
        return ""
    where = settings.lease.namespace or home, lease_name(settings)
    try:
        first = api.find(LEASES, *where)
        if first is None or not text_at(first, "spec", "holderIdentity"):
            return ""
        clock.sleep(2 * settings.lease.retry_s + 1.0)
        second = api.find(LEASES, *where)
    except ClusterFault as fault:
        raise SafetyGateError(f"nobody can tell whether a controller leads: {fault.message}") from None
    moved = text_at(first, "metadata", "resourceVersion") != text_at(second, "metadata", "resourceVersion")
    return text_at(second, "spec", "holderIdentity") if moved else ""
