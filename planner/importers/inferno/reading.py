"""Inferno's files -> one system; whatever is wrong in any of them is told at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from models.value import Value
from planner.errors import ConfigurationError, Finding, nearest
from planner.importers.inferno.documents import Accelerator, Capacity, Perf, Server, ServiceClass, Tuning

__all__ = ["System", "read_system"]

_MOST_BYTES: Final = 64 * 2**20
_LISTS: Final[Mapping[str, tuple[str, type[Value]]]] = {
    "accelerators": ("accelerators", Accelerator),
    "count": ("capacities", Capacity),
    "models": ("perfs", Perf),
    "serviceclasses": ("classes", ServiceClass),
    "servers": ("servers", Server),
}
"""Key of a document (folded): where it goes, and what its items are."""

_OPTIMIZER: Final = "optimizer"
_ANSWERS: Final = "allocations"
"""Inferno's own answer: nothing that is asked for."""

Document = TypeVar("Document", bound=Value)


@dataclass(slots=True)
class System:
    """Everything that the files describe, and where each list was found.

    Attributes:
        accelerators: kinds of accelerators.
        capacities: units by type.
        perfs: models on accelerators.
        classes: promises.
        servers: what is served.
        tuning: flags of the optimizer; None: no file has them.
        origin: file by attribute.
    """

    accelerators: list[Accelerator] = field(default_factory=list)
    capacities: list[Capacity] = field(default_factory=list)
    perfs: list[Perf] = field(default_factory=list)
    classes: list[ServiceClass] = field(default_factory=list)
    servers: list[Server] = field(default_factory=list)
    tuning: Tuning | None = None
    origin: dict[str, str] = field(default_factory=dict)


def read_system(paths: Sequence[Path]) -> System:
    """The system that files describe together; what a file holds is told by its keys, not by its name.

    Raises:
        ConfigurationError: a file is unreadable, is no JSON, holds nothing of Inferno, or has values that cannot be;
            or two files say the same, or one is missing. Lists all of it.
    """
    system, findings = System(), list[Finding]()
    for path in paths:
        data = _json(path, findings)
        if data is not None:
            _take(str(path), data, system, findings)
    findings += _missing(system) if not findings else []
    if findings:
        raise ConfigurationError.from_findings(findings)
    return system


def _missing(system: System) -> list[Finding]:
    needed = [key for key in _LISTS if key != "count" or not (system.tuning and system.tuning.unlimited)]
    return [
        Finding("", None, key, f"no file with {key!r}", allowed=f"a file with {key!r} among those named")
        for key in needed
        if not getattr(system, _LISTS[key][0])
    ]


def _json(path: Path, findings: list[Finding]) -> dict[str, Any] | None:
    """The object of a file with keys folded at every level; None where there is none, which is a finding."""

    def find(found: str, allowed: str, line: int | None = None) -> None:
        findings.append(Finding(str(path), line, "", found, allowed))

    try:
        if path.stat().st_size > _MOST_BYTES:
            find("a file of more than 64 MiB", "a description of a system")
            return None
        data = json.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as cause:
        find(cause.strerror or "an unreadable file", "a readable file")
    except UnicodeDecodeError:
        find("text that is not UTF-8", "UTF-8 text")
    except json.JSONDecodeError as cause:
        find(cause.msg, "JSON", cause.lineno)
    except (ValueError, RecursionError):
        find("JSON that cannot be read", "JSON")
    else:
        if isinstance(data, dict):
            folded: dict[str, Any] = _folded(data)
            return folded
        find("no object", "an object")
    return None


def _folded(data: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(data, dict):
        return {str(key).casefold(): _folded(value) for key, value in data.items()}
    return [_folded(item) for item in data] if isinstance(data, list) else data


def _take(file: str, data: Mapping[str, Any], system: System, findings: list[Finding]) -> None:
    known = [*_LISTS, _OPTIMIZER, _ANSWERS]
    if not set(known) & set(data):
        key = next(iter(data), None)
        found = "an empty object" if key is None else f"the key {key!r} and none that is known"
        near = None if key is None else nearest(key, known)
        findings.append(Finding(file, None, "", found, ", ".join(known), near))
    for key, (target, kind) in _LISTS.items():
        if key not in data:
            continue
        first = system.origin.setdefault(target, file)
        if first != file:
            findings.append(Finding(file, None, key, f"{key!r}, which {first} has too", "each in one file"))
        elif not isinstance(data[key], list):
            findings.append(Finding(file, None, key, "no list", "a list"))
        else:
            getattr(system, target).extend(_items(file, key, data[key], kind, findings=findings))
    if _OPTIMIZER in data:
        system.tuning = next(
            iter(_items(file, _OPTIMIZER, [data[_OPTIMIZER]], Tuning, findings=findings)), None
        )


def _items(
    file: str, key: str, items: Sequence[Any], kind: type[Document], *, findings: list[Finding]
) -> list[Document]:
    made: list[Document] = []
    for i, item in enumerate(items):
        try:
            made.append(kind.model_validate(item))
        except ValidationError as cause:
            for error in cause.errors(include_url=False):
                where = ".".join(str(part) for part in error["loc"])
                raw = error.get("input")
                found = "nothing" if error["type"] == "missing" else _shown(raw)
                path = f"{key}[{i}].{where}" if where else f"{key}[{i}]"
                findings.append(
                    Finding(file, None, path, found, str(error["msg"]).removeprefix("Value error, "))
                )
    return made


def _shown(raw: object) -> str:
    text = repr(raw)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - the width of a line
