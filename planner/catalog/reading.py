"""One YAML file as data, with the line of every value, and with every problem of the text found at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from planner.errors import CatalogError, Finding
from planner.performance.profile import read_text

__all__ = ["Document", "Where", "read_document"]

Where = tuple[str | int, ...]

# The C parser is some ten times faster; a PyYAML built without libyaml lacks it.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Document:
    """Data of one file and where each value stands.

    Attributes:
        file: the file as the user named it.
        data: what the YAML says, in plain mappings, lists and scalars.
        lines: line, from 1, by path of keys and indices.
    """

    file: str
    data: Any
    lines: Mapping[Where, int]

    def finding(
        self, where: Where, found: str, *, allowed: str = "", suggestion: str | None = None
    ) -> Finding:
        """A finding at ``where``, with the line of the nearest value that has one."""
        known = next((where[:end] for end in range(len(where), -1, -1) if where[:end] in self.lines), ())
        return Finding(self.file, self.lines.get(known), dotted(where), found, allowed, suggestion)


def dotted(where: Where) -> str:
    """``H100.aliases[0]`` for ``("H100", "aliases", 0)``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in where)
    return text.removeprefix(".")


def read_document(path: Path) -> Document:
    """Read one YAML file.

    Anchors are refused: a catalog needs none, and a few lines of them can unfold into gigabytes.

    Raises:
        CatalogError: the file cannot be read, is no YAML, has a key twice or uses an anchor.
    """
    file = str(path)
    loader = _LOADER(read_text(path))
    try:
        node = loader.get_single_node()
        if node is None:
            raise CatalogError.from_findings([Finding(file, None, "", "an empty file", allowed="entries")])
        lines: dict[Where, int] = {}
        findings = list(_walk(node, (), lines, set(), file))
        if findings:
            raise CatalogError.from_findings(findings)
        return Document(file, loader.construct_document(node), lines)
    except yaml.YAMLError as cause:
        mark = getattr(cause, "problem_mark", None)
        found = getattr(cause, "problem", None) or "text that is no YAML"
        line = None if mark is None else mark.line + 1
        raise CatalogError.from_findings([Finding(file, line, "", str(found), allowed="YAML")]) from cause
    finally:
        loader.dispose()


def _walk(
    node: yaml.Node, where: Where, lines: dict[Where, int], seen: set[int], file: str
) -> Iterator[Finding]:
    """Note the line of each value; find repeated keys and repeated nodes (the trace of an anchor)."""
    line = node.start_mark.line + 1
    if id(node) in seen:
        yield Finding(file, line, dotted(where), "a reference to an anchor", allowed="the value itself")
        return
    seen.add(id(node))
    lines[where] = line
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield from _walk(child, (*where, index), lines, seen, file)
    elif isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            below = (*where, str(key.value))
            if below in lines:
                again = f"the key {key.value!r} again (first in line {lines[below]})"
                yield Finding(file, key.start_mark.line + 1, dotted(below), again, allowed="each key once")
                continue
            yield from _walk(child, below, lines, seen, file)
            # The line of the key reads better than that of a block that starts below it.
            lines[below] = key.start_mark.line + 1
