"""Mélange's input (tyler-griggs/melange-release @d46ab43) -> a scenario with routing by length.

``gpu_info`` holds a price and a table of rates for each GPU type, ``workload_distribution`` the share of each request
shape, ``total_request_rate`` their sum in req/s. Rows are input, columns output lengths; the file does not say which,
so they are given, or are those that Mélange publishes where the table has its 10 x 6 cells. Rates are taken at the
latency promise that Mélange was run with, which the file does not say either. ``slice_factor`` is of no use here:
shares of a bucket are continuous.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from models.scenario import Scenario
from planner.catalog import Catalog
from planner.importers.documents import Document
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
    inputs: Sequence[int] = (),
    outputs: Sequence[int] = (),
) -> Scenario:
    """The scenario that a Mélange file describes.

    Args:
        path: the JSON file.
        catalog: knows the GPU types and the LLM.
        named: what the file does not say.
        inputs: input length of each row, tokens; empty: as published.
        outputs: output length of each column, tokens; empty: as published.

    Raises:
        ConfigurationError: anything in the file that cannot be, or names that the catalog does not know; all at once.
    """
    document = Document(path)
    document.keys(("gpu_info", "workload_distribution", "total_request_rate"), ("slice_factor",))
    rows, columns = tuple(inputs) or INPUTS, tuple(outputs) or OUTPUTS
    for name, lengths in (("--inputs", rows), ("--outputs", columns)):
        document.counts(name, list(lengths))
    document.check()
    shape = document.data["workload_distribution"]
    if not inputs and not outputs and _size(shape) != (len(INPUTS), len(OUTPUTS)):
        found = f"a table of {' x '.join(map(str, _size(shape)))} cells"
        document.find(
            "workload_distribution",
            found,
            allowed=f"{len(INPUTS)} x {len(OUTPUTS)} cells, as published, or the lengths with --inputs and --outputs",
        )
        document.check()
    traffic = _traffic(document, rows, columns)
    grids = _grids(document, rows, columns)
    return scenario_of(document, grids, traffic, named=named, catalog=catalog)


def _size(table: object) -> tuple[int, int]:
    rows = len(table) if isinstance(table, list) else 0
    first = table[0] if isinstance(table, list) and table else None
    return rows, len(first) if isinstance(first, list) else 0


def _traffic(document: Document, inputs: Sequence[int], outputs: Sequence[int]) -> list[Traffic]:
    total = document.number("total_request_rate", document.data["total_request_rate"])
    shares = grid_of(
        document,
        "workload_distribution",
        document.data["workload_distribution"],
        inputs=inputs,
        outputs=outputs,
    )
    whole = math.fsum(each.rated_rps for each in shares)
    if shares and abs(whole - 1) > _SHARES_SLACK:
        document.find(
            "workload_distribution", f"shares that add up to {whole:g}", allowed="shares that add up to 1"
        )
    return [
        Traffic(each.input_tokens, each.output_tokens, each.rated_rps * (total or 0.0)) for each in shares
    ]


def _grids(document: Document, inputs: Sequence[int], outputs: Sequence[int]) -> list[Grid]:
    gpus = document.data["gpu_info"]
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
        rates = grid_of(document, f"{where}.tputs", entry.get("tputs"), inputs=inputs, outputs=outputs)
        grids.append(Grid(name, cost or 0.0, rates))
    return grids
