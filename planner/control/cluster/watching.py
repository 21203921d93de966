"""Following objects as they change: a watch that ends, breaks off or is too old is taken up again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from planner.control.cluster.answers import fault_of
from planner.control.cluster.api import Api
from planner.control.cluster.faults import ClusterFault, Rule, Trouble
from planner.control.cluster.kinds import Kind
from planner.control.cluster.reading import Object, at, count_at, mapping_of, text_at
from planner.control.cluster.transport import Answer, refused

__all__ = ["Change", "ChangeKind", "Stopped", "follow"]

_EACH_S: Final = 60
_LONGEST_WAIT_S: Final = 30.0
_STEP_S: Final = 1.0


class ChangeKind(StrEnum):
    """What happened."""

    ALL = "all"
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to objects.

    Attributes:
        kind: ``ALL``: these are all objects there are; whatever else was known is gone.
        objects: one, or all of them.
    """

    kind: ChangeKind
    objects: tuple[Object, ...]


class Stopped(Protocol):
    """Says when to end; ``threading.Event`` does."""

    def is_set(self) -> bool:
        """Whether it is time to end."""


def follow(
    api: Api,
    kind: Kind,
    stop: Stopped,
    *,
    namespace: str = "",
    labels: str = "",
    on_fault: Callable[[ClusterFault], None] = lambda _: None,
) -> Iterator[Change]:
    """All objects of a kind, then every change, until ``stop`` is set.

    The server ends each watch after a minute at most, so that is how long a quiet one takes to stop. What the server
    cannot tell any more (410), and what was missed while it was away, is made good by reading all of them again.

    Args:
        api: of the cluster.
        kind: of the objects.
        stop: says when to end.
        namespace: empty: all of them.
        labels: label selector.
        on_fault: is told of every fault; the watch goes on after it, denied ones too, since rules may be added.
    """
    wait_s, version = 0.0, ""
    while not stop.is_set():
        try:
            if not version:
                listing = api.list(kind, namespace, labels=labels)
                version = listing.version
                yield Change(ChangeKind.ALL, listing.items)
                if stop.is_set():
                    return
            for change, reached in _changes(api, kind, namespace, labels, version):
                version, wait_s = reached, 0.0
                if change is not None:
                    yield change
                if stop.is_set():
                    return
            # A server that ends every watch at once would be asked without a pause.
            wait_s = wait_s or api.limits.first_s / 5
        except ClusterFault as fault:
            if fault.trouble is Trouble.EXPIRED:
                version = ""
                continue
            on_fault(fault)
            version = version if fault.trouble in {Trouble.BUSY, Trouble.TIMEOUT, Trouble.UNREACHABLE} else ""
            wait_s = min(_LONGEST_WAIT_S, max(2 * wait_s, api.limits.first_s, fault.after_s or 0.0))
        _pause(api, wait_s, stop)


def _pause(api: Api, wait_s: float, stop: Stopped) -> None:
    while wait_s > 0 and not stop.is_set():
        api.clock.sleep(min(wait_s, _STEP_S))
        wait_s -= _STEP_S


def _changes(
    api: Api, kind: Kind, namespace: str, labels: str, version: str
) -> Iterator[tuple[Change | None, str]]:
    """Changes of one watch, each with the version after it; None: the version alone went on."""
    query = {"resourceVersion": version, "timeoutSeconds": str(_EACH_S)}
    if labels:
        query["labelSelector"] = labels
    rule = Rule(kind, "watch", namespace)
    try:
        for line in api.lines(kind, namespace, query, timeout_s=_EACH_S + api.limits.timeout_s):
            event = _event(line)
            thing = mapping_of(event.get("object"))
            said = text_at(event, "type").lower()
            if said == "error":
                status = count_at(thing, "code") or 500
                raise fault_of(Answer(status, {}, json.dumps(thing).encode()), rule)
            version = text_at(thing, "metadata", "resourceVersion") or version
            known = said in {ChangeKind.ADDED, ChangeKind.MODIFIED, ChangeKind.DELETED}
            yield (Change(ChangeKind(said), (thing,)) if known and at(thing, "metadata") else None), version
    except ClusterFault as fault:
        answer = refused(fault)
        if answer is not None:
            raise fault_of(answer, rule) from None
        raise


def _event(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ClusterFault(Trouble.GARBLED, "a watch sent what is no event")
    return found
