"""Times of vLLM's kernels, measured one by one -> step times.

Three tables (LLMServingSim's profiler writes them), CSV, gzip or not, times in microseconds:

- ``NAME_dense.csv``: ``layer,tokens,time_us`` of what works on all tokens of a step;
- ``NAME_per_sequence.csv``: ``layer,sequences,time_us`` of what works on requests that yield a token;
- ``NAME_attention.csv``: ``prefill_chunk,kv_prefill,n_decode,kv_decode,time_us``: a chunk on a context, decoding
  requests of a context each, or both in one call.

A transformer layer holds each dense kernel once and the norm twice; embedding and the last norm are there once per
step. Attention of both kinds in one call takes longer than one after the other. What it takes on top of the chunk is a
function of requests and context, and a part that grows with requests x chunk, as tiles are padded; both are fitted.
"""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.twin_timing import Curve, Grid, TableTiming
from planner.errors import CatalogError, Finding
from planner.performance.profile import read_text

__all__ = ["read_kernel_times"]

Floats = NDArray[np.float64]

_US: Final = 1e-6
_DENSE: Final = ("layer", "tokens", "time_us")
_PER_SEQUENCE: Final = ("layer", "sequences", "time_us")
_ATTENTION: Final = ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us")
_ONCE: Final = frozenset({"embedding", "final_layernorm"})
_TWICE: Final = frozenset({"layernorm"})


@dataclass(frozen=True, slots=True)
class _Attention:
    """Calls of the attention kernel, each column of shape (calls,).

    Attributes:
        chunk: prefill tokens.
        before: context before them.
        decoding: requests that decode.
        context: of each of them.
        time_us: of one layer.
    """

    chunk: Floats
    before: Floats
    decoding: Floats
    context: Floats
    time_us: Floats


def read_kernel_times(prefix: Path, *, layers: int) -> TableTiming:
    """Step times of an engine from the times of its kernels, on one accelerator.

    Args:
        prefix: path of the tables without ``_dense.csv`` and so on.
        layers: transformer layers of the LLM.

    Raises:
        CatalogError: a table is not there, lacks columns, or holds what is no time; lists all of it.
    """
    findings: list[Finding] = []
    dense = _by_layer(_read(prefix, "dense", _DENSE, findings))
    yielding = _by_layer(_read(prefix, "per_sequence", _PER_SEQUENCE, findings))
    rows = np.array(
        [[float(cell) for cell in row] for row in _read(prefix, "attention", _ATTENTION, findings)]
    )
    if findings:
        raise CatalogError.from_findings(findings)
    attention = _Attention(*rows.reshape(-1, len(_ATTENTION)).T)
    counts = {name: 1 if name in _ONCE else layers * (2 if name in _TWICE else 1) for name in dense}
    mixed, product_us = _mixed(attention)
    return TableTiming(
        tokens=_sum(dense, counts),
        sequences=_sum(yielding, dict.fromkeys(yielding, 1)),
        decode=_grid(_alone(attention, decoding=True), layers),
        prefill=_grid(_alone(attention, decoding=False), layers),
        mixed_decode=_grid(mixed, layers) if mixed else None,
        mixed_per_product_s=product_us * layers * _US,
    )


def _read(prefix: Path, table: str, columns: tuple[str, ...], findings: list[Finding]) -> list[list[str]]:
    """Rows of a table, numbers in every column but ``layer``; none where something is wrong with it."""
    plain = prefix.with_name(f"{prefix.name}_{table}.csv")
    packed = plain.with_name(f"{plain.name}.gz")
    path = packed if packed.exists() else plain
    try:
        text = gzip.decompress(path.read_bytes()).decode() if path == packed else read_text(path)
    except CatalogError as cause:
        findings += cause.findings
        return []
    except (OSError, EOFError, ValueError) as cause:
        findings.append(Finding(str(path), None, "", str(cause), "text, packed by gzip"))
        return []
    reader = csv.reader(io.StringIO(text))
    header = next(reader, [])
    if tuple(header) != columns:
        findings.append(Finding(str(path), 1, "", f"columns {','.join(header)}"[:200], ",".join(columns)))
        return []
    rows, known = [row for row in reader if row], len(findings)
    for line, row in enumerate(rows, start=2):
        if len(row) != len(columns) or not all(_is_number(cell) for cell in row[columns[0] == "layer" :]):
            findings.append(Finding(str(path), line, "", ",".join(row)[:80], "numbers of at least 0"))
    if not rows:
        findings.append(Finding(str(path), None, "", "no row", "measured times"))
    return rows if len(findings) == known else []


