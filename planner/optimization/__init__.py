"""Optimization: from a problem to a solution that is proven, and the reasons for it."""

from planner.optimization.explaining import difference_of, explain, look_closer
from planner.optimization.solve import SOLVERS, solve

__all__ = ["SOLVERS", "difference_of", "explain", "look_closer", "solve"]
