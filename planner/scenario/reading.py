"""YAML text -> a tree of entries, with a limit on everything that can grow.

The parser's events are composed here, because what must be refused (tags, a key twice, aliases that explode) is no
longer visible once a document is loaded. Aliases are counted before they are expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from planner.errors import Finding
from planner.scenario.expanding import Raw, expand
from planner.scenario.scalars import read_plain
from planner.scenario.tree import Complaints, Entry

__all__ = ["DEPTH_LIMIT", "NODE_LIMIT", "read_yaml"]

NODE_LIMIT: Final = 300_000
"""Services have about 80 values each: fleets of some thousand are read, in a few seconds at most."""

DEPTH_LIMIT: Final = 50
_TOKEN_SHOWN: Final = 32
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_TEXT_TAGS: Final = {"!", "tag:yaml.org,2002:str"}
_COLLECTION_TAGS: Final = {"!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}


class _RefusedError(Exception):
    """The rest of the text is not worth reading."""

    def __init__(self, line: int | None, found: str, allowed: str) -> None:
        super().__init__(found)
        self.line, self.found, self.allowed = line, found, allowed


def read_yaml(text: str, *, file: str, complaints: Complaints, path: str = "") -> Entry | None:
    """The document in a text; None if it cannot be read, which is then complained about.

    Args:
        text: one YAML document.
        file: name for findings.
        complaints: takes what is wrong.
        path: path of the document's top, for findings.
    """
    try:
        _refuse_control_characters(text)
        raw = _Composer(yaml.parse(text, Loader=_LOADER)).document()
    except _RefusedError as refused:
        complaints.add(Finding(file, refused.line, path, refused.found, refused.allowed))
        return None
    except yaml.YAMLError as error:
        complaints.add(_syntax(error, text, file, path))
        return None
    return expand(raw, file=file, path=path, complaints=complaints)


def _refuse_control_characters(text: str) -> None:
    control = _CONTROL.search(text)
    if control is not None:
        line = text.count("\n", 0, control.start()) + 1
        raise _RefusedError(line, f"character U+{ord(control[0]):04X}", "printable text in UTF-8")


def _syntax(error: yaml.YAMLError, text: str, file: str, path: str) -> Finding:
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or error).splitlines()[0]
    if mark is None:
        return Finding(file, None, path, f"no YAML: {problem}")
    lines = text.splitlines()
    written = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in written and "cannot start any token" in problem:
        return Finding(file, mark.line + 1, path, "a tab", "blanks; YAML does not indent with tabs")
    return Finding(file, mark.line + 1, path, f"no YAML: {problem} (column {mark.column + 1})")


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end is not read yet."""

    raw: Raw
    anchor: str | None


class _Composer:
    """Builds one document from events, without recursion."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self._anchors: dict[str, Raw] = {}
        self._open: list[_Open] = []
        self._done: Raw | None = None

    def document(self) -> Raw:
        for event in self._events:
            match event:
                case yaml.DocumentStartEvent() if self._done is not None:
                    raise _RefusedError(_line(event), "a second document", "one document in a file")
                case yaml.ScalarEvent():
                    self._take(self._scalar(event), event.anchor)
                case yaml.AliasEvent():
                    self._take(self._alias(event), None)
                case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                    self._start(event)
                case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                    closed = self._open.pop()
                    self._take(closed.raw, closed.anchor)
                case _:
                    pass
        if self._done is None:
            raise _RefusedError(1, "an empty document", "a mapping with services and pools")
        return self._done

    def _start(self, event: yaml.CollectionStartEvent) -> None:
        if event.tag is not None and event.tag not in _COLLECTION_TAGS:
            raise _tagged(event)
        self._open.append(
            _Open(Raw([], _line(event), mapping=isinstance(event, yaml.MappingStartEvent)), event.anchor)
        )
        self._check_depth(0, _line(event))

    def _scalar(self, event: yaml.ScalarEvent) -> Raw:
        if event.tag is not None and event.tag not in _TEXT_TAGS:
            raise _tagged(event)
        plain = event.tag is None and event.style in {None, ""}
        value = read_plain(event.value) if plain else event.value
        return Raw(value, _line(event), text=event.value, merges=plain and event.value == "<<")

    def _alias(self, event: yaml.AliasEvent) -> Raw:
        target = self._anchors.get(event.anchor or "")
        if target is None:
            raise _RefusedError(
                _line(event), f"alias *{_short(event.anchor or '')}", "an anchor that is complete above it"
            )
        self._check_depth(target.depth, _line(event))
        return target

    def _check_depth(self, depth: int, line: int) -> None:
        if len(self._open) + depth > DEPTH_LIMIT:
            raise _RefusedError(line, f"more than {DEPTH_LIMIT} levels", f"at most {DEPTH_LIMIT} levels")

    def _take(self, raw: Raw, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = raw
        if not self._open:
            self._done = raw
            return
        self._open[-1].raw.append(raw)
        if sum(level.raw.size for level in self._open) > NODE_LIMIT:
            raise _RefusedError(
                self._open[0].raw.last_line,
                f"more than {NODE_LIMIT} values, aliases expanded",
                f"at most {NODE_LIMIT}",
            )


def _short(token: str) -> str:
    return token if len(token) <= _TOKEN_SHOWN else f"{token[: _TOKEN_SHOWN - 3]}..."


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 1


def _tagged(event: yaml.NodeEvent) -> _RefusedError:
    tag = str(getattr(event, "tag", "")).replace("tag:yaml.org,2002:", "!!")
    return _RefusedError(_line(event), f"tag {_short(tag)}", "no tags; a word in quotes is a text")
