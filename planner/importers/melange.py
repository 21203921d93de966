"""Mélange's input (tyler-griggs/melange-release @d46ab43) -> a scenario with routing by length.

``gpu_info`` holds a price and a table of rates for each GPU type, ``workload_distribution`` the share of each request
shape, ``total_request_rate`` their sum in req/s. Rows are input, columns output lengths; the file does not say which,
so they are given, or are those that Mélange publishes where the table has its 10 x 6 cells. Rates are taken at the
latency promise that Mélange was run with, which the file does not say either. ``slice_factor`` is of no use here:
shares of a bucket are continuous.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from models.scenario import Scenario
from models.shape_rate import ShapeRate
from planner.catalog import Catalog
from planner.errors import Finding
from planner.importers.documents import MOST_TOKENS, Document
from planner.importers.rate_grids import Grid, Named, Traffic, grid_of, scenario_of

__all__ = ["INPUTS", "OUTPUTS", "import_melange"]

INPUTS: Final = (25, 100, 250, 500, 1000, 2000, 4000, 8000, 12_000, 16_000)
OUTPUTS: Final = (25, 100, 250, 500, 1000, 2000)
"""Lengths of the published buckets, tokens."""

_SHARES_SLACK: Final = 0.02


def import_melange(
    path: Path,
    catalog: Catalog,
    *,
    named: Named,
    inputs: Sequence[int] | None = (),
    outputs: Sequence[int] | None = (),
    wrong: Iterable[Finding] = (),
) -> Scenario:
    """The scenario that a Mélange file describes.

    Args:
        path: the JSON file.
        catalog: knows the GPU types and the LLM.
        named: what the file does not say.
        inputs: input length of each row, tokens; empty: as published; None: ``wrong`` says why, tables are not looked at.
        outputs: output length of each column, tokens; likewise.
        wrong: what is wrong already with what was said beside the file.

    Raises:
        ConfigurationError: anything in the file that cannot be, or names that the catalog does not know; all at once.
    """
    document = Document(path)
    document.findings += wrong
    document.keys(("gpu_info", "workload_distribution", "total_request_rate"), ("slice_factor",))
    lengths = _lengths(document, inputs, outputs)
    traffic = _traffic(document, lengths)
    grids = _grids(document, lengths)
    return scenario_of(document, grids, traffic, named=named, catalog=catalog)


_Lengths = tuple[Sequence[int], Sequence[int]]
"""Of rows and columns, tokens."""


def _lengths(
    document: Document, inputs: Sequence[int] | None, outputs: Sequence[int] | None
) -> _Lengths | None:
    """Lengths of rows and columns; None where one of them cannot be, or the table is not of their size."""
    if inputs is None or outputs is None:
        return None
    rows, columns = tuple(inputs) or INPUTS, tuple(outputs) or OUTPUTS
    for name, lengths in (("--inputs", rows), ("--outputs", columns)):
        if lengths != tuple(sorted({*lengths})) or not 1 <= lengths[0] <= lengths[-1] <= MOST_TOKENS:
            document.find_option(
                name, list(lengths), allowed=f"rising whole numbers from 1 to {MOST_TOKENS:,}"
            )
            return None
    shape = document.data.get("workload_distribution")
    if inputs or outputs or shape is None or _size(shape) == (len(INPUTS), len(OUTPUTS)):
        return rows, columns
    document.find(
        "workload_distribution",
        f"a table of {' x '.join(map(str, _size(shape)))} cells",
        allowed=f"{len(INPUTS)} x {len(OUTPUTS)} cells, as published, or the lengths with --inputs and --outputs",
    )
    return None


def _size(table: object) -> tuple[int, int]:
    rows = len(table) if isinstance(table, list) else 0
    first = table[0] if isinstance(table, list) and table else None
    return rows, len(first) if isinstance(first, list) else 0


def _traffic(document: Document, lengths: _Lengths | None) -> list[Traffic] | None:
    """Requests of each shape; None where they cannot be read."""
    wrong = len(document.findings)
    said = document.data.get("total_request_rate")
    total = None if said is None else document.number("total_request_rate", said)
    table = document.data.get("workload_distribution")
    if lengths is None or table is None:
        return None
    inputs, outputs = lengths
    shares = grid_of(document, "workload_distribution", table, inputs=inputs, outputs=outputs)
    whole = math.fsum(each.rated_rps for each in shares)
    if len(document.findings) == wrong and abs(whole - 1) > _SHARES_SLACK:
        document.find(
            "workload_distribution", f"shares that add up to {whole:g}", allowed="shares that add up to 1"
        )
    if total is None or len(document.findings) > wrong:
        return None
    return [Traffic(each.input_tokens, each.output_tokens, each.rated_rps * total) for each in shares]


def _grids(document: Document, lengths: _Lengths | None) -> list[Grid]:
    gpus = document.data.get("gpu_info")
    if gpus is None:
        return []
    if not isinstance(gpus, dict) or not gpus:
        document.find("gpu_info", gpus, allowed="an object with an entry for each GPU type")
        return []
    grids: list[Grid] = []
    for name, entry in gpus.items():
        where = f"gpu_info.{name[:60]}"
        if not isinstance(entry, dict):
            document.find(where, entry, allowed="an object with cost and tputs")
            continue
        cost = document.number(f"{where}.cost", entry.get("cost"), most=1e6)
        rates: tuple[ShapeRate, ...] = ()
        if lengths is not None:
            inputs, outputs = lengths
            rates = grid_of(document, f"{where}.tputs", entry.get("tputs"), inputs=inputs, outputs=outputs)
        grids.append(Grid(name, cost or 0.0, rates))
    return grids
