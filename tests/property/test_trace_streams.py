"""However a trace is cut into pieces, the same requests come out: sorted, sliced, scaled, merged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import ConfigurationError
from planner.traces import BadRows, Change, OnBadRow, RequestChunk
from planner.traces.changing import changed, merged
from planner.traces.chunks import joined, rechunked, taken
from planner.traces.ordering import Sorter

ROWS = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 99)), min_size=1, max_size=60)
CUTS = st.lists(st.integers(1, 9), min_size=1, max_size=40)


def chunk(rows: Sequence[tuple[int, int]], *, ordered: bool = True) -> RequestChunk:
    """Arrivals in quarters of a second, lengths; every third request has two prefix blocks."""
    kept = sorted(rows) if ordered else list(rows)
    n = len(kept)
    offsets = np.cumsum([0, *(2 if k % 3 == 0 else 0 for k in range(n))])
    return RequestChunk(
        np.array([at / 4 for at, _ in kept]),
        np.array([length for _, length in kept], np.int32),
        np.arange(1, n + 1, dtype=np.int32),
        service=np.array([length % 2 for _, length in kept], np.int32),
        prefix_offsets=offsets.astype(np.int64),
        prefix_hashes=np.arange(offsets[-1], dtype=np.int64),
    )


def pieces(whole: RequestChunk, cuts: Sequence[int]) -> list[RequestChunk]:
    """The chunk cut at these lengths, again and again."""
    found, start, k = [], 0, 0
    while start < len(whole):
        end = min(len(whole), start + cuts[k % len(cuts)])
        found.append(taken(whole, np.arange(start, end)))
        start, k = end, k + 1
    return found


def same(one: RequestChunk, other: RequestChunk) -> bool:
    """Equal in every column."""
    names = ("arrival_s", "input_tokens", "output_tokens", "service", "prefix_offsets", "prefix_hashes")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@given(ROWS, CUTS, st.integers(1, 20))
def test_chunks_of_another_size_hold_the_same_requests(
    rows: list[tuple[int, int]], cuts: list[int], size: int
) -> None:
    whole = chunk(rows)
    again = list(rechunked(pieces(whole, cuts), size))
    assert all(len(each) == size for each in again[:-1])
    assert same(joined(again), whole)


@given(ROWS, CUTS, st.integers(0, 50), st.integers(1, 120), st.sampled_from([0.3, 1.0, 1.7, 3.0]))
def test_changes_do_not_see_how_a_trace_is_cut(
    rows: list[tuple[int, int]], cuts: list[int], start: int, length: int, scale: float
) -> None:
    whole = chunk(rows)
    change = Change(start_s=float(start), end_s=float(start + length), scale=scale, speed=2.0, seed=5)
    at_once, streamed = list(changed([whole], change)), list(changed(pieces(whole, cuts), change))
    assert len(at_once) == len(streamed)
    if at_once:
        assert same(joined(streamed), joined(at_once))
        arrivals = joined(at_once).arrival_s
        assert bool(np.all(np.diff(arrivals) >= 0))
        assert 0 <= arrivals[0] <= arrivals[-1] <= length / 2


@given(ROWS, ROWS, CUTS)
def test_traces_come_together_in_order_of_arrival(
    first: list[tuple[int, int]], second: list[tuple[int, int]], cuts: list[int]
) -> None:
    one, two = chunk(first), chunk(second)
    found = joined(list(merged([pieces(one, cuts), pieces(two, cuts)])))
    assert len(found) == len(one) + len(two)
    assert bool(np.all(np.diff(found.arrival_s) >= 0))
    assert sorted(found.input_tokens.tolist()) == sorted(
        one.input_tokens.tolist() + two.input_tokens.tolist()
    )


@given(ROWS, CUTS, st.integers(0, 60))
@settings(max_examples=200)
def test_a_bounded_sort_sorts_what_it_may_and_refuses_the_rest_however_rows_come(
    rows: list[tuple[int, int]], cuts: list[int], window_s: int
) -> None:
    whole = chunk(rows, ordered=False)
    latest = np.maximum.accumulate(whole.arrival_s)
    early = whole.arrival_s < np.concatenate([[-np.inf], latest[:-1]]) - window_s
    found, counted = [], BadRows(OnBadRow.SKIP)
    sorter, line = Sorter(float(window_s), counted, "f"), 2
    for piece in pieces(whole, cuts):
        ready = sorter.take(piece, np.arange(line, line + len(piece)))
        line += len(piece)
        found += [] if ready is None else [ready]
    rest = sorter.rest()
    good = taken(whole, np.flatnonzero(~early))
    expected = taken(good, np.argsort(good.arrival_s, kind="stable"))
    assert same(joined([*found, *([] if rest is None else [rest])]), expected)
    assert counted.skipped == int(np.sum(early))
    if early.any():
        strict = Sorter(float(window_s), BadRows(), "f")
        with pytest.raises(ConfigurationError) as error:
            strict.take(whole, np.arange(2, 2 + len(whole)))
        assert error.value.findings[0].line == 2 + int(np.flatnonzero(early)[0])
