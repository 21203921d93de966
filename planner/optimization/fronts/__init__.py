"""Fronts of two objectives."""

from planner.optimization.fronts.pareto import EXACTLY, pareto

__all__ = ["EXACTLY", "pareto"]
