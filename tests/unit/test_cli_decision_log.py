"""One line on stderr per decision, where it is asked for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from models.report import Report
from planner.cli import app
from planner.cli.decision_log import log_planned
from tests.reports import a_relative_report, a_timed_out_report, an_infeasible_report, an_optimal_report

SCENARIO: Final = Path(__file__).parents[2] / "data" / "scenarios" / "01-two-variants.yaml"
PAIR: Final = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)(?: |$)')


def logged(report: Report, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    log_planned(report, "INFO")
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return dict(PAIR.findall(err.rstrip("\n")))


def test_an_optimal_plan(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = logged(an_optimal_report(), capsys)
    assert {key: pairs[key] for key in ("level", "event", "problem", "status", "solver", "seconds")} == {
        "level": "info",
        "event": "planned",
        "problem": '"two services"',
        "status": "OPTIMAL",
        "solver": "cp-sat",
        "seconds": "0.59",
    }
    assert (pairs["cost_usd_per_h"], pairs["unserved_rps"], pairs["broken_rules"]) == ("119.8", "0.0", "0")


@pytest.mark.parametrize(
    ("report", "status", "unserved", "cost"),
    [
        (an_infeasible_report(), "INFEASIBLE", "3.5", "99.8"),
        (a_timed_out_report(), "TIMED_OUT", "null", "null"),
        (a_relative_report(), "FEASIBLE", "0.0", "null"),
    ],
    ids=["scarcity", "no-plan", "relative-costs"],
)
def test_figures_are_of_the_plan_that_is_shown(
    report: Report, status: str, unserved: str, cost: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = logged(report, capsys)
    assert (pairs["status"], pairs["unserved_rps"], pairs["cost_usd_per_h"]) == (status, unserved, cost)


def test_every_line_has_the_same_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert [*logged(an_optimal_report(), capsys)] == [*logged(a_timed_out_report(), capsys)]


@pytest.mark.parametrize(("level", "lines"), [("DEBUG", 1), ("INFO", 1), ("WARNING", 0), ("ERROR", 0)])
def test_the_setting_asks_for_it(monkeypatch: pytest.MonkeyPatch, level: str, lines: int) -> None:
    monkeypatch.setenv("FLEETPLAN_LOG_LEVEL", level)
    done = CliRunner().invoke(app, ["plan", str(SCENARIO)])
    assert (done.exit_code, done.stderr.count("event=planned")) == (0, lines)
    assert "event=planned" not in done.stdout
