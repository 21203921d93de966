"""What may stand where in a scenario file, as data: fields of the models, short keys, and short forms of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from models.value import Value
from planner.scenario.tree import Complaints, Entry

__all__ = ["Leaf", "Many", "Place", "Scope", "Shape", "Short", "is_by_id", "merge"]


@dataclass(frozen=True, slots=True)
class Scope:
    """What a short form may need to know beside the value itself.

    Attributes:
        complaints: takes what is wrong.
        owner: identity of the nearest service, variant or pool around the value.
        services: identities of the services of the document.
        defaults: what is given under ``defaults``, by key.
    """

    complaints: Complaints
    owner: str = ""
    services: frozenset[str] = frozenset()
    defaults: Mapping[str, Entry] = field(default_factory=dict)

    def of(self, owner: str) -> Scope:
        """The same scope inside another owner."""
        return replace(self, owner=owner)


Short = Callable[[Entry, Scope], Entry]
"""Writes a short form out; returns what it does not know as it is."""


def as_it_is(entry: Entry, scope: Scope) -> Entry:
    """No short form."""
    del scope
    return entry


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field with a short form of its own and nothing below it."""

    short: Short


@dataclass(frozen=True, slots=True)
class Place:
    """A mapping that becomes one value of a model.

    Attributes:
        model: whose fields are the long keys; None: only ``fields`` are keys.
        keys: field by short key; ``outer.inner`` where the field is one level down.
        fields: shapes of fields that are more than a scalar.
        short: writes out what is no mapping, or a mapping in another form.
        whole: two of them do not merge, the later one replaces the earlier one.
        default: key under ``defaults`` whose fields apply where they are not given.
        other: shape under keys that are no fields, where the short form is a mapping of such keys.
    """

    model: type[Value] | None
    keys: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Shape] = field(default_factory=dict)
    short: Short = as_it_is
    whole: bool = False
    default: str = ""
    other: Place | None = None

    @property
    def long_keys(self) -> frozenset[str]:
        """Names of the fields."""
        return frozenset(self.model.model_fields if self.model is not None else ()) | frozenset(self.fields)

    @property
    def known(self) -> frozenset[str]:
        """Every key that may stand here."""
        return self.long_keys | frozenset(self.keys)

    @property
    def preferred(self) -> tuple[str, ...]:
        """One key for each field, the short one where there is one, in the order of the model."""
        names = dict.fromkeys([*(self.model.model_fields if self.model is not None else ()), *self.fields])
        return tuple(self.shortest(name) for name in names)

    def shortest(self, name: str) -> str:
        """The key that people write for a field."""
        return next((key for key, long in self.keys.items() if long == name), name)

    def target(self, key: str) -> str:
        """The field that a key means."""
        return self.keys.get(key, key)

    def written(self, key: str, entry: Entry) -> str:
        """The key of an entry that means the same field as ``key``; ``key`` itself if there is none."""
        same = (there for there in entry.fields if self.target(there) == self.target(key))
        return key if key in entry.fields else next(same, key)

    def below(self, key: str) -> Shape:
        """The shape under a key, long or short."""
        if self.other is not None and key not in self.known:
            return self.other
        outer, _, inner = self.target(key).partition(".")
        shape = self.fields.get(outer)
        return shape.below(inner) if inner and isinstance(shape, Place) else shape


@dataclass(frozen=True, slots=True)
class Many:
    """A list of values, or where they have identities a mapping from identity to value.

    Attributes:
        item: shape of one of them.
        noun: what one is called.
        single: identity of the only one if it is written without; ``{owner}`` stands for the owner. Empty: each one
            needs an identity.
    """

    item: Place
    noun: str
    single: str = ""

    @property
    def has_ids(self) -> bool:
        """Whether each item has an identity."""
        return "id" in self.item.long_keys


Shape = Place | Many | Leaf | None


def is_by_id(entry: Entry, many: Many) -> bool:
    """Whether a mapping is from identity to value, and not one value without identity."""
    if not many.single:
        return True
    return bool(entry.fields) and all(isinstance(item.value, Mapping) for item in entry.fields.values())


def merge(base: Entry, top: Entry, shape: Shape) -> Entry:
    """Mapping by mapping, ``top`` wins; a list, and what cannot be half of each, is replaced as a whole."""
    if not isinstance(base.value, Mapping) or not isinstance(top.value, Mapping):
        return top
    match shape:
        case Place(whole=False):
            base = base.but({shape.written(key, top): entry for key, entry in base.fields.items()})
            return _merge_fields(base, top, {key: shape.below(key) for key in top.fields})
        case Many() if is_by_id(base, shape) and is_by_id(top, shape):
            return _merge_fields(base, top, dict.fromkeys(top.fields, shape.item))
        case Many(single=single) if single and not (is_by_id(base, shape) or is_by_id(top, shape)):
            return merge(base, top, shape.item)
        case _:
            return top


def _merge_fields(base: Entry, top: Entry, shapes: Mapping[str, Shape]) -> Entry:
    merged = {
        key: merge(base.fields[key], entry, shapes[key]) if key in base.fields else entry
        for key, entry in top.fields.items()
    }
    return top.but({**base.fields, **merged})
