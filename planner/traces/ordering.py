"""Rows in order of arrival, as far as a window allows: a bounded sort of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from planner.errors import Finding
from planner.traces.chunks import joined, taken
from planner.traces.requests import RequestChunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.traces.badrows import BadRows

__all__ = ["WINDOW_S", "Sorter"]

WINDOW_S: Final = 60.0
"""How much earlier than a row before it a row may arrive, where nothing else decides."""


class Sorter:
    """Puts rows in order that arrive up to ``window_s`` earlier than a row before them.

    A row that arrives earlier still is a bad row. Whether it does depends on the rows before it alone, so that it makes
    no difference how a file is cut into batches. As many rows are held as arrive within the window.

    Args:
        window_s: 0: no row may go back.
        bad: is told of rows that arrive too early.
        file: whose rows they are.
    """

    def __init__(self, window_s: float, bad: BadRows, file: str) -> None:
        self._window_s, self._bad, self._file = window_s, bad, file
        self._held: list[RequestChunk] = []
        self._latest_s, self._least_s = -np.inf, np.inf

    def take(self, chunk: RequestChunk, lines: NDArray[np.int64]) -> RequestChunk | None:
        """Take rows as they stand in the file; those that nothing can precede any more come back, in order."""
        before = np.maximum.accumulate(np.concatenate([[self._latest_s], chunk.arrival_s]))[:-1]
        early = chunk.arrival_s < before - self._window_s
        self._bad.refuse(
            [self._too_early(int(lines[i]), chunk.arrival_s[i], before[i]) for i in np.flatnonzero(early)]
        )
        self._bad.moved += int(np.sum((chunk.arrival_s < before) & ~early))
        good = np.flatnonzero(~early)
        if len(good) == 0:
            return None
        self._latest_s = max(self._latest_s, float(chunk.arrival_s.max()))
        kept = chunk if len(good) == len(chunk) else taken(chunk, good)
        self._held.append(kept)
        self._least_s = min(self._least_s, float(kept.arrival_s.min()))
        return self._until(self._latest_s - self._window_s)

    def rest(self) -> RequestChunk | None:
        """All that is held, in order."""
        return self._until(np.inf)

    def _until(self, end_s: float) -> RequestChunk | None:
        if not self._held or self._least_s > end_s:
            return None
        whole = joined(self._held)
        order = np.argsort(whole.arrival_s, kind="stable")
        count = int(np.searchsorted(whole.arrival_s[order], end_s, side="right"))
        self._held = [taken(whole, order[count:])] if count < len(order) else []
        self._least_s = float(whole.arrival_s[order[count]]) if count < len(order) else np.inf
        return taken(whole, order[:count]) if count else None

    def _too_early(self, line: int, arrival_s: float, before_s: float) -> Finding:
        return Finding(
            self._file,
            line,
            "",
            f"an arrival {before_s - arrival_s:.6g} s before one of an earlier line",
            f"rows in order of arrival (those up to {self._window_s:g} s early are put in order)",
        )
