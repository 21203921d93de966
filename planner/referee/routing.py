"""Linear programs for routing by length: how much of a load fits, and the largest shares that counts carry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from models.problem import Candidate
from planner.referee.simplex import maximize

__all__ = ["Program", "routable"]

_NOTHING: Final = 1e-12


class Program:
    """A linear program whose columns are named by any hashable value and are not negative."""

    def __init__(self) -> None:
        self._columns: dict[Hashable, int] = {}
        self._rows: list[tuple[dict[int, float], float]] = []

    def row(self, terms: Mapping[Hashable, float], limit: float) -> None:
        """Add ``Σ terms · columns <= limit``; the limit is not negative."""
        self._rows.append(({self._column(name): value for name, value in terms.items()}, limit))

    def maximize(self, objective: Mapping[Hashable, float]) -> dict[Hashable, float]:
        """The columns that make the objective largest; those of no row or objective are absent, and so zero."""
        gains = {self._column(name): value for name, value in objective.items()}
        width = range(len(self._columns))
        rows = [[terms.get(j, 0.0) for j in width] for terms, _ in self._rows]
        values = maximize([gains.get(j, 0.0) for j in width], rows, [limit for _, limit in self._rows])
        found: dict[Hashable, float] = defaultdict(float)
        found.update(zip(self._columns, values, strict=True))
        return found

    def _column(self, name: Hashable) -> int:
        return self._columns.setdefault(name, len(self._columns))


def routable(carriers: Sequence[tuple[Candidate, int]], loads: Mapping[str, float], most: float) -> float:
    """The largest part (at most ``most``) of every bucket's load that fits these replicas together up to τ.

    Args:
        carriers: candidates with their replicas.
        loads: req/s by bucket.
        most: stop at this part.
    """
    program = Program()
    program.row({"part": 1.0}, most)
    for bucket, rps in loads.items():
        if rps > _NOTHING:
            able: dict[Hashable, float] = {
                ("to", c.id, bucket): -1.0 for c, _ in carriers if bucket in c.by_bucket
            }
            program.row({"part": rps} | able, 0.0)
    for c, n in carriers:
        busy: dict[Hashable, float] = {
            ("to", c.id, b): 1 / rating.surge_rps
            for b, rating in c.by_bucket.items()
            if loads.get(b, 0.0) > _NOTHING
        }
        if busy:
            program.row(busy, float(n))
    return program.maximize({"part": 1.0})["part"]
