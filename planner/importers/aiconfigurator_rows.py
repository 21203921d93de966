"""The cells of AIConfigurator's measured table, checked: numbers are numbers, ids are there once."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from planner.errors import CatalogError, Finding
from planner.performance.profile import check_header, read_text

__all__ = ["Layout", "RawRow", "read_rows"]

_LAYOUT: Final = ("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
_PREFIXES: Final = ("", "prefill_", "decode_")
_TEXT: Final = (
    "id", "silicon_data_source", "backend", "backend_version", "model_path", "system", "precision", "mode",
    "gemm_quant_mode", "moe_quant_mode",
)  # fmt: skip
_POSITIVE: Final = ("isl", "osl", "silicon_ttft_ms", "silicon_tpot_ms")
_COUNTS: Final = (
    *(f"{prefix}{name}" for prefix in _PREFIXES for name in (*_LAYOUT, "batch_size")),
    "prefill_num_workers",
    "decode_num_workers",
)
_KNOWN: Final = (*_TEXT, *_POSITIVE, *_COUNTS)
_REQUIRED: Final = tuple(
    name for name in _KNOWN if name not in ("backend_version", "gemm_quant_mode", "moe_quant_mode")
)
_MODES: Final = ("agg", "disagg")
_CONCURRENCY: Final = re.compile(r"(?:^|;)\s*silicon_concurrency=(\d+)\s*(?:;|$)")


@dataclass(frozen=True, slots=True)
class Layout:
    """How one worker spreads over accelerators, as the table says it; 0 = not stated."""

    tp: int
    pp: int
    dp: int
    moe_tp: int
    moe_ep: int


@dataclass(frozen=True, slots=True)
class RawRow:
    """One run. Times in seconds, counts as stated, 0 = not stated."""

    id: str
    engine: str
    engine_version: str | None
    llm: str
    system: str
    precision: str
    aggregated: bool
    input_tokens: int
    output_tokens: int
    concurrency: int
    ttft_s: float
    itl_s: float
    replica: Layout
    prefill: Layout
    decode: Layout
    prefill_workers: int
    decode_workers: int


def read_rows(path: Path) -> tuple[RawRow, ...]:
    """All rows of the table.

    Raises:
        CatalogError: the file is unreadable, lacks a column, or has cells that cannot be right; lists
            every problem with its line.
    """
    file = str(path)
    reader = csv.reader(io.StringIO(read_text(path)))
    lines = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    if not lines:
        raise CatalogError.from_findings(
            [Finding(file, None, "", "an empty file", allowed="a header and rows")]
        )
    header = [name.strip() for name in lines[0][1]]
    findings = list(check_header(file, header, known=_KNOWN, required=_REQUIRED))
    if findings:
        raise CatalogError.from_findings(findings)
    rows: list[RawRow] = []
    first_line: dict[str, int] = {}
    for line, cells in lines[1:]:
        found = list(_check(file, line, header, cells))
        findings += found
        if found:
            continue
        row = _row(dict(zip(header, cells, strict=True)))
        earlier = first_line.setdefault(row.id, line)
        if earlier != line:
            findings.append(
                Finding(file, line, "id", f"{row.id!r}, as in line {earlier}", allowed="each id once")
            )
        rows.append(row)
    if findings:
        raise CatalogError.from_findings(findings)
    return tuple(rows)


def _check(file: str, line: int, header: list[str], cells: list[str]) -> Iterator[Finding]:
    if len(cells) != len(header):
        yield Finding(file, line, "", f"{len(cells)} cells", allowed=f"{len(header)}, one per column")
        return
    row = dict(zip(header, cells, strict=True))
    for name in ("id", "backend", "model_path", "system"):
        if not row[name].strip():
            yield Finding(file, line, name, "nothing", allowed="a name")
    if row["mode"] not in _MODES:
        yield Finding(file, line, "mode", repr(row["mode"]), allowed=" or ".join(_MODES))
    for name in _POSITIVE:
        value = _number(row[name])
        if value is None or value <= 0 or (name in ("isl", "osl") and value % 1):
            yield Finding(file, line, name, repr(row[name]), allowed=_wanted(name))
    for name in _COUNTS:
        value = _number(row[name]) if row[name].strip() else 0.0
        if value is None or value < 0 or value % 1:
            yield Finding(
                file, line, name, repr(row[name]), allowed="a count, or nothing when it is not known"
            )


def _wanted(name: str) -> str:
    return (
        "a whole number of tokens above 0"
        if name in ("isl", "osl")
        else "a plain number of milliseconds above 0"
    )


def _number(cell: str) -> float | None:
    """The number in a cell; None when there is none or it is not finite."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _row(row: Mapping[str, str]) -> RawRow:
    concurrency = _CONCURRENCY.search(row["silicon_data_source"])
    replica, prefill, decode = (_layout(row, prefix) for prefix in _PREFIXES)
    return RawRow(
        id=row["id"].strip(),
        engine=row["backend"].strip(),
        engine_version=row.get("backend_version", "").strip() or None,
        llm=row["model_path"].strip(),
        system=row["system"].strip(),
        precision=row["precision"].strip().lower(),
        aggregated=row["mode"] == "agg",
        input_tokens=_count(row["isl"]),
        output_tokens=_count(row["osl"]),
        concurrency=int(concurrency[1]) if concurrency else 0,
        ttft_s=float(row["silicon_ttft_ms"]) / 1000,
        itl_s=float(row["silicon_tpot_ms"]) / 1000,
        replica=replica,
        prefill=prefill,
        decode=decode,
        prefill_workers=_count(row["prefill_num_workers"]),
        decode_workers=_count(row["decode_num_workers"]),
    )


def _layout(row: Mapping[str, str], prefix: str) -> Layout:
    tp, pp, dp, moe_tp, moe_ep = (_count(row[f"{prefix}{name}"]) for name in _LAYOUT)
    return Layout(tp=tp, pp=pp, dp=dp, moe_tp=moe_tp, moe_ep=moe_ep)


def _count(cell: str) -> int:
    return int(float(cell)) if cell.strip() else 0
