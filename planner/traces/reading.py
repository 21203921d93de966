"""Rows of a table as chunks of requests in order of arrival, in memory that does not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.errors import ConfigurationError, Finding, nearest
from planner.traces.badrows import BadRows
from planner.traces.chunks import moved, rechunked, taken
from planner.traces.layouts import Layout, layout_of
from planner.traces.ordering import WINDOW_S, Sorter
from planner.traces.requests import RequestChunk
from planner.traces.texts import MOST_TOKENS, is_date, nanoseconds, numbers, seconds_of_dates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.traces.rows import Rows

__all__ = ["Reading", "lengths_of", "requests_of"]

_BATCH: Final = 32_768
_EPOCH_FROM_S: Final = 1e8
"""Numbers from here on count from 1970 and not from the start of a trace."""

_LATEST_S: Final = 1e11
_PRIORITY: Final = 1000
_SHOWN: Final = 80
_A_ROW: Final = "a JSON object per line, or at most one value for each column"
_TOKENS: Final = f"a whole number from 1 to {MOST_TOKENS:,}"


@dataclass(frozen=True, slots=True)
class Reading:
    """How a table is read.

    Attributes:
        services: names that a column of services may hold, in the order of their indices.
        bad: policy and count of bad rows.
        window_s: rows that arrive so much earlier than a row before them are put in order.
    """

    services: Sequence[str] = ()
    bad: BadRows = field(default_factory=BadRows)
    window_s: float = WINDOW_S


def requests_of(rows: Rows, reading: Reading) -> Iterator[RequestChunk]:
    """Requests of a table.

    Times of the calendar, and numbers that count from 1970, begin at 0 with the first request; other numbers stay.

    Raises:
        ConfigurationError: a column is missing, a row is bad and that is an error, or no row is left.
    """
    yield from rechunked(_from_start(_sorted(rows, reading), rows.file))


def lengths_of(rows: Rows, reading: Reading) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Input and output tokens of every row; arrivals are not looked at.

    Raises:
        ConfigurationError: as :func:`requests_of`.
    """
    layout = layout_of(rows.names, file=rows.file, line=rows.line, arrivals=False)
    columns = _Columns(rows.file, layout, reading)
    found = [columns.lengths(batch) for batch in _batches(rows)]
    if not found or not sum(len(each) for each, _ in found):
        raise _empty(rows.file)
    return np.concatenate([each for each, _ in found]), np.concatenate([each for _, each in found])


def _batches(rows: Rows) -> Iterator[_Batch]:
    iterator = iter(rows)
    while batch := list(islice(iterator, _BATCH)):
        yield _Batch(np.array([line for line, _ in batch]), [row for _, row in batch])


def _sorted(rows: Rows, reading: Reading) -> Iterator[tuple[RequestChunk, bool]]:
    """Chunks in order, each with whether its times count from the first request."""
    layout = layout_of(rows.names, file=rows.file, line=rows.line)
    columns = _Columns(rows.file, layout, reading)
    sorter = Sorter(reading.window_s, reading.bad, rows.file)
    for batch in _batches(rows):
        chunk, lines = columns.requests(batch)
        ready = sorter.take(chunk, lines) if len(chunk) else None
        if ready is not None:
            yield ready, columns.absolute
    ready = sorter.rest()
    if ready is not None:
        yield ready, columns.absolute


def _from_start(chunks: Iterator[tuple[RequestChunk, bool]], file: str) -> Iterator[RequestChunk]:
    start_s: float | None = None
    for chunk, absolute in chunks:
        if start_s is None:
            start_s = float(chunk.arrival_s[0]) if absolute else 0.0
        yield moved(chunk, chunk.arrival_s - start_s) if start_s else chunk
    if start_s is None:
        raise _empty(file)


def _empty(file: str) -> ConfigurationError:
    return ConfigurationError.from_findings([Finding(file, None, "", "no request", "at least one row")])


@dataclass(frozen=True, slots=True)
class _Batch:
    lines: NDArray[np.int64]
    rows: list[Mapping[str, Any]]


