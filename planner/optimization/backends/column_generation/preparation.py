"""What column generation makes of a program before it asks anything, and keeps for the next goal of the same program.

Levels of one descent differ in their goal and in few rows that hold the levels before. So blocks, their covering
forms and the arrays of the tying rows are made once, and a program that has grown takes over all that it has in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planner.collecting import collection_paused
from planner.optimization.backends.column_generation.blocks import Shape, grown, shape_of
from planner.optimization.backends.column_generation.branched import fit_all, fits
from planner.optimization.backends.column_generation.branched_pricing import BranchedPricer, Branchings
from planner.optimization.backends.column_generation.classifying import covering_form
from planner.optimization.backends.column_generation.coverings import CoveringPricer, Coverings, CoveringUse
from planner.optimization.backends.column_generation.items import CoveringBlock, covering_block
from planner.optimization.backends.column_generation.master import Master, MasterColumn, TyingRow
from planner.optimization.backends.column_generation.pricing import Pricer, ProgramPricer
from planner.optimization.backends.column_generation.relaxation import Relaxation
from planner.optimization.backends.column_generation.sparse import Rows, more_rows, rows_like, rows_of
from planner.optimization.backends.column_generation.ties import Ties, Usage, more_ties, ties_of
from planner.optimization.program import IntegerProgram, Key

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Prepared", "prepared"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prepared:
    """A program, cut and in arrays.

    Attributes:
        program: what was prepared.
        rows: its rows as arrays.
        shape: its blocks and what ties them.
        ties: the tying rows as arrays.
        forms: each block as a covering problem; None where it is none, or another kernel is the better one.
        coverings: those that are, as arrays.
        grown_from: preparation of the program that this one has grown from; None: it was made anew.
    """

    program: IntegerProgram
    rows: Rows
    shape: Shape
    ties: Ties
    forms: tuple[CoveringBlock | None, ...]
    coverings: Coverings
    grown_from: Prepared | None = None

    @property
    def first(self) -> Prepared:
        """The preparation from which this one has grown, of the program without a level that is held."""
        return self if self.grown_from is None else self.grown_from.first

    @cached_property
    def covering_use(self) -> CoveringUse:
        """What the covering blocks use of the tying rows."""
        return self.coverings.use(self.ties)

    def keeps(self, values: Mapping[Key, int]) -> bool:
        """Whether values of all columns keep every row of the program, in exact integers."""
        held = self.rows.hold(list(map(values.__getitem__, self.program.position)))
        return not self.program.broken(values) if held is None else held

    def inside(self, values: Mapping[Key, int]) -> bool:
        """Whether values of all columns are between the ends of the columns."""
        lower, upper = self.ends
        position = self.program.position
        found = np.fromiter(map(values.__getitem__, position), dtype=np.float64, count=len(position))
        return bool(np.all((lower <= found) & (found <= upper)))

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """Lower and upper ends of all columns, in the order of the program."""
        columns, before = self.program.columns, self.grown_from
        if before is not None and len(before.program.columns) == len(columns):
            return before.ends
        lower = np.fromiter((column.lower for column in columns), dtype=np.float64, count=len(columns))
        return lower, np.fromiter((column.upper for column in columns), dtype=np.float64, count=len(columns))

    @cached_property
    def listable(self) -> tuple[CoveringBlock | None, ...]:
        """Each block as a covering problem whose coverings can be listed; None where it is none."""
        before = self.grown_from
        known: Sequence[CoveringBlock | None] = ()
        if before is not None and "listable" in before.__dict__:
            known = before.listable
        return tuple(
            known[number]
            if before is not None and number < len(known) and block is before.shape.blocks[number]
            else covering_block(block, limited=True)
            for number, block in enumerate(self.shape.blocks)
        )

    @cached_property
    def branchings(self) -> Branchings:
        """Blocks for branch and cut as arrays; those of the program that this one has grown from where they are the same."""
        fit_all([block for block, form in zip(self.shape.blocks, self.forms, strict=True) if form is None])
        blocks = [
            (number, block)
            for number, (block, form) in enumerate(zip(self.shape.blocks, self.forms, strict=True))
            if form is None and fits(block)
        ]
        before = self.grown_from.branchings if self.grown_from is not None else None
        return before if before is not None and before.are(blocks) else Branchings(blocks, self.ties.position)

    @cached_property
    def branched_use(self) -> csr_array:
        """What one step of each column of those blocks uses of the tying rows."""
        return self.branchings.use(self.ties)

    @cached_property
    def ranges(self) -> Floats:
        """How far each column of a block can move; 0 for those of the master."""
        found = np.zeros(len(self.ties.position))
        spans = [float(c.upper - c.lower) for block in self.shape.blocks for c in block.columns]
        found[: len(spans)] = spans  # columns of blocks are numbered first
        return found

    def prices_by_row(self, scaled: Floats) -> dict[Key, float]:
        """Prices of the scaled tying rows by key, per unit of the row: so they are good for the next program too."""
        per_unit = (scaled / self.ties.scales).tolist()
        return {row.key: price for row, price in zip(self.shape.tying, per_unit, strict=True)}

    def scaled_prices(self, by_row: Mapping[Key, float]) -> Floats:
        """Prices of the scaled tying rows from those by key, 0 for rows that are not among them."""
        known = np.array([by_row.get(row.key, 0.0) for row in self.shape.tying])
        return known * self.ties.scales

    def usage(self, goal: Mapping[Key, int]) -> Usage:
        """What columns cost in a goal, and use."""
        return Usage(self.ties, {key: float(value) for key, value in goal.items()})

    def master(self, usage: Usage, penalties: Floats) -> Master:
        """A master without patterns; ``penalties`` are what breaking each tying row by one scaled unit costs."""
        ties = self.ties
        sides = zip((ties.lower / ties.scales).tolist(), (ties.upper / ties.scales).tolist(), strict=True)
        columns = [
            MasterColumn(c.lower, c.upper, usage.cost.get(c.key, 0.0), usage.use.get(c.key, ()))
            for c in self.shape.master
        ]
        rows = [TyingRow(lower, upper) for lower, upper in sides]
        return Master(rows, columns, len(self.shape.blocks), penalties)

    def relaxation(self, usage: Usage, penalties: Floats) -> Relaxation:
        """Pricers and an empty master."""
        branched = frozenset(self.branchings.numbers.tolist())
        programs = [
            ProgramPricer(number, self.shape.blocks[number], usage)
            for number, form in enumerate(self.forms)
            if form is None and number not in branched
        ]
        others: list[Pricer] = [
            BranchedPricer(self.branchings, self.branched_use, usage),
            *programs,
        ]
        master = self.master(usage, penalties)
        return Relaxation(master, CoveringPricer(self.coverings, self.covering_use, usage), others)


def prepared(program: IntegerProgram, before: Prepared | None = None) -> Prepared:
    """Prepare a program; from ``before`` everything is taken over that it has in common with it."""
    with collection_paused():
        return (_from(program, before) if before is not None else None) or _anew(program, before)


def _anew(program: IntegerProgram, before: Prepared | None) -> Prepared:
    """Cut a program; blocks that are as they were before are the very same objects, with their forms."""
    first = None if before is None else before.first
    rows = (rows_like(first.rows, first.program, program) if first is not None else None) or rows_of(program)
    shape = shape_of(program, rows.terms)
    forms: dict[int, CoveringBlock | None] = {}
    if before is not None:
        shape, forms = _as_before(shape, before)
    ties = ties_of(shape, None if first is None else (first.shape, first.ties))
    every = tuple(
        forms[number] if number in forms else covering_form(block)
        for number, block in enumerate(shape.blocks)
    )
    return Prepared(program, rows, shape, ties, every, _coverings(every, ties))


def _as_before(shape: Shape, before: Prepared) -> tuple[Shape, dict[int, CoveringBlock | None]]:
    """The shape with blocks of before where nothing about them changed, and the forms of those by number."""
    blocks, forms = list(shape.blocks), {}
    for number, block in enumerate(shape.blocks):
        old = before.shape.owner.get(block.columns[0].key)
        if old is not None and before.shape.blocks[old] == block:
            blocks[number], forms[number] = before.shape.blocks[old], before.forms[old]
    return replace(shape, blocks=tuple(blocks)), forms


def _coverings(forms: Sequence[CoveringBlock | None], ties: Ties) -> Coverings:
    return Coverings([(n, form) for n, form in enumerate(forms) if form is not None], ties.position)


def _from(program: IntegerProgram, before: Prepared) -> Prepared | None:
    """The preparation of a program that has grown from the one before; None where it has not."""
    old = before.program
    columns, rows = len(old.columns), len(old.rows)
    if program.columns[:columns] != old.columns or program.rows[:rows] != old.rows:
        return None
    shape = grown(before.shape, program.columns[columns:], program.rows[rows:])
    if shape is None:
        return None
    forms = tuple(
        form if block is old else covering_form(block)
        for block, old, form in zip(shape.blocks, before.shape.blocks, before.forms, strict=True)
    )
    ties = more_ties(before.ties, shape)
    same = all(form is old for form, old in zip(forms, before.forms, strict=True))
    coverings = before.coverings if same else _coverings(forms, ties)
    return Prepared(
        program, more_rows(before.rows, program), shape, ties, forms, coverings, grown_from=before
    )
