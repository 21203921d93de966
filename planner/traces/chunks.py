"""Chunks cut, joined and moved in time, whatever columns they have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.errors import ConfigurationError
from planner.traces.requests import RequestChunk, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CHUNK", "joined", "moved", "rechunked", "renamed", "taken"]

CHUNK: Final = 65_536
"""Requests of a chunk, where nothing else decides."""


def taken(chunk: RequestChunk, rows: NDArray[np.int64]) -> RequestChunk:
    """The chunk's requests with these indices, in this order; an index may come more than once."""
    offsets, hashes = None, None
    if chunk.prefix_offsets is not None and chunk.prefix_hashes is not None:
        starts, counts = chunk.prefix_offsets[rows], np.diff(chunk.prefix_offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        places = np.repeat(starts - offsets[:-1], counts) + np.arange(offsets[-1])
        hashes = chunk.prefix_hashes[places]
    return replace(
        chunk,
        arrival_s=chunk.arrival_s[rows],
        input_tokens=chunk.input_tokens[rows],
        output_tokens=chunk.output_tokens[rows],
        service=None if chunk.service is None else chunk.service[rows],
        priority=None if chunk.priority is None else chunk.priority[rows],
        prefix_offsets=offsets,
        prefix_hashes=hashes,
    )


def joined(chunks: Sequence[RequestChunk]) -> RequestChunk:
    """All requests one after another. A column that only some have is filled: service 0, priority 0, no prefix.

    Raises:
        ConfigurationError: prefix blocks of more than one size.
    """
    if len(chunks) == 1:
        return chunks[0]
    sizes = {chunk.prefix_block_tokens for chunk in chunks if chunk.prefix_hashes is not None}
    if len(sizes) > 1:
        found = " and ".join(str(size) for size in sorted(sizes))
        raise ConfigurationError(f"traces with prefix blocks of {found} tokens cannot be replayed together")
    offsets, hashes = _prefixes(chunks) if sizes else (None, None)
    return RequestChunk(
        np.concatenate([chunk.arrival_s for chunk in chunks]),
        np.concatenate([chunk.input_tokens for chunk in chunks]),
        np.concatenate([chunk.output_tokens for chunk in chunks]),
        service=_filled([chunk.service for chunk in chunks], chunks),
        priority=_filled([chunk.priority for chunk in chunks], chunks),
        prefix_offsets=offsets,
        prefix_hashes=hashes,
        prefix_block_tokens=next(iter(sizes), chunks[0].prefix_block_tokens),
    )


def _filled(
    columns: Sequence[NDArray[np.int32] | None], chunks: Sequence[RequestChunk]
) -> NDArray[np.int32] | None:
    if all(column is None for column in columns):
        return None
    return np.concatenate(
        [
            np.zeros(len(chunk), np.int32) if column is None else column
            for column, chunk in zip(columns, chunks, strict=True)
        ]
    )


def _prefixes(chunks: Sequence[RequestChunk]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    none = np.zeros(0, np.int64)
    counts = [
        np.zeros(len(chunk), np.int64) if chunk.prefix_offsets is None else np.diff(chunk.prefix_offsets)
        for chunk in chunks
    ]
    hashes = [none if chunk.prefix_hashes is None else chunk.prefix_hashes for chunk in chunks]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)
    return offsets, np.concatenate(hashes)


def moved(chunk: RequestChunk, arrival_s: NDArray[np.float64]) -> RequestChunk:
    """The same requests at other times."""
    return replace(chunk, arrival_s=arrival_s)


def renamed(chunk: RequestChunk, service: int) -> RequestChunk:
    """The same requests, all of one service."""
    return replace(chunk, service=np.full(len(chunk), service, np.int32))


def rechunked(trace: Trace, size: int = CHUNK) -> Iterator[RequestChunk]:
    """The same requests in chunks of ``size``; the last one may be shorter."""
    held: list[RequestChunk] = []
    count = 0
    for chunk in trace:
        if len(chunk) == 0:
            continue
        held.append(chunk)
        count += len(chunk)
        if count < size:
            continue
        whole = joined(held)
        ends = range(size, count + 1, size)
        for end in ends:
            yield taken(whole, np.arange(end - size, end))
        count -= ends[-1]
        held = [taken(whole, np.arange(ends[-1], ends[-1] + count))] if count else []
    if held:
        yield joined(held)
