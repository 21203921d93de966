"""Solution files of other solvers, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from planner.cli.solver_files import solver_values
from planner.errors import ConfigurationError
from planner.importers import read_solver_solution
from planner.optimization.exporting import solution_from
from planner.optimization.formulation import formulate
from planner.optimization.lp_text import column_names
from planner.optimization.mps_text import mps_text
from planner.optimization.program import Column, Goal, IntegerProgram, Row
from planner.referee import assess, check
from tests.builders import a_candidate, a_demand, a_problem

HIGHS: Final = """Model status
Optimal

# Primal solution values
Feasible
Objective 6
# Columns 2
n(chat.small@east) 3
y(chat,aggregated) 10000
# Rows 1
n(chat.small@east) 99

# Dual solution values
Feasible
# Columns 1
n(chat.small@east) 77
"""
CBC: Final = """Optimal - objective value 6.00000000
      0 n(chat.small@east)          3                  1
**    1 y(chat,aggregated)      10000                  0
"""
SCIP: Final = """solution status: optimal solution found
objective value:                                    6
n(chat.small@east)                                  3 \t(obj:1)
y(chat,aggregated)                              10000 \t(obj:0)
"""
GUROBI: Final = """# Solution for model fleet
# Objective value = 6
n(chat.small@east) 3
y(chat,aggregated) 1e4
"""
PLAIN: Final = "n(chat.small@east) = 3\n\n\\ a comment\ny(chat,aggregated) 10000.0\n"
JSON: Final = '{"n(chat.small@east)": 3, "y(chat,aggregated)": 10000}'
FORMATS: Final = {"highs": HIGHS, "cbc": CBC, "scip": SCIP, "gurobi": GUROBI, "plain": PLAIN, "json": JSON}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_the_same(name: str) -> None:
    values = read_solver_solution(FORMATS[name], file="x.sol")
    assert values == {"n(chat.small@east)": 3.0, "y(chat,aggregated)": 10000.0}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no values"),
        ("hello world and more", "hello world and more"),
        ("x nan", "x: found nan; allowed: a finite number"),
        ('{"x": NaN}', "x: found nan; allowed: a finite number"),
        ('{"x": 1e999}', "x: found inf; allowed: a finite number"),
        ('{"x": true}', "x: found True; allowed: a finite number"),
        ('{"x": {"y": 1}}', "x: found a list or an object; allowed: a finite number"),
        ('{"x": 1, "x": 2}', "x: found 2.0 after 1; allowed: each name once"),
        ("{}", "no values"),
        ("x 1\nx 2", "2 after 1"),
        ("Optimal - objective value 6\n 0 x\n", "0 x"),
        ("Model status\nInfeasible\n\n# Primal solution values\nNone\n", "no values"),
        ("solution status: infeasible\nno solution available\n", "no values"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        read_solver_solution(text, file="x.sol")
    assert "x.sol" in str(caught.value)


def test_all_that_is_wrong_is_said_and_a_foreign_file_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_solver_solution('{"a": NaN, "b": "many", "c": 3, "d": -1e999}', file="x")
    assert [each.path for each in caught.value.findings] == ["a", "b", "d"]
    with pytest.raises(ConfigurationError) as caught:
        read_solver_solution("Columns and rows follow\n" * 500, file="x")
    assert len(caught.value.findings) == 1
    with pytest.raises(ConfigurationError) as caught:
        read_solver_solution("\n".join(f"x{number} nan" for number in range(50)), file="x")
    assert str(caught.value.findings[-1]) == "x: found 30 more problems"


PROBLEM: Final = a_problem([a_demand(rps=3.0)])


def test_values_become_a_solution_that_is_judged() -> None:
    solution = solution_from(PROBLEM, read_solver_solution(CBC, file="x"), file="x")
    assert solution.counts == {"chat/small@east": 3}
    assert check(PROBLEM, solution) == ()
    assert solution.derived_from == PROBLEM.fingerprint


def test_counts_alone_serve_the_most_they_can() -> None:
    for values in ({"n(chat.small@east)": 2.0}, {"chat/small@east": 2.0}):
        solution = solution_from(PROBLEM, values, file="x")
        assert assess(PROBLEM, solution).unserved_rps == pytest.approx(1.0, abs=1e-3)


def test_values_near_whole_numbers_are_whole() -> None:
    assert solution_from(PROBLEM, {"chat/small@east": 2.99999}, file="x").counts == {"chat/small@east": 3}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"n(chat.small@east)": 2.5}, "2.5; allowed: a whole number"),
        ({"n(chat.small@east)": -1.0}, "-1; allowed: a whole number"),
        ({"n(chat.smal@east)": 1.0}, r"did you mean 'n\(chat.small@east\)'"),
        ({"x17": 1.0}, "which the program of this scenario does not have"),
    ],
)
def test_values_that_are_of_no_plan(values: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        solution_from(PROBLEM, values, file="x")


def test_columns_that_only_a_level_brings_say_nothing() -> None:
    values = {"n(chat.small@east)": 3.0, "t(unserved-share)": 5.0, "nothing": 0.0}
    assert solution_from(PROBLEM, values, file="x").counts == {"chat/small@east": 3}


def test_names_are_told_apart_and_short_enough_for_every_reader() -> None:
    variants = ["a-b", "a.b", "a/b", "x" * 120 + "1", "x" * 120 + "2"]
    problem = a_problem([a_demand(rps=3.0)], [a_candidate(variant=name) for name in variants])
    names = column_names(formulate(problem).program)
    assert len(set(names.values())) == len(names)
    assert max(map(len, names.values())) <= 100
    for candidate in problem.candidates:
        solution = solution_from(problem, {names["n", candidate.id]: 1.0}, file="x")
        assert solution.counts == {candidate.id: 1}


def test_which_files_are_a_solvers(tmp_path: Path) -> None:
    def of(text: str, name: str = "answer.sol") -> dict[str, float] | None:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        found = solver_values(path)
        return None if found is None else found.by_name

    assert of(CBC) == of(JSON, "answer.json") != None  # noqa: E711
    assert of(json.dumps({"schema": "fleetplan/1", "kind": "report"})) is None
    assert of('{"n": 1') is None
    assert of("") == of("{}", "answer.json") == {}
    assert of("oops", "answer.json") is None
    assert solver_values(tmp_path / "missing.sol") is None


def test_mps_text() -> None:
    a, b, c = ("n", "a"), ("n", "b"), ("m", "c")
    program = IntegerProgram(
        (Column(a, 0, 9), Column(b, -1, 2), Column(c, 4, 4)),
        (
            Row(("rate", "x"), {a: 2, b: -3}, lower=-4),
            Row(("gpus", "x"), {a: 1}, lower=-1, upper=16),
            Row(("gpus", "x"), {b: 1}, 2, 2),
            Row(("quota",), {a: 1}, upper=0),
        ),
    )
    assert mps_text(program, Goal("cost", {a: 5}, constant=-7)).splitlines() == [
        "NAME fleet FREE",
        "ROWS",
        " N goal",
        " G rate(x)",
        " G gpus(x)",
        " E gpus(x)~2",
        " L quota",
        "COLUMNS",
        " MARKER 'MARKER' 'INTORG'",
        " n(a) goal 5",
        " n(a) rate(x) 2",
        " n(a) gpus(x) 1",
        " n(a) quota 1",
        " n(b) rate(x) -3",
        " n(b) gpus(x)~2 1",
        " m(c) goal 0",
        " MARKER 'MARKER' 'INTEND'",
        "RHS",
        " RHS goal 7",
        " RHS rate(x) -4",
        " RHS gpus(x) -1",
        " RHS gpus(x)~2 2",
        "RANGES",
        " RANGE gpus(x) 17",
        "BOUNDS",
        " LO BOUND n(a) 0",
        " UP BOUND n(a) 9",
        " LO BOUND n(b) -1",
        " UP BOUND n(b) 2",
        " FX BOUND m(c) 4",
        "ENDATA",
    ]
