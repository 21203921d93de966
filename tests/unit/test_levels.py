"""One goal after the other, each held when the next is solved, with what time allows."""

from __future__ import annotations

from typing import Any, Final

import pytest

from planner.clock import FakeClock
from planner.optimization.backends.engine import Engine, Termination
from planner.optimization.levels import Descent
from planner.optimization.program import Column, Goal, IntegerProgram, Row
from planner.optimization.protocol import ProgressEvent, SolveOptions, silent
from tests.engines import Enumerating, Said, Scripted, a_program

X, Y = ("n", "x"), ("n", "y")
SUM_OF_FOUR: Final = a_program({X: 9, Y: 9}, Row(("rate",), {X: 1, Y: 1}, lower=4))
FIRST: Final = Goal("first", {X: 100, Y: 101})
SECOND: Final = Goal("second", {X: 1})
OPTIMAL, FEASIBLE, TIMED_OUT = Termination.OPTIMAL, Termination.FEASIBLE, Termination.TIMED_OUT


def a_descent(engine: Engine, program: IntegerProgram = SUM_OF_FOUR, **fields: Any) -> Descent:
    given = {"options": SolveOptions(time_limit_s=10.0, gap=0.0), "tolerance": 0.0, "clock": FakeClock(),
             "progress": silent} | fields  # fmt: skip
    return Descent(engine=engine, program=program, **given)


@pytest.mark.parametrize(
    ("tolerance", "x"), [(0.0, 4), (0.0024, 4), (0.0025, 3), (0.005, 2), (0.0099, 1), (0.01, 0), (1.0, 0)]
)
def test_a_level_may_rise_by_the_tolerance_and_no_more(tolerance: float, x: int) -> None:
    descent = a_descent(Enumerating(), tolerance=tolerance)
    assert descent.minimize(FIRST) == 400
    assert descent.minimize(SECOND) == x
    first, second = descent.levels_at(descent.values)
    assert (first.value, first.bound) == (400 + (4 - x), 400)
    assert first.gap == pytest.approx((4 - x) / (404 - x))
    assert (second.value, second.bound, second.gap) == (x, x, 0.0)


def test_exactly_leaves_no_tolerance() -> None:
    descent = a_descent(Enumerating(), tolerance=1.0)
    descent.minimize(FIRST, exactly=True)
    assert descent.minimize(SECOND) == 4


def test_each_level_is_held_for_all_that_follow() -> None:
    program = a_program({X: 3, Y: 3, ("n", "z"): 3}, Row(("rate",), {X: 1, Y: 1, ("n", "z"): 1}, lower=3))
    descent = a_descent(Enumerating(), program)
    assert [descent.minimize(Goal(str(key), {key: 1})) for key in (X, Y, ("n", "z"))] == [0, 0, 3]


def test_a_goal_below_zero_is_held_as_well() -> None:
    descent = a_descent(Enumerating())
    assert descent.minimize(Goal("most", {X: -1}), exactly=True) == -9
    descent.minimize(Goal("least", {X: 1}))
    assert descent.values[X] == 9


def test_a_zero_is_held_at_zero_whatever_the_tolerance() -> None:
    descent = a_descent(Enumerating(), tolerance=1.0)
    assert descent.minimize(Goal("x", {X: 1})) == 0
    assert descent.minimize(Goal("y", {Y: 1})) == 4


def test_a_constant_counts_in_the_value_and_in_the_tolerance() -> None:
    descent = a_descent(Enumerating(), tolerance=0.1)
    assert descent.minimize(Goal("first", {X: 1, Y: 1}, constant=26, unit=0.5, unit_name="W")) == 30
    descent.minimize(Goal("second", {X: -1}))
    assert descent.values[X] == 7
    (level, _) = descent.levels_at(descent.values)
    assert (level.value, level.bound, level.unit) == (16.5, 15.0, "W")


def test_a_goal_without_terms_is_not_solved_for_but_a_plan_is_found_in_the_end() -> None:
    engine = Enumerating()
    descent = a_descent(engine)
    assert descent.minimize(Goal("unserved", {})) == 0
    assert descent.minimize(Goal("power", {}, constant=7)) == 7
    assert engine.asks == []
    descent.settle()
    assert len(engine.asks) == 1
    assert [(level.value, level.gap) for level in descent.levels_at(descent.values)] == [
        (0.0, 0.0),
        (7.0, 0.0),
    ]


def test_settling_asks_nothing_where_there_is_a_plan() -> None:
    engine = Enumerating()
    descent = a_descent(engine)
    descent.minimize(Goal("x", {X: 1}))
    descent.settle()
    assert len(engine.asks) == 1


