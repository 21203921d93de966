"""What a metrics source is told, and how it is refused: every problem at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from pydantic import Field, StringConstraints, ValidationError

from models.ids import Name
from models.value import Value
from planner.errors import ConfigurationError, Finding, allowed_by, nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["LABEL_PATTERN", "LabelName", "LabelNames", "options_of"]

LABEL_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"
LabelName = Annotated[str, StringConstraints(pattern=LABEL_PATTERN)]
_SECRETS: Final = ("token", "password", "secret", "key")
_USER: Final = re.compile(r"//[^/]*@")
"""Who an address is read as, with a password."""
_Options = TypeVar("_Options", bound=Value)


class LabelNames(Value):
    """How the scrape calls what series are from; operators that relabel say so here."""

    namespace: LabelName = Field("namespace", description="label with the namespace of the pod")
    pod: LabelName = Field("pod", description="label with the name of the pod")
    instance: LabelName = Field("instance", description="label with the address that is scraped")
    variant: LabelName = Field("llm_d_ai_variant", description="label with the name of the variant")
    cluster: LabelName | None = Field(
        None, description="label with the name of the cluster; None: there is only one"
    )
    cluster_name: Name | None = Field(None, description="name of the cluster that is read; None: not named")


def options_of(kind: type[_Options], source: str, raw: Mapping[str, object]) -> _Options:
    """The options of a source.

    Args:
        kind: what they are to be.
        source: its name, for messages.
        raw: as configured.

    Raises:
        ConfigurationError: lists everything that is wrong, and never what a secret holds.
    """
    try:
        return kind.model_validate(dict(raw))
    except ValidationError as cause:
        findings = [
            Finding(
                file="",
                line=None,
                path=".".join((source, *(str(part) for part in fault["loc"]))),
                found=_USER.sub("//…@", _found(fault, str(fault["loc"][-1]) if fault["loc"] else "")),
                allowed=allowed_by(fault),
                suggestion=nearest(str(fault["loc"][-1]), kind.model_fields)
                if fault["type"] == "extra_forbidden"
                else None,
            )
            for fault in cause.errors(include_url=False)
        ]
    raise ConfigurationError.from_findings(findings)


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
