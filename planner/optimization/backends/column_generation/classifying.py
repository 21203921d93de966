"""Which kernel prices a block.

One covering row: the covering kernel, which is exact there. Covering rows that others imply do not count. Anything
else that is small enough: branch and cut. The rest: a small program in HiGHS. No block is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.optimization.backends.column_generation.blocks import Block
from planner.optimization.backends.column_generation.branched import fits
from planner.optimization.backends.column_generation.items import CoveringBlock, covering_block

__all__ = ["covering_form"]

_Cover = tuple[Mapping[int, int], int, int]
"""Coverage by item, what is owed, coverage of a filler step."""


def covering_form(block: Block) -> CoveringBlock | None:
    """A block as a covering problem for the covering kernel; None where another pricer is the better one."""
    form = covering_block(block)
    if form is None:
        return None
    covers = _needed([(*row, filler) for row, filler in zip(form.rows, form.filler_rows, strict=True)])
    if len(covers) > 1 and fits(block):
        return None
    rows = [(dict(coverage), owed) for coverage, owed, _ in covers]
    return replace(form, rows=rows, filler_rows=[filler for _, _, filler in covers])


def _needed(covers: list[_Cover]) -> list[_Cover]:
    """Rows that neither the base nor another row covers."""
    kept = [cover for cover in covers if cover[1] > 0]
    for cover in tuple(kept):
        if any(other is not cover and _implies(other, cover) for other in kept):
            kept.remove(cover)
    return kept or covers[:1]


def _implies(one: _Cover, other: _Cover) -> bool:
    """Whether keeping ``one`` keeps ``other``: per unit that is owed nothing covers more of ``one``."""
    (mine, owed, filler), (its, due, its_filler) = one, other
    return filler * due <= its_filler * owed and all(
        amount * due <= its.get(item, 0) * owed for item, amount in mine.items()
    )
