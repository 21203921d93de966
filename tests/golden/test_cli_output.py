"""Screens as text: in a pipe, and on a terminal of 80 columns."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Final

import pytest
from rich.console import Console

from models.report import Report
from planner.cli.screen.explanation import show_explanation
from planner.cli.screen.report import SHOWN_SERVICES, show_report
from planner.cli.terminal import console_on
from tests.reports import (
    a_closer_report,
    a_heuristic_report,
    a_hopeless_report,
    a_large_report,
    a_relative_report,
    a_report_of_two_limits,
    a_report_without_candidates,
    a_timed_out_report,
    an_infeasible_report,
    an_optimal_report,
)

Golden = Callable[[str, str], None]

REPORTS: Final = {
    "optimal": an_optimal_report,
    "infeasible": an_infeasible_report,
    "hopeless": a_hopeless_report,
    "two-limits": a_report_of_two_limits,
    "without-candidates": a_report_without_candidates,
    "timed-out": a_timed_out_report,
    "heuristic": a_heuristic_report,
    "relative-costs": a_relative_report,
}
ESCAPE: Final = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def piped(report: Report) -> str:
    file = io.StringIO()
    show_report(console_on(file), report, every_service=True)
    return file.getvalue()


def on_terminal(report: Report, *, width: int = 80, every_service: bool = False) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=True,
        color_system="standard",
        highlight=False,
        markup=False,
    )
    show_report(console, report, every_service=every_service)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_in_a_pipe(name: str, golden: Golden) -> None:
    golden(f"plan-{name}-piped.txt", piped(REPORTS[name]()))


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_on_80_columns(name: str, golden: Golden) -> None:
    text = ESCAPE.sub("", on_terminal(REPORTS[name]()))
    golden(f"plan-{name}-80.txt", text)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_a_report_on_40_columns(golden: Golden) -> None:
    text = ESCAPE.sub("", on_terminal(an_optimal_report(), width=40))
    golden("plan-optimal-40.txt", text)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 40


@pytest.mark.parametrize("width", range(30, 90, 7))
@pytest.mark.parametrize("name", REPORTS)
def test_no_figure_is_cut_or_folded(name: str, width: int) -> None:
    report = REPORTS[name]()
    figures = {*re.findall(r"(?<![\w.,])[\d,]*\d\.\d+(?![\w,.])", piped(report))}
    text = ESCAPE.sub("", on_terminal(report, width=width, every_service=True))
    assert {figure for figure in figures if figure not in text} == set()


@pytest.mark.parametrize("name", ["optimal", "infeasible", "closer"])
def test_an_explanation(name: str, golden: Golden) -> None:
    report, file = (REPORTS | {"closer": a_closer_report})[name](), io.StringIO()
    show_explanation(console_on(file), report.explanation, report.problem)
    golden(f"explain-{name}-piped.txt", file.getvalue())


def test_a_pipe_has_no_colors_and_a_terminal_has() -> None:
    assert ESCAPE.search(piped(an_optimal_report())) is None
    assert ESCAPE.search(on_terminal(an_optimal_report())) is not None


def test_a_pipe_cuts_and_folds_no_name() -> None:
    name = "a-variant-with-a-name-that-nobody-would-want-to-type-more-than-once-in-a-whole-life"
    report = an_optimal_report()
    longer = report.problem.candidates[0].but(variant=name)
    problem = report.problem.but(candidates=(longer, *report.problem.candidates[1:]))
    assert f"  {name} @ {longer.pool} " in piped(report.but(problem=problem))


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_terminal_folds_names_and_loses_no_letter(width: int) -> None:
    name = "x" * 70 + "y" * 70
    report = an_optimal_report()
    longer = report.problem.candidates[0].but(variant=name)
    text = on_terminal(
        report.but(problem=report.problem.but(candidates=(longer, *report.problem.candidates[1:]))),
        width=width,
    )
    assert (text.count("x"), text.count("y") >= 70) == (
        70 + on_terminal(report, width=width).count("x"),
        True,
    )


@pytest.mark.parametrize(
    ("every_service", "rows"), [(False, SHOWN_SERVICES), (True, SHOWN_SERVICES + 5)], ids=["first", "all"]
)
def test_a_terminal_stops_after_many_services_unless_all_are_asked_for(
    every_service: bool, rows: int
) -> None:
    text = on_terminal(a_large_report(SHOWN_SERVICES + 5), every_service=every_service)
    assert len(set(re.findall(r"service-\d{4}", text))) == rows
    assert ("and 5 more services; --all shows them" in text) is not every_service


def test_a_conflict_that_there_was_no_time_to_find_is_said_to_be_missing() -> None:
    report = an_infeasible_report()
    unexplained = report.but(explanation=report.explanation.but(conflict=None, relaxations=()))
    assert "What conflicts was not found in the time given: allow more time." in piped(unexplained)
    assert "in the time given" not in piped(report)


def test_variants_say_their_role_once_and_the_domain_where_there_are_several() -> None:
    report = an_optimal_report()
    chat, *rest = report.problem.candidates
    names = {"decode": "decode @ ", "decode-h100": "decode-h100 @ ", "half": "half (decode) @ "}
    for variant, shown in names.items():
        renamed = chat.but(variant=variant, role="decode", fabric_domain="rack-1")
        problem = report.problem.but(candidates=(renamed, *rest))
        assert f"  {shown}{chat.pool} " in piped(report.but(problem=problem))
        assert "rack-1" not in piped(report.but(problem=problem))
    pool = report.problem.pool[chat.pool]
    nodes = tuple(node.but(fabric_domain=f"rack-{number}") for number, node in enumerate(pool.nodes, start=1))
    pools = tuple(pool.but(nodes=nodes) if each.id == pool.id else each for each in report.problem.pools)
    spread = report.problem.but(candidates=(chat.but(fabric_domain="rack-1"), *rest), pools=pools)
    assert f"@ {chat.pool} # rack-1" in piped(report.but(problem=spread))


def test_services_with_unserved_demand_stand_first() -> None:
    report = a_large_report(3)
    figures = report.answer.assessment
    assert figures is not None
    starved = figures.services[2].but(unserved_rps=0.5, unserved_share=0.5)
    answer = report.answer.but(assessment=figures.but(services=(*figures.services[:2], starved)))
    text = piped(report.but(answer=answer))
    assert "service-0002: 0.5 of 1 req/s unserved" in text
    assert text.index("service-0002") < text.index("service-0000")
