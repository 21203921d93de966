"""Amounts of capacity as the published heuristics count them."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["Number"]

Number = float | Fraction
"""A float or whole number as analyzers measure it, or a fraction of which every sum and quotient is exact."""
