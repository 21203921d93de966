"""What the scheduler looks at: amounts that a pod asks for, taints it tolerates, nodes it selects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from planner.control.cluster.quantities import whole
from planner.control.cluster.reading import at, items_of, mapping_of, text_at, texts_of

__all__ = ["amounts_of", "requests_of", "selector_labels", "selects", "tolerates"]

_BARRING: Final = frozenset({"NoSchedule", "NoExecute"})


def amounts_of(value: object) -> dict[str, int]:
    """Counts by extended resource; cpu, memory and what is no count are left out."""
    found = {str(name): whole(each) for name, each in mapping_of(value).items() if "/" in str(name)}
    return {name: each for name, each in found.items() if each is not None}


def requests_of(pod_spec: object) -> dict[str, int]:
    """Devices that a pod holds while it runs.

    Containers run together and add up; init containers run before them, one after another, beside the sidecars
    (init containers that restart always) that were started before; the larger of the two counts.

    Source: Kubernetes, "Sidecar containers", resource sharing within containers.
    """
    together: dict[str, int] = {}
    for container in items_of(at(pod_spec, "containers")):
        _add(together, _asked(container))
    sidecars: dict[str, int] = {}
    before: dict[str, int] = {}
    for container in items_of(at(pod_spec, "initContainers")):
        asked = _asked(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, asked)
            asked = {}
        _raise(before, {name: asked.get(name, 0) + sidecars.get(name, 0) for name in {*asked, *sidecars}})
    _add(together, sidecars)
    _raise(together, before)
    return {name: each for name, each in together.items() if each > 0}


def _asked(container: Mapping[str, Any]) -> dict[str, int]:
    """Devices cannot be overcommitted: requests are limits, and where only one is written it stands for both."""
    resources = container.get("resources")
    return amounts_of(at(resources, "limits")) | amounts_of(at(resources, "requests"))


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, each in more.items():
        total[name] = total.get(name, 0) + each


def _raise(total: dict[str, int], least: Mapping[str, int]) -> None:
    for name, each in least.items():
        total[name] = max(total.get(name, 0), each)


def tolerates(tolerations: Iterable[Mapping[str, Any]], taint: Mapping[str, Any]) -> bool:
    """Whether a pod with these tolerations may be put on a node with this taint."""
    effect = text_at(taint, "effect")
    return effect not in _BARRING or any(_matches(each, taint, effect) for each in tolerations)


def _matches(toleration: Mapping[str, Any], taint: Mapping[str, Any], effect: str) -> bool:
    if text_at(toleration, "effect") not in {"", effect}:
        return False
    key, exists = text_at(toleration, "key"), text_at(toleration, "operator") == "Exists"
    if not key:
        return exists
    return key == text_at(taint, "key") and (
        exists or text_at(toleration, "value") == text_at(taint, "value")
    )


def selector_labels(pod_spec: object) -> dict[str, str]:
    """Labels that the node of a pod must have: of its selector, and those with one value in every term of its affinity."""
    found = texts_of(at(pod_spec, "nodeSelector"))
    terms = [_only_values(term) for term in _terms(pod_spec)]
    for key in set(terms[0]).intersection(*terms[1:]) if terms else ():
        values = {term[key] for term in terms}
        if len(values) == 1:
            found.setdefault(key, values.pop())
    return found


def _terms(pod_spec: object) -> list[Mapping[str, Any]]:
    required = at(pod_spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return list(items_of(at(required, "nodeSelectorTerms")))


def _only_values(term: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in items_of(term.get("matchExpressions")):
        values = row.get("values")
        one = isinstance(values, list) and len(values) == 1 and isinstance(values[0], str)
        if text_at(row, "operator") == "In" and one and isinstance(values, list):
            found[text_at(row, "key")] = values[0]
    return found


def selects(pod_spec: object, name: str, labels: Mapping[str, str]) -> bool:
    """Whether selector and required affinity of a pod allow a node.

    Args:
        pod_spec: of the pod.
        name: of the node.
        labels: of the node.
    """
    selector = at(pod_spec, "nodeSelector")
    if selector and any(labels.get(key) != value for key, value in texts_of(selector).items()):
        return False
    terms = _terms(pod_spec)
    return not terms or any(_term_holds(term, name, labels) for term in terms)


def _term_holds(term: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    rows = [*items_of(term.get("matchExpressions")), *items_of(term.get("matchFields"))]
    named = {**labels, "metadata.name": name}
    return bool(rows) and all(_row_holds(row, named) for row in rows)


def _row_holds(row: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    given = row.get("values")
    values = [each for each in given if isinstance(each, str)] if isinstance(given, list) else []
    value, operator = labels.get(text_at(row, "key")), text_at(row, "operator")
    simple = {
        "In": value in values, "NotIn": value not in values, "Exists": value is not None, "DoesNotExist": value is None,
    }  # fmt: skip
    if operator in simple:
        return simple[operator]
    left, right = whole(value), whole(values[0]) if values else None
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right
