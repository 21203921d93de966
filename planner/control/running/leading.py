"""Who leads: one of several controllers, by a Lease that it renews.

Nobody compares clocks of two machines: a lease is over when it did not change for its length by the clock of whoever
looks, and a leader stops by its own clock before that. Source: coordination.k8s.io/v1 Lease, used as client-go does.
"""

from __future__ import annotations

import dataclasses
import math
import os
import socket
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final, Protocol

from models.controller import ControllerSettings, LeaseSettings
from models.observation import Finding
from planner.clock import Clock
from planner.control.cluster import Api, ClusterFault, Limits, Trouble
from planner.control.cluster.kinds import LEASES
from planner.control.cluster.reading import Object, at, count_at, text_at

__all__ = ["Alone", "Election", "LeaseElection", "identity", "lease_name"]

_MOST_LEASE_S: Final = 3600.0
_RELEASED_S: Final = 1


class Election(Protocol):
    """Says whether we lead, now."""

    @property
    def leading(self) -> bool:
        """Whether we lead at this very moment, by our own clock."""
        ...

    @property
    def holder(self) -> str:
        """Who leads, as far as we know; empty: nobody."""
        ...

    def step(self) -> Finding | None:
        """Try to become or stay the leader; what went wrong is a finding."""
        ...

    def release(self) -> None:
        """Give the lead back, so that nobody has to wait for it."""
        ...


class Alone:
    """Always leads, until it gives that up.

    Args:
        who: we are.
    """

    def __init__(self, who: str = "") -> None:
        self._who = who
        self._over = False

    @property
    def leading(self) -> bool:
        """See :class:`Election`."""
        return not self._over

    @property
    def holder(self) -> str:
        """See :class:`Election`."""
        return self._who

    def step(self) -> Finding | None:
        """See :class:`Election`."""
        return None

    def release(self) -> None:
        """See :class:`Election`."""
        self._over = True


class LeaseElection:
    """Leads while it renews a Lease.

    Args:
        api: of the cluster with the Lease.
        settings: of the lease.
        place: namespace and name of the Lease.
        who: a name that no other controller has.
        clock: for deadlines; its time of day is only written for people to read.
    """

    def __init__(
        self, api: Api, settings: LeaseSettings, *, place: tuple[str, str], who: str, clock: Clock
    ) -> None:
        limits = Limits(timeout_s=settings.renew_s / 2, within_s=settings.renew_s / 2, tries=2, first_s=0.1)
        self._api = dataclasses.replace(api, limits=limits)
        self._settings = settings
        self._namespace, self._name = place
        self._who = who
        self._clock = clock
        self._lock = Lock()
        self._until_s = float("-inf")
        self._seen: tuple[object, ...] = ()
        self._seen_s = float("-inf")
        self._holder = ""

    @property
    def leading(self) -> bool:
        """See :class:`Election`; false from the deadline of renewal on, whether or not anybody called :meth:`step`."""
        return self._clock.monotonic_s() < self._until_s

    @property
    def holder(self) -> str:
        """See :class:`Election`."""
        return self._holder

    def step(self) -> Finding | None:
        """See :class:`Election`."""
        with self._lock:
            began_s = self._clock.monotonic_s()
            try:
                ours = self._attempt(began_s)
            except ClusterFault as fault:
                if fault.trouble in {Trouble.CONFLICT, Trouble.EXISTS}:
                    return None
                subject = f"Lease {self._namespace}/{self._name}"
                return Finding(subject=subject, problem=fault.message[:1000], remedy=fault.remedy)
            if ours:
                # From before the call: the others count from when they see it, which is later.
                self._until_s = began_s + self._settings.renew_s
            return None

    def release(self) -> None:
        """See :class:`Election`."""
        with self._lock:
            led, self._until_s = self.leading, float("-inf")
            if not led:
                return
            try:
                found = self._api.find(LEASES, self._namespace, self._name)
                if found is not None and text_at(found, "spec", "holderIdentity") == self._who:
                    self._api.replace(LEASES, self._namespace, self._released(found))
            except ClusterFault:
                # They find out by themselves when the lease is over.
                return
            self._holder = ""

    def _attempt(self, now_s: float) -> bool:
        """Whether the lease is ours after this."""
        found = self._api.find(LEASES, self._namespace, self._name)
        if found is None:
            made = {"metadata": {"name": self._name}, "spec": self._spec(None)}
            self._note(self._api.create(LEASES, self._namespace, made), now_s)
            return True
        self._note(found, now_s)
        holder = text_at(found, "spec", "holderIdentity")
        if holder not in {"", self._who}:
            self._until_s = float("-inf")
            if now_s < self._seen_s + _length_s(found, self._settings.lease_s):
                return False
        changed = {**found, "spec": self._spec(found)}
        self._note(self._api.replace(LEASES, self._namespace, changed), now_s)
        return True

    def _note(self, lease: Object, now_s: float) -> None:
        seen = (
            text_at(lease, "spec", "holderIdentity"),
            text_at(lease, "spec", "renewTime"),
            text_at(lease, "metadata", "resourceVersion"),
        )
        self._holder = str(seen[0])
        if seen != self._seen:
            self._seen, self._seen_s = seen, now_s

    def _spec(self, found: Object | None) -> dict[str, Any]:
        now = _stamp(self._clock.unix_s())
        ours = found is not None and text_at(found, "spec", "holderIdentity") == self._who
        changes = count_at(found, "spec", "leaseTransitions") or 0
        return {
            "holderIdentity": self._who,
            "leaseDurationSeconds": math.ceil(self._settings.lease_s),
            "acquireTime": text_at(found, "spec", "acquireTime") if ours else now,
            "renewTime": now,
            "leaseTransitions": changes if ours or found is None else changes + 1,
        }

    def _released(self, found: Object) -> Object:
        spec = {**self._spec(found), "holderIdentity": "", "leaseDurationSeconds": _RELEASED_S}
        return {**found, "spec": spec}


def identity(clock: Clock) -> str:
    """A name that no other controller has: the pod's or machine's, and a part of its own for each start."""
    machine = os.environ.get("POD_NAME") or socket.gethostname() or "controller"
    return f"{machine[:200]}_{os.getpid():x}-{int(clock.unix_s() * 1000) & 0xFFFFFFFF:08x}"


def lease_name(settings: ControllerSettings) -> str:
    """One Lease for each set of services that controllers share."""
    parts = [settings.lease.name]
    if settings.sharding.instance is not None:
        parts.append(settings.sharding.instance)
    if settings.sharding.shards > 1:
        parts.append(f"{settings.sharding.shard}-of-{settings.sharding.shards}")
    return "-".join(parts)[:253]


def _length_s(lease: Object, otherwise_s: float) -> float:
    """Length that whoever wrote it promised; ours, where it says none or nonsense."""
    found = count_at(at(lease, "spec"), "leaseDurationSeconds")
    return float(found) if found and found <= _MOST_LEASE_S else otherwise_s


def _stamp(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
