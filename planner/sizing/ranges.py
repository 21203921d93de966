"""Figures that sizing multiplies may leave the range of their unit although each factor is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from pydantic import ValidationError

from planner.errors import ConfigurationError, Finding

__all__ = ["products_in_range"]

_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_BOUNDS: Final = {"less_than_equal": ("le", "at most"), "greater_than_equal": ("ge", "at least")}


@contextmanager
def products_in_range() -> Iterator[None]:
    """Turn a derived figure that is out of range into a finding; any other refusal is a fault of ours and stays.

    Raises:
        ConfigurationError: a figure is out of range; lists each.
    """
    try:
        yield
    except ValidationError as refusal:
        errors = refusal.errors(include_url=False)
        if any(error["type"] not in _BOUNDS for error in errors):
            raise
        findings = dict.fromkeys(_finding(refusal.title, error) for error in errors)
        raise ConfigurationError.from_findings(findings) from refusal


def _finding(title: str, error: Mapping[str, Any]) -> Finding:
    key, phrase = _BOUNDS[error["type"]]
    field = ".".join(map(str, error["loc"]))
    found = (
        f"figures of which {field} of a {_CAPITAL.sub(' ', title).lower()} comes out as {error['input']:g}"
    )
    return Finding("", None, "", found, f"{phrase} {error['ctx'][key]:.15g}")
