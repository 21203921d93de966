"""Fronts: the boxes on stairs of which everything is known, and problems small enough for paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.hardware import PowerDomain
from models.pareto import Axis, ParetoFront
from models.problem import Problem
from models.solution import Status
from planner.clock import FakeClock
from planner.errors import ConfigurationError
from planner.optimization.fronts import pareto
from planner.optimization.fronts.boxes import staircase
from planner.optimization.protocol import SolveOptions
from planner.referee import assess
from tests.builders import a_candidate, a_demand, a_pool, a_problem


@dataclass(frozen=True)
class At:
    place: tuple[int, int]


@dataclass
class Known:
    """Stairs of which every point is known; counts what it was asked."""

    points: list[tuple[int, int]]
    asked: int = 0

    def leftmost(self, y_most: int | None) -> At | None:
        self.asked += 1
        fit = [p for p in self.points if y_most is None or p[1] <= y_most]
        return At(min(fit)) if fit else None

    def lowest(self, x_most: int | None) -> At | None:
        self.asked += 1
        fit = [(y, x) for x, y in self.points if x_most is None or x <= x_most]
        return At(min(fit)[::-1]) if fit else None


def stairs_of(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [
        p for p in sorted(set(points))
        if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)
    ]  # fmt: skip


coordinates = st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=1, max_size=40)


@given(coordinates)
def test_every_step_is_found(points: list[tuple[int, int]]) -> None:
    known = Known(points)
    found = staircase(known.leftmost, known.lowest, most=1000)
    assert [each.place for each in found.points] == stairs_of(points)
    assert found.complete
    assert known.asked <= 2 + 4 * len(found.points)


@given(coordinates, st.integers(2, 6))
def test_a_few_hold_both_ends_and_nothing_dominated(points: list[tuple[int, int]], most: int) -> None:
    known, stairs = Known(points), stairs_of(points)
    found = staircase(known.leftmost, known.lowest, most=most)
    places = [each.place for each in found.points]
    assert set(places) <= set(stairs)
    assert {stairs[0], stairs[-1]} <= set(places)
    assert len(places) <= most
    assert not found.complete or places == stairs


def test_nothing_at_all() -> None:
    known = Known([])
    assert staircase(known.leftmost, known.lowest, most=5).points == []


def front(problem: Problem, x: Axis, y: Axis, **options: Any) -> ParetoFront:
    return pareto(problem, (x, y), **options)


def places(found: ParetoFront) -> list[tuple[float, float]]:
    return [(point.x, point.y) for point in found.points]


def thrifty(**fields: Any) -> Problem:
    """Three replicas are needed: cheap ones that draw much, or dear ones that draw little."""
    candidates = [a_candidate(power_w=500.0), a_candidate(variant="green", cost=2.0, power_w=300.0)]
    return a_problem([a_demand(rps=3.0)], candidates, **fields)


def test_cost_and_power() -> None:
    found = front(thrifty(), Axis.COST, Axis.POWER)
    assert places(found) == [(3, 1500), (4, 1300), (5, 1100), (6, 900)]
    assert (found.status, found.complete, found.x_unit, found.y_unit) == (Status.OPTIMAL, True, "$/h", "W")
    assert {(point.status, point.gap) for point in found.points} == {(Status.OPTIMAL, 0.0)}


def test_axes_may_be_turned() -> None:
    there, back = front(thrifty(), Axis.COST, Axis.POWER), front(thrifty(), Axis.POWER, Axis.COST)
    assert [(y, x) for x, y in places(back)][::-1] == places(there)
    by_headroom = front(thrifty(), Axis.HEADROOM, Axis.COST)
    assert [(y, x) for x, y in places(by_headroom)][::-1] == places(
        front(thrifty(), Axis.COST, Axis.HEADROOM)
    )


def test_cost_and_unserved_demand() -> None:
    found = front(a_problem([a_demand(rps=2.0)]), Axis.COST, Axis.UNSERVED)
    assert places(found) == [(0, 2), (1, 1), (2, 0)]


def test_cost_and_headroom() -> None:
    found = front(thrifty(), Axis.COST, Axis.HEADROOM)
    assert places(found) == [(3, 0), (4, 0.333), (5, 0.666), (6, 1.0)]


def test_cost_and_changes() -> None:
    candidates = [a_candidate(), a_candidate(variant="old", cost=2.0, current=3)]
    found = front(a_problem([a_demand(rps=3.0)], candidates), Axis.COST, Axis.CHANGES)
    assert places(found) == [(3, 6), (4, 4), (5, 2), (6, 0)]


def test_the_other_axes_are_weighed_at_the_least_unserved_demand() -> None:
    problem = thrifty(allow_unserved=True).but(pools=(a_pool(nodes=1, gpus=2),))
    found = front(problem, Axis.COST, Axis.POWER)
    assert places(found) == [(2, 1000), (3, 800), (4, 600)]
    assert {round(point.unserved_rps, 3) for point in found.points} == {1.0}


def test_limits_are_kept() -> None:
    problem = thrifty(power=(PowerDomain(id="hall", cap_w=1200.0),)).but(pools=(a_pool(power_domain="hall"),))
    found = front(problem, Axis.COST, Axis.POWER)
    assert places(found) == [(5, 1100), (6, 900)]
    assert all(assess(problem, point.solution).violations == () for point in found.points)


def test_a_few_points_say_that_there_may_be_more() -> None:
    found = front(thrifty(), Axis.COST, Axis.POWER, points=3)
    assert (len(found.points), found.complete) == (3, False)
    assert {places(found)[0], places(found)[-1]} == {(3, 1500), (6, 900)}


def test_no_plan_and_no_time() -> None:
    small = thrifty().but(pools=(a_pool(nodes=1, gpus=2),))
    for y in (Axis.POWER, Axis.HEADROOM):
        assert (front(small, Axis.COST, y).status, front(small, Axis.COST, y).points) == (
            Status.INFEASIBLE,
            (),
        )
    found = front(thrifty(), Axis.COST, Axis.POWER, options=SolveOptions(time_limit_s=0), clock=FakeClock())
    assert (found.status, found.points, found.complete) == (Status.TIMED_OUT, (), False)


@pytest.mark.parametrize(
    ("axes", "points", "said"),
    [
        ((Axis.COST, Axis.COST), 25, "another axis than --x"),
        ((Axis.HEADROOM, Axis.UNSERVED), 25, "headroom is asked for all demand"),
        ((Axis.COST, Axis.POWER), 1, "at least 2"),
    ],
)
def test_what_cannot_be_asked(axes: tuple[Axis, Axis], points: int, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        pareto(thrifty(), axes, points=points)
