"""The solvers by name, and the one function that asks them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from models.problem import Problem
from planner.optimization.protocol import Progress, SolveOptions, Solver, SolveResult, silent
from planner.registry import Registry

__all__ = ["DEFAULTS", "SOLVERS", "solve"]

_HERE: Final = "planner.optimization.solvers"

SOLVERS: Final[Registry[Callable[[], Solver]]] = Registry(
    "solver",
    {
        "auto": f"{_HERE}:auto",
        "column-generation": f"{_HERE}:column_generation",
        "cp-sat": f"{_HERE}:cp_sat",
        "pulp": f"{_HERE}:pulp_highs",
        "pulp-cbc": f"{_HERE}:pulp_cbc",
        "scip": f"{_HERE}:scip",
        "greedy": f"{_HERE}:greedy",
        "cost-aware": f"{_HERE}:cost_aware",
        "fair-share": f"{_HERE}:fair_share",
        "rescale": f"{_HERE}:rescale",
    },
)
"""Factories of solvers by the name that users write."""

DEFAULTS: Final = SolveOptions()


def solve(
    problem: Problem,
    *,
    solver: str = "auto",
    options: SolveOptions = DEFAULTS,
    progress: Progress = silent,
) -> SolveResult:
    """Answer a problem with the solver of that name.

    Args:
        problem: the question.
        solver: its name in ``SOLVERS``.
        options: time, gap, threads, seed, and what the answer to nearly the same problem left.
        progress: told of every sign of life.

    Raises:
        ConfigurationError: there is no solver of that name, or what it needs is not installed.
    """
    return SOLVERS.get(solver)()(problem, options, progress)
