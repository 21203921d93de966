"""A plan over time: bars that follow one another, and accelerators as the waves say they are held."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from models.plan import Plan, Step, StepKind, Wave
from models.problem import Problem
from planner.charts.timeline import KINDS, time_unit
from planner.optimization.protocol import SolveOptions
from planner.planning import sized, solve_with
from planner.rollout import reverse, roll_out
from planner.rollout.timeline import bars_of, levels_of
from planner.scenario import load_scenario
from planner.ui.answers.moving import held_rows, lane_rows, step_rows
from tests.builders import a_candidate, a_pool, a_problem
from tests.rollouts import one_variant

SCENARIOS: Final = sorted((Path(__file__).parents[2] / "data" / "scenarios").glob("*.yaml"))


def a_step(problem: Problem, kind: StepKind, count: int, *, place: int = 0) -> Step:
    one = problem.candidates[place]
    return Step(
        kind=kind,
        pool=one.pool,
        candidate=one.id,
        service=one.service,
        variant=one.variant,
        count=count,
        before=3,
        after=3 + count if kind is StepKind.START else 3 - count if kind is StepKind.REMOVE else 3,
    )


def a_swap() -> tuple[Problem, Plan]:
    """A start of 90 s, then a drain of 60 s with its removal."""
    problem = one_variant(3)
    waves = (
        Wave(steps=(a_step(problem, StepKind.START, 2),), duration_s=90.0),
        Wave(
            steps=(a_step(problem, StepKind.DRAIN, 1), a_step(problem, StepKind.REMOVE, 1)), duration_s=60.0
        ),
    )
    return problem, Plan(waves=waves, duration_s=150.0)


def test_a_wave_begins_when_the_one_before_is_over_and_a_removal_when_its_drain_is() -> None:
    problem, plan = a_swap()
    assert [(bar.step.kind.value, bar.start_s, bar.end_s) for bar in bars_of(plan, problem)] == [
        ("start", 0.0, 90.0),
        ("drain", 90.0, 150.0),
        ("remove", 150.0, 150.0),
    ]


def test_what_starts_holds_at_once_and_what_drains_to_its_end() -> None:
    problem, plan = a_swap()
    gpus = problem.candidates[0].gpus
    levels = [(level.at_s, level.held) for level in levels_of(plan, problem)]
    assert levels == [(-15.0, 3 * gpus), (0.0, 5 * gpus), (90.0, 5 * gpus), (150.0, 4 * gpus)]


def test_nodes_that_are_added_are_there_when_they_take_pods() -> None:
    pool = a_pool("east", growth={"gpus_per_node": 8, "max_nodes": 3})
    problem = a_problem(candidates=(a_candidate(),), pools=(pool,))
    step = Step(kind=StepKind.ADD_NODES, pool=pool.id, count=2, before=0, after=2)
    plan = Plan(waves=(Wave(steps=(step,), duration_s=300.0),), duration_s=300.0)
    first, last = levels_of(plan, problem)
    assert (first.limit, last.limit) == (first.limit, first.limit + 16 if first.limit is not None else None)
    (bar,) = bars_of(plan, problem)
    assert (bar.gpus, bar.end_s) == (16, 300.0)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_no_pool_ever_holds_more_than_the_waves_say(path: Path) -> None:
    problem = sized(load_scenario(path), allow_unserved=True)
    solution = solve_with(problem, options=SolveOptions(time_limit_s=5)).solution
    plan = roll_out(problem, solution)
    there, back = levels_of(plan, problem), levels_of(reverse(plan, problem), problem, undone=plan)
    for levels in (there, back):
        for level in levels:
            assert level.held >= 0
            assert level.limit is None or level.held <= level.limit
    ends = {level.pool: level.held for level in there}
    assert {level.pool: level.held for level in reversed(back)} == ends
    if plan.stuck is None:
        for pool, held in ends.items():
            wanted = sum(c.gpus * solution.count(c.id) for c in problem.candidates if c.pool == pool)
            assert held == wanted


def test_many_lanes_become_one_per_pool() -> None:
    problem, plan = a_swap()
    bars = bars_of(plan, problem)
    many = [type(bars[0])(1, bars[0].step.but(variant=f"v{place}"), 0.0, 90.0, 4) for place in range(50)]
    (row,) = lane_rows(many, scale=60.0)
    assert (row["lane"], row["count"], row["gpus"], row["to"]) == ("east", 100, 200, 1.5)
    assert {row["kind"] for row in lane_rows(bars, scale=1.0)} <= set(KINDS)


def test_rows_of_pools_join_without_gaps() -> None:
    problem, plan = a_swap()
    rows = held_rows(levels_of(plan, problem), scale=1.0)
    assert [row["from"] for row in rows[1:]] == [row["to"] for row in rows[:-1]]
    assert rows[-1]["to"] == 150.0


def test_a_table_tells_every_step() -> None:
    problem, plan = a_swap()
    rows = step_rows(bars_of(plan, problem))
    assert [(row["step"], row["before → after"], row["takes"]) for row in rows] == [
        ("start", "3 → 5", "90 s"),
        ("drain", "3 → 3", "60 s"),
        ("remove", "3 → 2", "no time"),
    ]


@pytest.mark.parametrize(("seconds", "unit"), [(0, "s"), (599, "s"), (600, "min"), (22_000, "h")])
def test_time_is_read_in_a_unit_that_fits(seconds: float, unit: str) -> None:
    assert time_unit(seconds)[0] == unit
