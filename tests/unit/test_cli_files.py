"""Answers on disk: whole or not at all, and nothing is read that we did not write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.solution import Solution
from planner.cli import files
from planner.cli.files import (
    is_saved_report,
    read_report,
    read_solution_or_report,
    write_report,
)
from planner.errors import ConfigurationError
from tests.reports import an_infeasible_report, an_optimal_report


@pytest.mark.parametrize("make", [an_optimal_report, an_infeasible_report])
def test_what_is_written_is_read_back(tmp_path: Path, make: Any) -> None:
    path = tmp_path / "answer.json"
    write_report(path, make())
    assert read_report(path) == make()
    assert read_solution_or_report(path) == make()
    assert is_saved_report(path)


def test_equal_reports_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_report(tmp_path / name, an_optimal_report())
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_an_older_answer_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    write_report(path, an_infeasible_report())
    write_report(path, an_optimal_report())
    assert [each.name for each in tmp_path.iterdir()] == ["answer.json"]
    assert read_report(path) == an_optimal_report()


def a_saved_document(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "saved.json"
    write_report(path, an_optimal_report())
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def edited(document: dict[str, Any], *path: str, value: object) -> dict[str, Any]:
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((("schema",), "fleetplan/0"), "schema 'fleetplan/0'.*plan again with this version"),
        ((("kind",), "plan"), "kind 'plan'"),
        ((("report", "answer", "solution", "counts"), {}), "it was changed"),
        ((("report", "problem", "name"), "another"), "it was changed"),
        ((("report", "answer", "solution", "status"), "FINE"), r"report\.answer\.solution\.status.*'FINE'"),
        ((("report", "surprise"), 1), "report.surprise"),
        ((("report",), None), "report: found None"),
    ],
)
def test_a_saved_report_that_is_not_as_we_wrote_it(tmp_path: Path, change: Any, message: str) -> None:
    where, value = change
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(edited(a_saved_document(tmp_path), *where, value=value)), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message) as caught:
        read_report(path)
    assert {finding.file for finding in caught.value.findings} == {str(path)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no JSON"),
        ("{\n\n,}", "changed.json:3: found no JSON"),
        ("[1]", "a JSON list"),
        ('{"counts": NaN}', "NaN is no number"),
        ("[" * 100_000, "nested too deeply"),
        ("name: scenario", "no JSON"),
        ("{}", "status"),
    ],
)
def test_a_file_that_is_none_of_ours(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "changed.json"
    path.write_text(text, encoding="utf-8")
    assert not is_saved_report(path)
    with pytest.raises(ConfigurationError, match=message):
        read_solution_or_report(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(ConfigurationError, match="no JSON"):
        read_report(path)


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_file_that_is_not_there_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="no file to read"):
        read_report(tmp_path / name)


def test_a_bare_solution_is_read(tmp_path: Path) -> None:
    path, solution = tmp_path / "bare.json", an_optimal_report().answer.solution
    path.write_text(solution.canonical_json(), encoding="utf-8")
    assert read_solution_or_report(path) == solution
    assert isinstance(read_solution_or_report(path), Solution)


def test_many_faults_are_listed_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "bare.json"
    path.write_text(json.dumps({f"surprise{index}": 1 for index in range(30)}), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="more problems") as caught:
        read_solution_or_report(path)
    assert len(caught.value.findings) == files.LISTED + 1
