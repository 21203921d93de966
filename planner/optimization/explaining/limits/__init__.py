"""Limits that may be moved, one file per kind."""

from __future__ import annotations

from collections.abc import Iterator

from models.problem import Problem
from planner.optimization.explaining.limits import budgets, counts, hardware, promises, rules
from planner.optimization.explaining.limits.limit import Ladder, Limit, Use
from planner.optimization.explaining.limits.promises import Rerate, Rerated

__all__ = ["Ladder", "Limit", "Rerate", "Rerated", "Use", "limits_of"]


def limits_of(problem: Problem, rerate: Rerate | None = None) -> Iterator[Limit]:
    """Every limit that may be moved.

    Args:
        problem: whose limits.
        rerate: sizes again with looser latency promises; None: they stay as they are.
    """
    yield from hardware.more_gpus(problem)
    yield from hardware.more_nodes(problem)
    yield from budgets.quotas(problem)
    yield from budgets.power(problem)
    yield from budgets.spend(problem)
    yield from counts.maxima(problem)
    yield from counts.minima(problem)
    yield from counts.steps(problem)
    yield from counts.changes(problem)
    yield from rules.scale_in(problem)
    yield from rules.movable(problem)
    yield from rules.ratios(problem)
    yield from rules.variants(problem)
    yield from promises.headroom(problem)
    yield from promises.survive(problem)
    yield from promises.slo(problem, rerate)
