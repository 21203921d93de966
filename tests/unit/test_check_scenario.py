"""A scenario that was edited as values is held to all that a file is held to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner import load_scenario
from planner.errors import ConfigurationError
from planner.scenario import check_scenario

SHIPPED = sorted(Path("data/scenarios").glob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_scenario_survives_the_way_through_bare_values(path: Path) -> None:
    scenario = load_scenario(path)
    assert check_scenario(scenario.model_dump(mode="json", exclude_defaults=True)) == scenario


def _fields() -> dict[str, Any]:
    return load_scenario("data/scenarios/02-contention.yaml").model_dump(mode="json", exclude_defaults=True)


def test_every_problem_is_named_by_its_path_in_one_error() -> None:
    fields = _fields()
    name = fields["services"][0]["id"]
    fields["services"][0]["llm"] = "nobody"
    fields["services"][0]["buckets"][0]["arrival_rps"] = -1
    fields["pools"][0]["accelerator"] = "H101"
    fields.setdefault("limits", {})["max_changes"] = "many"
    with pytest.raises(ConfigurationError) as caught:
        check_scenario(fields)
    paths = {finding.path for finding in caught.value.findings}
    bucket = fields["services"][0]["buckets"][0]["id"]
    assert {
        f"services.{name}.llm",
        f"services.{name}.buckets.{bucket}.arrival_rps",
        f"pools.{fields['pools'][0]['id']}.accelerator",
        "limits.max_changes",
    } <= paths


@pytest.mark.parametrize(
    "broken", [{}, {"services": None}, {"services": [None]}, {"services": "x", "pools": 3}]
)
def test_what_is_no_scenario_is_refused_in_words(broken: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        check_scenario(broken)


def test_two_of_one_name_are_found() -> None:
    fields = _fields()
    fields["pools"][1]["id"] = fields["pools"][0]["id"]
    with pytest.raises(ConfigurationError, match=fields["pools"][0]["id"]):
        check_scenario(fields)
