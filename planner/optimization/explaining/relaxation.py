"""The smallest move of one limit with which every promise holds, verified by solving again.

One limit at a time: it is set free and its use made small, or easier and easier values are tried. What comes out is
put into the problem, solved, and judged by the referee before it is shown; the cheapest plan comes first.
"""

from __future__ import annotations

from collections.abc import Iterator

from models.explanation import Conflict, Relaxation
from models.problem import Problem
from planner.optimization.explaining.feasibility import Oracle
from planner.optimization.explaining.limits import Limit, Rerate, limits_of
from planner.optimization.explaining.smallest import smallest

__all__ = ["relaxations"]


def relaxations(
    problem: Problem, conflict: Conflict | None, oracle: Oracle, *, rerate: Rerate | None = None
) -> tuple[Relaxation, ...]:
    """Every single limit of the conflict whose move alone would do, the one that allows the cheapest plan first.

    Args:
        problem: that has no plan.
        conflict: what cannot hold together; without it nothing is known, and nothing said.
        oracle: solves until its deadline; limits that it does not reach are left out.
        rerate: sizes again with looser latency promises; None: they are not asked for.
    """
    if conflict is None:
        return ()
    found = (_moved(limit, oracle) for limit in limits_of(problem, rerate) if limit.helps(conflict))
    return tuple(sorted(_least_of_each(each for each in found if each is not None), key=_rank))


def _moved(limit: Limit, oracle: Oracle) -> Relaxation | None:
    move = smallest(limit, oracle) if oracle.seconds_left > 0 else None
    return None if move is None else move.told(oracle.plan(move.problem))


def _least_of_each(found: Iterator[Relaxation]) -> list[Relaxation]:
    """Of several ways to move one limit (nodes of several sizes) the one that moves it least."""
    best: dict[tuple[object, ...], Relaxation] = {}
    for one in found:
        direction = one.needed >= one.limit
        known = best.get((one.family, one.key, direction))
        if known is None or _move(one) < _move(known):
            best[one.family, one.key, direction] = one
    return list(best.values())


def _move(one: Relaxation) -> tuple[bool, float]:
    return not one.verified, abs(one.needed - one.limit)


def _rank(one: Relaxation) -> tuple[object, ...]:
    return not one.verified, one.cost if one.cost is not None else 0.0, one.family, one.key