def test_levels_that_are_not_recorded_are_held() -> None:
    descent = a_descent(Enumerating())
    descent.minimize(Goal("x", {X: 1}), record=False)
    assert descent.levels == []
    assert descent.minimize(Goal("y", {Y: 1})) == 4


def test_columns_and_rows_that_are_added_take_part() -> None:
    descent = a_descent(Enumerating())
    t = ("t",)
    descent.extend(
        (Column(t, 0, 9),), (Row(("r",), {t: 1, X: -1}, lower=0), Row(("r",), {t: 1, Y: -1}, lower=0))
    )
    assert descent.minimize(Goal("largest", {t: 1})) == 2


@pytest.mark.parametrize("ending", [Termination.INFEASIBLE, TIMED_OUT, Termination.FAILED])
def test_no_plan_at_the_first_level_ends_the_descent(ending: Termination) -> None:
    clock = FakeClock()
    engine = Scripted(clock, [Said(ending)])
    descent = a_descent(engine, clock=clock)
    assert descent.minimize(FIRST) is None
    assert descent.minimize(SECOND) is None
    assert (descent.stopped, dict(descent.values), descent.levels) == (ending, {}, [])
    assert len(engine.asks) == 1


def test_a_first_level_without_a_plan_takes_what_was_kept_for_later_ones() -> None:
    clock = FakeClock()
    engine = Scripted(clock, [Said(TIMED_OUT, takes_s=8.0), Said(OPTIMAL, {X: 4, Y: 0}, 400, takes_s=1.0)])
    descent = a_descent(engine, clock=clock)
    assert descent.minimize(FIRST) == 400
    assert [ask.seconds for ask in engine.asks] == [pytest.approx(8.0), pytest.approx(2.0)]


def test_an_engine_that_gave_up_is_not_asked_again() -> None:
    clock = FakeClock()
    engine = Scripted(clock, [Said(TIMED_OUT, takes_s=1.0)])
    assert a_descent(engine, clock=clock).minimize(FIRST) is None
    assert len(engine.asks) == 1


def test_a_later_level_that_finds_nothing_keeps_the_plan_and_proves_nothing() -> None:
    clock = FakeClock()
    plan = {X: 4, Y: 0}
    engine = Scripted(clock, [Said(OPTIMAL, plan, 400), Said(TIMED_OUT)])
    descent = a_descent(engine, clock=clock)
    assert [descent.minimize(FIRST), descent.minimize(SECOND)] == [400, 4]
    assert descent.values == plan
    first, second = descent.levels
    assert (first.proven, second.proven, second.bound) == (True, False, None)
    assert descent.levels_at(plan)[1].gap is None


def test_a_plan_that_is_cut_short_has_its_gap() -> None:
    clock = FakeClock()
    engine = Scripted(clock, [Said(FEASIBLE, {X: 5, Y: 0}, 399.2)])
    descent = a_descent(engine, clock=clock)
    assert descent.minimize(FIRST) == 500
    (level,) = descent.levels_at(descent.values)
    assert (level.value, level.bound) == (500, 400)
    assert level.gap == pytest.approx(0.2)
    assert not descent.levels[0].proven


def test_a_gap_of_a_zero_value_is_absolute() -> None:
    clock = FakeClock()
    engine = Scripted(clock, [Said(FEASIBLE, {X: 0, Y: 4}, -3.0)])
    descent = a_descent(engine, clock=clock)
    assert descent.minimize(Goal("x", {X: 1}, unit=0.5)) == 0
    assert descent.levels_at(descent.values)[0].gap == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("bound", "gap", "proven"),
    [(500.0, 0.0, True), (499.9999999, 0.0, True), (499.2, 0.0, True), (499.0, 0.0, False), (450.0, 0.1, True),
     (449.0, 0.1, False), (None, 0.1, False)],
)  # fmt: skip
def test_a_feasible_plan_is_proven_when_its_bound_is_near_enough(
    bound: float | None, gap: float, proven: bool
) -> None:
    clock = FakeClock()
    engine = Scripted(clock, [Said(FEASIBLE, {X: 5, Y: 0}, bound)])
    descent = a_descent(engine, clock=clock, options=SolveOptions(gap=gap))
    descent.minimize(FIRST)
    assert descent.levels[0].proven is proven


def test_the_time_that_is_left_is_shared_out() -> None:
    clock = FakeClock()
    plan = {X: 4, Y: 0}
    engine = Scripted(
        clock, [Said(OPTIMAL, plan, 400, 5.0), Said(FEASIBLE, plan, 0, 4.0), Said(TIMED_OUT, None, None, 1.0)]
    )
    descent = a_descent(engine, clock=clock)
    descent.minimize(FIRST)
    descent.minimize(SECOND)
    descent.minimize(Goal("third", {Y: 1}), share=1.0)
    assert [ask.seconds for ask in engine.asks] == pytest.approx([8.0, 4.0, 1.0])
    assert descent.minimize(Goal("fourth", {Y: 1})) == 0
    assert len(engine.asks) == 3


