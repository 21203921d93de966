"""Where the rates of a plan come from, as people read it."""

from __future__ import annotations

from typing import Final

from models.performance import Origin
from models.problem import Problem
from models.solution import Solution
from planner.wording.phrases import some_of

__all__ = ["modeled_sentence"]

_NAMED: Final = 6
"""Variants that a sentence names."""


def modeled_sentence(problem: Problem, solution: Solution) -> str | None:
    """Which variants of a plan have rates that nobody measured or gave; None: no such variant has replicas."""
    names = list(
        dict.fromkeys(
            f"{each.service}/{each.variant}"
            for each in problem.candidates
            if each.origin is Origin.MODELED and solution.counts.get(each.id, 0) > 0
        )
    )
    if not names:
        return None
    return f"Rates modeled, not measured: {some_of(names, _NAMED)}"
