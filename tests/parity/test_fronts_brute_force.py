"""The front of two objectives is what trying every plan finds: nothing missing, nothing dominated, both ends."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from math import prod
from typing import Final

import pytest

from models.pareto import Axis
from models.problem import Problem
from models.report import Assessment
from models.solution import Status
from models.workload import Routing, ServiceKind
from planner.optimization.fronts import pareto
from planner.optimization.fronts.plans import with_headroom
from tests.random_problems import every_plan, random_problem

HIGHEST_COUNT: Final = 6
MOST_STATES: Final = 400
SEEDS: Final = range(160)


def small(seed: int) -> Problem | None:
    """A problem of few states whose shares are no decision."""
    problem = random_problem(seed)
    by_length = any(demand.routing is Routing.BY_LENGTH for demand in problem.demands)
    counts = prod(
        HIGHEST_COUNT + 1 if c.max_replicas is None else min(HIGHEST_COUNT, c.max_replicas) + 1
        for c in problem.candidates
    )
    states = counts * prod((pool.growth.max_nodes or 0) + 1 for pool in problem.pools if pool.growth)
    return problem if states <= MOST_STATES and not by_length else None


PROBLEMS: Final = {seed: problem for seed in SEEDS if (problem := small(seed)) is not None}


def figure(plan: Assessment, axis: Axis) -> float:
    return {Axis.COST: plan.cost, Axis.POWER: plan.power_w or 0.0, Axis.CHANGES: plan.changes}[axis]


def undominated(plans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    kept: list[tuple[float, float]] = []
    for x, y in sorted({(round(x, 6), round(y, 6)) for x, y in plans}):
        if not kept or y < kept[-1][1]:
            kept.append((x, y))
    return kept


def test_there_are_enough_problems_to_mean_something() -> None:
    assert len(PROBLEMS) >= 30


@pytest.mark.parametrize(
    "axes", [(Axis.COST, Axis.POWER), (Axis.COST, Axis.CHANGES), (Axis.POWER, Axis.CHANGES)]
)
def test_every_point_and_no_other(axes: tuple[Axis, Axis]) -> None:
    wrong = {}
    for seed, problem in PROBLEMS.items():
        expected = undominated(
            (figure(plan, axes[0]), figure(plan, axes[1])) for plan in every_plan(problem, most=HIGHEST_COUNT)
        )
        front = pareto(problem, axes, points=1000)
        found = [(round(point.x, 6), round(point.y, 6)) for point in front.points]
        if found != expected or front.complete is not bool(expected):
            wrong[seed] = (found, expected)
    assert wrong == {}


def test_cost_and_headroom() -> None:
    wrong = {}
    for seed, problem in PROBLEMS.items():
        if all(d.kind is ServiceKind.BATCH or not d.arrival_rps for d in problem.demands):
            continue
        front = pareto(problem, (Axis.COST, Axis.HEADROOM), points=1000)
        for point, right in zip_longest(front.points, front.points[1:]):
            had = cheapest(problem, point.y)
            beyond = None if point.y >= 1 else cheapest(problem, point.y + 0.001)
            wanted = None if right is None else right.x
            if (
                had != pytest.approx(point.x)
                or (beyond if beyond is None else pytest.approx(beyond)) != wanted
            ):
                wrong[seed] = (point.x, point.y, had, beyond, wanted)
        if front.status is Status.INFEASIBLE and cheapest(problem, 0.0) is not None:
            wrong[seed] = front
    assert wrong == {}


def cheapest(problem: Problem, headroom: float) -> float | None:
    """By trying every plan that keeps this headroom."""
    keeping = with_headroom(problem, round(headroom * 1000))
    return min((plan.cost for plan in every_plan(keeping, most=HIGHEST_COUNT)), default=None)
