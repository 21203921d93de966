"""Explanations are functions of values: any solver's solution, today's or yesterday's, gets the same reasons."""

from planner.optimization.explaining.explain import explain

__all__ = ["explain"]
