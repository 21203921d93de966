"""A trace made faster, denser, shorter, or joined with others; all of it while it streams."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from planner.errors import ConfigurationError, Finding
from planner.traces.chunks import joined, moved, rechunked, taken
from planner.traces.requests import RequestChunk, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Change", "changed", "merged"]

_MIXED: Final = 0x5851F42D4C957F2D
_SLOWEST: Final = 1e-3
_FASTEST: Final = 1e6
"""What a trace may be slowed down and sped up by: outside, a replay of minutes never ends, or is over in no time."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to a trace, in this order.

    Attributes:
        start_s: what comes before is left out, and the trace begins there.
        end_s: what comes from here on is left out.
        scale: so many times the requests: some are left out by chance, or come again between themselves and the next.
        speed: so many times as fast.
        seed: of that chance.
    """

    start_s: float = 0.0
    end_s: float = math.inf
    scale: float = 1.0
    speed: float = 1.0
    seed: int = 0

    def checked(self) -> Self:
        """The change itself.

        Raises:
            ConfigurationError: everything that is wrong with it.
        """
        rules = (
            ("slice", 0 <= self.start_s < self.end_s, f"{self.start_s:g}:{self.end_s:g} s", "from 0, the end after the start"),
            ("scale", 0 < self.scale <= 1000, f"{self.scale:g}", "more than 0, at most 1000"),  # noqa: PLR2004
            ("speed", _SLOWEST <= self.speed <= _FASTEST, f"{self.speed:g}", "from 0.001 to 1000000"),
        )  # fmt: skip
        findings = [Finding("", None, name, found, allowed) for name, ok, found, allowed in rules if not ok]
        if findings:
            raise ConfigurationError.from_findings(findings)
        return self


def changed(trace: Trace, change: Change) -> Iterator[RequestChunk]:
    """The trace after a change. Only as much of it is read as is wanted."""
    pieces: Trace = trace
    if change.start_s > 0 or change.end_s < math.inf:
        pieces = _sliced(pieces, change.start_s, change.end_s)
    if change.scale != 1:
        pieces = _scaled(pieces, change.scale, change.seed)
    if change.speed != 1:
        pieces = (moved(chunk, chunk.arrival_s / change.speed) for chunk in pieces)
    return rechunked(pieces)


def _sliced(trace: Trace, start_s: float, end_s: float) -> Iterator[RequestChunk]:
    for chunk in trace:
        first, last = np.searchsorted(chunk.arrival_s, [start_s, end_s]).tolist()
        if first < last:
            piece = taken(chunk, np.arange(first, last))
            yield moved(piece, piece.arrival_s - start_s)
        if last < len(chunk):
            return


def _scaled(trace: Trace, scale: float, seed: int) -> Iterator[RequestChunk]:
    counting, placing = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    held: RequestChunk | None = None
    for chunk in trace:
        # The last request of a chunk waits for the next one, since its copies come between the two.
        whole = chunk if held is None else joined([held, chunk])
        if len(whole) > 1:
            ready = taken(whole, np.arange(len(whole) - 1))
            yield _copies(ready, whole.arrival_s[1:], scale, counting, placing)
        held = taken(whole, np.arange(max(0, len(whole) - 1), len(whole)))
    if held is not None and len(held):
        yield _copies(held, held.arrival_s, scale, counting, placing)


def _copies(
    chunk: RequestChunk,
    next_s: NDArray[np.float64],
    scale: float,
    counting: np.random.Generator,
    placing: np.random.Generator,
) -> RequestChunk:
    """Each request ``floor(scale)`` times, and once more by chance; the first stays, others come before the next."""
    whole = math.floor(scale)
    counts = whole + (counting.random(len(chunk)) < scale - whole)
    rows = np.repeat(np.arange(len(chunk)), counts)
    first = np.concatenate([[True], rows[1:] != rows[:-1]]) if len(rows) else np.zeros(0, bool)
    later = np.where(first, 0.0, 1.0)
    later[~first] *= placing.random(int(np.sum(~first)))
    arrival_s = chunk.arrival_s[rows] + later * (next_s - chunk.arrival_s)[rows]
    order = np.argsort(arrival_s, kind="stable")
    copies = taken(chunk, rows[order])
    return moved(copies, arrival_s[order])


def merged(traces: Sequence[Trace]) -> Iterator[RequestChunk]:
    """Several traces as one, in order of arrival; at the same time in the order of the traces.

    Prefix hashes of different traces never mean the same block.
    """
    if len(traces) == 1:
        return rechunked(traces[0])
    return rechunked(_together([iter(_named_apart(trace, k)) for k, trace in enumerate(traces)]))


def _named_apart(trace: Trace, k: int) -> Iterator[RequestChunk]:
    for chunk in trace:
        if chunk.prefix_hashes is None or k == 0:
            yield chunk
            continue
        apart = np.int64((k * _MIXED) & 0x7FFFFFFFFFFFFFFF)
        yield replace(chunk, prefix_hashes=chunk.prefix_hashes ^ apart)


def _together(sources: list[Iterator[RequestChunk]]) -> Iterator[RequestChunk]:
    held = {k: chunk for k, source in enumerate(sources) if (chunk := _next(source)) is not None}
    block = next((c.prefix_block_tokens for c in held.values() if c.prefix_hashes is not None), None)
    while held:
        # Whatever arrives up to here is known of every source.
        end_s = min(float(chunk.arrival_s[-1]) for chunk in held.values())
        parts = []
        for k in sorted(held):
            chunk = held[k]
            count = int(np.searchsorted(chunk.arrival_s, end_s, side="right"))
            parts.append(taken(chunk, np.arange(count)))
            if count < len(chunk):
                held[k] = taken(chunk, np.arange(count, len(chunk)))
            elif (following := _next(sources[k])) is not None:
                held[k] = following
            else:
                del held[k]
        whole = joined([_with_prefixes(part, block) for part in parts])
        yield taken(whole, np.argsort(whole.arrival_s, kind="stable"))


def _with_prefixes(chunk: RequestChunk, block_tokens: int | None) -> RequestChunk:
    """The chunk with a column of prefixes where another trace has one: a column is there in all chunks or in none."""
    if block_tokens is None or chunk.prefix_hashes is not None:
        return chunk
    return replace(
        chunk,
        prefix_offsets=np.zeros(len(chunk) + 1, np.int64),
        prefix_hashes=np.zeros(0, np.int64),
        prefix_block_tokens=block_tokens,
    )


def _next(source: Iterator[RequestChunk]) -> RequestChunk | None:
    return next((chunk for chunk in source if len(chunk)), None)