def _is_number(cell: str) -> bool:
    try:
        return 0.0 <= float(cell) < float("inf")
    except ValueError:
        return False


def _by_layer(rows: list[list[str]]) -> dict[str, dict[float, float]]:
    """Time by size by name."""
    found: dict[str, dict[float, float]] = {}
    for name, size, time_us in rows:
        found.setdefault(name, {})[float(size)] = float(time_us)
    return found


def _sum(layers: dict[str, dict[float, float]], counts: dict[str, int]) -> Curve:
    """All kernels of a step over the sizes that any was measured at."""
    sizes = sorted({size for times in layers.values() for size in times})
    total = np.zeros(len(sizes))
    for name, times in layers.items():
        known = sorted(times)
        total += counts[name] * np.interp(sizes, known, [times[size] for size in known])
    return Curve(at=tuple(sizes), seconds=tuple((total * _US).tolist()))


def _alone(attention: _Attention, *, decoding: bool) -> dict[tuple[float, float], float]:
    """Time of calls of one kind only, by requests and context or by chunk and context."""
    rows, columns = (
        (attention.decoding, attention.context) if decoding else (attention.chunk, attention.before)
    )
    chosen = (rows > 0) & ((attention.chunk if decoding else attention.decoding) == 0)
    table = np.column_stack([rows, columns, attention.time_us])[chosen].tolist()
    return {(row, column): time_us for row, column, time_us in table}


def _mixed(attention: _Attention) -> tuple[dict[tuple[float, float], float], float]:
    """What decoding requests add to a chunk in one call: by requests and context, and per request and prefill token.

    The latter is fitted inside each cell of equal requests and context, errors relative to the whole call.
    """
    prompts = _alone(attention, decoding=False)
    both = (attention.chunk > 0) & (attention.decoding > 0)
    keys = np.column_stack([attention.chunk, attention.before])[both].tolist()
    known = np.array([(chunk, before) in prompts for chunk, before in keys], bool)
    if not known.any():
        return {}, 0.0
    alone_us = np.array(
        [prompts[chunk, before] for (chunk, before), ok in zip(keys, known, strict=True) if ok]
    )
    chunk, decoding, context, time_us = (
        column[both][known]
        for column in (attention.chunk, attention.decoding, attention.context, attention.time_us)
    )
    cells, index = np.unique(np.column_stack([decoding, context]), axis=0, return_inverse=True)
    index = index.reshape(-1)
    weight, product, added = 1.0 / time_us**2, chunk * decoding, time_us - alone_us
    total = np.bincount(index, weight)

    def within(values: Floats) -> Floats:
        centered: Floats = values - (np.bincount(index, weight * values) / total)[index]
        return centered

    spread = float(np.sum(weight * within(product) ** 2))
    slope = max(0.0, float(np.sum(weight * within(product) * within(added))) / spread) if spread else 0.0
    rest = np.bincount(index, weight * (added - slope * product)) / total
    pairs = zip(cells.tolist(), rest.tolist(), strict=True)
    return {(row, column): max(0.0, value) for (row, column), value in pairs}, slope


def _grid(cells: dict[tuple[float, float], float], layers: int) -> Grid | None:
    """A whole grid: what was not measured lies on the line through its neighbors in the row, or its last two."""
    if not cells:
        return None
    columns = sorted({column for _, column in cells})
    by_row: dict[float, dict[float, float]] = {}
    for (row, column), time_us in cells.items():
        by_row.setdefault(row, {})[column] = time_us
    rows = sorted(by_row)
    seconds = tuple(tuple((_filled(columns, by_row[row]) * (layers * _US)).tolist()) for row in rows)
    return Grid(rows=tuple(rows), columns=tuple(columns), seconds=seconds)


def _filled(columns: list[float], known: dict[float, float]) -> Floats:
    at = sorted(known)
    values = np.interp(columns, at, [known[column] for column in at])
    if len(at) > 1:
        slope = (known[at[-1]] - known[at[-2]]) / (at[-1] - at[-2])
        beyond = np.array(columns) > at[-1]
        values[beyond] += slope * (np.array(columns)[beyond] - at[-1])
    filled: Floats = np.maximum(values, 0.0)
    return filled
