"""Dantzig-Wolfe column generation: the engine for fleets. Services are blocks, few rows tie them together."""

from planner.optimization.backends.column_generation.engine import ColumnGeneration

__all__ = ["ColumnGeneration"]