class _Columns:
    """Makes columns of rows; knows from the first row on how times are written."""

    def __init__(self, file: str, layout: Layout, reading: Reading) -> None:
        self._file, self._layout, self._reading = file, layout, reading
        self._indices = {name: index for index, name in enumerate(reading.services)}
        self._dates: bool | None = None
        self._reference_ns = 0
        self.absolute = False

    def lengths(self, batch: _Batch) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Input and output tokens of the rows that have both."""
        bad: list[Finding] = []
        good = np.ones(len(batch.lines), bool)
        inputs = self._tokens(batch, self._layout.input_tokens, good, bad)
        outputs = self._tokens(batch, self._layout.output_tokens, good, bad)
        self._count(batch, bad)
        return inputs[good].astype(np.int32), outputs[good].astype(np.int32)

    def requests(self, batch: _Batch) -> tuple[RequestChunk, NDArray[np.int64]]:
        """Requests as they stand, and their lines."""
        bad: list[Finding] = []
        good = np.ones(len(batch.lines), bool)
        arrival_s = self._arrivals(batch, good, bad)
        inputs = self._tokens(batch, self._layout.input_tokens, good, bad)
        outputs = self._tokens(batch, self._layout.output_tokens, good, bad)
        service = self._services(batch, good, bad)
        priority = self._priorities(batch, good, bad)
        hashes = self._prefixes(batch, inputs, good, bad)
        self._count(batch, bad)
        offsets = np.concatenate([[0], np.cumsum([len(each) for each in hashes])]).astype(np.int64)
        known = self._layout.prefix is not None
        whole = RequestChunk(
            arrival_s,
            np.nan_to_num(inputs, nan=1.0).astype(np.int32),
            np.nan_to_num(outputs, nan=1.0).astype(np.int32),
            service=service,
            priority=priority,
            prefix_offsets=offsets if known else None,
            prefix_hashes=np.array([each for row in hashes for each in row], np.int64) if known else None,
            prefix_block_tokens=self._layout.prefix_block_tokens,
        )
        return taken(whole, np.flatnonzero(good)), batch.lines[good]

    def _count(self, batch: _Batch, bad: list[Finding]) -> None:
        """One finding per bad row, in the order of the file: the first thing that is wrong with it."""
        first: dict[int, Finding] = {}
        for finding in bad:
            first.setdefault(finding.line or 0, finding)
        self._reading.bad.rows += len(batch.lines)
        self._reading.bad.refuse([first[line] for line in sorted(first)])

    def _wrong(
        self, batch: _Batch, column: str, wrong: NDArray[np.bool_], *, allowed: str
    ) -> Iterator[Finding]:
        for i in np.flatnonzero(wrong):
            line, row = int(batch.lines[i]), batch.rows[i]
            if not row:
                yield Finding(self._file, line, "", "no row of this table", _A_ROW)
                continue
            value = row.get(column)
            found = "nothing" if value is None or value == "" else repr(value)[:_SHOWN]
            yield Finding(self._file, line, column, found, allowed)

    def _arrivals(self, batch: _Batch, good: NDArray[np.bool_], bad: list[Finding]) -> NDArray[np.float64]:
        name = self._layout.arrival or ""
        texts = [row.get(name) for row in batch.rows]
        if self._dates is None:
            self._learn(texts)
        if self._dates:
            found = seconds_of_dates(texts, self._reference_ns)
            wrong, allowed = np.isnan(found), "a time such as 2024-05-10 00:00:00.009930+00:00"
        else:
            found = numbers(texts) * self._layout.scale_s
            # A negative or absurd number would move all others.
            wrong = ~((found >= 0) & (found < _LATEST_S))
            allowed = "a number, not negative"
            found -= self._reference_ns * 1e-9
        bad.extend(self._wrong(batch, name, wrong, allowed=allowed))
        good &= ~wrong
        return np.where(wrong, 0.0, found)

    def _learn(self, texts: Sequence[Any]) -> None:
        """How times are written, from the first that is one."""
        for text in texts:
            if is_date(text):
                self._dates, self.absolute = True, True
                self._reference_ns = nanoseconds(text) or 0
                return
            value = float(numbers([text])[0]) * self._layout.scale_s
            if 0 <= value < _LATEST_S:
                self._dates, self.absolute = False, value >= _EPOCH_FROM_S
                self._reference_ns = int(value) * 10**9 if self.absolute else 0
                return

    def _tokens(
        self, batch: _Batch, name: str, good: NDArray[np.bool_], bad: list[Finding]
    ) -> NDArray[np.float64]:
        found = numbers([row.get(name) for row in batch.rows])
        wrong = ~((found >= 1) & (found <= MOST_TOKENS) & (found == np.floor(found)))
        bad.extend(self._wrong(batch, name, wrong, allowed=_TOKENS))
        good &= ~wrong
        return np.where(wrong, np.nan, found)

    def _services(
        self, batch: _Batch, good: NDArray[np.bool_], bad: list[Finding]
    ) -> NDArray[np.int32] | None:
        name = self._layout.service
        if name is None or not self._indices:
            return None
        values = [str(row.get(name, "")).strip() for row in batch.rows]
        found = np.array([self._indices.get(value, -1) for value in values], np.int32)
        known = ", ".join(self._indices)
        bad.extend(
            Finding(self._file, int(batch.lines[i]), name, repr(values[i])[:_SHOWN], known, nearest(values[i], self._indices))
            for i in np.flatnonzero(found < 0)
        )  # fmt: skip
        good &= found >= 0
        return found

    def _priorities(
        self, batch: _Batch, good: NDArray[np.bool_], bad: list[Finding]
    ) -> NDArray[np.int32] | None:
        name = self._layout.priority
        if name is None:
            return None
        found = numbers([row.get(name) for row in batch.rows])
        wrong = ~((np.abs(found) <= _PRIORITY) & (found == np.floor(found)))
        bad.extend(
            self._wrong(batch, name, wrong, allowed=f"a whole number from -{_PRIORITY} to {_PRIORITY}")
        )
        good &= ~wrong
        return np.where(wrong, 0, found).astype(np.int32)

    def _prefixes(
        self, batch: _Batch, inputs: NDArray[np.float64], good: NDArray[np.bool_], bad: list[Finding]
    ) -> list[list[int]]:
        name, size = self._layout.prefix, self._layout.prefix_block_tokens
        if name is None:
            return [[] for _ in batch.rows]
        values = [row.get(name) for row in batch.rows]
        most = np.ceil(np.nan_to_num(inputs) / size)
        ok = [_are_hashes(value, int(most[i])) for i, value in enumerate(values)]
        wrong = ~np.array(ok, np.bool_)
        allowed = f"a list of whole numbers, one per {size} tokens of the input"
        bad.extend(self._wrong(batch, name, wrong, allowed=allowed))
        good &= ~wrong
        return [list(value or ()) if ok[i] else [] for i, value in enumerate(values)]


def _are_hashes(value: Any, most: int) -> bool:  # noqa: ANN401 - a value of JSON
    if not isinstance(value, list) or len(value) > most:
        return False
    return all(type(each) is int and -(1 << 63) <= each < 1 << 63 for each in value)
