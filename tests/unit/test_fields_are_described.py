"""The JSON schemas say of every field what it is, and of every figure in which unit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from models.llm import Llm
from models.pareto import ParetoFront
from models.performance import MeasuredPoint, Rating, RatingQuestion
from models.value import Value
from planner.scenario.schema import KINDS, schema

_UNITS: Final = {
    "tokens_per_rps": "token/(req/s)",
    "per_million_tokens": "$/1e6 tokens",
    "kwh_per_million_tokens": "kWh/1e6 tokens",
    "usd_per_h": "$/h",
    "usd_per_node_h": "$/h",
    "usd": "$",
    "rps": "req/s",
    "s": "s",
    "h": "h",
    "w": "W",
    "bytes": "B",
    "bandwidth": "B/s",
    "flops": "FLOP/s",
    "tokens": "token",
}
"""Unit by the end of a name; the longest end counts."""

_ELSEWHERE: Final[dict[str, type[Value]]] = {
    "front": ParetoFront,
    "llm": Llm,
    "measured": MeasuredPoint,
    "question": RatingQuestion,
    "rating": Rating,
}
"""Values that are in no schema a user asks for, and are read by people all the same."""

_ALL: Final = {kind: schema(kind) for kind in KINDS} | {
    name: value.model_json_schema(mode="serialization") for name, value in _ELSEWHERE.items()
}


def properties(tree: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Owner, name and schema of every property, those of nested definitions included."""
    for owner, definition in {"": tree, **tree.get("$defs", {})}.items():
        for name, said in definition.get("properties", {}).items():
            yield owner, name, said


def expected_unit(name: str) -> str | None:
    ends = [end for end in _UNITS if name.endswith(f"_{end}") or name == end]
    return _UNITS[max(ends, key=len)] if ends else None


def is_numeric(said: dict[str, Any]) -> bool:
    return any(form.get("type") in {"number", "integer"} for form in [said, *said.get("anyOf", [])])


def unit_of(said: dict[str, Any]) -> str | None:
    """The unit of a property, or that of the forms it may have."""
    forms = [form["unit"] for form in said.get("anyOf", []) if "unit" in form]
    return said.get("unit", forms[0] if forms else None)


@pytest.mark.parametrize("kind", sorted(_ALL))
def test_every_field_says_what_it_is(kind: str) -> None:
    silent = [
        f"{owner}.{name}" for owner, name, said in properties(_ALL[kind]) if not said.get("description")
    ]
    assert silent == []


@pytest.mark.parametrize("kind", sorted(_ALL))
def test_every_definition_says_what_it_is(kind: str) -> None:
    tree = _ALL[kind]
    assert [name for name, said in tree.get("$defs", {}).items() if not said.get("description")] == []
    assert tree["description"]


@pytest.mark.parametrize("kind", sorted(_ALL))
def test_a_figure_whose_name_ends_in_a_unit_has_it_in_the_schema(kind: str) -> None:
    figures = {
        f"{owner}.{name}": (unit_of(said), expected_unit(name))
        for owner, name, said in properties(_ALL[kind])
        if is_numeric(said) and expected_unit(name) is not None
    }
    assert figures or kind == "solution", "only a solution has shares and counts alone"
    assert {name: units for name, units in figures.items() if units[0] != units[1]} == {}


@pytest.mark.parametrize(
    ("name", "unit"),
    [("ttft_s", "s"), ("spend_usd_per_h", "$/h"), ("kv_tokens_per_rps", "token/(req/s)"), ("replicas", None)],
)
def test_the_longest_end_of_a_name_is_its_unit(name: str, unit: str | None) -> None:
    assert expected_unit(name) == unit
