"""A choice among many patterns, those of small reduced cost first.

A plan costs the Lagrangian bound plus the reduced costs of its patterns. Of a fleet's patterns most cost more than a
hundred-thousandth of the whole above what the linear program pays for their block, so that a plan within the gap holds
few of them. Without them HiGHS chooses ten times faster, and where that does not do, it chooses among more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from planner.optimization.backends.column_generation.finish import (
    NO_CHOICE,
    NOBODY,
    Choice,
    Ending,
    Start,
    choose,
)
from planner.optimization.backends.column_generation.master import Master, MasterAnswer
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.highs import Listener

__all__ = ["among_all", "among_few", "first_enough", "reduced_costs"]

_SHARES: Final = (1e-5, 1e-4)
"""Largest reduced cost of a pattern in the first choices, as shares of the linear program's value."""

_MANY: Final = 1_000
"""Patterns from which it pays."""

_PART: Final = 0.25
"""Share of the time left for each of the first choices."""

_AT_LEAST_S: Final = 0.01
"""Wall time of the last choice in any case, s."""


def first_enough(choices: Iterable[Choice], enough: Callable[[float], bool]) -> Choice:
    """The first choice that is good enough; the best one where none is."""
    best = NO_CHOICE
    for found in choices:
        best = min(best, found, key=lambda choice: choice.value)
        if best.found and enough(best.value):
            break
    return best


def among_few(
    master: Master,
    answer: MasterAnswer,
    *,
    gap: float,
    seconds_left: Callable[[], float],
    start: Start | None = None,
    listener: Listener = NOBODY,
) -> Iterator[Choice]:
    """Choices among the patterns of small reduced cost, where there are many."""
    if len(master.patterns) < _MANY:
        return
    reduced = reduced_costs(master, answer)
    for share in _SHARES:
        near = np.flatnonzero(reduced <= share * abs(answer.value)).tolist()
        ending = Ending(_PART * max(seconds_left(), 0.0), gap)
        yield choose(
            master, [master.patterns[i] for i in near], ending=ending, start=start, listener=listener
        )


def among_all(
    master: Master,
    *,
    gap: float,
    seconds_left: Callable[[], float],
    start: Start | None = None,
    listener: Listener = NOBODY,
) -> Iterator[Choice]:
    """The choice among all patterns."""
    ending = Ending(max(seconds_left(), _AT_LEAST_S), gap)
    yield choose(master, master.patterns, ending=ending, start=start, listener=listener)


def reduced_costs(
    master: Master, answer: MasterAnswer, patterns: Sequence[Pattern] | None = None
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What each pattern costs above what the linear program pays for its block; None: those of the master."""
    patterns = master.patterns if patterns is None else patterns
    cost = np.array([pattern.cost for pattern in patterns])
    use = np.array([pattern.use for pattern in patterns]).reshape(len(patterns), len(master.rows))
    paid = answer.worth[np.array([pattern.block for pattern in patterns], dtype=np.int64)]
    return np.asarray(cost - use @ answer.prices - paid)
