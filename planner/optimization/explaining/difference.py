"""What another answer does differently, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping

from models.explanation import AllocationDifference, Difference, ServiceDifference
from models.ids import CandidateId, Name
from models.report import Assessment, CandidateFigures
from models.solution import Solution

__all__ = ["difference_of"]

Answer = tuple[Solution, Assessment]


def difference_of(answer: Answer, other: Answer, *, name: Name) -> Difference:
    """Figures of the other answer minus those of the answer; what is the same is left out.

    Args:
        answer: a solution with what the referee says of it.
        other: another one; it may answer another problem.
        name: what the other is called.
    """
    (solution, ours), (other_solution, theirs) = answer, other
    powers = (theirs.power_w, ours.power_w)
    return Difference(
        name=name,
        allocations=_allocations(solution, _figures(ours), other_solution, _figures(theirs)),
        services=_services(ours, theirs),
        unserved_rps=_minus(theirs.unserved_rps, ours.unserved_rps),
        cost=_minus(theirs.cost, ours.cost),
        power_w=None if powers[0] is None or powers[1] is None else _minus(powers[0], powers[1]),
        changes=theirs.changes - ours.changes,
    )


def _figures(assessment: Assessment) -> Mapping[CandidateId, CandidateFigures]:
    return {each.candidate: each for each in assessment.candidates}


def _allocations(
    solution: Solution,
    ours: Mapping[CandidateId, CandidateFigures],
    other: Solution,
    theirs: Mapping[CandidateId, CandidateFigures],
) -> tuple[AllocationDifference, ...]:
    names = sorted({*solution.counts, *other.counts})
    return tuple(
        AllocationDifference(
            candidate=name,
            replicas=solution.count(name),
            theirs=other.count(name),
            cost=_minus(_cost(theirs, name), _cost(ours, name)),
        )
        for name in names
        if solution.count(name) != other.count(name)
    )


def _cost(figures: Mapping[CandidateId, CandidateFigures], name: CandidateId) -> float:
    return figures[name].cost if name in figures else 0.0


def _services(ours: Assessment, theirs: Assessment) -> tuple[ServiceDifference, ...]:
    mine = {each.service: each.unserved_rps for each in ours.services}
    their = {each.service: each.unserved_rps for each in theirs.services}
    return tuple(
        ServiceDifference(service=name, unserved_rps=mine.get(name, 0.0), theirs=their.get(name, 0.0))
        for name in sorted({*mine, *their})
        if abs(_minus(mine.get(name, 0.0), their.get(name, 0.0))) > 0
    )


def _minus(first: float, second: float) -> float:
    """The difference of two figures to the digits that they are known to."""
    difference = float(f"{first - second:.9g}")
    return difference if abs(difference) > 1e-9 * max(1.0, abs(first), abs(second)) else 0.0
