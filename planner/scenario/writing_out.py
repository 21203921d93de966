"""A document as people write it -> the same document with the field names of the models."""

from __future__ import annotations

from collections.abc import Mapping

from planner.errors import nearest
from planner.scenario.shape import Leaf, Many, Place, Scope, Shape, is_by_id, merge
from planner.scenario.tree import Entry

__all__ = ["write_out"]


def write_out(entry: Entry, shape: Shape, scope: Scope) -> Entry:
    """Write out short keys, short forms and defaults at and below an entry.

    What has no place is complained about and left out; what is merely of the wrong kind is left to the models.
    """
    match shape:
        case Leaf():
            return shape.short(entry, scope)
        case Place():
            return _write_place(entry, shape, scope)
        case Many():
            return _write_many(entry, shape, scope)
        case _:
            return entry


def _write_place(entry: Entry, place: Place, scope: Scope) -> Entry:
    entry = place.short(entry, scope)
    if not isinstance(entry.value, Mapping):
        return entry
    fields: dict[str, Entry] = {}
    for key, value in entry.fields.items():
        if key not in place.known:
            scope.complaints.about(
                value,
                f"unknown key {key!r}",
                allowed=", ".join(place.preferred),
                suggestion=nearest(key, sorted(place.known)),
            )
            continue
        outer, _, inner = place.target(key).partition(".")
        shape = place.fields.get(outer)
        _put(fields, outer, write_out(value.but({inner: value}) if inner else value, shape, scope), scope)
    written = entry.but(fields)
    default = scope.defaults.get(place.default)
    return written if default is None else merge(_write_place(default, place, _bare(scope)), written, place)


def _bare(scope: Scope) -> Scope:
    return Scope(scope.complaints, scope.owner, scope.services)


def _put(fields: dict[str, Entry], name: str, value: Entry, scope: Scope) -> None:
    """Set a field; two keys may add to one mapping (``tp`` and ``pp``), but not say the same thing twice."""
    there = fields.get(name)
    if there is None:
        fields[name] = value
    elif there.fields and value.fields and not there.fields.keys() & value.fields.keys():
        fields[name] = there.but({**there.fields, **value.fields})
    else:
        said = there.path.rpartition(".")[2]
        scope.complaints.about(
            value, "the same thing twice", allowed=f"once; {said!r} on line {there.line} says it too"
        )


def _write_many(entry: Entry, many: Many, scope: Scope) -> Entry:
    if isinstance(entry.value, tuple):
        items = [
            _item(item, many, scope, _id_in_list(many, scope, index))
            for index, item in enumerate(entry.items)
        ]
        return entry.but(tuple(items))
    if many.has_ids and isinstance(entry.value, Mapping) and is_by_id(entry, many):
        return entry.but(
            tuple(_item(item, many, scope, name, by_id=True) for name, item in entry.fields.items())
        )
    if many.single:
        return entry if entry.value is None else entry.but((_item(entry, many, scope, _single(many, scope)),))
    form = (
        f"a mapping from the id of each {many.noun} to what it is"
        if many.has_ids
        else f"a list, one {many.noun} each"
    )
    scope.complaints.about(entry, entry.phrase(), allowed=form)
    return entry


def _single(many: Many, scope: Scope) -> str:
    return many.single.replace("{owner}", scope.owner)


def _id_in_list(many: Many, scope: Scope, index: int) -> str | None:
    return f"{_single(many, scope)}-{index}" if many.single else None


def _item(entry: Entry, many: Many, scope: Scope, name: str | None, *, by_id: bool = False) -> Entry:
    own = entry.named("id")
    if by_id and entry.value is None:
        entry = entry.but({})
    if by_id and own is not None and own != name:
        scope.complaints.about(
            entry.fields["id"], repr(own), allowed=f"{name!r}, as the key says, or nothing"
        )
    written = write_out(entry, many.item, scope.of(own or name or scope.owner))
    if not isinstance(written.value, Mapping):
        scope.complaints.about(
            written, written.phrase(), allowed=f"a mapping: {', '.join(many.item.preferred)}"
        )
        return written
    if name is None or "id" in written.fields:
        return written
    return written.but({"id": entry.but(name, text=name), **written.fields})
