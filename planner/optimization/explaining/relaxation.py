"""The smallest move of one limit with which every promise holds, verified by solving again.

One limit at a time: it is set free and its use made small, or easier and easier values are tried. What comes out is
put into the problem, solved, and judged by the referee before it is shown; the cheapest plan comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from models.explanation import Conflict, Relaxation
from models.problem import Problem
from planner.optimization.explaining.feasibility import Oracle
from planner.optimization.explaining.limits import Ladder, Limit, Rerate, Use, limits_of
from planner.optimization.formulation import formulate
from planner.optimization.scaling import exact

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
    found = (_moved(limit, oracle) for limit in limits_of(problem, rerate) if _helps(limit, conflict))
    return tuple(sorted(_least_of_each(each for each in found if each is not None), key=_rank))


def _helps(limit: Limit, conflict: Conflict) -> bool:
    """Whether it touches the conflict: what does not leaves it as it is."""
    if conflict.rows:
        return limit.eases(conflict.rows)
    return any(start[0] in conflict.families for start in limit.rows)


def _moved(limit: Limit, oracle: Oracle) -> Relaxation | None:
    if oracle.seconds_left <= 0:
        return None
    needed = _smallest_use(limit.search, oracle) if isinstance(limit.search, Use) else _first(limit, oracle)
    changed = None if needed is None else limit.moved(needed)
    if needed is None or changed is None:
        return None
    plan = oracle.plan(changed)
    return Relaxation(
        family=limit.family,
        key=limit.key,
        limit=limit.value,
        needed=needed,
        unit=limit.unit,
        verified=plan is not None,
        cost=None if plan is None else plan.assessment.cost,
        facts=dict(limit.facts(needed)),
    )


def _smallest_use(use: Use, oracle: Oracle) -> float | None:
    formulation = formulate(use.problem, roomy=True)
    goal = use.goal(formulation)
    outcome = oracle.smallest(use.freed(formulation.program), goal)
    if outcome.values is None:
        return None
    value = goal.in_units(goal.activity(outcome.values))
    return use.sign * float(ceil(exact(value) / exact(use.step) - exact(1e-9)) * exact(use.step))


def _first(limit: Limit, oracle: Oracle) -> float | None:
    """The first value of a ladder that does, by halving: what an easier value cannot do no harder one can."""
    values = limit.search.values if isinstance(limit.search, Ladder) else ()
    low, high = 0, len(values) - 1
    if high < 0 or not _does(limit, values[high], oracle):
        return None
    while low < high:
        middle = (low + high) // 2
        if _does(limit, values[middle], oracle):
            high = middle
        else:
            low = middle + 1
    return values[high]


def _does(limit: Limit, value: float, oracle: Oracle) -> bool:
    changed = limit.moved(value) if oracle.seconds_left > 0 else None
    return changed is not None and oracle.feasible(formulate(changed).program) is True


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
