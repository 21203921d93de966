"""Patterns of pods on one node, against plain enumeration."""

from __future__ import annotations

import itertools

import pytest

from planner.optimization.formulation.patterns import Pattern, divide_one_another, maximal_patterns


@pytest.mark.parametrize(
    ("sizes", "chain"),
    [((1, 2, 4, 8), True), ((2,), True), ((), True), ((1, 3, 6), True), ((2, 3), False), ((4, 6, 12), False),
     ((8, 4, 1), True), ((2, 2, 4), True)],
)  # fmt: skip
def test_sizes_that_divide_one_another(sizes: tuple[int, ...], chain: bool) -> None:
    assert divide_one_another(sizes) is chain


@pytest.mark.parametrize(
    ("free", "sizes", "patterns"),
    [
        (8, (2, 3), [((3, 2), (2, 1)), ((3, 1), (2, 2)), ((2, 4),)]),
        (5, (2, 3), [((3, 1), (2, 1)), ((2, 2),)]),
        (2, (2, 3), [((2, 1),)]),
        (1, (2, 3), []),
        (0, (1,), []),
        (7, (), []),
        (7, (4,), [((4, 1),)]),
    ],
)
def test_small_nodes(free: int, sizes: tuple[int, ...], patterns: list[Pattern]) -> None:
    assert list(maximal_patterns(free, sizes)) == patterns


def every_maximal(free: int, sizes: tuple[int, ...]) -> set[tuple[int, ...]]:
    """Counts by size that fit and leave no room for one more of any size."""
    return {
        counts
        for counts in itertools.product(*(range(free // size + 1) for size in sizes))
        if 0 <= (left := free - sum(c * s for c, s in zip(counts, sizes, strict=True))) < min(sizes)
        and any(counts) and left >= 0
    }  # fmt: skip


@pytest.mark.parametrize("sizes", [(1, 2, 3), (2, 3), (3, 5), (2, 3, 7), (1, 4, 6), (4, 6), (5,)])
@pytest.mark.parametrize("free", [0, 1, 4, 8, 11, 16])
def test_the_patterns_are_all_maximal_ones_and_each_once(free: int, sizes: tuple[int, ...]) -> None:
    found = [tuple(dict(pattern).get(size, 0) for size in sizes) for pattern in maximal_patterns(free, sizes)]
    assert len(found) == len(set(found))
    assert set(found) == every_maximal(free, sizes)
