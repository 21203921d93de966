"""Fields of a ``config.json``, read one by one; whatever is wrong joins one list of findings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from planner.errors import ConfigurationError, Finding

__all__ = ["LAYERS", "Config", "read_config", "read_json"]

LAYERS: Final = "num_hidden_layers"
"""The field that says how many layers there are."""

_NOTHING: Final = "nothing"

_MOST_BYTES: Final = 32 * 2**20
_MOST: Final = 10**9


def read_json(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds.

    Raises:
        ConfigurationError: there is no such file, it is too large, no JSON, or no object.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise _refusal(path, "a file of more than 32 MiB", "a configuration")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as cause:
        raise _refusal(path, cause.strerror or "an unreadable file", "a readable file") from cause
    except UnicodeDecodeError as cause:
        raise _refusal(path, "text that is not UTF-8", "UTF-8 text") from cause
    try:
        data = json.loads(text)
    except json.JSONDecodeError as cause:
        raise ConfigurationError.from_findings(
            [Finding(str(path), cause.lineno, "", cause.msg, allowed="JSON")]
        ) from cause
    except (ValueError, RecursionError) as cause:
        raise _refusal(path, "JSON that cannot be read", "JSON") from cause
    if not isinstance(data, dict):
        raise _refusal(path, _kind(data), "an object")
    return data


def read_config(path: Path) -> Config:
    """The configuration in a file.

    Raises:
        ConfigurationError: as :func:`read_json`.
    """
    return Config(str(path), read_json(path), [])


class Config:
    """One object of a configuration.

    A wrong value is a finding and reads as if it were missing, so that reading goes on and finds the rest.

    Args:
        file: as the user named it.
        data: what the object holds.
        findings: takes what is wrong; shared with the objects inside.
        path: of the object in the document.
    """

    def __init__(self, file: str, data: Mapping[str, Any], findings: list[Finding], path: str = "") -> None:
        self.file = file
        self.data = data
        self.findings = findings
        self.path = path

    def find(
        self,
        name: str,
        found: str,
        *,
        allowed: str,
        suggestion: str | None = None,
        follows: Sequence[str] = (),
    ) -> None:
        """Note that something is wrong with a field; one value is complained about once, and not as missing too.

        ``follows`` are other fields that this was judged by: where one of them is wrong, nothing is known of this one.
        """
        where, others = self._place(name), {self._place(each) for each in follows}
        known = any(
            each.path in others or (each.path == where and found in {each.found, _NOTHING})
            for each in self.findings
        )
        if not known:
            self.findings.append(Finding(self.file, None, where, found, allowed, suggestion))

    def _place(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path and name else self.path or name

    def count(self, *names: str, least: int = 1, most: int = _MOST) -> int | None:
        """The first of these fields that is there and not null; None: none of them."""
        name = self._first(names)
        if name is None:
            return None
        value = self.data[name]
        whole = isinstance(value, int) or (
            isinstance(value, float) and math.isfinite(value) and value == int(value)
        )
        if isinstance(value, bool) or not whole or not least <= value <= most:
            self.find(name, _shown(value), allowed=f"a whole number from {least} to {most:,}")
            return None
        return int(value)

    def need(self, *names: str, most: int = _MOST) -> int:
        """As :meth:`count`; a missing field is a finding and reads as 1."""
        if self._first(names) is None:
            self.find(names[0], _NOTHING, allowed="a whole number; this field is needed")
        return self.count(*names, most=most) or 1

    def flag(self, name: str, default: bool) -> bool:
        """True or false; ``default`` where it is missing or null."""
        value = self.data.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.find(name, _shown(value), allowed="true or false")
            return default
        return value

    def text(self, *names: str) -> str | None:
        """The first of these fields that is there, as a text; None: none of them."""
        name = self._first(names)
        if name is None:
            return None
        value = self.data[name]
        if not isinstance(value, str):
            self.find(name, _shown(value), allowed="a text")
            return None
        return value

    def items(self, name: str, length: int | None = None) -> Sequence[Any] | None:
        """A list, of ``length`` items where that is given; None: it is missing."""
        value = self.data.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            self.find(name, _shown(value), allowed="a list")
            return None
        if length is not None and len(value) != length:
            allowed = f"{length}, one for each layer"
            self.find(name, f"{len(value)} items", allowed=allowed, follows=(LAYERS,))
            return None
        return value

    def words(self, name: str, length: int | None = None) -> tuple[str, ...] | None:
        """A list of texts; None: it is missing."""
        items = self.items(name, length)
        if items is None:
            return None
        wrong = next((item for item in items if not isinstance(item, str)), None)
        if wrong is not None:
            self.find(name, _shown(wrong), allowed="texts")
            return None
        return tuple(items)

    def inner(self, *names: str) -> Config | None:
        """The object under the first of these fields that is there; None: none of them."""
        name = self._first(names)
        if name is None:
            return None
        value = self.data[name]
        if not isinstance(value, dict):
            self.find(name, _shown(value), allowed="an object")
            return None
        path = f"{self.path}.{name}" if self.path else name
        return Config(self.file, value, self.findings, path)

    def has(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return self.data.get(name) is not None

    def _first(self, names: Sequence[str]) -> str | None:
        return next((name for name in names if self.has(name)), None)


def _refusal(path: Path, found: str, allowed: str) -> ConfigurationError:
    return ConfigurationError.from_findings([Finding(str(path), None, "", found, allowed=allowed)])


def _shown(value: object) -> str:
    text = _kind(value) if isinstance(value, dict | list) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - a line of a message


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return f"an object of {len(value)} fields"
    return f"a list of {len(value)} items" if isinstance(value, list) else _shown(value)
