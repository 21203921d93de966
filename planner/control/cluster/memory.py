"""A Kubernetes API in memory: the fake that ships with the layer, for tests and trials without a cluster.

It keeps objects, versions and the scale subresource, merges patches, refuses stale versions and what it was told to
deny, and says so when it is asked. It knows no field managers, admission or controllers, and its watches end at once: what depends on those is tested
on a real API server.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from planner.control.cluster import kinds
from planner.control.cluster.kinds import Kind
from planner.control.cluster.reading import at, labels_of, mapping_of, text_at
from planner.control.cluster.transport import Answer, Call

__all__ = ["MemoryCluster"]

_ALL: Final = tuple(each for each in vars(kinds).values() if isinstance(each, Kind))
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_Key = tuple[str, str, str, str]


class MemoryCluster:
    """A transport that is the cluster.

    Args:
        objects: that there are at first, each with its kind.
        served: kinds that it knows; others are not found, as those of a CRD that is not installed.
        version: of Kubernetes that it says it is.
        denied: verb and resource of what RBAC forbids, e.g. ``("patch", "deployments/scale")``.
        before: is asked before each call; an answer, or a fault that it raises, stands in place of the cluster's.
    """

    def __init__(
        self,
        objects: Iterable[Mapping[str, Any]] = (),
        *,
        served: Iterable[Kind] = _ALL,
        version: str = "1.30",
        denied: Collection[tuple[str, str]] = (),
        before: Callable[[Call], Answer | None] = lambda _: None,
    ) -> None:
        self._kinds = {(kind.group, kind.plural): kind for kind in served}
        self._objects: dict[_Key, dict[str, Any]] = {}
        self._version = 0
        self._says = dict(zip(("major", "minor"), version.split("."), strict=False))
        self.denied = set(denied)
        self.before = before
        self.calls: list[Call] = []
        self.writes: list[Call] = []
        for each in objects:
            kind = self._kind_of(each)
            self._keep(
                (
                    kind.group,
                    kind.plural,
                    text_at(each, "metadata", "namespace"),
                    text_at(each, "metadata", "name"),
                ),
                each,
            )

    def _kind_of(self, thing: Mapping[str, Any]) -> Kind:
        """The kind that an object says it is of; where several groups have one of that name, its own counts."""
        named = [kind for kind in self._kinds.values() if kind.name == thing["kind"]]
        group = str(thing.get("apiVersion", "")).rpartition("/")[0]
        return next((kind for kind in named if kind.group == group), named[0])

    def objects(self) -> tuple[dict[str, Any], ...]:
        """Copies of all objects that there are, by group, kind, namespace and name."""
        return tuple(copy.deepcopy(each) for _, each in sorted(self._objects.items()))

    def call(self, call: Call) -> Answer:
        """See :class:`planner.control.cluster.transport.Transport`."""
        self.calls.append(call)
        return self.before(call) or self._answered(call)

    def stream(self, call: Call) -> Iterator[bytes]:
        """See :class:`planner.control.cluster.transport.Transport`; nothing ever comes."""
        self.calls.append(call)
        return iter(())

    def _answered(self, call: Call) -> Answer:
        if call.path == "/version":
            return _good(self._says)
        group, *rest = _parts(call.path)
        if not rest:
            versions = {
                version for (one, _), kind in self._kinds.items() if one == group for version in kind.versions
            }
            found = [{"version": version} for version in sorted(versions)]
            return _good({"versions": found}) if found else _bad(404, f"there is no group {group}")
        namespace, plural, name, subresource = rest
        if plural == "selfsubjectaccessreviews":
            return self._reviewed(call)
        if (group, plural) not in self._kinds:
            return _bad(404, "the server could not find the requested resource")
        verb = _VERBS.get(call.method) or ("get" if name else "list")
        resource = f"{plural}/{subresource}" if subresource else plural
        if (verb, resource) in self.denied:
            return _bad(403, f'{resource} is forbidden: User "fake" cannot {verb} resource')
        return self._allowed((group, plural, namespace, name), subresource, verb, call)

    def _allowed(self, key: _Key, subresource: str, verb: str, call: Call) -> Answer:
        if verb == "list":
            return self._listed(key, call)
        return self._read(key, subresource) if verb == "get" else self._written(key, subresource, verb, call)

    def _reviewed(self, call: Call) -> Answer:
        """Whether something is not among what was denied."""
        asked = at(json.loads(call.body or b"{}"), "spec", "resourceAttributes")
        parts = [text_at(asked, name) for name in ("resource", "subresource")]
        denied = (text_at(asked, "verb"), "/".join(filter(None, parts))) in self.denied
        return _good({"status": {"allowed": not denied}})

    def _listed(self, key: _Key, call: Call) -> Answer:
        wanted = dict(
            pair.split("=", 1) for pair in call.query.get("labelSelector", "").split(",") if "=" in pair
        )
        items = [
            thing
            for one, thing in sorted(self._objects.items())
            if one[:2] == key[:2] and key[2] in {"", one[2]} and wanted.items() <= labels_of(thing).items()
        ]
        return _good({"items": items, "metadata": {"resourceVersion": str(self._version)}})

    def _read(self, key: _Key, subresource: str) -> Answer:
        found = self._objects.get(key)
        if found is None:
            return _bad(404, f'{key[1]} "{key[3]}" not found')
        return _good(_scale_of(found) if subresource == "scale" else found)

    def _written(self, key: _Key, subresource: str, verb: str, call: Call) -> Answer:
        change = mapping_of(json.loads(call.body or b"{}"))
        key = (*key[:3], key[3] or text_at(change, "metadata", "name"))
        found = self._objects.get(key)
        apply = call.content_type.startswith("application/apply")
        if verb == "create" and found is not None:
            return _bad(409, f'{key[1]} "{key[3]}" already exists', "AlreadyExists")
        if found is None and verb != "create" and not apply:
            return _bad(404, f'{key[1]} "{key[3]}" not found')
        version = text_at(change, "metadata", "resourceVersion")
        if found is not None and version and version != text_at(found, "metadata", "resourceVersion"):
            return _bad(
                409,
                "the object has been modified; please apply your changes to the latest version",
                "Conflict",
            )
        dry = "dryRun" in call.query
        if not dry:
            self.writes.append(call)
        if verb == "delete":
            if not dry:
                del self._objects[key]
            return _good({"kind": "Status", "status": "Success"})
        whole = (
            dict(change) if verb in {"create", "update"} and not subresource else _merged(found or {}, change)
        )
        kept = whole if dry else self._keep(key, whole)
        return _good(_scale_of(kept) if subresource == "scale" else kept)

    def _keep(self, key: _Key, thing: Mapping[str, Any]) -> dict[str, Any]:
        self._version += 1
        kept: dict[str, Any] = copy.deepcopy(dict(thing))
        identity = {"name": key[3], "resourceVersion": str(self._version)} | (
            {"namespace": key[2]} if key[2] else {}
        )
        kept["metadata"] = {**mapping_of(kept.get("metadata")), **identity}
        kind = self._kinds[key[:2]]
        kept = {"apiVersion": kind.api_version(), **kept, "kind": kind.name}
        self._objects[key] = kept
        return kept


def _parts(path: str) -> tuple[str, ...]:
    """Group, and where the path leads further: namespace, plural, name and subresource."""
    root, *rest = (unquote(part) for part in path.strip("/").split("/"))
    group = "" if root == "api" else rest.pop(0)
    if not rest:
        return (group,)
    del rest[0]
    # Namespaces are objects too: only a third part makes the second one a place.
    inside = rest[0] == "namespaces" and len(rest) > 2  # noqa: PLR2004
    namespace, rest = (rest[1], rest[2:]) if inside else ("", rest)
    plural, name, subresource = [*rest, "", ""][:3]
    return (group, namespace, plural, name, subresource)


def _scale_of(thing: Mapping[str, Any]) -> dict[str, Any]:
    replicas = at(thing, "spec", "replicas")
    return {
        "kind": "Scale",
        "metadata": thing["metadata"],
        "spec": {"replicas": 1 if replicas is None else replicas},
        "status": {"replicas": at(thing, "status", "replicas") or 0},
    }


def _merged(thing: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch (RFC 7396): nothing removes, mappings merge, everything else replaces."""
    made = dict(thing)
    for key, value in change.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = _merged(mapping_of(made.get(key)), value) if isinstance(value, dict) else value
    return made


def _good(thing: Mapping[str, Any]) -> Answer:
    return Answer(200, {}, json.dumps(thing).encode())


def _bad(status: int, message: str, reason: str = "") -> Answer:
    return Answer(status, {}, json.dumps({"kind": "Status", "message": message, "reason": reason}).encode())
