"""A program as LP text is read back by a solver as the same program."""

from __future__ import annotations

import random
from pathlib import Path

import highspy
import pytest

from planner.optimization.backends.engine import Ask, Termination
from planner.optimization.backends.pulp import PulpHighs
from planner.optimization.lp_text import lp_text
from planner.optimization.program import Column, Goal, IntegerProgram, Key, Row

A, B, C = ("n", "chat/small@east"), ("n", "chat small@east"), ("m", "east")


def read_back(text: str, folder: Path) -> tuple[str, float]:
    """What HiGHS says of the text: its status and the objective."""
    path = folder / "program.lp"
    path.write_text(text, encoding="utf-8")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    return highs.modelStatusToString(highs.getModelStatus()), highs.getInfo().objective_function_value


def test_it_reads_as_people_write_it() -> None:
    program = IntegerProgram(
        (Column(A, 0, 9), Column(B, 1, 2), Column(C, -3, 4)),
        (
            Row(("rate", "chat", "both"), {A: 2, B: -3}, lower=-4),
            Row(("gpus", "east"), {A: 1, C: -8}, lower=-1, upper=16),
            Row(("gpus", "east"), {C: 1}, 2, 2),
            Row(("gpus",), {}, upper=-1),
        ),
    )
    assert lp_text(program, Goal("cost", {A: 5, C: 1}, constant=-7)).splitlines() == [
        "Minimize",
        " goal: +5 n(chat.small@east) +1 m(east) -7",
        "Subject To",
        " rate(chat,both): +2 n(chat.small@east) -3 n(chat.small@east)~2 >= -4",
        " gpus(east).least: +1 n(chat.small@east) -8 m(east) >= -1",
        " gpus(east).most: +1 n(chat.small@east) -8 m(east) <= 16",
        " gpus(east)~2: +1 m(east) = 2",
        " gpus: 0 nothing <= -1",
        "Bounds",
        " 0 <= n(chat.small@east) <= 9",
        " 1 <= n(chat.small@east)~2 <= 2",
        " -3 <= m(east) <= 4",
        " nothing = 0",
        "General",
        " n(chat.small@east)",
        " n(chat.small@east)~2",
        " m(east)",
        "End",
    ]


@pytest.mark.parametrize("seed", range(20))
def test_a_solver_reads_the_same_program(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)  # noqa: S311 - instances, not secrets
    keys: list[Key] = [("x", str(number)) for number in range(rng.randint(1, 30))]
    rows = tuple(
        Row(("row", str(number)), {key: rng.randint(-9, 9) or 1 for key in rng.sample(keys, len(keys) // 2 + 1)},
            lower=rng.choice((None, -20, 3)), upper=rng.choice((None, 25)))
        for number in range(4)
    )  # fmt: skip
    program = IntegerProgram(tuple(Column(key, rng.randint(-2, 0), rng.randint(0, 5)) for key in keys), rows)
    goal = Goal("cost", {key: rng.randint(-5, 9) or 2 for key in keys}, constant=rng.randint(-9, 9))
    outcome = PulpHighs().minimize(Ask(program=program, goal=goal, seconds=10, gap=0))
    status, objective = read_back(lp_text(program, goal), tmp_path)
    if outcome.values is None:
        assert (outcome.termination, status) == (Termination.INFEASIBLE, "Infeasible")
    else:
        assert (status, objective) == ("Optimal", pytest.approx(goal.activity(outcome.values)))


def test_rows_without_terms_and_no_goal_are_legal(tmp_path: Path) -> None:
    column = (Column(A, 0, 1),)
    possible = IntegerProgram(column, (Row(("gpus",), {}, upper=0), Row(("rate",), {A: 1}, lower=1)))
    assert read_back(lp_text(possible), tmp_path) == ("Optimal", 0.0)
    impossible = IntegerProgram(column, (Row(("gpus",), {}, upper=-1),))
    assert read_back(lp_text(impossible), tmp_path)[0] == "Infeasible"


def test_lines_stay_short_enough_for_every_reader() -> None:
    keys: list[Key] = [("n", f"service-{number}/variant@pool") for number in range(200)]
    program = IntegerProgram(
        tuple(Column(key, 0, 1) for key in keys), (Row(("gpus",), dict.fromkeys(keys, 1), upper=1),)
    )
    assert max(len(line) for line in lp_text(program).splitlines()) <= 120


def test_a_name_is_cut_where_formats_end() -> None:
    keys: list[Key] = [("n", "x" * 300 + end) for end in "ab"]
    text = lp_text(IntegerProgram(tuple(Column(key, 0, 1) for key in keys), ()))
    names = text.partition("General\n")[2].split()[:2]
    assert len(set(names)) == 2
    assert max(map(len, names)) <= 255
