"""Whoever waits hears of a choice while it is made, and can end it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from planner.optimization.backends.column_generation.finish import Ending, choose
from planner.optimization.backends.column_generation.master import Master, TyingRow
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.highs import Listener
from planner.optimization.protocol import Cancelled, never

BLOCKS, POOLS = 40, 5


def a_hard_choice() -> Master:
    """Blocks of which each has ten ways to be run, in pools that hold two thirds of what they like best."""
    dice = random.Random(5)  # noqa: S311 - an instance, no secret
    rows = [TyingRow(-np.inf, 6.0 * BLOCKS / POOLS) for _ in range(POOLS)]
    master = Master(rows, [], BLOCKS, np.full(POOLS, 1e4))
    for block in range(BLOCKS):
        for _ in range(10):
            use = np.zeros(POOLS)
            use[dice.randrange(POOLS)] = dice.randint(3, 12)
            master.add([Pattern(block, dice.uniform(50.0, 150.0) / use.sum() ** 0.5, use, dict)])
    return master


def test_every_better_choice_is_told_of_in_the_goal_of_the_choice() -> None:
    told: list[float] = []
    master = a_hard_choice()
    choice = choose(master, master.patterns, ending=Ending(10.0, 1e-6), listener=Listener(told.append))
    assert choice.found
    assert told == sorted(told, reverse=True)
    assert told[-1] == pytest.approx(choice.value)
    assert told[-1] == pytest.approx(sum(pattern.cost for pattern in choice.patterns))


def test_nobody_who_listens_changes_the_choice() -> None:
    master = a_hard_choice()
    heard, unheard = (
        choose(master, master.patterns, ending=Ending(10.0, 1e-6), listener=listener)
        for listener in (Listener(lambda value: None, lambda: False), Listener())
    )
    assert heard.value == pytest.approx(unheard.value)
    assert heard.bound == pytest.approx(unheard.bound)


@pytest.mark.parametrize(
    ("cancelled", "proven"), [(lambda: True, False), (lambda: False, True), (never, True)]
)
def test_a_choice_that_is_cancelled_is_not_proven(cancelled: Cancelled, proven: bool) -> None:
    master = a_hard_choice()
    choice = choose(
        master,
        master.patterns,
        ending=Ending(10.0, 1e-6),
        listener=Listener(cancelled=cancelled),
    )
    assert (choice.found and choice.value - choice.bound <= 1e-6 * choice.value) is proven
