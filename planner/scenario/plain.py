"""Bare values -> a tree of entries, for documents that were edited as values and never were a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.scenario.tree import Entry

__all__ = ["entry_of"]


def entry_of(value: Any, *, path: str = "") -> Entry:  # noqa: ANN401 - any document
    """The tree of a bare value; items of lists are called by their id where they have one.

    Args:
        value: mappings, sequences and scalars.
        path: of the value, for findings.
    """
    if isinstance(value, Mapping):
        fields = {str(key): entry_of(item, path=_below(path, str(key))) for key, item in value.items()}
        return Entry(fields, "", None, path)
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = (entry_of(item, path=_item_path(path, item, index)) for index, item in enumerate(value))
        return Entry(tuple(items), "", None, path)
    return Entry(value, "", None, path, "" if isinstance(value, str | None) else str(value))


def _item_path(path: str, item: object, index: int) -> str:
    name = item.get("id") if isinstance(item, Mapping) else None
    return _below(path, name) if isinstance(name, str) and name else f"{path}[{index}]"


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
