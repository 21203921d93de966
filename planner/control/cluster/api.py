"""One Kubernetes API: read, watch, apply, scale. Conflicts, load and silence are lived with; refusals are explained."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from planner.clock import Clock
from planner.control.calling import jittered
from planner.control.cluster.calls import Limits, Way, called
from planner.control.cluster.faults import PASSING, ClusterFault, Rule, Trouble
from planner.control.cluster.kinds import Kind
from planner.control.cluster.reading import Object, at, count_at, items_of, text_at
from planner.control.cluster.tally import Tally
from planner.control.cluster.transport import Call, Transport

__all__ = ["FIELD_MANAGER", "Api", "ChangedSince", "Limits", "Listing", "Scaled"]

FIELD_MANAGER: Final = "fleetplan"
_Result = TypeVar("_Result")
_MERGE: Final = "application/merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_VERSION: Final = Kind("Version", "version", namespaced=False)
_KNOWN_S: Final = 300.0
_UNKNOWN_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects of a kind, and the version of the whole."""

    items: tuple[Object, ...]
    version: str = ""


@dataclass(frozen=True, slots=True)
class Scaled:
    """What came of setting a replica count.

    Attributes:
        before: as it was.
        after: as it is, or would be in a dry run.
        changed: whether something was written, or would be.
    """

    before: int
    after: int
    changed: bool


