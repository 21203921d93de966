"""Optimization: from a problem to a solution that is proven, and the reasons for it."""

from planner.optimization.explaining import explain
from planner.optimization.solve import SOLVERS, solve

__all__ = ["SOLVERS", "explain", "solve"]
