"""Every engine answers the same small programs the same way, and says how it ended."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from typing import Any, Final

import pytest

from planner.errors import ConfigurationError
from planner.optimization.backends import pulp as pulp_backend
from planner.optimization.backends.cpsat import CpSat
from planner.optimization.backends.engine import Engine, Outcome, Termination
from planner.optimization.backends.pulp import PulpCbc, PulpHighs
from planner.optimization.backends.scip import Scip
from planner.optimization.program import Column, Goal, IntegerProgram, Key, Row
from tests.engines import Enumerating, a_program, an_ask

X, Y, Z = ("n", "x"), ("n", "y"), ("n", "z")
ENGINES: Final[dict[str, Callable[[], Engine]]] = {
    "cp-sat": CpSat,
    "highs": PulpHighs,
    "cbc": PulpCbc,
    "scip": Scip,
}
SUM_OF_FOUR: Final = a_program({X: 9, Y: 9}, Row(("rate",), {X: 1, Y: 1}, lower=4))

engines = pytest.mark.parametrize("engine", [make() for make in ENGINES.values()], ids=list(ENGINES))


def hard(services: int) -> tuple[IntegerProgram, Goal]:
    """Many coverings under one knapsack: no engine proves it in the blink of an eye."""
    rng = random.Random(1)  # noqa: S311 - instances, not secrets
    columns: dict[Key, int] = {}
    rows, knapsack, cost = [], dict[Key, int](), dict[Key, int]()
    for service in range(services):
        keys: list[Key] = [("n", str(service), str(number)) for number in range(12)]
        columns |= dict.fromkeys(keys, 20)
        rows.append(Row(("rate", str(service)), {key: rng.randint(50, 99) for key in keys}, lower=997))
        knapsack |= {key: rng.choice((1, 2, 4, 8)) for key in keys}
        cost |= {key: rng.randint(5_000, 9_999) for key in keys}
    return a_program(columns, *rows, Row(("gpus",), knapsack, upper=15 * services)), Goal("cost", cost)


@engines
@pytest.mark.parametrize(
    ("program", "goal", "value"),
    [
        (SUM_OF_FOUR, Goal("cost", {X: 3, Y: 2}), 8),
        (SUM_OF_FOUR, Goal("cost", {X: 3, Y: 2}, constant=100), 108),
        (SUM_OF_FOUR, Goal("cost", {X: 3, Y: 2}, constant=-100), -92),
        (SUM_OF_FOUR, Goal("most", {X: -3, Y: 2}), -27),
        (SUM_OF_FOUR, Goal("any", {}, constant=7), 7),
        (a_program({X: 9}), Goal("cost", {X: 1}), 0),
        (a_program({X: (2, 9), Y: (-3, -1)}), Goal("cost", {X: 1, Y: 1}), -1),
        (a_program({X: 9, Y: 9}, Row(("r",), {X: 2, Y: 3}, 7, 7)), Goal("cost", {X: 5, Y: 9}), 19),
        (a_program({X: 9}, Row(("r",), {X: 1}, 3, 5)), Goal("most", {X: -1}), -5),
        (a_program({X: 9}, Row(("gpus",), {}, upper=0)), Goal("cost", {X: 1}), 0),
    ],
    ids=["optimal", "constant", "negative constant", "negative", "no terms", "no rows", "bounds", "equality", "range",
         "empty row that holds"],
)  # fmt: skip
def test_optimal(engine: Engine, program: IntegerProgram, goal: Goal, value: int) -> None:
    outcome = engine.minimize(an_ask(program, goal))
    assert outcome.termination is Termination.OPTIMAL
    assert outcome.values is not None
    assert set(outcome.values) == set(program.column)
    assert all(type(count) is int for count in outcome.values.values())
    assert goal.activity(outcome.values) == value
    assert outcome.bound == pytest.approx(value, abs=1e-6)


@engines
@pytest.mark.parametrize(
    "program",
    [
        a_program({X: 1, Y: 2}, Row(("rate",), {X: 1, Y: 1}, lower=4)),
        a_program({X: 9, Y: 9}, Row(("r",), {X: 2, Y: 4}, 3, 3)),
        a_program({X: 9}, Row(("gpus",), {}, upper=-1)),
        a_program({X: 9}, Row(("rate",), {}, lower=1)),
        a_program({X: (3, 2)}),
        a_program({X: 9, Y: 9}, Row(("r",), {X: 3, Y: -3}, 1, 2)),
    ],
    ids=["bounds", "parity", "empty row above", "empty row below", "empty column", "between two multiples"],
)
@pytest.mark.parametrize("goal", [Goal("cost", {X: 1}), Goal("any", {})], ids=["goal", "no goal"])
def test_infeasible(engine: Engine, program: IntegerProgram, goal: Goal) -> None:
    assert engine.minimize(an_ask(program, goal)) == Outcome(Termination.INFEASIBLE)


@engines
@pytest.mark.parametrize("seed", range(15))
def test_every_engine_finds_what_trying_every_point_finds(engine: Engine, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - instances, not secrets
    keys = [X, Y, Z]
    program = a_program(
        dict.fromkeys(keys, 6),
        *(
            Row(
                (str(n),),
                {key: rng.randint(-4, 7) for key in keys},
                rng.choice((None, 5, 9)),
                rng.choice((None, 20)),
            )
            for n in range(3)
        ),
    )
    goal = Goal("cost", {key: rng.randint(1, 9) for key in keys})
    best = Enumerating().minimize(an_ask(program, goal))
    outcome = engine.minimize(an_ask(program, goal))
    assert outcome.termination is best.termination
    if best.values is not None and outcome.values is not None:
        assert goal.activity(outcome.values) == goal.activity(best.values)
        assert program.broken(outcome.values) == ()


@engines
def test_large_coefficients_are_kept_to_the_last_unit(engine: Engine) -> None:
    # One replica of x is one unit short of the demand; rounding would not see it.
    billion = 10**9
    program = a_program(
        {X: 50, Y: 50},
        Row(("rate",), {X: 10_000 * (billion - 1), Y: 10_000 * billion}, lower=30_000 * billion),
    )
    goal = Goal("cost", {X: 1_000_000, Y: 1_250_000})
    outcome = engine.minimize(an_ask(program, goal))
    assert outcome.values is not None
    assert program.broken(outcome.values) == ()
    assert outcome.bound is None or outcome.bound <= 3_750_000
    assert (goal.activity(outcome.values) == 3_750_000) is (outcome.termination is Termination.OPTIMAL)


@engines
def test_what_only_rounding_could_keep_is_never_optimal(engine: Engine) -> None:
    # Only three of x would do, and they are one unit of 3e13 short.
    billion = 10**9
    program = a_program({X: 3}, Row(("rate",), {X: 10_000 * (billion - 1)}, lower=30_000 * billion))
    outcome = engine.minimize(an_ask(program, Goal("cost", {X: 1})))
    assert outcome.values is None
    assert outcome.termination in (Termination.INFEASIBLE, Termination.FAILED)


@engines
def test_a_row_that_holds_with_nothing_to_spare_holds(engine: Engine) -> None:
    shares = {X: 135_483_871, Y: 64_516_129}
    program = a_program(dict.fromkeys(shares, 10_000), Row(("demand",), {X: 1}, 10_000, 10_000),
                        Row(("demand",), {Y: 1}, 10_000, 10_000), Row(("level",), shares, upper=2 * 10**12))  # fmt: skip
    assert engine.minimize(an_ask(program, Goal("cost", {X: 1}))).termination is Termination.OPTIMAL


@engines
def test_no_time_is_no_proof(engine: Engine) -> None:
    program, goal = hard(services=150)
    outcome = engine.minimize(an_ask(program, goal, seconds=0.02))
    assert outcome.termination in (Termination.TIMED_OUT, Termination.FEASIBLE)
    assert (outcome.values is None) is (outcome.termination is Termination.TIMED_OUT)
    if outcome.values is not None:
        assert program.broken(outcome.values) == ()
        assert outcome.bound is None or outcome.bound < goal.activity(outcome.values)


@engines
def test_a_gap_is_enough(engine: Engine) -> None:
    program, goal = hard(services=6)
    outcome = engine.minimize(an_ask(program, goal, gap=0.2))
    assert outcome.termination is Termination.OPTIMAL
    assert outcome.values is not None
    assert outcome.bound is not None
    assert goal.activity(outcome.values) - outcome.bound <= 0.2 * goal.activity(outcome.values) + 1e-6


@engines
@pytest.mark.parametrize("hint", [{X: 4, Y: 0}, {X: 4}, {X: 99, Y: -5}, {("n", "stranger"): 1}, {}])
def test_a_hint_changes_no_answer(engine: Engine, hint: dict[Key, int]) -> None:
    goal = Goal("cost", {X: 3, Y: 2})
    outcome = engine.minimize(an_ask(SUM_OF_FOUR, goal, hint=hint))
    assert outcome.values is not None
    assert goal.activity(outcome.values) == 8


@pytest.mark.parametrize("engine", [CpSat(), PulpHighs()], ids=["cp-sat", "highs"])
@pytest.mark.parametrize("threads", [None, 1, 2])
def test_the_same_ask_has_the_same_answer(engine: Engine, threads: int | None) -> None:
    keys: list[Key] = [("n", str(number)) for number in range(8)]
    program = a_program(dict.fromkeys(keys, 5), Row(("rate",), dict.fromkeys(keys, 1), lower=9))
    ask = an_ask(program, Goal("cost", dict.fromkeys(keys, 7)), threads=threads)
    first = engine.minimize(ask)
    assert first.values is not None
    assert [engine.minimize(ask).values for _ in range(3)] == [first.values] * 3


@engines
def test_what_is_found_is_reported(engine: Engine) -> None:
    heard: list[tuple[int | None, float | None]] = []
    engine.minimize(an_ask(SUM_OF_FOUR, Goal("cost", {X: 3, Y: 2}), report=lambda *said: heard.append(said)))
    assert [value for value, _ in heard if value is not None][-1] == 8
    assert all(bound <= 8 + 1e-6 for _, bound in heard if bound is not None)


@pytest.mark.parametrize(
    ("log", "has_goal", "termination", "bound"),
    [
        ("Result - Optimal solution found\n\nObjective value:                8.00000000\nTotal time", True, "optimal", 8.0),
        ("Result - Optimal solution found (within gap tolerance)\n\nObjective value:                8.0\n"
         "Lower bound:                    7.500\nGap: 0.06\n", True, "optimal", 7.5),
        ("Result - Stopped on time limit\n\nObjective value:                9.0\nLower bound:                    7.000\n",
         True, "feasible", 7.0),
        ("Result - Stopped on time limit\n\nNo feasible solution found\nLower bound:   7.0\n", True, "timed_out", None),
        ("Cbc0038I Pass 3: infeasible\nResult - Stopped on time limit\n\nNo feasible solution found\n", True, "timed_out",
         None),
        ("Result - Problem proven infeasible\n\nNo feasible solution found\n", True, "infeasible", None),
        (
            "Result - Problem proven infeasible\n\nTotal time (CPU seconds):  4.9   (Wallclock seconds):       5.00\n",
            True,
            "timed_out",
            None,
        ),
        (
            "Result - Problem proven infeasible\n\nTotal time (CPU seconds):  4.9   (Wallclock seconds):       4.90\n",
            True,
            "infeasible",
            None,
        ),
        ("Presolve determined that the problem was infeasible with tolerance of 1e-08\n", True, "infeasible", None),
        ("Result - Optimal solution found\n\nObjective value:                0.0\n", False, "optimal", 0.0),
        ("", True, "failed", None),
    ],
    ids=["optimal", "within the gap", "cut with a plan", "cut without", "cut after a failed try", "infeasible",
         "called infeasible when time was over", "infeasible in time", "infeasible in presolve", "no goal", "no log"],
)  # fmt: skip
def test_cbc_is_read_in_its_own_words(
    log: str, has_goal: bool, termination: str, bound: float | None
) -> None:
    answer = pulp_backend._read_cbc_log(log, has_goal=has_goal, seconds=5.0)
    assert (answer.termination, answer.bound) == (termination, bound)


def test_without_cbc_the_way_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: Any, **__: Any) -> None:
        return None

    monkeypatch.setattr(shutil, "which", nowhere)
    with pytest.raises(ConfigurationError, match=r"pulp\[cbc\]"):
        PulpCbc().minimize(an_ask(SUM_OF_FOUR, Goal("cost", {X: 1})))


@pytest.mark.parametrize("hinted", [False, True], ids=["no-hint", "hint"])
def test_scip_says_nothing_on_any_screen(capfd: pytest.CaptureFixture[str], *, hinted: bool) -> None:
    keys = [("n", str(number)) for number in range(6)]
    program = IntegerProgram(
        tuple(Column(key, 0, 9) for key in keys),
        (Row(("rate",), {key: 3 + place for place, key in enumerate(keys)}, lower=37),),
    )
    goal = Goal("cost", {key: 5 + 2 * place for place, key in enumerate(keys)})
    hint = dict.fromkeys(keys, 9) if hinted else None
    # One who may cancel has SCIP start with something that may interrupt it, of which it complains.
    asked = an_ask(program, goal, threads=8, hint=hint, cancelled=lambda: False)
    assert Scip().minimize(asked).termination is Termination.OPTIMAL
    assert capfd.readouterr() == ("", "")
