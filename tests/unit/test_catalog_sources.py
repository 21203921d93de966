"""No number without a source: every figure and every row that we ship carries a code that SOURCES.md explains."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.catalog import catalog_root, load_catalog, source_descriptions

ROOT = catalog_root()
CATALOG_FILES = sorted((ROOT / "catalog").glob("*.yaml"))
PROFILES = sorted((ROOT / "profiles").glob("*.csv"))


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, object, object]]:
    """(path, number, source) of every number; a number outside a figure has no source.

    A text counts as a number when it starts with a digit, as "80 GiB" does, outside of the aliases.
    """
    if isinstance(value, dict) and value.keys() == {"value", "source"}:
        yield path, value["value"], value["source"]
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key != "aliases":
                yield from numbers(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from numbers(inner, f"{path}[{index}]")
    elif isinstance(value, int | float) or (isinstance(value, str) and value[:1].isdigit()):
        yield path, value, None


def unsourced(data: Any, codes: set[str]) -> list[str]:
    return [f"{path} = {number} ({source})" for path, number, source in numbers(data) if source not in codes]


@pytest.mark.parametrize("path", CATALOG_FILES, ids=lambda path: path.name)
def test_every_figure_of_the_catalog_has_a_source(path: Path) -> None:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert sum(1 for _ in numbers(data)) > 100
    assert unsourced(data, set(source_descriptions())) == []


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.name)
def test_every_row_of_a_profile_has_a_source_and_names_its_row(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows
    assert {row["source"] for row in rows} <= set(source_descriptions())
    assert all(row["row"] for row in rows)


def test_there_are_files_to_look_at() -> None:
    assert [path.name for path in CATALOG_FILES] == ["accelerators.yaml", "llms.yaml"]
    assert PROFILES


@pytest.mark.parametrize(
    "data",
    [
        {"A": {"tdp_w": 300}},
        {"A": {"memory_bytes": "80 GiB"}},
        {"A": {"tdp_w": {"value": 300, "source": "Z9"}}},
    ],
)
def test_the_test_sees_a_number_without_a_source(data: object) -> None:
    assert len(unsourced(data, {"S1"})) == 1


def test_every_source_is_explained_and_used() -> None:
    described = source_descriptions()
    catalog = load_catalog()
    used = {code for codes in catalog.sources.values() for code in codes.values()}
    used |= {point.source for table in catalog.profiles.values() for point in table}
    assert used <= set(described)
    # Codes with a V support formulas, those with an F name fits; neither is a figure of the catalog.
    assert {code for code in set(described) - used if not code.startswith(("V", "F"))} == set()
    assert all(len(text) > 20 for text in described.values())


def test_unsourced_and_assumed_values_are_not_shipped() -> None:
    assert not {"S18", "S20"} & set(source_descriptions())
