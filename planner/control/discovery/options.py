"""What a discovery is told, and how it is refused: every problem at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import ValidationError

from models.value import Value
from planner.errors import ConfigurationError, Finding, allowed_by, nearest

__all__ = ["options_of"]

_Options = TypeVar("_Options", bound=Value)


def options_of(kind: type[_Options], discovery: str, raw: Mapping[str, object]) -> _Options:
    """The options of a discovery.

    Args:
        kind: what they are to be.
        discovery: its name, for messages.
        raw: as configured.

    Raises:
        ConfigurationError: lists everything that is wrong.
    """
    try:
        return kind.model_validate(dict(raw))
    except ValidationError as cause:
        faults = cause.errors(include_url=False)
    findings = []
    for fault in faults:
        name = str(fault["loc"][-1]) if fault["loc"] else ""
        unknown = fault["type"] == "extra_forbidden"
        found = (
            f"unknown key {name!r}"
            if unknown
            else "nothing"
            if fault["type"] == "missing"
            else repr(fault["input"])[:200]
        )
        suggestion = nearest(name, kind.model_fields) if unknown and len(fault["loc"]) == 1 else None
        path = ".".join((discovery, *map(str, fault["loc"])))
        findings.append(Finding("", None, path, found, "" if unknown else allowed_by(fault), suggestion))
    raise ConfigurationError.from_findings(findings)
