"""``check``: any solution by the rules of a scenario file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from planner.cli import app
from planner.cli.files import write_report
from tests.reports import a_timed_out_report, an_infeasible_report, an_optimal_report

SCENARIO: Final = Path(__file__).parents[2] / "data" / "scenarios" / "01-two-variants.yaml"
A100, H100 = "chat/va-a100@a100", "chat/va-h100@h100"
ALL: Final = {"service": "chat", "path": "aggregated", "share": 1}


def check(path: Path, *more: str) -> Result:
    return CliRunner().invoke(app, ["check", str(SCENARIO), str(path), *more])


def a_bare_solution(folder: Path, counts: dict[str, int], **fields: Any) -> Path:
    path = folder / "solution.json"
    whole = {"status": "FEASIBLE", "counts": counts, "proof": {"solver": "hand"}, "served": [ALL]} | fields
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


def test_a_solution_that_keeps_every_rule(tmp_path: Path) -> None:
    done = check(a_bare_solution(tmp_path, {A100: 8, H100: 6}))
    assert (done.exit_code, done.stdout) == (0, "Every rule holds.\n")


@pytest.mark.parametrize(
    ("counts", "said"), [({A100: 9, H100: 6}, "a100"), ({A100: 8, H100: 4}, "headroom"), ({}, "chat")]
)
def test_broken_rules_are_listed(tmp_path: Path, counts: dict[str, int], said: str) -> None:
    done = check(a_bare_solution(tmp_path, counts))
    heading, *broken = done.stdout.splitlines()
    assert done.exit_code == 3
    assert heading.endswith("broken:")
    assert broken
    assert said in done.stdout


def test_one_value_of_the_scenario_can_be_changed(tmp_path: Path) -> None:
    path = a_bare_solution(tmp_path, {A100: 8, H100: 6})
    assert check(path, "--set", "services.chat.traffic.rate=20").exit_code == 3


def test_unserved_demand_breaks_a_promise_unless_it_is_none(tmp_path: Path) -> None:
    path = a_bare_solution(tmp_path, {A100: 4, H100: 2}, served=[ALL | {"share": 0.2}])
    assert check(path).exit_code == 3
    assert check(path, "--allow-unserved").exit_code == 0


def test_a_solution_for_another_problem_is_judged_and_noted(tmp_path: Path) -> None:
    done = check(a_bare_solution(tmp_path, {A100: 8, H100: 6}, derived_from="0123456789abcdef"))
    assert done.exit_code == 0
    assert "made for another problem" in done.stderr


@pytest.mark.parametrize("make", [an_optimal_report, an_infeasible_report])
def test_what_the_scenario_does_not_have_cannot_be_judged(tmp_path: Path, make: Any) -> None:
    path = tmp_path / "answer.json"
    write_report(path, make())
    done = check(path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "which the scenario does not have" in done.stderr


def test_the_nearest_candidate_is_named(tmp_path: Path) -> None:
    done = check(a_bare_solution(tmp_path, {"chat/va-a100@a1000": 8}))
    assert done.exit_code == 2
    assert f"did you mean {A100!r}?" in done.stderr


def test_an_answer_without_a_plan_cannot_be_judged(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    write_report(path, a_timed_out_report())
    done = check(path)
    assert done.exit_code == 2
    assert "status TIMED_OUT" in done.stderr


def test_a_bare_solution_is_explained_by_its_scenario(tmp_path: Path) -> None:
    path = a_bare_solution(tmp_path, {A100: 8, H100: 6})
    done = CliRunner().invoke(app, ["explain", str(SCENARIO), str(path)])
    assert done.exit_code == 0
    assert "the GPUs of pool a100" in done.stdout
    broken = a_bare_solution(tmp_path, {A100: 9, H100: 6})
    assert CliRunner().invoke(app, ["explain", str(SCENARIO), str(broken)]).exit_code == 3


def test_a_bare_solution_alone_cannot_be_explained(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["explain", str(a_bare_solution(tmp_path, {A100: 8}))])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "explain SCENARIO SOLUTION" in done.stderr


def test_a_saved_answer_takes_no_solution(tmp_path: Path) -> None:
    saved = tmp_path / "answer.json"
    write_report(saved, an_optimal_report())
    done = CliRunner().invoke(app, ["explain", str(saved), str(saved)])
    assert done.exit_code == 2
    assert "stands alone" in done.stderr


def test_all_that_is_wrong_with_a_solvers_file_comes_at_once(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(f'{{"{A100}": NaN, "{H100}": 2.5, "chat/va-h100@h10": 3}}', encoding="utf-8")
    done = check(path)
    assert done.exit_code == 2
    assert [line.strip().removeprefix(f"{path}: ") for line in done.stderr.splitlines()[1:]] == [
        f"{A100}: found nan; allowed: a finite number",
        f"{H100}: found 2.5; allowed: a whole number, not below 0",
        f"chat/va-h100@h10: found 'chat/va-h100@h10', which the program of this scenario does not have; "
        f"did you mean '{H100}'?",
    ]


@pytest.mark.parametrize("command", ["check", "explain"])
def test_scenario_and_solution_are_read_before_either_is_refused(tmp_path: Path, command: str) -> None:
    none = [str(tmp_path / name) for name in ("none.yaml", "none.json")]
    done = CliRunner().invoke(app, [command, *none])
    assert done.exit_code == 2
    assert [name for name in none if f"  {name}: found" not in done.stderr] == []


def test_huge_counts_are_judged_in_figures_that_people_read(tmp_path: Path) -> None:
    done = check(a_bare_solution(tmp_path, {A100: 10**9}))
    assert done.exit_code == 3
    assert "the plan takes 4,000,000,000" in done.stdout
    assert "e+" not in done.stdout
