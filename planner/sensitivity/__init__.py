"""Sensitivity: which inputs move the answer most, each moved on its own and solved again."""

from planner.sensitivity.levers import Prices, levers_of, list_prices, moved
from planner.sensitivity.measuring import How, Step, sensitivity

__all__ = ["How", "Prices", "Step", "levers_of", "list_prices", "moved", "sensitivity"]
