"""A plan near a linear program: rows hold, and nothing near is cheaper; none where nothing near holds."""

from __future__ import annotations

import numpy as np
import pytest

from planner.optimization.backends.column_generation.finish import Choice, Start
from planner.optimization.backends.column_generation.master import Master, MasterColumn, TyingRow
from planner.optimization.backends.column_generation.mending import mended
from planner.optimization.backends.column_generation.patterns import Pattern

BLOCKS = 60
GPUS = (8.0, 4.0, 2.0, 1.0)


def a_fleet(room: float, columns: tuple[MasterColumn, ...] = (), least: float = -np.inf) -> Master:
    """Blocks that run cheaply on 8 GPUs or dearer on fewer, the dearer the later the block."""
    master = Master([TyingRow(least, room)], columns, BLOCKS, np.array([1e6]))
    master.add(
        [
            Pattern(block, 100.0 + (1 + block / BLOCKS) * place, np.array([gpus]), dict)
            for block in range(BLOCKS)
            for place, gpus in enumerate(GPUS)
        ]
    )
    return master


def used(choice: Choice) -> float:
    return float(sum(pattern.use[0] for pattern in choice.patterns))


@pytest.mark.parametrize("room", [8.0 * BLOCKS, 5.3 * BLOCKS, 3.0 * BLOCKS, 1.5 * BLOCKS, 1.0 * BLOCKS])
def test_each_block_has_a_pattern_and_all_fit(room: float) -> None:
    master = a_fleet(room)
    answer = master.solve()
    choice = mended(master, answer)
    assert [pattern.block for pattern in choice.patterns] == list(range(BLOCKS))
    assert used(choice) <= room
    assert answer.value - 1e-6 <= choice.value <= answer.value * 1.01 + 3.0
    assert choice.value == pytest.approx(sum(pattern.cost for pattern in choice.patterns))


def test_where_not_all_can_fit_there_is_no_choice() -> None:
    master = a_fleet(0.9 * BLOCKS)
    assert not mended(master, master.solve()).found


def test_a_row_may_have_to_be_filled() -> None:
    master = a_fleet(np.inf, least=7.9 * BLOCKS)
    choice = mended(master, master.solve())
    assert choice.found
    assert used(choice) >= 7.9 * BLOCKS


def test_room_that_can_be_bought_is_bought_by_whole_steps() -> None:
    nodes = MasterColumn(0.0, 100.0, 0.5, ((0, -8.0),))
    master = a_fleet(3.0 * BLOCKS + 3.0, (nodes,))
    answer = master.solve()
    choice = mended(master, answer)
    (bought,) = choice.columns
    assert used(choice) <= 3.0 * BLOCKS + 3.0 + 8 * bought
    assert choice.value == pytest.approx(sum(p.cost for p in choice.patterns) + 0.5 * bought)
    assert choice.value <= answer.value * 1.01 + 3.0


def test_a_start_is_made_cheaper_and_more_patterns_are_looked_at() -> None:
    master = a_fleet(3.0 * BLOCKS)
    dear = [Pattern(block, 500.0, np.array([2.0]), dict) for block in range(BLOCKS)]
    cheap = [Pattern(block, 90.0, np.array([2.0]), dict) for block in range(0, BLOCKS, 2)]
    choice = mended(master, master.solve(), more=cheap, start=Start(dear, ()))
    assert used(choice) <= 3.0 * BLOCKS
    assert choice.value < 100.0 * BLOCKS
    assert sum(pattern.cost == 90.0 for pattern in choice.patterns) == BLOCKS // 2


def test_without_rows_every_block_has_its_cheapest() -> None:
    master = Master([], [], 3, np.empty(0))
    master.add([Pattern(block, cost, np.empty(0), dict) for block in range(3) for cost in (3.0, 2.0)])
    assert mended(master, master.solve()).value == 6.0


def test_a_block_without_a_pattern_has_no_choice() -> None:
    master = Master([TyingRow(-np.inf, 9.0)], [], 2, np.array([1e6]))
    master.add([Pattern(0, 1.0, np.array([1.0]), dict)])
    assert not mended(master, master.solve()).found
