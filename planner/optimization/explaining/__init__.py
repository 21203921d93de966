"""Explanations are functions of values: any solver's solution, today's or yesterday's, gets the same reasons."""

from planner.optimization.explaining.difference import difference_of
from planner.optimization.explaining.explain import explain, look_closer

__all__ = ["difference_of", "explain", "look_closer"]
