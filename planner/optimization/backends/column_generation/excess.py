"""Whether tying rows have to be broken: the least sum of their excesses, asked for until it is known to be positive or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from planner.optimization.backends.column_generation.master import MasterAnswer
from planner.optimization.backends.column_generation.relaxation import Relaxation, Relaxed
from planner.optimization.program import Key

__all__ = ["KEPT_EXCESS", "Excess", "shows_excess", "until_decided"]

KEPT_EXCESS: Final = 1e-6
"""Excess of scaled tying rows that counts as none."""

_GAP: Final = 1e-5


@dataclass(frozen=True, slots=True)
class Excess:
    """Prices by key of the tying row that were best at showing that rows cannot be kept, per unit of the row."""

    prices: Mapping[Key, float]

    def aged(self) -> Excess:
        """Prices are proposals, in the next descent too."""
        return self


def until_decided(relaxation: Relaxation, keep_going: Callable[[], bool], *, turns: float = inf) -> Relaxed:
    """Run a relaxation whose goal is the sum of excesses until it is decided whether that can be none.

    Args:
        relaxation: breaking a row by one scaled unit costs 1, and nothing else costs anything.
        keep_going: whether there is time.
        turns: after so many it is left open.
    """
    decided, turn = False, 0

    def hear(answer: MasterAnswer | None, bound: float) -> None:
        nonlocal decided, turn
        turn += answer is not None
        kept = answer is not None and answer.value <= KEPT_EXCESS
        decided = bound > KEPT_EXCESS or kept or turn >= turns

    return relaxation.run(gap=_GAP, keep_going=lambda: not decided and keep_going(), report=hear)


def shows_excess(relaxed: Relaxed) -> bool:
    """Whether it is proven that some row must be broken."""
    return relaxed.impossible or relaxed.bound > KEPT_EXCESS
