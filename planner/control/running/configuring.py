"""Layers of settings -> the settings of a controller, or everything that is wrong with them in one message."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Union, get_args, get_origin

from pydantic import ValidationError

from models.controller import ControllerSettings
from models.value import Value
from planner.control.deciding.people_hours import unknown_zone
from planner.control.running.layering import ENVIRONMENT, Layer, merged
from planner.errors import ConfigurationError, Finding, allowed_by, nearest
from planner.scenario.tree import Complaints, Entry

__all__ = ["Configuration", "Setting", "configured", "shown_value"]

_SECRETS: Final = ("token", "password", "secret", "api_key", "credential")
_USER: Final = re.compile(r"//[^/@\s]*@")
_HIDDEN: Final = "(hidden)"


@dataclass(frozen=True, slots=True)
class Setting:
    """One value and where it is from.

    Attributes:
        path: ``rules.tau_kv``.
        value: as JSON has it; secrets are hidden.
        origin: ``default``, a flag, a variable, a file with line, a ConfigMap.
    """

    path: str
    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings that are valid, and the entries they were made of.

    Attributes:
        settings: of the controller.
        document: entries of all layers, merged.
    """

    settings: ControllerSettings
    document: Entry

    def values(self) -> tuple[Setting, ...]:
        """Every value with its origin, in the order of the settings."""
        return tuple(_rows(self.settings.model_dump(mode="json"), self.document, ""))


def configured(layers: Sequence[Layer], complaints: Complaints | None = None) -> Configuration:
    """The settings that layers make.

    Args:
        layers: the least important first.
        complaints: what was found wrong while they were read.

    Raises:
        ConfigurationError: lists everything that is wrong with any of them, with its place.
    """
    document = merged(layer.entry for layer in layers)
    found = complaints or Complaints()
    settings = None
    try:
        settings = ControllerSettings.model_validate(document.plain())
    except ValidationError as cause:
        for fault in cause.errors(include_url=False):
            found.add(_finding(fault, document))
    if settings is not None:
        _check_zones(settings, document, found)
    if found.findings or settings is None:
        # Outside the handler: what pydantic raised holds the values.
        raise ConfigurationError.from_findings(found.in_order())
    return Configuration(settings, document)


def _check_zones(settings: ControllerSettings, document: Entry, complaints: Complaints) -> None:
    """Time zones are data of the machine, which values do not look at."""
    for name in ("change_windows", "freezes"):
        for place, window in enumerate(getattr(settings, name)):
            wrong = unknown_zone(window.zone)
            if wrong is not None:
                entry = document.fields[name].items[place]
                allowed, _, hint = wrong.partition("; ")
                found = f"{window.zone!r}: {allowed}"
                complaints.add(
                    Finding(entry.file, _line(entry), f"{name}[{place}].zone", found, hint or "a time zone")
                )


def shown_value(path: str, value: object) -> Any:  # noqa: ANN401 - any value of settings
    """A value as it may be shown: without secrets, however deep they are."""
    if isinstance(value, Mapping):
        return {str(key): shown_value(str(key), each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [shown_value(path, each) for each in value]
    if value not in (None, "") and _is_secret(path):
        return _HIDDEN
    return _USER.sub("//…@", value) if isinstance(value, str) else value


def _is_secret(path: str) -> bool:
    name = path.rpartition(".")[2].casefold()
    return any(word in name for word in _SECRETS) and not name.endswith("_file")


def _rows(value: object, entry: Entry | None, path: str) -> Iterator[Setting]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            below = entry.fields.get(key) if entry is not None else None
            yield from _rows(each, below, f"{path}.{key}" if path else key)
        return
    yield Setting(path, shown_value(path, value), _origin(entry))


def _origin(entry: Entry | None) -> str:
    if entry is None or not entry.file:
        return "default"
    line = _line(entry)
    return entry.file if line is None else f"{entry.file}:{line}"


def _line(entry: Entry) -> int | None:
    """Line of a file; variables and flags have none."""
    return None if entry.file.startswith((ENVIRONMENT, "--")) else entry.line


def _finding(fault: Mapping[str, Any], document: Entry) -> Finding:
    steps = [str(step) if isinstance(step, str) else step for step in fault["loc"]]
    entry, path = document, ""
    for step in steps:
        inner = _inside(entry, step)
        if inner is None:
            break
        entry = inner
    path = _written(steps)
    kind = str(fault["type"])
    if kind == "extra_forbidden":
        name = str(steps[-1])
        return Finding(
            entry.file,
            entry.line,
            path,
            f"unknown setting {name[:100]!r}",
            "",
            nearest(name, _names_at(steps[:-1])),
        )
    if kind == "value_error":
        found, _, allowed = str(fault["msg"]).removeprefix("Value error, ").partition("; allowed: ")
        return Finding(entry.file, _line(entry), path, found.removeprefix("found "), allowed)
    if kind == "missing":
        return Finding(entry.file, _line(entry), path, "nothing", "a value")
    found = _HIDDEN if _is_secret(path) else _USER.sub("//…@", entry.phrase())
    return Finding(entry.file, _line(entry), path, found, allowed_by(fault))


def _inside(entry: Entry, step: str | int) -> Entry | None:
    if isinstance(step, int):
        return entry.items[step] if step < len(entry.items) else None
    return entry.fields.get(step)


def _written(steps: Sequence[str | int]) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text[:300]


def _names_at(steps: Sequence[str | int]) -> tuple[str, ...]:
    """Names of the settings under a path."""
    kind: type[Value] | None = ControllerSettings
    for step in steps:
        if kind is None or isinstance(step, int):
            continue
        field = kind.model_fields.get(step)
        kind = None if field is None else _value_in(field.annotation)
    return () if kind is None else tuple(kind.model_fields)


def _value_in(annotation: Any) -> type[Value] | None:  # noqa: ANN401 - any annotation
    """The kind of value that an annotation holds: itself, one of a union, or the item of a tuple."""
    if isinstance(annotation, type) and issubclass(annotation, Value):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, tuple):
        found = (_value_in(each) for each in get_args(annotation))
        return next((each for each in found if each is not None), None)
    return None
