"""Sizing: which candidates there are, what each carries and costs, and why the others are out."""

from __future__ import annotations

from planner.sizing.rating import Rate
from planner.sizing.size import size

__all__ = ["Rate", "size"]
