"""Overrides: ``PATH=VALUE`` changes one value of a document before it is validated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Final

from planner.errors import Finding, nearest
from planner.scenario.reading import read_yaml
from planner.scenario.scalars import read_plain
from planner.scenario.shape import Many, Place, Scope, Shape, is_by_id
from planner.scenario.shapes import SCENARIO
from planner.scenario.tree import Complaints, Entry

__all__ = ["apply_overrides"]

_FILE: Final = "--set"
_AMOUNT: Final = re.compile(r"\s*(?P<number>[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?)\s*(?P<unit>.*?)\s*$")


def apply_overrides(document: Entry, overrides: Iterable[str], complaints: Complaints) -> Entry:
    """The document with each override applied in turn.

    Args:
        document: as people write it.
        overrides: ``services.chat.traffic.rate=20 req/s``; ``=+2`` adds to the number that is there, ``=*1.5``
            multiplies it, ``=-2`` is the number minus two.
        complaints: takes overrides that name nothing or say nothing.
    """
    for override in overrides:
        path, equals, value = override.partition("=")
        path = path.strip()
        if not equals or not path:
            complaints.add(Finding(_FILE, None, "", repr(override), "PATH=VALUE"))
            continue
        document = _Override(path, value.strip(), complaints).apply(document)
    return document


class _UnknownError(Exception):
    """The path leads nowhere; the finding is made."""


@dataclass(frozen=True, slots=True)
class _Override:
    path: str
    value: str
    complaints: Complaints

    def apply(self, document: Entry) -> Entry:
        try:
            return self._set(document, SCENARIO, self.path)
        except _UnknownError:
            return document

    def _refuse(self, found: str, *, allowed: str = "", suggestion: str | None = None) -> _UnknownError:
        self.complaints.add(Finding(_FILE, None, self.path, found, allowed, suggestion))
        return _UnknownError()

    def _set(self, entry: Entry | None, shape: Shape, rest: str) -> Entry:
        """The entry with the value at ``rest`` below it set."""
        if not rest:
            return self._new(entry)
        if entry is None or entry.value is None:
            entry = Entry({}, _FILE, None, self.path)
        entry = _written_out(entry, shape)
        if isinstance(entry.value, tuple):
            return self._set_in_list(entry, shape, rest)
        if not isinstance(entry.value, Mapping):
            raise self._refuse(f"{entry.phrase()} at {entry.path}", allowed=f"to set {entry.path} as a whole")
        key, rest = self._key(entry, shape, rest)
        child = self._set(entry.fields.get(key), _below(shape, key, entry), rest)
        return entry.but({**entry.fields, key: child})

    def _key(self, entry: Entry, shape: Shape, rest: str) -> tuple[str, str]:
        """The key that the path goes through, and what is left; the longest key there is, as ids may hold dots."""
        for key in sorted(entry.fields, key=len, reverse=True):
            if rest == key or rest.startswith((f"{key}.", f"{key}[")):
                return key, rest[len(key) :].removeprefix(".")
        elsewhere = _said_elsewhere(entry, shape, rest)
        if elsewhere is not None:
            return elsewhere
        first = re.split(r"[.\[]", rest, maxsplit=1)[0]
        known = _creatable(shape, entry)
        if first in known and isinstance(shape, Place):
            return shape.written(first, entry), rest[len(first) :].removeprefix(".")
        if isinstance(shape, Many) and first in known:
            return shape.item.written(first, entry), rest[len(first) :].removeprefix(".")
        names = sorted({*entry.fields, *known})
        step = first or rest.partition(".")[0]
        if isinstance(shape, Many) and shape.has_ids and not entry.fields:
            whole = self.path[: len(self.path) - len(rest)].rstrip(".")
            allowed = f"nothing below, there is no {shape.noun} yet; {whole}={{NAME: {{...}}}} makes one"
            raise self._refuse(f"unknown {shape.noun} {step!r}", allowed=allowed)
        raise self._refuse(
            f"unknown step {step!r}",
            allowed=", ".join(names) or "nothing below",
            suggestion=nearest(step, names),
        )

    def _set_in_list(self, entry: Entry, shape: Shape, rest: str) -> Entry:
        item_shape = shape.item if isinstance(shape, Many) else None
        ids = {item.named("id") or f"[{index}]": index for index, item in enumerate(entry.items)}
        ids |= {f"[{index}]": index for index in range(len(entry.items))}
        for name in sorted(ids, key=len, reverse=True):
            if rest == name or rest.startswith((f"{name}.", f"{name}[")):
                items = list(entry.items)
                items[ids[name]] = self._set(
                    items[ids[name]], item_shape, rest[len(name) :].removeprefix(".")
                )
                return entry.but(tuple(items))
        first = rest.split(".", maxsplit=1)[0]
        raise self._refuse(f"unknown step {first!r}", allowed=", ".join(ids), suggestion=nearest(first, ids))

    def _new(self, entry: Entry | None) -> Entry:
        if self.value.startswith("*") or (self.value.startswith("+") and entry is not None):
            return self._changed(entry)
        read = Complaints()
        new = read_yaml(self.value, file=_FILE, complaints=read, path=self.path) if self.value else None
        if read.findings:
            self.complaints.add(replace(read.findings[0], line=None))
            raise _UnknownError
        return _placed(new, self.path) if new is not None else Entry(None, _FILE, None, self.path)

    def _changed(self, entry: Entry | None) -> Entry:
        """The number that is there, plus or times the one given; its unit stays."""
        there = _amount(entry.text) if entry is not None else None
        given = _amount(self.value[1:])
        if there is None or given is None:
            found = (
                repr(self.value) if given is None else f"{entry.phrase() if entry else 'nothing'} to change"
            )
            raise self._refuse(found, allowed="a number there, and +NUMBER or *NUMBER given")
        adds = self.value.startswith("+")
        if given[1] and (given[1] != there[1] or not adds):
            raise self._refuse(
                f"unit {given[1]!r}", allowed=f"{there[1]!r}, as it is there" if adds else "a bare factor"
            )
        number = there[0] + given[0] if adds else there[0] * given[0]
        text = f"{_written(number)} {there[1]}".rstrip()
        return Entry(read_plain(text), _FILE, None, self.path, text)


def _written_out(entry: Entry, shape: Shape) -> Entry:
    """A short form as the mapping that it stands for: ``survive: 80 %`` as ``{share: 80 %}``."""
    if isinstance(entry.value, Mapping):
        return entry
    one = isinstance(shape, Many) and shape.single and not isinstance(entry.value, tuple)
    place = shape.item if isinstance(shape, Many) and one else shape
    return place.short(entry, Scope(Complaints())) if isinstance(place, Place) else entry


def _said_elsewhere(entry: Entry, shape: Shape, rest: str) -> tuple[str, str] | None:
    """Key and rest of a path to what stands under another key: ``tp`` in ``parallelism: tp8``, or the other way."""
    if not isinstance(shape, Place):
        return None
    first, _, after = rest.partition(".")
    outer, _, inner = shape.target(first).partition(".")
    if inner:
        whole = next((key for key in entry.fields if shape.target(key) == outer), None)
        return None if whole is None else (whole, f"{inner}.{after}".rstrip("."))
    step, _, below = after.partition(".")
    part = next((key for key in entry.fields if shape.target(key) == f"{outer}.{step}"), None)
    return None if part is None else (part, below)


def _below(shape: Shape, key: str, entry: Entry) -> Shape:
    match shape:
        case Place():
            return shape.below(key)
        case Many() if shape.has_ids and entry.fields and is_by_id(entry, shape):
            return shape.item
        case Many():
            return shape.item.below(key)
        case _:
            return None


def _creatable(shape: Shape, entry: Entry) -> frozenset[str]:
    """Keys that may be added: fields, but no new identities."""
    match shape:
        case Place():
            return shape.known
        case Many(single=single) if single and not (entry.fields and is_by_id(entry, shape)):
            return shape.item.known
        case _:
            return frozenset()


def _placed(entry: Entry, path: str) -> Entry:
    """The entry, from no line of a file."""
    if isinstance(entry.value, Mapping):
        fields = {key: _placed(item, item.path) for key, item in entry.fields.items()}
        return Entry(fields, _FILE, None, path)
    if isinstance(entry.value, tuple):
        return Entry(tuple(_placed(item, item.path) for item in entry.items), _FILE, None, path)
    return Entry(entry.value, _FILE, None, path, entry.text)


def _amount(text: str) -> tuple[Decimal, str] | None:
    match = _AMOUNT.match(text)
    try:
        return (Decimal(match["number"]), match["unit"]) if match is not None else None
    except InvalidOperation:
        return None


def _written(number: Decimal) -> str:
    return (
        str(int(number))
        if number == number.to_integral_value() and abs(number) < 10**15
        else str(number.normalize())
    )
