"""Composed YAML -> entries with paths: aliases expanded, merge keys applied, keys checked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from planner.scenario.tree import Complaints, Entry, Scalar

__all__ = ["Raw", "expand"]


@dataclass(slots=True)
class Raw:
    """A composed piece; anchored pieces are shared, so this is a graph without cycles.

    Attributes:
        value: a scalar, or the children of a list; keys and values in turn for a mapping.
        line: line where it starts, from 1.
        mapping: the children are keys and values.
        text: a scalar as written.
        merges: it is the unquoted word ``<<``.
        size: scalars and collections in it, aliases expanded.
        depth: levels of collections in it.
        last_line: line of its last child.
    """

    value: Scalar | list[Raw]
    line: int
    mapping: bool = False
    text: str = ""
    merges: bool = False
    size: int = 1
    depth: int = 0
    last_line: int = 0

    def append(self, child: Raw) -> None:
        """Add a complete child to a collection."""
        if isinstance(self.value, list):
            self.value.append(child)
        self.size += child.size
        self.depth = max(self.depth, child.depth + 1)
        self.last_line = child.line

    @property
    def pairs(self) -> Iterator[tuple[Raw, Raw]]:
        """Keys with their values."""
        children = self.value if isinstance(self.value, list) else []
        return zip(children[::2], children[1::2], strict=True)


def expand(raw: Raw, *, file: str, path: str, complaints: Complaints) -> Entry:
    """The entry for a composed piece; complains about keys and about what is not finite."""
    return _Expansion(file, complaints).entry(raw, path, raw.line)


@dataclass(frozen=True, slots=True)
class _Expansion:
    file: str
    complaints: Complaints

    def entry(self, raw: Raw, path: str, line: int) -> Entry:
        if raw.mapping:
            return Entry(self._fields(raw, path), self.file, line, path)
        if isinstance(raw.value, list):
            items = (self.entry(item, f"{path}[{i}]", item.line) for i, item in enumerate(raw.value))
            return Entry(tuple(items), self.file, line, path)
        entry = Entry(raw.value, self.file, line, path, raw.text)
        if isinstance(raw.value, float) and not math.isfinite(raw.value):
            self.complaints.about(entry, raw.text, allowed="a finite number")
        return entry

    def _fields(self, raw: Raw, path: str) -> dict[str, Entry]:
        fields: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key, value in raw.pairs:
            where = Entry(None, self.file, key.line, path)
            if key.merges:
                merged = self._merged(value, path, where) | merged
            elif not isinstance(key.value, str):
                self._refuse_key(key, where)
            else:
                entry = self.entry(value, f"{path}.{key.value}" if path else key.value, key.line)
                if key.value in fields:
                    self.complaints.about(
                        entry,
                        f"key {key.value!r} twice",
                        allowed=f"once; first on line {fields[key.value].line}",
                    )
                fields.setdefault(key.value, entry)
        return {key: entry for key, entry in merged.items() if key not in fields} | fields

    def _merged(self, value: Raw, path: str, where: Entry) -> dict[str, Entry]:
        sources = [value] if value.mapping else value.value
        if not isinstance(sources, list) or not all(source.mapping for source in sources):
            self.complaints.about(
                where, "'<<' with something else", allowed="an alias of a mapping, or a list of them"
            )
            return {}
        fields: dict[str, Entry] = {}
        for source in sources:
            fields = self._fields(source, path) | fields
        return fields

    def _refuse_key(self, key: Raw, where: Entry) -> None:
        if isinstance(key.value, list):
            self.complaints.about(where, "a list or mapping as key", allowed="a text")
            return
        kinds = {bool: "a truth value", int: "a number", float: "a number"}
        kind = kinds.get(type(key.value), "nothing")
        self.complaints.about(
            where,
            f"key {key.text or 'null'}, which YAML reads as {kind}",
            allowed="a text",
            suggestion=f'"{key.text}"',
        )
