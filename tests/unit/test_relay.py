"""Two engines in turn: the first that proves wins, plans are handed on, and the best bound is kept."""

from __future__ import annotations

from typing import Any, Final

import pytest

from planner.clock import FakeClock
from planner.optimization.backends.engine import Engine, Outcome, Termination
from planner.optimization.backends.race import BySize, Relay, works
from planner.optimization.exact import WholeProgram
from planner.optimization.program import Goal
from planner.optimization.protocol import SolveOptions, SolveResult
from tests.builders import a_problem
from tests.engines import Said, Scripted, a_program, an_ask

X: Final = ("n", "x")
PROGRAM: Final = a_program({X: 99})
GOAL: Final = Goal("cost", {X: 10}, constant=-5)
OPTIMAL, FEASIBLE, INFEASIBLE, TIMED_OUT, FAILED = Termination


def at(x: int) -> dict[tuple[str, ...], int]:
    return {X: x}


class Pair:
    """Two scripted engines behind a relay on one clock."""

    def __init__(self, first: Said, second: Said) -> None:
        self.clock = FakeClock()
        self.engines = [
            Scripted(self.clock, [said], name=name) for said, name in ((first, "a"), (second, "b"))
        ]
        self.relay = Relay([self._made(0), self._made(1)], clock=self.clock)

    def _made(self, position: int) -> Any:
        def make() -> Engine:
            return self.engines[position]

        return make

    @property
    def used(self) -> list[str]:
        return [spell.engine for spell in self.relay.spells]

    def minimize(self, **fields: Any) -> Outcome:
        return self.relay.minimize(an_ask(PROGRAM, GOAL, seconds=10.0, **fields))


@pytest.mark.parametrize(
    ("first", "second", "ending", "x", "bound"),
    [
        (Said(OPTIMAL, at(4), 35), Said(FAILED), OPTIMAL, 4, 35),
        (Said(INFEASIBLE), Said(FAILED), INFEASIBLE, None, None),
        (Said(FEASIBLE, at(5), 30), Said(OPTIMAL, at(4), 35), OPTIMAL, 4, 35),
        (Said(FEASIBLE, at(5), 30), Said(FEASIBLE, at(6), 33), FEASIBLE, 5, 33),
        (Said(FEASIBLE, at(6), 34), Said(FEASIBLE, at(5), 30), FEASIBLE, 5, 34),
        (Said(FEASIBLE, at(4), None), Said(FEASIBLE, at(5), 35), OPTIMAL, 4, 35),
        (Said(FEASIBLE, at(4), 30), Said(TIMED_OUT), FEASIBLE, 4, 30),
        (Said(FEASIBLE, at(4), 30), Said(FAILED), FEASIBLE, 4, 30),
        (Said(FEASIBLE, at(4), 30), Said(INFEASIBLE), FEASIBLE, 4, 30),
        (Said(TIMED_OUT), Said(FEASIBLE, at(4), 30), FEASIBLE, 4, 30),
        (Said(TIMED_OUT), Said(INFEASIBLE), INFEASIBLE, None, None),
        (Said(TIMED_OUT), Said(TIMED_OUT), TIMED_OUT, None, None),
        (Said(FAILED), Said(OPTIMAL, at(4), 35), OPTIMAL, 4, 35),
        (Said(FAILED), Said(TIMED_OUT), FAILED, None, None),
        (Said(TIMED_OUT), Said(FAILED), FAILED, None, None),
    ],
)
def test_the_better_plan_and_the_better_bound(
    first: Said, second: Said, ending: Termination, x: int | None, bound: float | None
) -> None:
    outcome = Pair(first, second).minimize()
    assert outcome.termination is ending
    assert outcome.values == (None if x is None else at(x))
    assert outcome.bound == bound


@pytest.mark.parametrize("said", [Said(OPTIMAL, at(4), 35), Said(INFEASIBLE)])
def test_a_proof_ends_the_search_before_the_second_engine_is_loaded(said: Said) -> None:
    pair = Pair(said, Said(FAILED))
    pair.minimize()
    assert pair.used == ["a"]
    assert pair.engines[1].asks == []


def test_the_second_engine_starts_from_the_plan_of_the_first_with_the_time_that_is_left() -> None:
    pair = Pair(Said(FEASIBLE, at(7), 30, takes_s=4.0), Said(TIMED_OUT))
    pair.minimize(hint=at(9))
    (first,), (second,) = (engine.asks for engine in pair.engines)
    assert (first.seconds, first.hint) == (pytest.approx(6.0), at(9))
    assert (second.seconds, second.hint) == (pytest.approx(6.0), at(7))
    assert pair.used == ["a", "b"]


def test_a_hint_is_handed_on_where_there_is_no_plan() -> None:
    pair = Pair(Said(TIMED_OUT), Said(TIMED_OUT))
    pair.minimize(hint=at(9))
    assert pair.engines[1].asks[0].hint == at(9)


def test_no_time_left_asks_nobody_further() -> None:
    pair = Pair(Said(FEASIBLE, at(7), 30, takes_s=10.0), Said(FAILED))
    assert pair.minimize().values == at(7)
    assert pair.used == ["a"]


def test_a_gap_that_the_best_of_both_keeps_is_a_proof() -> None:
    pair = Pair(Said(FEASIBLE, at(4), 10), Said(FEASIBLE, at(9), 34))
    assert pair.minimize(gap=0.03).termination is OPTIMAL


def test_who_found_the_plan_and_who_proved_the_bound_is_remembered() -> None:
    pair = Pair(Said(FEASIBLE, at(5), 30, takes_s=2.0), Said(FEASIBLE, at(6), 45, takes_s=3.0))
    pair.minimize()
    first, second = works(pair.relay.spells)
    assert (first.engine, first.seconds, first.found, first.proved) == ("a", 2.0, ("cost",), ())
    assert (second.engine, second.seconds, second.found, second.proved) == ("b", 3.0, (), ("cost",))


def test_an_answer_says_who_worked_on_it_and_its_bytes_do_not_depend_on_seconds() -> None:
    first, second = answered(1.0), answered(2.0)
    assert [work.engine for work in first.engines] == ["a"]
    assert first.engines[0].seconds < second.engines[0].seconds
    assert first.solution == second.solution


def answered(takes_s: float) -> SolveResult:
    """The greedy plan, since the only engine is slow and finds none."""
    clock = FakeClock()
    engine = Scripted(clock, [Said(TIMED_OUT, takes_s=takes_s)] * 3, name="a")
    relay = Relay([lambda: engine], clock=clock)
    return WholeProgram(relay, name="test", clock=clock)(a_problem(), SolveOptions())


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ([("n", "x")], "small"),
        ([("n", "x"), ("z", "chat")], "small"),
        ([("n", "x"), ("z", "chat"), ("a", "x", "short")], "lengths"),
        ([("n", str(number)) for number in range(600)], "large"),
    ],
)
def test_each_kind_of_program_has_its_relay(columns: list[tuple[str, ...]], kind: str) -> None:
    clock, asked = FakeClock(), list[str]()

    def maker(name: str) -> Any:
        def make() -> Relay:
            asked.append(name)
            return Relay([lambda: Scripted(clock, [Said(TIMED_OUT)], name=name)], clock=clock)

        return make

    by_size = BySize(small=maker("small"), lengths=maker("lengths"), large=maker("large"))
    by_size.minimize(an_ask(a_program(dict.fromkeys(columns, 9)), Goal("cost", {columns[0]: 1})))
    assert asked == [kind]
    assert [spell.engine for spell in by_size.spells] == [kind]
