"""Plans of a front as drafts, and the drawings of trade-offs: the draft's best plan is the plan that was picked."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.pareto import Axis, ParetoFront
from models.problem import CostUnit
from models.scenario import PowerBasis, Scenario
from models.sensitivity import Lever, LeverKind, Moved, Sensitivity, Swing
from models.solution import Status
from models.variant import Cost
from planner import load_scenario
from planner.charts import save_chart
from planner.charts.front import front_chart, front_rows
from planner.charts.tornado import Bar, tornado_chart
from planner.door import pareto
from planner.optimization.protocol import SolveOptions
from planner.planning import plan_scenario, sized
from planner.ui.tasks import TASKS, task
from planner.ui.tasks.pareto import Stairs, pareto_task
from planner.ui.tasks.sensitivity import sensitivity_task
from planner.ui.weighing.pinning import pinned
from planner.ui.workspace import How
from planner.wording.levers import breaks_more, lever_phrase, moved_phrase, sensitivity_sentence

EXACTLY = SolveOptions(gap=0.0, time_limit_s=60.0)
_PLACES = 1e-4


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario("data/scenarios/01-two-variants.yaml")


class Heard:
    """A reporter that remembers, and that stops after so many partial answers."""

    def __init__(self, stop_after: int = 10**6) -> None:
        self.partials: list[str] = []
        self.events = 0
        self._stop_after = stop_after

    def progress(self, event: object) -> None:
        self.events += 1

    def partial(self, value: str) -> None:
        self.partials.append(value)

    def stopped(self) -> bool:
        return len(self.partials) >= self._stop_after


def front_of(scenario: Scenario, x: Axis, y: Axis) -> ParetoFront:
    return pareto(scenario, x, y, points=3, options=EXACTLY)


PAIRS = [
    (x, y) for x in Axis for y in Axis
    if x is not y and {x, y} != {Axis.HEADROOM, Axis.UNSERVED}
]  # fmt: skip


@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_the_best_plan_of_a_draft_is_as_good_as_the_point_it_was_made_from(
    scenario: Scenario, x: Axis, y: Axis
) -> None:
    problem = sized(scenario)
    front = front_of(scenario, x, y)
    assert front.points
    for point in front.points:
        new = pinned(scenario, problem, front, point)
        assert new is not None
        plan = plan_scenario(new, options=EXACTLY).answer.assessment
        assert plan is not None
        known = {
            Axis.COST: plan.cost,
            Axis.POWER: plan.power_w or 0.0,
            Axis.CHANGES: float(plan.changes),
            Axis.UNSERVED: plan.unserved_rps,
        }
        for axis, value in ((x, point.x), (y, point.y)):
            if axis is not Axis.HEADROOM:
                assert known[axis] <= value * (1 + _PLACES) + _PLACES


def test_what_no_limit_holds_is_not_made_a_draft(scenario: Scenario) -> None:
    relative = scenario.but(
        services=tuple(
            service.but(variants=tuple(v.but(cost=Cost(relative=2.0)) for v in service.variants))
            for service in scenario.services
        ),
        limits=scenario.limits.but(power_basis=PowerBasis.EXPECTED),
    )
    front = front_of(scenario, Axis.COST, Axis.POWER)
    assert pinned(relative, sized(relative), front, front.points[0]) is None


@pytest.mark.parametrize(
    ("x", "y"), [(Axis.COST, Axis.UNSERVED), (Axis.COST, Axis.HEADROOM), (Axis.HEADROOM, Axis.COST)]
)
def test_a_front_is_drawn_with_all_its_plans(scenario: Scenario, tmp_path: Path, x: Axis, y: Axis) -> None:
    front = front_of(scenario, x, y)
    rows = front_rows(front)
    assert [row["point"] for row in rows] == list(range(1, len(front.points) + 1))
    save_chart(front_chart(front, (str(x), str(y))), tmp_path / "front.png")
    assert (tmp_path / "front.png").stat().st_size > 1_000


def test_a_tornado_is_drawn_with_what_is_not_served(tmp_path: Path) -> None:
    bars = [Bar("demand", True, 9.0, True, "then"), Bar("prices", False, 8.0, False, "then")]
    save_chart(tornado_chart(bars, 10.0, title="cost"), tmp_path / "tornado.png")
    assert (tmp_path / "tornado.png").stat().st_size > 1_000


def test_the_task_weighs_and_shows_points_as_they_come(scenario: Scenario) -> None:
    asked = pareto_task(scenario, How(time_limit_s=60), (Axis.COST, Axis.UNSERVED), 4)
    heard = Heard()
    stairs = Stairs.model_validate_json(task(asked.kind)(asked.arguments, heard))
    assert len(stairs.front.points) == 4
    assert Stairs.model_validate_json(heard.partials[0]).front.points
    assert len(heard.partials) == heard.events
    stopped = Stairs.model_validate_json(task(asked.kind)(asked.arguments, Heard(stop_after=1)))
    assert len(stopped.front.points) < 4


def test_the_task_of_sensitivity_stops_with_what_is_known(scenario: Scenario) -> None:
    asked = sensitivity_task(scenario, How(time_limit_s=60), 0.1, 0)
    found = Sensitivity.model_validate_json(task(asked.kind)(asked.arguments, Heard(stop_after=2)))
    assert len(found.swings) == 1
    assert not found.complete
    assert {"pareto", "sensitivity"} <= TASKS.keys()


BASE = Moved(factor=1, status=Status.OPTIMAL, cost=100.0, unserved_rps=0.0)
DEARER = Moved(factor=1.1, status=Status.OPTIMAL, cost=112.5, unserved_rps=0.0)
SCARCE = Moved(factor=1.1, status=Status.INFEASIBLE, cost=95.0, unserved_rps=3.0)
NO_PLAN = Moved(factor=1.1, status=Status.TIMED_OUT)


@pytest.mark.parametrize(
    ("side", "said"),
    [
        (DEARER, "× 1.1: 112.50 $/h (+12.50)"),
        (
            SCARCE,
            "× 1.1: no plan keeps every promise; at best 3 req/s more stay unserved, at 95.00 $/h (-5.00)",
        ),
        (NO_PLAN, "× 1.1: no plan was found in the time given"),
        (DEARER.but(clipped=True), "× 1.1, at most: 112.50 $/h (+12.50)"),
    ],
)
def test_what_moving_an_input_does_is_said_with_what_stays_unserved(side: Moved, said: str) -> None:
    assert moved_phrase(BASE, side, CostUnit.USD_PER_H) == said
    assert breaks_more(BASE, side) is (side is SCARCE)


@pytest.mark.parametrize(
    ("up", "said"),
    [
        (DEARER, "Moved by 10 %, demand of chat moves the cost most: by up to 12.50 $/h, 12 %."),
        (SCARCE, "Moved by 10 %, these leave demand unserved: demand of chat."),
        (BASE.but(factor=1.1), "Moved by 10 %, nothing changes the cost."),
    ],
)
def test_what_the_answer_hangs_on_is_one_sentence(up: Moved, said: str) -> None:
    lever = Lever(kind=LeverKind.DEMAND, target="chat")
    found = Sensitivity(
        problem="p", share=0.1, cost_unit=CostUnit.USD_PER_H, base=BASE, swings=(Swing(lever=lever, up=up),)
    )
    assert lever_phrase(lever) == "demand of chat"
    assert sensitivity_sentence(found) == said
