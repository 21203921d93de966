"""The cheapest patterns first, and all of them where those do not do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import numpy as np
import pytest

from planner.optimization.backends.column_generation.finish import Choice
from planner.optimization.backends.column_generation.master import Master, MasterAnswer, TyingRow
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.sifting import among_all, among_few, first_enough

BLOCKS = 260
GPUS = (8.0, 4.0, 2.0, 1.0)


def a_master(room: float) -> Master:
    """Many blocks that all may be run cheaply on 8 GPUs, or dearer on fewer, where ``room`` GPUs are there."""
    master = Master([TyingRow(-np.inf, room)], [], BLOCKS, np.array([1e6]))
    master.add(
        [
            Pattern(block, 100.0 + 3.0 * place, np.array([gpus]), dict)
            for block in range(BLOCKS)
            for place, gpus in enumerate(GPUS)
        ]
    )
    return master


def sifted(master: Master, answer: MasterAnswer, enough: Callable[[float], bool]) -> Choice:
    """The best choice that is found, few patterns first."""
    few = among_few(master, answer, gap=1e-3, seconds_left=lambda: 5.0)
    return first_enough(chain(few, among_all(master, gap=1e-3, seconds_left=lambda: 5.0)), enough)


def chosen(room: float, enough: Callable[[float], bool]) -> tuple[float, float]:
    master = a_master(room)
    answer = master.solve()
    choice = sifted(master, answer, enough)
    assert sorted(pattern.block for pattern in choice.patterns) == list(range(BLOCKS))
    assert sum(pattern.use[0] for pattern in choice.patterns) <= room
    return choice.value, answer.value


@pytest.mark.parametrize("room", [8.0 * BLOCKS, 4.0 * BLOCKS + 1, 3.0 * BLOCKS, 1.0 * BLOCKS])
def test_the_choice_is_next_to_the_linear_program(room: float) -> None:
    value, bound = chosen(room, lambda value: False)
    assert bound - 1e-6 <= value <= bound * (1 + 1e-3) + 3.0


def test_good_enough_ends_it_with_a_plan() -> None:
    value, bound = chosen(3.0 * BLOCKS, lambda value: True)
    assert value >= bound - 1e-6


def test_no_choice_is_found_where_there_is_none() -> None:
    master = a_master(0.5 * BLOCKS)
    choice = sifted(master, master.solve(), lambda value: True)
    assert not choice.found
