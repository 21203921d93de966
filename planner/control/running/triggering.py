"""What starts a cycle before its time: a variant, a workload, the configuration, a quota or a node changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Final

from planner.control.cluster import Api, Change, ChangeKind, ClusterFault, Kind, Trouble, follow
from planner.control.cluster.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    NODES,
    RESOURCE_QUOTAS,
    SCALED_OBJECTS,
    STATEFUL_SETS,
    VARIANT_AUTOSCALINGS,
)
from planner.control.cluster.reading import Object, at, mapping_of, name_of, namespace_of

__all__ = ["WATCHED", "Bell", "Watches", "is_news"]

WATCHED: Final = (
    HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS, VARIANT_AUTOSCALINGS, DEPLOYMENTS, STATEFUL_SETS, LEADER_WORKER_SETS,
    RESOURCE_QUOTAS, NODES,
)  # fmt: skip
_NOISE: Final = ("kubectl.kubernetes.io/last-applied-configuration", "autoscaling.alpha.kubernetes.io/")
_UNKNOWN_S: Final = 60.0


class Bell:
    """Rung by whoever knows of news; whoever waits is told why."""

    def __init__(self) -> None:
        self._event = Event()
        self._lock = Lock()
        self._reasons: dict[str, None] = {}

    def ring(self, reason: str) -> None:
        """Wake whoever waits."""
        with self._lock:
            self._reasons[reason] = None
        self._event.set()

    def wait(self, duration_s: float) -> bool:
        """Wait for a ring, s; False: there was none."""
        return self._event.wait(max(0.0, duration_s))

    def answered(self) -> tuple[str, ...]:
        """Why it was rung since the last answer, the first first."""
        with self._lock:
            reasons, self._reasons = tuple(self._reasons), {}
            self._event.clear()
        return reasons


def is_news(thing: Object, known: dict[tuple[str, str, str], str], kind: Kind) -> bool:
    """Whether an object says something that a decision may rest on; notes it in ``known``.

    Status and bookkeeping of the API change all the time and are looked at in every cycle anyway.

    Args:
        thing: as it is now.
        known: digests by kind, namespace and name.
        kind: of the object.
    """
    key = (kind.plural, namespace_of(thing), name_of(thing))
    metadata = mapping_of(thing.get("metadata"))
    notes = {
        name: value
        for name, value in mapping_of(metadata.get("annotations")).items()
        if not str(name).startswith(_NOISE)
    }
    said = [
        thing.get("spec"),
        thing.get("data"),
        metadata.get("labels"),
        notes,
        at(thing, "metadata", "deletionTimestamp"),
    ]
    if kind is NODES:
        said = [
            mapping_of(thing.get("spec")).get("unschedulable"),
            mapping_of(thing.get("spec")).get("taints"),
        ]
    digest = hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()
    before = known.get(key)
    known[key] = digest
    return before is not None and before != digest


@dataclass(slots=True)
class Watches:
    """Follows what decisions rest on, in threads of its own, until it is stopped.

    Args:
        apis: of the clusters.
        ring: is told what changed.
        on_fault: is told what cannot be watched; watching goes on.
        namespaces: whose objects are watched; empty: all.
        config_map: namespace and name of the live configuration, in the first cluster; None: there is none.
    """

    apis: Sequence[Api]
    ring: Callable[[str], None]
    on_fault: Callable[[str, ClusterFault], None] = lambda _, __: None
    namespaces: Sequence[str] = ()
    config_map: tuple[str, str] | None = None
    _stop: Event = field(default_factory=Event)

    def start(self) -> None:
        """Begin to watch."""
        for number, api in enumerate(self.apis):
            for kind in WATCHED:
                for namespace in (self.namespaces if kind.namespaced else ()) or ("",):
                    self._begin(api, kind, namespace)
            if number == 0 and self.config_map is not None:
                self._begin(api, CONFIG_MAPS, self.config_map[0], self.config_map[1])

    def stop(self) -> None:
        """Stop watching; threads end with what they read next, and none keeps the program from ending."""
        self._stop.set()

    def _begin(self, api: Api, kind: Kind, namespace: str, name: str = "") -> None:
        def run() -> None:
            self._follow(api, kind, namespace, name)

        Thread(target=run, name=f"watch {kind.plural}", daemon=True).start()

    def _follow(self, api: Api, kind: Kind, namespace: str, name: str) -> None:
        known: dict[tuple[str, str, str], str] = {}
        subject = f"watch of {kind.resource}{f' in {namespace}' if namespace else ''}"
        while not self._stop.is_set():
            try:
                if api.version_of(kind) is None:
                    # A CRD that may be installed later.
                    self._stop.wait(_UNKNOWN_S)
                    continue
                for change in follow(
                    api,
                    kind,
                    self._stop,
                    namespace=namespace,
                    on_fault=lambda fault: self.on_fault(subject, fault),
                ):
                    self._news(change, kind, known, name)
            except ClusterFault as fault:
                self.on_fault(subject, fault)
                self._stop.wait(_UNKNOWN_S if fault.trouble is Trouble.NOT_FOUND else 5.0)

    def _news(self, change: Change, kind: Kind, known: dict[tuple[str, str, str], str], name: str) -> None:
        first = change.kind is ChangeKind.ALL and not known
        for thing in _named(change.objects, name):
            added = (kind.plural, namespace_of(thing), name_of(thing)) not in known
            news = is_news(thing, known, kind)
            if change.kind is ChangeKind.DELETED:
                known.pop((kind.plural, namespace_of(thing), name_of(thing)), None)
            if news or change.kind is ChangeKind.DELETED or (added and not first):
                where = f"{namespace_of(thing)}/" if namespace_of(thing) else ""
                self.ring(
                    f"{kind.name} {where}{name_of(thing)} {'deleted' if change.kind is ChangeKind.DELETED else 'changed'}"
                )


def _named(things: Iterable[Object], name: str) -> Iterable[Object]:
    return (thing for thing in things if not name or name_of(thing) == name)
