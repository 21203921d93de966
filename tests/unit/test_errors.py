"""Errors say everything at once, and each knows its exit code."""

from __future__ import annotations

import copy

import pytest

from planner.errors import (
    CatalogError,
    ConfigurationError,
    Finding,
    FleetPlanError,
    InternalError,
    PermanentError,
    SafetyGateError,
    TemporaryError,
    nearest,
)


def a_finding(**changes: object) -> Finding:
    fields = {"file": "fleet.yaml", "line": 12, "path": "services[0].slo", "found": "unknown key 'ttfd'"}
    return Finding(**(fields | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (ConfigurationError, 2),
        (CatalogError, 2),
        (TemporaryError, 4),
        (PermanentError, 2),
        (SafetyGateError, 5),
        (InternalError, 1),
    ],
)
def test_every_error_is_ours_and_carries_its_exit_code(error: type[FleetPlanError], exit_code: int) -> None:
    assert issubclass(error, FleetPlanError)
    assert error.exit_code == exit_code
    assert str(error("the reason")) == "the reason"


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (a_finding(), "fleet.yaml:12: services[0].slo: found unknown key 'ttfd'"),
        (a_finding(line=None), "fleet.yaml: services[0].slo: found unknown key 'ttfd'"),
        (a_finding(file="", line=None), "services[0].slo: found unknown key 'ttfd'"),
        (a_finding(path=""), "fleet.yaml:12: found unknown key 'ttfd'"),
        (
            a_finding(allowed="ttft_s, itl_s", suggestion="ttft_s"),
            "fleet.yaml:12: services[0].slo: found unknown key 'ttfd'; allowed: ttft_s, itl_s; "
            "did you mean 'ttft_s'?",
        ),
    ],
)
def test_a_finding_is_one_line_with_place_found_allowed_and_suggestion(finding: Finding, line: str) -> None:
    assert str(finding) == line


def test_all_findings_are_in_one_message() -> None:
    findings = [a_finding(), a_finding(file="gpus.yaml", line=3, path="hbm", found="'lots'")]
    error = ConfigurationError.from_findings(findings)
    assert error.findings == tuple(findings)
    assert str(error).splitlines() == [
        "2 problems in fleet.yaml, gpus.yaml:",
        "  fleet.yaml:12: services[0].slo: found unknown key 'ttfd'",
        "  gpus.yaml:3: hbm: found 'lots'",
    ]


def test_a_heading_names_no_file_where_a_finding_is_from_none() -> None:
    error = ConfigurationError.from_findings([a_finding(), a_finding(file="", line=None, path="--seed")])
    assert str(error).splitlines()[0] == "2 problems:"


def test_one_finding_is_one_problem_and_keeps_the_class() -> None:
    error = CatalogError.from_findings([a_finding()])
    assert isinstance(error, CatalogError)
    assert str(error).startswith("1 problem in fleet.yaml:")


def test_complaining_about_nothing_is_a_fault_of_ours() -> None:
    with pytest.raises(InternalError):
        ConfigurationError.from_findings([])


def test_a_copy_of_an_error_carries_what_the_error_carried() -> None:
    # Copying takes the same way as sending to another process.
    assert copy.copy(TemporaryError("busy", retry_after_s=15)).retry_after_s == 15
    assert copy.copy(ConfigurationError("no", findings=[a_finding()])).findings == (a_finding(),)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("cpsat", "cp-sat"), ("PULP", "pulp"), ("greddy", "greedy"), ("zzz", None), ("", None)],
)
def test_nearest_finds_the_word_that_was_meant(word: str, expected: str | None) -> None:
    assert nearest(word, ["cp-sat", "pulp", "greedy"]) == expected


def test_nearest_gives_the_spelling_that_is_allowed() -> None:
    assert nearest("h100", ["A100", "H100-SXM", "H100"]) == "H100"


@pytest.mark.parametrize(
    ("word", "allowed", "found"),
    [
        ("rack-2", ("rack-two", "rack-1"), "rack-1"),
        ("rack-2", ("rack-two",), "rack-two"),
        ("a100-gpu", ("gpu-a100", "a100-tpu"), "a100-tpu"),
        ("RACK-2", ("rack-1",), "rack-1"),
        ("row", ("rack-1",), None),
    ],
)
def test_the_nearest_word_is_the_fewest_letters_away(
    word: str, allowed: tuple[str, ...], found: str | None
) -> None:
    assert nearest(word, allowed) == found
