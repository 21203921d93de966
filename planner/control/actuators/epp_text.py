"""The text of an EndpointPickerConfig: what is changed in it at the cap, and how it is put back.

Source: llm-d/llm-d-router, apix/config/v1alpha1 (flow control, priority bands, detectors); the inline thresholds are those
of the gateway-api-inference-extension before detectors were plugins.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from planner.control.actuators.epp_options import CapSettings
from planner.importers.anchors import unfolds

__all__ = ["MOST_BYTES", "Edit", "NotUnderstoodError", "at_cap", "configuration_in", "put_back"]

MOST_BYTES: Final = 64 * 1024
"""Of a configuration: its former text is kept in an annotation, and all annotations have 256 KiB together."""
_KIND: Final = "EndpointPickerConfig"
_DETECTOR: Final = "utilization-detector"
_OF_ROUTER: Final = "llm-d.ai/"
_GATE: Final = "flowControl"
_INLINE: Final = frozenset({"queueDepthThreshold", "kvCacheUtilThreshold"})
Path = tuple[str, ...]


class NotUnderstoodError(Exception):
    """A text that is not changed, since nobody could say what the change would do; one sentence for people."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One value that is changed.

    Attributes:
        path: keys that lead to it; the name of a plugin stands for its place in a list.
        before: as it was; None: it was not there.
        after: as it is at the cap.
    """

    path: Path
    before: Any
    after: Any


def configuration_in(data: Mapping[str, str], key: str | None) -> tuple[str, str]:
    """The key of a ConfigMap that holds the configuration, and the text.

    Raises:
        NotUnderstoodError: there is none, or more than one.
    """
    if key is not None:
        if key not in data:
            raise NotUnderstoodError(f"there is no key {key!r}; there are: {_some(data)}")
        return key, data[key]
    found = [name for name, text in sorted(data.items()) if len(text) <= MOST_BYTES and _is_ours(text)]
    if len(found) != 1:
        many = f"keys {_some(found)} hold one each" if found else "no key holds one"
        raise NotUnderstoodError(f"{many}; name the key of the {_KIND}")
    return found[0], data[found[0]]


def at_cap(text: str, settings: CapSettings) -> tuple[str, tuple[Edit, ...]]:
    """The text with the settings of the cap, and what differs.

    Raises:
        NotUnderstoodError: it is no such configuration, or it does not say which detector it has.
    """
    document = _document(text)
    wanted = _wanted(document, settings)
    for path, _ in wanted:
        if not _leads_on(document, path):
            raise NotUnderstoodError(f"something on the way to its {'.'.join(path)} is no mapping")
    edits = [
        edit
        for path, value in wanted
        if (edit := Edit(path, copy.deepcopy(_get(document, path)), value)).before != value
    ]
    for edit in edits:
        _set(document, edit.path, edit.after)
    return (_dump(document) if edits else text), tuple(edits)


def put_back(text: str, edits: Iterable[Edit]) -> tuple[str, tuple[Edit, ...]]:
    """The text with former values, and the edits that stay because somebody changed the value since.

    Raises:
        NotUnderstoodError: it is no such configuration any more.
    """
    document = _document(text)
    kept = []
    for edit in edits:
        if _leads_on(document, edit.path) and _get(document, edit.path) == edit.after:
            _set(document, edit.path, edit.before)
        else:
            kept.append(edit)
    return _dump(document), tuple(kept)


def _wanted(document: Mapping[str, Any], settings: CapSettings) -> list[tuple[Path, Any]]:
    """Path and value of everything that is to be set."""
    wanted: list[tuple[Path, Any]] = []
    gates = document.get("featureGates")
    if settings.flow_control and not _is_on(gates):
        others = [gate for gate in gates or () if str(gate).partition("=")[0] != _GATE]
        wanted.append((("featureGates",), [*others, _GATE]))
    flow = {
        ("maxRequests",): settings.max_requests and str(settings.max_requests),
        ("maxBytes",): settings.max_bytes,
        ("defaultRequestTTL",): settings.request_ttl_s and _duration(settings.request_ttl_s),
        ("defaultNegativePriorityBand", "maxRequests"): settings.negative_requests and str(settings.negative_requests),
    }  # fmt: skip
    wanted += [(("flowControl", *path), value) for path, value in flow.items() if value]
    thresholds = {"queueDepthThreshold": settings.queue_depth, "kvCacheUtilThreshold": settings.kv_usage}
    stated = {name: value for name, value in thresholds.items() if value is not None}
    return wanted + (_of_detector(document, stated) if stated else [])


def _of_detector(document: Mapping[str, Any], stated: Mapping[str, Any]) -> list[tuple[Path, Any]]:
    """Where the thresholds of saturation stand: parameters of a plugin, or inline as they were before."""
    flow, old = _mapping(document.get("flowControl")), _mapping(document.get("saturationDetector"))
    reference = str(_mapping(flow.get("saturationDetector")).get("pluginRef") or old.get("pluginRef") or "")
    name = reference or _DETECTOR
    plugin = _named(document.get("plugins"), name)
    if plugin is not None:
        if plugin.get("type") != _DETECTOR:
            raise NotUnderstoodError(
                f"its detector {name!r} is a {str(plugin.get('type'))!r:.60}, whose thresholds are not of queues and KV "
                "cache: set queue_depth and kv_usage to null"
            )
        return [(("plugins", name, "parameters", key), value) for key, value in stated.items()]
    if _INLINE & old.keys():
        return [(("saturationDetector", key), value) for key, value in stated.items()]
    if reference in {"", _DETECTOR} and str(document.get("apiVersion")).startswith(_OF_ROUTER):
        return [(("plugins", _DETECTOR), {"type": _DETECTOR, "parameters": dict(stated)})]
    raise NotUnderstoodError(
        f"it names no saturation detector, and its version does not say how: add a plugin of type {_DETECTOR}, or set "
        "queue_depth and kv_usage to null"
    )


def _is_on(gates: object) -> bool:
    listed = [str(each) for each in gates] if isinstance(gates, list) else []
    return _GATE in listed or f"{_GATE}=true" in listed


def _document(text: str) -> dict[str, Any]:
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise NotUnderstoodError(f"it is longer than {MOST_BYTES:,} bytes")
    try:
        # What anchors share is written apart, so that a change in one place stays there.
        found = _apart(_loaded(text))
    except (yaml.YAMLError, RecursionError, ValueError) as cause:
        why = getattr(cause, "problem", None) or type(cause).__name__
        raise NotUnderstoodError(f"it is no YAML ({why[:100]})") from None
    if not isinstance(found, dict) or found.get("kind") != _KIND:
        raise NotUnderstoodError(f"it is no {_KIND}")
    for key, kind in (
        ("plugins", list),
        ("featureGates", list),
        ("flowControl", dict),
        ("saturationDetector", dict),
    ):
        if found.get(key) is not None and not isinstance(found[key], kind):
            raise NotUnderstoodError(f"its {key} is no {'list' if kind is list else 'mapping'}")
    return found


def _loaded(text: str) -> object:
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if unfolds(node, MOST_BYTES):
            raise NotUnderstoodError("its anchors unfold beyond measure")
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _apart(value: Any) -> Any:  # noqa: ANN401 - anything that YAML holds
    if isinstance(value, dict):
        return {key: _apart(each) for key, each in value.items()}
    return [_apart(each) for each in value] if isinstance(value, list) else value


def _is_ours(text: str) -> bool:
    try:
        _document(text)
    except NotUnderstoodError:
        return False
    return True


def _dump(document: Mapping[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, default_flow_style=False, allow_unicode=True, width=120)


def _named(container: object, name: str) -> dict[str, Any] | None:
    """The plugin of a name, which is its type where it has none."""
    for each in container if isinstance(container, list) else ():
        if isinstance(each, dict) and (each.get("name") or each.get("type")) == name:
            return each
    return None


def _get(container: Any, path: Path) -> Any:  # noqa: ANN401 - anything may stand there
    for key in path:
        if isinstance(container, list):
            container = _named(container, key)
        else:
            container = container.get(key) if isinstance(container, dict) else None
    return container


def _leads_on(container: Any, path: Path) -> bool:  # noqa: ANN401 - anything may stand there
    """Whether everything on the way to a value is a mapping, the list of plugins, or not there yet."""
    for place, key in enumerate(path[:-1]):
        container = _named(container, key) if isinstance(container, list) else container.get(key)
        if container is None:
            return True
        if not isinstance(container, list if place == 0 and key == "plugins" else dict):
            return False
    return True


def _set(container: Any, path: Path, value: Any) -> None:  # noqa: ANN401 - anything may stand there
    """Set a value, or remove it where it is None, with what is empty without it."""
    key, rest = path[0], path[1:]
    if isinstance(container, list):
        _set_in_list(container, key, rest, value)
        return
    if rest:
        if not isinstance(container.get(key), dict | list):
            if value is None:
                return
            container[key] = [] if key == "plugins" else {}
        _set(container[key], rest, value)
        if value is None and not container[key]:
            del container[key]
    elif value is None:
        container.pop(key, None)
    else:
        container[key] = copy.deepcopy(value)


def _set_in_list(container: list[Any], name: str, rest: Path, value: Any) -> None:  # noqa: ANN401
    found = _named(container, name)
    if rest and found is not None:
        _set(found, rest, value)
    elif not rest and value is None:
        container[:] = [each for each in container if each is not found]
    elif not rest and found is None:
        container.append(copy.deepcopy(value))
    elif not rest:
        container[next(i for i, each in enumerate(container) if each is found)] = copy.deepcopy(value)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _duration(seconds: float) -> str:
    """As Go reads it."""
    milliseconds = max(1, round(seconds * 1000))
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def _some(names: Iterable[str]) -> str:
    listed: Sequence[str] = sorted(names)
    return ", ".join(each[:100] for each in listed[:5]) + (" …" if len(listed) > 5 else "") or "none"  # noqa: PLR2004
