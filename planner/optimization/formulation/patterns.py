"""Patterns of pods that one node can hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

__all__ = ["Pattern", "divide_one_another", "maximal_patterns"]

Pattern = tuple[tuple[int, int], ...]
"""(size, pods) with pods > 0, largest size first."""


def divide_one_another(sizes: Sequence[int]) -> bool:
    """Whether every size divides the next larger one; then floors are exact (any largest-first packing is)."""
    return all(larger % smaller == 0 for smaller, larger in pairwise(sorted(set(sizes))))


@lru_cache(maxsize=4096)
def maximal_patterns(free: int, sizes: tuple[int, ...]) -> tuple[Pattern, ...]:
    """All ways to fill a node so that no further pod of any size fits.

    Args:
        free: accelerators of the node.
        sizes: accelerators per pod, distinct, > 0.
    """
    largest_first = tuple(sorted(sizes, reverse=True))
    return tuple(_fill(free, largest_first)) if largest_first and free >= largest_first[-1] else ()


def _fill(free: int, sizes: tuple[int, ...]) -> Iterator[Pattern]:
    size, *smaller = sizes
    if not smaller:
        if pods := free // size:
            yield ((size, pods),)
        else:
            yield ()
        return
    for pods in range(free // size, -1, -1):
        for tail in _fill(free - pods * size, tuple(smaller)):
            left = free - pods * size - sum(s * k for s, k in tail)
            # Room for one more of this size means that a fuller pattern exists.
            if left < size:
                yield ((size, pods), *tail) if pods else tail
