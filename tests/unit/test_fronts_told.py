"""Fronts tell of points as they are found, and end with those so far when somebody wants an end."""

from __future__ import annotations

from models.pareto import ParetoFront
from models.solution import Status
from planner import load_scenario
from planner.door import pareto
from planner.optimization.protocol import SolveOptions

SCENARIO = "data/scenarios/01-two-variants.yaml"


def test_the_front_so_far_grows_and_ends_as_the_answer() -> None:
    heard: list[ParetoFront] = []
    options = SolveOptions(gap=0.0, time_limit_s=60.0)
    front = pareto(load_scenario(SCENARIO), "cost", "unserved", points=5, options=options, told=heard.append)
    counts = [len(each.points) for each in heard]
    assert counts == sorted(counts)
    assert len(counts) >= 3
    assert not any(each.complete for each in heard)
    assert heard[-1].points == front.points


def test_whoever_wants_an_end_keeps_the_points_so_far() -> None:
    heard: list[ParetoFront] = []
    options = SolveOptions(gap=0.0, time_limit_s=60.0, cancelled=lambda: bool(heard))
    front = pareto(load_scenario(SCENARIO), "cost", "unserved", points=25, options=options, told=heard.append)
    assert len(heard) == 1
    assert front.points == heard[0].points
    assert 1 <= len(front.points) <= 2
    assert not front.complete


def test_an_end_before_the_first_point_is_no_proof_of_anything() -> None:
    options = SolveOptions(time_limit_s=60.0, cancelled=lambda: True)
    front = pareto(load_scenario(SCENARIO), "cost", "power", options=options)
    assert front.status is Status.TIMED_OUT
    assert not front.points
