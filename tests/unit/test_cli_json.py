"""``plan --json``: the keys of the contract, each described on its page, and nothing that is not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from models.report import Report
from planner.cli.json_output import as_json, report_object
from tests.reports import (
    a_closer_report,
    a_heuristic_report,
    a_hopeless_report,
    a_relative_report,
    a_report_of_two_limits,
    a_report_without_candidates,
    a_timed_out_report,
    an_infeasible_report,
    an_optimal_report,
)

PAGE: Final = Path(__file__).parents[2] / "docs" / "json.md"
REPORTS: Final = (
    a_closer_report, a_hopeless_report, a_report_of_two_limits, a_report_without_candidates,
    an_optimal_report, an_infeasible_report, a_timed_out_report, a_heuristic_report, a_relative_report,
)  # fmt: skip
CONTRACT: Final = {
    "status", "solver", "objective", "bound", "gap", "levels", "seconds", "allocations", "violations", "explanation",
    "fingerprint", "derived_from",
}  # fmt: skip
FREE_NAMES: Final = re.compile(
    r"^(nodes_added|seconds|explanation\.(?:binding|rejected|relaxations|worth)\[\]\.facts|fewest_moves\.replicas"
    r"|rollout\.waves\[\]\.extra_gpus|rollout\.stuck\.(?:extra_gpus|drop))\..+$"
)


def described_keys() -> set[str]:
    """First cells of the tables of the page on this command; others have sections of their own."""
    page = PAGE.read_text(encoding="utf-8")
    own = page[page.index("## `fleetplan plan --json`") :].split("## `fleetplan apply --json`")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", own, flags=re.MULTILINE))


def paths(value: Any, path: str = "") -> Iterator[str]:
    """The path of every leaf, and of every value that may be null."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from paths(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from paths(inner, f"{path}[]")
    elif value not in ({}, []):
        yield path


def key_of(path: str) -> str:
    """A path in the terms of the page: free names are ``*``, and what repeats another table is named once."""
    path = FREE_NAMES.sub(r"\1.*", path.replace("fewest_moves.rollout.", "rollout."))
    path = re.sub(r"^explanation\.together\[\]\..+$", "explanation.together[].*", path)
    if path.startswith("best_effort."):
        return key_of(path.removeprefix("best_effort."))
    return re.sub(
        r"^beside\.[^.]+\.(status|notes\[\]|objective|violations\[\]|derived_from)(\..*)?$",
        r"beside.*.\1",
        path,
    )


def documents() -> list[dict[str, Any]]:
    return [report_object(make()) for make in REPORTS]


def test_the_page_describes_every_key_and_no_other() -> None:
    written = {key_of(path) for document in documents() for path in paths(document)}
    described = described_keys()
    parents = {
        "objective", "explanation.conflict", "best_effort.*", "rollout", "rollout.stuck", "fewest_moves",
        "fewest_moves.rollout",
    }  # fmt: skip
    assert written - described == set()
    assert described - written - parents == set()


@pytest.mark.parametrize("make", REPORTS)
def test_the_contract_is_kept(make: Any) -> None:
    assert set(report_object(make())) >= CONTRACT


@pytest.mark.parametrize("make", REPORTS)
def test_the_best_effort_is_there_only_when_infeasible(make: Any) -> None:
    document = report_object(make())
    assert ("best_effort" in document) == (document["status"] == "INFEASIBLE")


def test_the_best_effort_has_the_shape_of_the_answer() -> None:
    infeasible, optimal = report_object(an_infeasible_report()), report_object(an_optimal_report())
    best_effort = infeasible["best_effort"]
    once = {
        "schema", "problem", "unkept_promises", "services_without_candidates", "beside", "rollout", "fewest_moves", "explanation", "seconds",
        "engines",
    }  # fmt: skip
    assert set(best_effort) == set(optimal) - once
    assert set(best_effort["objective"]) == set(optimal["objective"])
    assert set(best_effort["allocations"][0]) == set(optimal["allocations"][0])


def test_an_answer_without_a_plan_has_no_figures() -> None:
    document = report_object(a_timed_out_report())
    kept = {
        key: document[key] for key in ("objective", "bound", "gap", "allocations", "services", "nodes_added")
    }
    assert kept == {
        "objective": None,
        "bound": None,
        "gap": None,
        "allocations": [],
        "services": [],
        "nodes_added": {},
    }


def test_relative_costs_are_no_dollars() -> None:
    document = report_object(a_relative_report())
    assert document["objective"]["cost_unit"] == "relative"
    assert document["objective"]["cost"] == pytest.approx(105.4)
    assert document["objective"]["cost_usd_per_h"] is None
    assert {each["cost_usd_per_h"] for each in document["allocations"]} == {None}


def test_bound_and_gap_are_those_of_the_cost_level() -> None:
    document = report_object(a_relative_report())
    level = next(each for each in document["levels"] if each["name"] == "cost")
    assert (document["bound"], document["gap"]) == (level["bound"], 0.013)


def test_candidates_that_neither_run_nor_shall_run_are_left_out() -> None:
    document = report_object(a_relative_report())
    assert [(each["variant"], each["current_replicas"], each["replicas"]) for each in document["allocations"]] == [
        ("llama-70b-a100-tp4", 2, 0), ("llama-70b-h100-tp8", 3, 5), ("small", 0, 3),
    ]  # fmt: skip
    idle = an_optimal_report()
    counts = dict.fromkeys(idle.answer.solution.counts, 0)
    empty = idle.but(answer=idle.answer.but(solution=idle.answer.solution.but(counts=counts)))
    assert [each["variant"] for each in report_object(empty)["allocations"]] == [
        "llama-70b-a100-tp4", "llama-70b-h100-tp8",
    ]  # fmt: skip


@pytest.mark.parametrize("make", REPORTS)
def test_the_text_is_one_json_document(make: Any) -> None:
    report: Report = make()
    text = as_json(report_object(report))
    assert json.loads(text) == report_object(report)
    assert text.endswith("}\n")
