"""What a plug-in of the control plane is told, and how it is refused: every problem at once, and no secret shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import ValidationError

from models.value import Value
from planner.errors import ConfigurationError, Finding, allowed_by, nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["options_of"]

_SECRETS: Final = ("token", "password", "secret", "_key")
_USER: Final = re.compile(r"//[^/]*@")
"""Who an address is read as, with a password."""
_Options = TypeVar("_Options", bound=Value)


def options_of(kind: type[_Options], plugin: str, raw: Mapping[str, object]) -> _Options:
    """The options of a metrics source or a discovery.

    Args:
        kind: what they are to be.
        plugin: its name, for messages.
        raw: as configured.

    Raises:
        ConfigurationError: lists everything that is wrong, and never what a secret holds.
    """
    try:
        return kind.model_validate(dict(raw))
    except ValidationError as cause:
        findings = [_finding(fault, plugin, kind) for fault in cause.errors(include_url=False)]
    # Outside the handler: what pydantic raised holds the values.
    raise ConfigurationError.from_findings(findings)


def _finding(fault: ErrorDetails, plugin: str, kind: type[Value]) -> Finding:
    where = [str(part) for part in fault["loc"]]
    name, unknown = where[-1] if where else "", fault["type"] == "extra_forbidden"
    return Finding(
        file="",
        line=None,
        path=".".join((plugin, *where)),
        found=_USER.sub("//…@", _found(fault, name)),
        allowed="" if unknown else allowed_by(fault),
        suggestion=nearest(name, kind.model_fields) if unknown and len(where) == 1 else None,
    )


def _found(fault: ErrorDetails, name: str) -> str:
    """What was found, without what secrets hold."""
    kind, value = fault["type"], fault["input"]
    if kind == "missing":
        return "nothing"
    if kind == "extra_forbidden":
        return f"unknown key {name!r}"
    if kind == "value_error":
        return fault["msg"].removeprefix("Value error, ").partition("; allowed: ")[0]
    if any(word in name for word in _SECRETS) or isinstance(value, Mapping):
        return "a value that is not shown"
    return repr(value)[:200]
