"""Waves as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from models.plan import Plan, Step, StepKind, Stuck, Wave
from models.report import FewestMoves, Violation
from planner.wording import near_sentence, rollout_sentence, stuck_sentence, time_span, wave_sentence
from tests.builders import a_problem
from tests.reports import a_comparison, an_assessment

SMALL = {"candidate": "chat/small@east", "service": "chat", "variant": "small"}
LARGE = {"candidate": "chat/large@east", "service": "chat", "variant": "large"}


def a_step(kind: str, count: int = 2, **fields: Any) -> Step:
    counts = {"kind": StepKind(kind), "pool": "east", "count": count, "before": 0, "after": 0}
    return Step.model_validate(counts | fields)


def a_wave(*steps: Step, duration_s: float = 120.0, **fields: Any) -> Wave:
    return Wave(steps=steps, duration_s=duration_s, **fields)


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([a_step("start", 3, **SMALL)], "start 3 × chat/small on east"),
        ([a_step("start", 3, **SMALL), a_step("start", 1, **LARGE)],
         "start 3 × chat/small on east, 1 × chat/large on east"),
        ([a_step("drain", **SMALL), a_step("remove", **SMALL)], "drain 2 × chat/small on east"),
        ([a_step("remove", **SMALL)], "remove 2 × chat/small on east"),
        ([a_step("drain", 1, **SMALL), a_step("remove", **SMALL)],
         "drain 1 × chat/small on east; remove 2 × chat/small on east"),
        ([a_step("cancel", 1, **SMALL)], "cancel what is on order: 1 × chat/small on east"),
        ([a_step("await", 1, **SMALL)], "wait for what is on order: 1 × chat/small on east"),
        ([a_step("add_nodes"), a_step("remove_nodes", 1)], "add 2 nodes to east; remove 1 node from east"),
    ],
)  # fmt: skip
def test_the_steps_of_a_wave(steps: list[Step], text: str) -> None:
    assert wave_sentence(a_wave(*steps)) == f"{text}; about 120 s"


def test_what_takes_no_time_says_none() -> None:
    assert wave_sentence(a_wave(a_step("cancel", 1, **SMALL), duration_s=0.0)).endswith("on east")


def test_accelerators_held_beside_are_told() -> None:
    said = wave_sentence(a_wave(a_step("start", **SMALL), extra_gpus={"east": 1, "west": 4, "north": 0}))
    assert "takes 1 GPU of east and 4 GPUs of west more than start and plan" in said


@pytest.mark.parametrize(("most", "hidden"), [(1, "and 2 more steps"), (3, None), (None, None)])
def test_many_steps_are_counted(most: int | None, hidden: str | None) -> None:
    steps = [
        a_step("start", **SMALL),
        a_step("start", **LARGE),
        a_step("drain", **SMALL),
        a_step("remove", **SMALL),
    ]
    said = wave_sentence(a_wave(*steps), most=most)
    assert ("more steps" in said) is (hidden is not None)
    assert (hidden or "drain") in said


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "Nothing changes: what runs is the plan."),
        ({"stuck": Stuck(proven=True)}, "No wave is possible."),
        ({"waves": 1, "proven_fewest": True}, "1 wave, about 120 s, 5 changes; proven to be the fewest waves."),
        ({"waves": 2}, "2 waves, about 4 min, 5 changes; not proven to be the fewest waves."),
        ({"waves": 1, "stuck": Stuck(proven=True)}, "1 wave, about 120 s, and then no further on the way of 5 changes."),
    ],
)  # fmt: skip
def test_the_way(fields: dict[str, Any], text: str) -> None:
    number = fields.pop("waves", 0)
    waves = (a_wave(a_step("start", **SMALL)),) * number
    plan = Plan(waves=waves, duration_s=120.0 * number, changes=5 if number else 0, **fields)
    assert rollout_sentence(plan) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 s"), (120.0, "120 s"), (180.0, "3 min"), (420.0, "7 min"), (12_600.0, "3.5 h")],
)
def test_a_time_span(seconds: float, text: str) -> None:
    assert time_span(seconds) == text


def a_violation(number: int) -> Violation:
    return Violation(family="gpus", key=(), found=2, allowed=1, unit="GPU", text=f"Rule {number} is broken.")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"proven": False}, "The waves end before the solution is reached."),
        ({"proven": True, "extra_gpus": {"east": 1, "west": 2}},
         "The waves end before the solution is reached. What would do: 1 GPU more in pool east and 2 GPUs more in "
         "pool west. Every order was tried."),
        ({"proven": True, "drop": {"chat": 0.12341}, "smallest": True},
         "The waves end before the solution is reached. What would do: 12.4 % less of chat served for a while. Less "
         "of either is proven not to do. Every order was tried."),
        ({"proven": False, "violations": tuple(map(a_violation, range(5)))},
         "The waves end before the solution is reached: the next replica would break a rule (Rule 0 is broken; Rule 1 "
         "is broken; Rule 2 is broken; and 2 more)."),
    ],
)  # fmt: skip
def test_what_stops_the_waves_and_what_would_do(fields: dict[str, Any], text: str) -> None:
    assert stuck_sentence(Stuck(**fields)) == text


@pytest.mark.parametrize(
    ("fields", "cost", "text"),
    [
        ({"proven": True}, 101.0, "(101.00 $/h, +1 %): 3 changes instead of 9."),
        ({"proven": False}, 100.9, "(100.90 $/h, +0.9 %): 3 changes instead of 9; fewer may do."),
        ({"proven": True, "rollout": Plan(waves=(a_wave(a_step("start", **SMALL)),) * 2)}, 99.0,
         "(99.00 $/h, -1 %): 3 changes instead of 9, 2 waves."),
        ({"proven": True, "rollout": Plan(stuck=Stuck(proven=True))}, 101.0,
         "(101.00 $/h, +1 %): 3 changes instead of 9."),
    ],
)  # fmt: skip
def test_a_plan_near_by(fields: dict[str, Any], cost: float, text: str) -> None:
    problem = a_problem()
    answer = an_assessment(problem, {}, cost=100.0, changes=9)
    other = a_comparison(problem, "near", {}, cost=cost, changes=3)
    found = FewestMoves(within=0.01, name="near", **fields)
    assert near_sentence(found, answer, (other,), "$/h") == f"Within 1 % of the cost {text}"


def test_that_nothing_is_near_by() -> None:
    found = FewestMoves(within=0.01, proven=True)
    answer = an_assessment(a_problem(), {})
    assert near_sentence(found, answer, (), "") == "Within 1 % of the cost no plan needs fewer changes."
