"""What is worked out from the fields of a value never outlives a change of the fields."""

from __future__ import annotations

from models.problem import Problem
from tests.builders import a_candidate, a_problem


def test_a_changed_copy_has_a_fingerprint_of_its_own() -> None:
    problem = a_problem()
    before = problem.fingerprint
    changed = problem.model_copy(update={"name": "other"})
    assert changed.fingerprint != before
    assert problem.but(name="other").fingerprint == changed.fingerprint


def test_a_changed_copy_looks_at_its_own_fields() -> None:
    problem = a_problem()
    assert set(problem.candidate) == {"chat/small@east"}
    changed = problem.model_copy(update={"candidates": (a_candidate(variant="large"),)})
    assert set(changed.candidate) == {"chat/large@east"}


def test_values_are_equal_whatever_was_asked_of_them_before() -> None:
    asked, fresh = a_problem(), a_problem()
    assert asked.fingerprint == fresh.model_copy().fingerprint
    assert asked == a_problem()
    assert a_problem() == asked


def test_a_problem_is_another_one_where_a_candidate_is_and_the_same_where_its_candidates_are_made_anew() -> (
    None
):
    problem = a_problem()
    again = Problem.model_validate_json(problem.model_dump_json())
    assert again.fingerprint == problem.fingerprint
    dearer = tuple(c.but(cost=c.cost + 1) for c in problem.candidates)
    assert problem.but(candidates=dearer).fingerprint != problem.fingerprint
    assert problem.but(candidates=()).fingerprint != problem.fingerprint
