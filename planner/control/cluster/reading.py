"""Reading objects that others wrote: whatever is not what it should be reads as if it were absent."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from planner.control.cluster.kinds import GROUP_NAME, LEADER_WORKER_SETS

__all__ = [
    "Object",
    "annotations_of",
    "as_name",
    "as_time",
    "at",
    "controller_of",
    "count_at",
    "is_ending",
    "is_finished",
    "is_ready",
    "items_of",
    "labels_of",
    "mapping_of",
    "name_of",
    "namespace_of",
    "pod_selector",
    "scaled_by",
    "text_at",
    "texts_of",
    "version_of",
]

Object = Mapping[str, Any]
"""An object as JSON has it."""

_MOST: Final = 10**9
_LONGEST: Final = 4096
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_NOTHING: Final[Mapping[str, Any]] = {}
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._:/@#+-]+")


def mapping_of(value: object) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else _NOTHING


def at(value: object, *path: str) -> Any:  # noqa: ANN401 - anything may stand there
    """What stands at a path of keys; None: nothing, or something on the way is no mapping."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def items_of(value: object) -> Iterator[Mapping[str, Any]]:
    """The mappings of a list; others are left out."""
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield each


def text_at(value: object, *path: str, longest: int = _LONGEST) -> str:
    """The text at a path; empty where there is none, it is no text, or longer than any is."""
    found = at(value, *path)
    return found if isinstance(found, str) and len(found) <= longest else ""


def count_at(value: object, *path: str) -> int | None:
    """The whole number from 0 at a path; None where there is none."""
    found = at(value, *path)
    if isinstance(found, float) and math.isfinite(found) and found == int(found):
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= _MOST:
        return None
    return found


def texts_of(value: object) -> dict[str, str]:
    """The entries of a mapping whose values are texts, as labels and annotations are."""
    return {str(key): each for key, each in mapping_of(value).items() if isinstance(each, str)}


def name_of(thing: Object) -> str:
    """``metadata.name``."""
    return text_at(thing, "metadata", "name", longest=253)


def namespace_of(thing: Object) -> str:
    """``metadata.namespace``; empty for what belongs to the cluster."""
    return text_at(thing, "metadata", "namespace", longest=253)


def labels_of(thing: Object) -> dict[str, str]:
    """``metadata.labels``."""
    return texts_of(at(thing, "metadata", "labels"))


def annotations_of(thing: Object) -> dict[str, str]:
    """``metadata.annotations``."""
    return texts_of(at(thing, "metadata", "annotations"))


def controller_of(thing: Object) -> tuple[str, str] | None:
    """Kind and name of the owner that controls an object; None: nobody does."""
    for owner in items_of(at(thing, "metadata", "ownerReferences")):
        if owner.get("controller") is True:
            kind, name = text_at(owner, "kind"), text_at(owner, "name")
            return (kind, name) if kind and name else None
    return None


def is_ready(thing: Object, condition: str = "Ready") -> bool:
    """Whether the condition ``Ready`` of a node or a pod holds, or another one of it."""
    conditions = items_of(at(thing, "status", "conditions"))
    return any(
        text_at(each, "type") == condition and text_at(each, "status") == "True" for each in conditions
    )


def is_ending(thing: Object) -> bool:
    """Whether somebody deleted it, and it is not gone yet."""
    return bool(at(thing, "metadata", "deletionTimestamp"))


def version_of(thing: Object) -> dict[str, str]:
    """Metadata for a change, so that one that changed since is refused, and one that is gone not taken for another of its name."""
    found = {key: text_at(thing, "metadata", key) for key in ("resourceVersion", "uid")}
    return {key: each for key, each in found.items() if each}


def is_finished(pod: Object) -> bool:
    """Whether all of a pod has ended, so that it holds nothing any more."""
    return text_at(pod, "status", "phase") in _FINISHED


def scaled_by(scaler: Object) -> tuple[str, str]:
    """Kind and name of what an HPA or a ScaledObject scales; a Deployment where it names no kind."""
    reference = at(scaler, "spec", "scaleTargetRef")
    return text_at(reference, "kind") or "Deployment", text_at(reference, "name", longest=253)


def pod_selector(workload: Object, kind: str) -> str:
    """The selector of a workload's pods as a query has it; empty: it does not say which are its own.

    Args:
        workload: that was read.
        kind: of it.
    """
    if kind == LEADER_WORKER_SETS.name:
        return f"{GROUP_NAME}={name_of(workload)}"
    selector = at(workload, "spec", "selector")
    parts = [f"{key}={value}" for key, value in texts_of(at(selector, "matchLabels")).items()]
    for each in items_of(at(selector, "matchExpressions")):
        key, values = text_at(each, "key"), each.get("values")
        listed = ",".join(map(str, values)) if isinstance(values, list) else ""
        match text_at(each, "operator"):
            case "In":
                parts.append(f"{key} in ({listed})")
            case "NotIn":
                parts.append(f"{key} notin ({listed})")
            case "Exists":
                parts.append(key)
            case "DoesNotExist":
                parts.append(f"!{key}")
            case _:
                continue
    return ",".join(parts)


def as_time(unix_s: float) -> str:
    """A moment as objects hold it, to the second, e.g. of a condition.

    Args:
        unix_s: seconds of the epoch.
    """
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def as_name(text: str, otherwise: str) -> str:
    """A text of others as a :data:`models.ids.Name`; ``otherwise`` where nothing of it can be in one."""
    return _NOT_IN_A_NAME.sub("-", text).lstrip("._:/@#+-")[:253] or otherwise
