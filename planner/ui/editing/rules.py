"""Rules that speak of the whole scenario: budgets, mode, and what is made small in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import streamlit as st

from models.scenario import Incumbents, Limits, Mode, Objective, ObjectiveLevel, PowerBasis, Scenario
from models.value import Value

__all__ = ["fields_with_rules", "show_rules"]

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Choice:
    """One of a few words.

    Attributes:
        place: of the part of the scenario that has the field; empty: the scenario itself.
        name: of the field.
        label: of the widget.
        kind: the words.
        model: value that has the field.
    """

    place: str
    name: str
    label: str
    kind: type[StrEnum]
    model: type[Value]


@dataclass(frozen=True, slots=True)
class _Figure:
    """A number; empty stands for the default."""

    place: str
    name: str
    label: str
    kind: type[float] | type[int]
    model: type[Value]


_CHOICES: Final = (
    _Choice("", "mode", "Accelerators", Mode, Scenario),
    _Choice("limits", "incumbents", "Running pods", Incumbents, Limits),
    _Choice("limits", "power_basis", "Power of a replica", PowerBasis, Limits),
)
_FIGURES: Final = (
    _Figure("limits", "spend_usd_per_h", "Spend at most, $/h", float, Limits),
    _Figure("limits", "max_changes", "Changes at most, replicas", int, Limits),
    _Figure("objective", "horizon_h", "Spread starts over, h", float, Objective),
    _Figure("objective", "tolerance", "Slack left to a level, share", float, Objective),
)


def show_rules(scenario: Scenario) -> Mapping[tuple[str, str], object]:
    """Widgets for these rules; what they hold, by part and field. Empty texts stand for the default."""
    values: dict[tuple[str, str], object] = {}
    for column, choice in zip(st.columns(len(_CHOICES)), _CHOICES, strict=True):
        words = [str(word) for word in choice.kind]
        now = getattr(getattr(scenario, choice.place) if choice.place else scenario, choice.name)
        values[choice.place, choice.name] = column.selectbox(
            choice.label, words, index=words.index(now), help=_help(choice.model, choice.name)
        )
    for column, figure in zip(st.columns(len(_FIGURES)), _FIGURES, strict=True):
        now = getattr(getattr(scenario, figure.place), figure.name)
        text = column.text_input(
            figure.label, "" if now is None else f"{now:g}", help=_help(figure.model, figure.name)
        ).strip()
        values[figure.place, figure.name] = _number(text, figure.kind) if text else None
    values["objective", "levels"] = st.multiselect(
        "Made small, the first first",
        [str(level) for level in ObjectiveLevel],
        default=[str(level) for level in scenario.objective.levels],
        help="Each is held when the next is made small; take all out and choose again for another order.",
    )
    return values


def fields_with_rules(fields: Mapping[str, Any], values: Mapping[tuple[str, str], object]) -> Fields:
    """The fields of the scenario with these rules; what is as by default is left out."""
    edited = dict(fields)
    for (place, name), value in values.items():
        part = dict(edited.get(place, {})) if place else edited
        part.pop(name, None)
        if value is not None and value != _default(place, name):
            part[name] = value
        if place:
            edited.pop(place, None)
            edited.update({place: part} if part else {})
    return edited


def _default(place: str, name: str) -> object:
    models: dict[str, type[Value]] = {"": Scenario, "limits": Limits, "objective": Objective}
    model = models[place]
    value = model.model_fields[name].default
    return [str(each) for each in value] if isinstance(value, tuple) else value


def _help(model: type[Value], name: str) -> str:
    field = model.model_fields[name]
    default = "none" if field.default is None else f"{field.default}"
    return f"{field.description}; by default {default}"


def _number(text: str, kind: type[float] | type[int]) -> float | int | str:
    """The number in a text; what is none stays a text, and is refused where the scenario is checked."""
    try:
        return kind(text)
    except ValueError:
        return text
