"""What is worked out from the fields of a value never outlives a change of the fields."""

from __future__ import annotations

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