@dataclass(slots=True)
class Api:
    """One Kubernetes API. Every method raises :class:`ClusterFault` for what went wrong, and nothing else.

    Args:
        transport: carries the calls.
        clock: for waits and limits.
        name: of the cluster, as pools and observations name it; None: the only one.
        limits: of calls.
        manager: as which fields are owned that are written.
        careful: writes are repeated after 429 alone: after whatever else nobody knows whether they were done.
        tally: counts calls.
    """

    transport: Transport
    clock: Clock
    name: str | None = None
    limits: Limits = field(default_factory=Limits)
    manager: str = FIELD_MANAGER
    careful: bool = False
    tally: Tally = field(default_factory=Tally)
    _served: dict[Kind, tuple[float, str | None]] = field(default_factory=dict)

    def version_of(self, kind: Kind) -> str | None:
        """The best version of a kind that is served; None: none is, as of a CRD that is not installed."""
        if len(kind.versions) == 1:
            return kind.versions[0]
        until_s, known = self._served.get(kind, (float("-inf"), None))
        if self.clock.monotonic_s() < until_s:
            return known
        try:
            group = self._called(Call(method="GET", path=f"/apis/{kind.group}"), Rule(kind, "get"))
            served = {text_at(each, "version") for each in items_of(group.get("versions"))}
            known = next((version for version in kind.versions if version in served), None)
        except ClusterFault as fault:
            if fault.trouble is not Trouble.NOT_FOUND:
                raise
            known = None
        kept_s = _UNKNOWN_S if known is None else _KNOWN_S
        self._served[kind] = (self.clock.monotonic_s() + kept_s, known)
        return known

    def serves(self, kind: Kind) -> bool:
        """Whether the group of a kind is served in a version that we understand; asks, and needs no rights."""
        if not kind.group:
            return True
        try:
            group = self._called(Call(method="GET", path=f"/apis/{kind.group}"), Rule(kind, "get"))
        except ClusterFault as fault:
            if fault.trouble is not Trouble.NOT_FOUND:
                raise
            return False
        served = {text_at(each, "version") for each in items_of(group.get("versions"))}
        return not served.isdisjoint(kind.versions)

    def server_version(self) -> tuple[int, int]:
        """Major and minor version of the API server; (0, 0): it does not say."""
        said = self._called(Call(method="GET", path="/version"), Rule(_VERSION, "get"))
        parts = [re.match(r"\d{1,4}", text_at(said, key)) for key in ("major", "minor")]
        major, minor = (int(each[0]) if each else 0 for each in parts)
        return (major, minor) if major else (0, 0)

    def get(self, kind: Kind, namespace: str, name: str, *, subresource: str = "") -> Object:
        """One object; namespace empty for kinds of the cluster."""
        rule = Rule(kind, "get", namespace, subresource)
        return self._called(Call(method="GET", path=self._path(kind, namespace, name, subresource)), rule)

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """One object; None: there is none."""
        try:
            return self.get(kind, namespace, name)
        except ClusterFault as fault:
            if fault.trouble is Trouble.NOT_FOUND:
                return None
            raise

    def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", metadata: bool = False
    ) -> Listing:
        """All objects of a kind, read in pages.

        Args:
            kind: of the objects.
            namespace: empty: all of them.
            labels: label selector.
            fields: field selector.
            metadata: read metadata alone, where that is all that is needed.
        """
        query = {"labelSelector": labels, "fieldSelector": fields}
        query = {key: value for key, value in query.items() if value}
        # A page that expired in between means: begin again; at last without pages, which cannot expire.
        for page in (self.limits.page, self.limits.page, 0):
            try:
                return self._paged(kind, namespace, query, page, metadata=metadata)
            except ClusterFault as fault:
                if fault.trouble is not Trouble.EXPIRED or not page:
                    raise
        raise AssertionError("unreachable: the last round returns or raises")

    def list_if_served(self, kind: Kind, namespace: str = "", *, labels: str = "") -> Listing | None:
        """As :meth:`list`; None: the cluster does not know the kind."""
        try:
            return None if self.version_of(kind) is None else self.list(kind, namespace, labels=labels)
        except ClusterFault as fault:
            if fault.trouble is Trouble.NOT_FOUND:
                self._served.pop(kind, None)
                return None
            raise

    def lines(
        self, kind: Kind, namespace: str, query: Mapping[str, str], *, timeout_s: float
    ) -> Iterator[bytes]:
        """Lines of a watch, until the server ends it; :func:`planner.control.cluster.watching.follow` makes sense of them."""
        more = {"watch": "true", "allowWatchBookmarks": "true", **query}
        return self.transport.stream(
            Call(method="GET", path=self._path(kind, namespace), query=more, timeout_s=timeout_s)
        )

    def create(self, kind: Kind, namespace: str, thing: Object, *, dry_run: bool = False) -> Object:
        """Make an object; it is not repeated where nobody knows whether it was made."""
        body = _json(self._whole(kind, namespace, thing))
        call = Call(
            method="POST", path=self._path(kind, namespace), query=self._writing(dry_run=dry_run), body=body
        )
        return self._called(call, Rule(kind, "create", namespace), passing=frozenset({Trouble.BUSY}))

    def apply(
        self,
        kind: Kind,
        namespace: str,
        thing: Object,
        *,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply: own exactly the fields that stand in ``thing``.

        Without ``force`` a field that somebody else owns is a ``CONFLICT`` that names the owner.
        """
        name = text_at(thing, "metadata", "name")
        call = Call(
            method="PATCH",
            path=self._path(kind, namespace, name, subresource),
            query=self._writing(dry_run=dry_run) | {"force": "true" if force else "false"},
            body=_json(self._whole(kind, namespace, thing)),
            content_type=_APPLY,
        )
        return self._called(call, Rule(kind, "patch", namespace, subresource))

    def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Merge a change into an object; with ``metadata.resourceVersion`` in it a ``CONFLICT`` if it changed since."""
        call = Call(
            method="PATCH",
            path=self._path(kind, namespace, name, subresource),
            query=self._writing(dry_run=dry_run),
            body=_json(change),
            content_type=_MERGE,
        )
        return self._called(call, Rule(kind, "patch", namespace, subresource))

    def replace(
        self, kind: Kind, namespace: str, thing: Object, *, subresource: str = "", dry_run: bool = False
    ) -> Object:
        """Put an object in place of the one of its name and ``resourceVersion``."""
        name = text_at(thing, "metadata", "name")
        call = Call(
            method="PUT",
            path=self._path(kind, namespace, name, subresource),
            query=self._writing(dry_run=dry_run),
            body=_json(self._whole(kind, namespace, thing)),
        )
        return self._called(call, Rule(kind, "update", namespace, subresource))

    def delete(self, kind: Kind, namespace: str, name: str, *, dry_run: bool = False) -> None:
        """Delete an object; that there is none is no fault."""
        query = {"dryRun": "All"} if dry_run else {}
        call = Call(method="DELETE", path=self._path(kind, namespace, name), query=query)
        try:
            self._called(call, Rule(kind, "delete", namespace))
        except ClusterFault as fault:
            if fault.trouble is not Trouble.NOT_FOUND:
                raise

    def update(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Callable[[Object], Object | None],
        *,
        dry_run: bool = False,
    ) -> Object:
        """Read an object, change it and write it; worked out again from fresh state when somebody else was faster.

        Args:
            kind: of the object.
            namespace: of the object.
            name: of the object.
            change: the object as it should be, None: as it is.
            dry_run: the server checks and keeps nothing.
        """

        def attempt() -> Object:
            found = self.get(kind, namespace, name)
            wanted = change(found)
            return found if wanted is None else self.replace(kind, namespace, wanted, dry_run=dry_run)

        return self._with_conflicts(attempt)

    def scale(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        replicas: int,
        *,
        seen: int | None = None,
        dry_run: bool = False,
    ) -> Scaled:
        """Set the replica count through the scale subresource, under the version that was read.

        Args:
            kind: of the workload.
            namespace: of the workload.
            name: of the workload.
            replicas: wanted.
            seen: the count that the decision started from; a different one is a ``CONFLICT``, since people or other
                controllers changed it. None: whatever it is.
            dry_run: the server checks and keeps nothing.
        """

        def attempt() -> Scaled:
            found = self.get(kind, namespace, name, subresource="scale")
            before = count_at(found, "spec", "replicas") or 0
            if before == replicas:
                return Scaled(before, before, changed=False)
            if seen is not None and before != seen:
                raise ChangedSince(
                    Trouble.CONFLICT,
                    f"{kind.name} {namespace}/{name} has {before} replicas, not the {seen} that were seen",
                )
            version = text_at(found, "metadata", "resourceVersion")
            change: dict[str, Any] = {"spec": {"replicas": replicas}}
            if version:
                change["metadata"] = {"resourceVersion": version}
            now = self.patch(kind, namespace, name, change, subresource="scale", dry_run=dry_run)
            after = count_at(now, "spec", "replicas")
            return Scaled(before, replicas if after is None else after, changed=True)

        return self._with_conflicts(attempt)

    def may(self, rule: Rule) -> bool:
        """Whether we are allowed something, as the API itself says (SelfSubjectAccessReview)."""
        asked = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {
                    "group": rule.kind.group, "resource": rule.kind.plural, "verb": rule.verb,
                    "namespace": rule.namespace, "subresource": rule.subresource, "name": rule.name,
                }
            },
        }  # fmt: skip
        kind = Kind(
            "SelfSubjectAccessReview", "selfsubjectaccessreviews", "authorization.k8s.io", namespaced=False
        )
        answer = self._called(
            Call(method="POST", path=kind.path("v1"), body=_json(asked)), Rule(kind, "create")
        )
        return at(answer, "status", "allowed") is True

    def _paged(
        self, kind: Kind, namespace: str, query: Mapping[str, str], page: int, *, metadata: bool
    ) -> Listing:
        items: list[Object] = []
        more: dict[str, str] = {"limit": str(page)} if page else {}
        while True:
            call = Call(
                method="GET",
                path=self._path(kind, namespace),
                query={**query, **more},
                accept=_METADATA if metadata else "application/json",
            )
            found = self._called(call, Rule(kind, "list", namespace))
            items += items_of(found.get("items"))
            if len(items) > self.limits.most:
                raise ClusterFault(Trouble.GARBLED, f"more than {self.limits.most:,} {kind.resource}")
            following = text_at(found, "metadata", "continue", longest=1 << 16)
            if not following:
                return Listing(tuple(items), text_at(found, "metadata", "resourceVersion"))
            more["continue"] = following

    def _with_conflicts(self, attempt: Callable[[], _Result]) -> _Result:
        for left in range(self.limits.conflicts, -1, -1):
            try:
                return attempt()
            except ClusterFault as fault:
                if fault.trouble is not Trouble.CONFLICT or isinstance(fault, ChangedSince) or not left:
                    raise
            self.clock.sleep(jittered(self.limits.first_s / 5))
        raise AssertionError("unreachable: the last round returns or raises")

    def _path(self, kind: Kind, namespace: str, name: str = "", subresource: str = "") -> str:
        version = self.version_of(kind)
        if version is None:
            raise ClusterFault(
                Trouble.NOT_FOUND,
                f"{kind.resource} is not served here, in none of {', '.join(kind.versions)}",
            )
        return kind.path(version, namespace, name, subresource)

    def _whole(self, kind: Kind, namespace: str, thing: Object) -> Object:
        """An object with what every object has to say of itself."""
        metadata = dict(thing.get("metadata") or {})
        if kind.namespaced and namespace:
            metadata["namespace"] = namespace
        version = kind.api_version(self.version_of(kind))
        return {
            **thing,
            "apiVersion": thing.get("apiVersion") or version,
            "kind": kind.name,
            "metadata": metadata,
        }

    def _writing(self, *, dry_run: bool) -> dict[str, str]:
        return {"fieldManager": self.manager} | ({"dryRun": "All"} if dry_run else {})

    def _called(self, call: Call, rule: Rule, *, passing: frozenset[Trouble] = PASSING) -> Object:
        way = Way(self.transport, self.clock, self.limits, self.tally)
        return called(way, call, rule, passing=passing, once=self.careful and call.method != "GET")


class ChangedSince(ClusterFault):
    """A conflict that fresh state does not resolve: what was decided no longer fits."""


def _json(thing: Object) -> bytes:
    return json.dumps(thing).encode()
