"""Bounds on counts: maxima and minima of services, variants and candidates, steps, and changes in all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from models.problem import Candidate, Demand, Problem, VariantBounds
from planner.optimization.explaining.limits.limit import Limit, Side, Use
from planner.optimization.formulation import Formulation
from planner.optimization.formulation.counts import change_terms
from planner.optimization.formulation.index import replicas
from planner.optimization.program import Goal, Key

__all__ = ["changes", "maxima", "minima", "steps", "with_candidate", "with_demand"]


def maxima(problem: Problem) -> Iterator[Limit]:
    """More replicas than a maximum allows, of a service, a variant or a candidate."""
    for bound in _bounds(problem):
        if bound.most is not None:
            yield bound.limit(problem, bound.most, Side.UPPER)


def minima(problem: Problem) -> Iterator[Limit]:
    """Fewer replicas than a minimum asks for."""
    for bound in _bounds(problem):
        if bound.least:
            yield bound.limit(problem, bound.least, Side.LOWER)


@dataclass(frozen=True)
class _Bound:
    """Bounds on the sum of some counts, and the problem with others."""

    key: tuple[str, ...]
    least: int
    most: int | None
    group: tuple[Candidate, ...]
    changed: Callable[[str, int], Problem]

    def limit(self, problem: Problem, value: int, side: Side) -> Limit:
        field = "max_replicas" if side is Side.UPPER else "min_replicas"
        return _on_counts(
            problem,
            (("bounds", *self.key), side),
            self.group,
            value=value,
            moved=lambda needed: self.changed(field, round(needed)),
        )


def _bounds(problem: Problem) -> Iterator[_Bound]:
    for demand in problem.demands:
        group = problem.candidates_of[demand.service]
        yield _Bound(
            (demand.service,),
            demand.min_replicas,
            demand.max_replicas,
            group,
            lambda field, value, demand=demand: with_demand(problem, demand.but(**{field: value})),  # type: ignore[misc]
        )
        for bounds in demand.variants:
            yield _Bound(
                (demand.service, bounds.variant),
                bounds.min_replicas,
                bounds.max_replicas,
                tuple(c for c in group if c.variant == bounds.variant),
                lambda field, value, demand=demand, bounds=bounds: with_demand(  # type: ignore[misc]
                    problem, _with_bounds(demand, bounds.but(**{field: value}))
                ),
            )
    for candidate in problem.candidates:
        yield _Bound(
            (candidate.id,),
            candidate.min_replicas,
            candidate.max_replicas,
            (candidate,),
            lambda field, value, candidate=candidate: with_candidate(  # type: ignore[misc]
                problem, candidate.but(**{field: value})
            ),
        )


def steps(problem: Problem) -> Iterator[Limit]:
    """Larger steps up or down of one candidate."""
    for candidate in problem.candidates:
        row = ("change", candidate.id)
        if candidate.max_step_up is not None:
            yield _step(problem, candidate, (row, Side.UPPER), "max_step_up", candidate.max_step_up)
        if candidate.max_step_down is not None:
            yield _step(problem, candidate, (row, Side.LOWER), "max_step_down", candidate.max_step_down)


def _step(problem: Problem, candidate: Candidate, row: tuple[Key, Side], field: str, most: int) -> Limit:
    _, side = row
    sign = 1 if side is Side.UPPER else -1
    terms, constant = {replicas(candidate): sign}, -sign * candidate.on_order

    def moved(needed: float) -> Problem:
        return with_candidate(problem, candidate.but(**{field: round(needed)}))

    return Limit(
        family="change",
        key=(candidate.id,),
        value=most,
        unit="replicas",
        rows=(row[0],),
        moved=moved,
        search=Use(lambda _: Goal("step", terms, constant), problem, frozenset({row[0]}), side),
    )


def changes(problem: Problem) -> Iterator[Limit]:
    """More changes in all."""
    if problem.max_changes is None:
        return

    def goal(formulation: Formulation) -> Goal:
        return Goal("changes", *change_terms(formulation.index))

    yield Limit(
        family="change",
        key=(),
        value=problem.max_changes,
        unit="changes",
        rows=(("change",),),
        moved=lambda needed: problem.but(max_changes=round(needed)),
        search=Use(goal, problem, frozenset({("change",)})),
    )


def _on_counts(
    problem: Problem,
    row: tuple[Key, Side],
    group: Iterable[Candidate],
    *,
    value: int,
    moved: Callable[[float], Problem],
) -> Limit:
    key, side = row
    sign = 1 if side is Side.UPPER else -1
    terms = {replicas(candidate): sign for candidate in group}
    return Limit(
        family=key[0],
        key=key[1:],
        value=value,
        unit="replicas",
        rows=(key,),
        moved=moved,
        search=Use(lambda _: Goal("count", terms), problem, frozenset({key}), side, sign),
    )


def with_demand(problem: Problem, changed: Demand) -> Problem:
    """The problem with one demand changed."""
    return problem.but(
        demands=tuple(changed if each.service == changed.service else each for each in problem.demands)
    )


def with_candidate(problem: Problem, changed: Candidate) -> Problem:
    """The problem with one candidate changed."""
    return problem.but(
        candidates=tuple(changed if each.id == changed.id else each for each in problem.candidates)
    )


def _with_bounds(demand: Demand, changed: VariantBounds) -> Demand:
    return demand.but(
        variants=tuple(changed if each.variant == changed.variant else each for each in demand.variants)
    )
