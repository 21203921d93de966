"""Benders decomposition: replicas are chosen by an integer program, shares follow by a linear one."""

from planner.optimization.backends.splitting.engine import Splitting

__all__ = ["Splitting"]
