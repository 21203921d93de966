"""Written-out document -> Scenario; what the models refuse is said with file, line and the user's own path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from models.scenario import Scenario
from models.units import UnknownUnitError
from planner.errors import nearest
from planner.scenario.consistency import lacks_variants, out_of_order
from planner.scenario.shape import Many, Place, Shape
from planner.scenario.shapes import SCENARIO
from planner.scenario.tree import Complaints, Entry

__all__ = ["validate"]

Error = Mapping[str, Any]

_BOUNDS: Final = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
    "string_too_long": ("max_length", "a text no longer than"),
}
_PLAIN: Final = {
    "string_type": "a text; what YAML reads as something else needs quotes",
    "string_too_short": "a text that is not empty",
    "string_pattern_mismatch": "a name: an ASCII letter or digit, then ASCII letters, digits and . _ : / @ # + -",
    "finite_number": "a finite number",
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "too_short": "at least one",
}


def validate(document: Entry, complaints: Complaints) -> Scenario | None:
    """The scenario; None if the models refuse it, each reason of which is then complained about."""
    try:
        return Scenario.model_validate(document.plain())
    except ValidationError as refusal:
        for error in refusal.errors(include_url=False):
            _complain(error, document, complaints)
        return None


def _complain(error: Error, document: Entry, complaints: Complaints) -> None:
    entry, shape, rest = _located(document, error["loc"])
    if error["type"] == "missing" and rest:
        _complain_missing(entry, shape, str(rest[-1]), complaints)
        return
    if _follows_from_another(error, entry, complaints):
        return
    found, allowed, suggestion = _said(error, entry)
    complaints.about(entry, found, allowed=allowed, suggestion=suggestion)


def _follows_from_another(error: Error, entry: Entry, complaints: Complaints) -> bool:
    """Whether what is wrong was said already, or is wrong only because something below it is."""
    if error["type"] == "too_short":
        return bool(entry.items)
    if error["type"] == "value_error" and (out_of_order(entry) is not None or _has_no_variant(error, entry)):
        return True
    # A value may fail in several ways (each branch of a union), a mapping may break several rules.
    return complaints.covers(entry) and not (error["type"] == "value_error" and entry.fields)


def _has_no_variant(error: Error, entry: Entry) -> bool:
    match error["loc"]:
        case ("services", int()):
            return lacks_variants(entry)
        case _:
            return False


def _located(document: Entry, loc: Sequence[str | int]) -> tuple[Entry, Shape, Sequence[str | int]]:
    """The deepest entry on the way, its shape, and the steps that are left."""
    entry, shape = document, SCENARIO
    place: Shape = shape
    for index, step in enumerate(loc):
        if isinstance(step, int) and step < len(entry.items):
            entry, place = entry.items[step], place.item if isinstance(place, Many) else None
        elif isinstance(step, str) and step in entry.fields:
            entry, place = entry.fields[step], place.fields.get(step) if isinstance(place, Place) else None
        elif index + 1 < len(loc) or not isinstance(step, str):
            continue  # the name of a branch of a union
        else:
            return entry, place, [step]
    return entry, place, []


def _complain_missing(parent: Entry, shape: Shape, name: str, complaints: Complaints) -> None:
    place = shape if isinstance(shape, Place) else None
    key = place.shortest(name) if place is not None else name
    path = f"{parent.path}.{key}" if parent.path else key
    info = place.model.model_fields.get(name) if place is not None and place.model is not None else None
    said = f": {info.description}" if info is not None and info.description else ""
    complaints.about(Entry(None, parent.file, parent.line, path), "nothing", allowed=f"it is required{said}")


def _said(error: Error, entry: Entry) -> tuple[str, str, str | None]:
    """What was found, what is allowed, and the nearest match."""
    kind, context = str(error["type"]), error.get("ctx", {})
    if kind == "value_error":
        return _said_by_us(context.get("error", error["msg"]), entry)
    if kind in _BOUNDS:
        key, phrase = _BOUNDS[kind]
        return entry.phrase(), f"{phrase} {_number(context[key])}", None
    if kind in {"enum", "literal_error"}:
        expected = str(context["expected"])
        words = [word.strip("' ") for word in expected.replace(" or ", ",").split(",")]
        return entry.phrase(), ", ".join(words), nearest(entry.text, words)
    if kind == "extra_forbidden":
        return f"unknown key {str(error['loc'][-1])!r}", "", None
    return entry.phrase(), _PLAIN.get(kind, str(error["msg"])), None


def _said_by_us(error: object, entry: Entry) -> tuple[str, str, str | None]:
    """A message of the models' own: ``found …; allowed: …``, a request ``give …``, or what is wrong."""
    message = str(error)
    if message.startswith("give "):
        return ", ".join(entry.fields) or entry.phrase(), message, None
    found, _, allowed = message.partition("; allowed: ")
    suggestion = _nearest_unit(error.unit, error.known) if isinstance(error, UnknownUnitError) else None
    return found.removeprefix("found ").removesuffix(", a number is needed"), allowed, suggestion


def _nearest_unit(unit: str, known: Sequence[str]) -> str | None:
    """Units that begin alike go first: the first letter is the prefix that decides the size (``msec`` is no ``sec``)."""
    alike = [one for one in known if one and one[0] == unit[0].lower()]
    return nearest(unit, alike) or nearest(unit, known)


def _number(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, int | float) else str(value)
