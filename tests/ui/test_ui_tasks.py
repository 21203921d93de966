"""What worker processes compute for Candidate and Moves: JSON in, JSON out, and an end when somebody wants one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from models.picture import CandidatePicture
from models.plan import WaveLimits
from planner.errors import TemporaryError
from planner.optimization.protocol import ProgressEvent
from planner.planning import solve_with
from planner.ui.examples import example
from planner.ui.jobs import Task
from planner.ui.tasks import task
from planner.ui.tasks.candidate import candidate_task
from planner.ui.tasks.moves import Moves, moves_task
from tests.builders import a_candidate, a_demand, a_pool, a_problem


class Watcher:
    """A reporter that may want an end."""

    def __init__(self, *, stops: bool = False) -> None:
        self._stops = stops

    def progress(self, event: ProgressEvent) -> None:
        """Nobody looks."""

    def partial(self, value: str) -> None:
        """Nobody looks."""

    def stopped(self) -> bool:
        return self._stops


def run(what: Task, *, stops: bool = False) -> str:
    """The answer to a task whose arguments went through JSON."""
    given: Any = json.loads(json.dumps(what.arguments))
    return task(what.kind)(given, Watcher(stops=stops))


def a_moves_task() -> Task:
    problem = a_problem(demands=(a_demand(),), candidates=(a_candidate(),), pools=(a_pool("east"),))
    return moves_task(problem, solve_with(problem, solver="greedy").solution, WaveLimits(drain_s=5.0))


def test_moves_lead_there_and_back() -> None:
    moves = Moves.model_validate_json(run(a_moves_task()))
    assert moves.there.waves
    assert moves.back.derived_from == moves.there.fingerprint
    assert moves.there.limits.drain_s == 5.0


def test_who_wants_an_end_gets_one_before_the_waves_are_worked_out() -> None:
    with pytest.raises(TemporaryError, match="Stopped before"):
        run(a_moves_task(), stops=True)


def test_a_candidate_comes_back_as_it_was_made() -> None:
    scenario = example("01-two-variants")
    service = scenario.services[0]
    what = candidate_task(scenario, service.id, service.variants[0].id, service.buckets[0])
    found = CandidatePicture.model_validate_json(run(what))
    assert found.service == service.id
    assert found.picture.question.variant == service.variants[0]
    assert found.places[0].candidates


def test_edits_of_other_services_do_not_make_another_question() -> None:
    scenario = example("02-contention")
    first, *others = scenario.services
    louder = tuple(each.but(priority=99) for each in others)
    asked = [
        candidate_task(one, first.id, first.variants[0].id, first.buckets[0])
        for one in (scenario, scenario.but(services=(first, *louder)))
    ]
    assert asked[0].key == asked[1].key
