"""How long a step takes: every form of :mod:`models.twin_timing` but the simulator's, from packed parameters."""

from __future__ import annotations

from planner.simulation.kernel import rep
from planner.simulation.kernel.compiling import compiled
from planner.simulation.kernel.state import Floats

__all__ = ["step_s"]


@compiled
def _segment(timings: Floats, at: int, count: int, x: float) -> int:
    """Index i of the points with x in [p_i, p_{i+1}], the outermost segments being endless; count >= 2."""
    low, high = 0, count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if timings[at + middle] <= x:
            low = middle
        else:
            high = middle
    return low


@compiled
def _curve(timings: Floats, at: int, x: float) -> float:
    """Packed: count, points, seconds. 0 where there is no curve; never below 0."""
    count = int(timings[at])
    if count == 0:
        return 0.0
    points, seconds = at + 1, at + 1 + count
    if count == 1:
        return float(timings[seconds])
    i = _segment(timings, points, count, x)
    low, high = timings[points + i], timings[points + i + 1]
    y = timings[seconds + i] + (timings[seconds + i + 1] - timings[seconds + i]) * (x - low) / (high - low)
    return max(0.0, float(y))


@compiled
def _grid(timings: Floats, at: int, row: float, column: float) -> float:
    """Packed: rows, columns, row points, column points, seconds row by row. 0 where there is no grid."""
    rows, columns = int(timings[at]), int(timings[at + 1])
    if rows == 0:
        return 0.0
    row_at, column_at = at + 2, at + 2 + rows
    body = column_at + columns
    i, j, u, v = 0, 0, 0.0, 0.0
    if rows > 1:
        i = _segment(timings, row_at, rows, row)
        u = (row - timings[row_at + i]) / (timings[row_at + i + 1] - timings[row_at + i])
    if columns > 1:
        j = _segment(timings, column_at, columns, column)
        v = (column - timings[column_at + j]) / (timings[column_at + j + 1] - timings[column_at + j])
    below, right = (columns if rows > 1 else 0), (1 if columns > 1 else 0)
    first = body + i * columns + j
    top = timings[first] + v * (timings[first + right] - timings[first])
    bottom = timings[first + below] + v * (timings[first + below + right] - timings[first + below])
    return max(0.0, float(top + u * (bottom - top)))


@compiled
def _table_s(timings: Floats, at: int, work: tuple[float, float, float, float, float, float, float]) -> float:
    decoding, prefill, context, _, _, sequences, chunk_context = work
    seconds = timings[at]
    seconds += _curve(timings, int(timings[at + 1]), decoding + prefill)
    seconds += _curve(timings, int(timings[at + 2]), sequences)
    if decoding > 0.0 and prefill > 0.0:
        seconds += _grid(timings, int(timings[at + 5]), decoding, context / decoding)
        seconds += timings[at + 6] * decoding * prefill
    elif decoding > 0.0:
        seconds += _grid(timings, int(timings[at + 3]), decoding, context / decoding)
    if prefill > 0.0:
        seconds += _grid(timings, int(timings[at + 4]), prefill, chunk_context)
    return float(seconds)


@compiled
def step_s(
    timings: Floats, kind: int, at: int, work: tuple[float, float, float, float, float, float, float]
) -> float:
    """Seconds of a step.

    Args:
        timings: packed parameters.
        kind: ``rep.LINEAR``, ``rep.ROOFLINE`` or ``rep.TABLE``.
        at: where the parameters begin.
        work: decoding requests, prefill tokens, KV tokens that decoding requests read, attended pairs of prefill,
            contexts at the ends of prefill chunks, requests that yield a token, mean context before the chunks.
    """
    if kind == rep.TABLE:
        return _table_s(timings, at, work)
    decoding, prefill, context, pairs, ends = work[0], work[1], work[2], work[3], work[4]
    if kind == rep.LINEAR:
        seconds = timings[at] + timings[at + 1] * decoding + timings[at + 2] * prefill
        if prefill > 0.0:
            seconds += timings[at + 6]
        return float(seconds + timings[at + 3] * context + timings[at + 4] * pairs + timings[at + 5] * ends)
    compute = timings[at + 1] * (decoding + prefill) + timings[at + 2] * (pairs + context)
    memory = timings[at + 3] + timings[at + 4] * (context + ends)
    return float(timings[at] + max(compute, memory))
