"""Blocks as covering problems: whole items, covering rows, and a filler for what stays unserved.

A candidate is one item; some are on order it is two, up to those and above them, which is
exact because the second is never cheaper than the first. The served share y is replaced by 1 − z.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from planner.optimization.backends.column_generation.blocks import Block
from planner.optimization.program import Key, Row

__all__ = ["CoveringBlock", "Item", "covering_block"]


@dataclass(frozen=True, slots=True)
class Item:
    """One step of some columns.

    Attributes:
        step: change of each column by one item.
        most: how many there are.
    """

    step: Mapping[Key, int]
    most: int


@dataclass
class CoveringBlock:
    """A block in the form of the pricing kernel.

    Attributes:
        base: values of all columns when no item is taken.
        items: what may be taken.
        rows: coverage by item position, and what is owed beyond the base.
        filler: the step of a share that stays unserved; None where everything must be served.
        filler_rows: coverage of one filler step by row.
        limits: use by item position, and what may be used beyond the base; the pricing kernel knows none.
    """

    base: dict[Key, int]
    items: list[Item] = field(default_factory=list)
    rows: list[tuple[dict[int, int], int]] = field(default_factory=list)
    filler: Item | None = None
    filler_rows: list[int] = field(default_factory=list)
    limits: list[tuple[dict[int, int], int]] = field(default_factory=list)

    def values(self, taken: Iterator[tuple[int, int]], fillers: int) -> dict[Key, int]:
        """Values of all columns when some items (position, count) and filler steps are taken."""
        found = dict(self.base)
        for position, count in taken:
            for key, step in self.items[position].step.items():
                found[key] += step * count
        if self.filler is not None:
            for key, step in self.filler.step.items():
                found[key] += step * fillers
        return found


def covering_block(block: Block, *, limited: bool = False) -> CoveringBlock | None:
    """A block as a covering problem, or None where it is none (several paths, shares by bucket, ratios, pinning).

    Args:
        block: of a program.
        limited: rows that limit replicas from above are welcome too.
    """
    reading = _Reading(block)
    if not reading.read() or (reading.limits and not limited):
        return None
    return reading.covering()


class _Reading:
    """Rows of a block sorted by what they mean."""

    def __init__(self, block: Block) -> None:
        self.columns = {column.key: column for column in block.columns}
        self.lower = {column.key: column.lower for column in block.columns}
        self.upper = {column.key: column.upper for column in block.columns}
        self.on_order: dict[Key, int] = {}
        self.covers: list[Row] = []
        self.limits: list[Row] = []
        self.whole: int | None = None
        self.pair: tuple[Key, ...] = ()
        self.block = block

    def read(self) -> bool:
        """Sort all rows; False where one has no place in a covering problem."""
        if not all(self._read_row(row) for row in self.block.rows):
            return False
        self._narrow_shares()
        return self._kinds_fit()

    def _read_row(self, row: Row) -> bool:
        if len(row.terms) == 1:
            return self._bound(row)
        kinds = {key[0] for key in row.terms}
        if row.family == "change" and kinds == {"down", "n"}:
            return self._paired(row)
        if row.family == "demand" and kinds == {"y", "z"}:
            return self._shares(row)
        if row.upper is not None:
            if kinds != {"n"} or min(row.terms.values()) < 0:
                return False
            self.limits.append(row)
        if row.lower is not None:
            self.covers.append(row)
        return True

    def _bound(self, row: Row) -> bool:
        ((key, coefficient),) = row.terms.items()
        if coefficient < 0:
            return False
        if row.lower is not None:
            self.lower[key] = max(self.lower[key], -(-row.lower // coefficient))
        if row.upper is not None:
            self.upper[key] = min(self.upper[key], row.upper // coefficient)
        return True

    def _paired(self, row: Row) -> bool:
        """Down ≥ on order − n."""
        n = next(key for key in row.terms if key[0] == "n")
        if row.lower is None or self.on_order.setdefault(n, row.lower) != row.lower:
            return False
        return set(row.terms.values()) == {1} and row.upper is None

    def _shares(self, row: Row) -> bool:
        """Y + z = whole, once."""
        if self.whole is not None or len(row.terms) != 2 or row.lower != row.upper:  # noqa: PLR2004 - y and z
            return False
        self.whole, self.pair = row.lower, tuple(row.terms)
        return all(coefficient == 1 for coefficient in row.terms.values())

    def _narrow_shares(self) -> None:
        """A limit of one share is one of the other: with what is served known, nothing is left to fill."""
        if self.whole is None:
            return
        for one, other in (self.pair, self.pair[::-1]):
            self.lower[one] = max(self.lower[one], self.whole - self.upper[other])
            self.upper[one] = min(self.upper[one], self.whole - self.lower[other])

    def _kinds_fit(self) -> bool:
        """Covering rows hold replicas that cover and at most one share that owes."""
        free_shares = [k for k in self.columns if k[0] in {"y", "z"} and self.lower[k] != self.upper[k]]
        if len(free_shares) not in {0, 2} or (free_shares and self.whole is None):
            return False
        known = {"n", "y", "z", "down"}
        if any(key[0] not in known for key in self.columns):
            return False
        return all(
            (coefficient >= 0 and key[0] == "n") or (coefficient <= 0 and key[0] == "y")
            for row in self.covers
            for key, coefficient in row.terms.items()
        )

    def covering(self) -> CoveringBlock | None:
        """The block, once every row has its place."""
        if any(self.lower[key] > self.upper[key] for key in self.columns):
            return None
        found = CoveringBlock(base={})
        positions: dict[Key, list[int]] = {}
        for key in self.columns:
            if key[0] == "n":
                positions[key] = self._add_items(found, key)
        self._add_rest(found)
        self._add_filler(found)
        for row in self.covers:
            owed = (row.lower or 0) - sum(
                coefficient * found.base[key] for key, coefficient in row.terms.items()
            )
            coverage = {
                position: coefficient
                for key, coefficient in row.terms.items()
                if key[0] == "n"
                for position in positions[key]
            }
            found.rows.append((coverage, owed))
            found.filler_rows.append(
                -sum(coefficient for key, coefficient in row.terms.items() if key[0] == "y")
            )
        for row in self.limits:
            use = {at: coefficient for key, coefficient in row.terms.items() for at in positions[key]}
            taken = sum(coefficient * found.base[key] for key, coefficient in row.terms.items())
            found.limits.append((use, (row.upper or 0) - taken))
        return found

    def _add_items(self, found: CoveringBlock, n: Key) -> list[int]:
        low, high = self.lower[n], self.upper[n]
        down = ("down", n[1])
        on_order = self.on_order.get(n, 0)
        found.base[n] = low
        if down not in self.columns and not on_order:
            if high > low:
                found.items.append(Item({n: 1}, high - low))
                return [len(found.items) - 1]
            return []
        if down in self.columns:
            found.base[down] = max(0, on_order - low)
        turn = min(max(on_order, low), high)
        added = []
        below = {n: 1} | ({down: -1} if down in self.columns else {})
        for step, most in ((below, turn - low), ({n: 1}, high - turn)):
            if most > 0:
                added.append(len(found.items))
                found.items.append(Item(step, most))
        return added

    def _add_rest(self, found: CoveringBlock) -> None:
        for key in self.columns:
            if key not in found.base:
                found.base[key] = self.lower[key]

    def _add_filler(self, found: CoveringBlock) -> None:
        if self.whole is None:
            return
        y, z = sorted(self.pair)
        if self.lower[z] == self.upper[z]:
            return
        found.base[z] = self.lower[z]
        found.base[y] = self.whole - self.lower[z]
        found.filler = Item({z: 1, y: -1}, self.upper[z] - self.lower[z])