def test_each_ask_starts_from_the_plan_before_it() -> None:
    clock = FakeClock()
    plan = {X: 4, Y: 0}
    engine = Scripted(clock, [Said(OPTIMAL, plan, 400), Said(OPTIMAL, plan, 4)])
    descent = a_descent(engine, clock=clock, options=SolveOptions(gap=0.5, threads=3, seed=7))
    descent.hint = {X: 9}
    descent.minimize(FIRST)
    descent.minimize(SECOND)
    assert [ask.hint for ask in engine.asks] == [{X: 9}, plan]
    assert {(ask.gap, ask.threads, ask.seed) for ask in engine.asks} == {(0.5, 3, 7)}


def test_a_goal_on_columns_that_time_did_not_reach_is_left_out() -> None:
    clock = FakeClock()
    engine = Scripted(clock, [Said(OPTIMAL, {X: 4, Y: 0}, 400), Said(TIMED_OUT)])
    descent = a_descent(engine, clock=clock)
    descent.minimize(FIRST)
    descent.extend((Column(("t",), 0, 1),))
    assert descent.minimize(Goal("new", {("t",): 1})) is None
    assert descent.unreached


def test_progress_is_told_in_units() -> None:
    clock, heard = FakeClock(), list[ProgressEvent]()
    engine = Scripted(clock, [Said(FEASIBLE, {X: 5, Y: 0}, 400, 2.0)])
    descent = a_descent(engine, clock=clock, progress=heard.append)
    descent.minimize(Goal("cost", {X: 100}, unit=0.01))
    (event,) = heard
    assert (event.solver, event.level, event.seconds) == ("scripted", "cost", 2.0)
    assert (event.value, event.bound, event.gap) == (5.0, 4.0, pytest.approx(0.2))


def test_breaking_ties_takes_a_share_of_the_time_of_what_came_before() -> None:
    clock = FakeClock()
    plan = {X: 4, Y: 0}
    engine = Scripted(
        clock, [Said(OPTIMAL, plan, 400, 3.0), Said(FEASIBLE, plan, 0, 0.5), Said(FEASIBLE, plan, 0, 0.5)]
    )
    descent = a_descent(engine, clock=clock, options=SolveOptions(time_limit_s=100.0))
    descent.minimize(FIRST)
    descent.minimize(SECOND, tie_break=True)
    descent.minimize(Goal("third", {Y: 1}), tie_break=True, share=1.0)
    assert [ask.seconds for ask in engine.asks] == pytest.approx([80.0, 1.2, 1.4])


@pytest.mark.parametrize(
    ("bound", "time_limit_s", "reached"),
    [
        (3.0, 100.0, {"second": 0.25}),
        (4.0, 100.0, {}),  # proven: it has to be proven again
        (None, 100.0, {}),
        (3.0, 4.0, {}),  # the end of all time cut it short, so more may be possible
    ],
)
def test_what_ties_were_left_with_after_all_their_time_is_a_measure(
    bound: float | None, time_limit_s: float, reached: dict[str, float]
) -> None:
    clock = FakeClock()
    plan = {X: 4, Y: 0}
    engine = Scripted(clock, [Said(OPTIMAL, plan, 400, 3.0), Said(FEASIBLE, plan, bound, 0.5)])
    descent = a_descent(engine, clock=clock, options=SolveOptions(time_limit_s=time_limit_s, gap=0.01))
    descent.minimize(FIRST)
    descent.minimize(SECOND, tie_break=True)
    assert descent.reached == reached


@pytest.mark.parametrize(("bound", "proven"), [(3.0, False), (4.0, True)])
def test_ties_need_no_more_than_the_descent_before_could_prove_and_say_what_is_left(
    bound: float, proven: bool
) -> None:
    clock = FakeClock()
    plan = {X: 4, Y: 0}
    engine = Scripted(clock, [Said(OPTIMAL, plan, 400), Said(OPTIMAL, plan, bound)])
    descent = a_descent(
        engine, clock=clock, options=SolveOptions(gap=0.01), reached={"first": 0.3, "second": 0.25}
    )
    descent.minimize(FIRST)
    descent.minimize(SECOND, tie_break=True)
    assert [ask.gap for ask in engine.asks] == pytest.approx([0.01, 0.26])
    _, second = descent.levels_at(plan)
    assert (second.gap, descent.levels[-1].proven) == ((4 - bound) / 4, proven)
    assert descent.reached["second"] == 0.25  # a measure that does not grow from plan to plan
