"""Profile tables: measured points as CSV, one row per point, every unit in its column's name.

Reading collects every problem of the file: unknown and missing columns, values that are no number or out
of range, rows that stand twice, and rates that contradict Little's law (the usual trace of
milliseconds in a column of seconds).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from models.performance import MeasuredPoint
from planner.errors import CatalogError, Finding, nearest
from planner.performance.residence import residence_s

__all__ = ["COLUMNS", "read_profile", "write_profile"]

_PARALLEL: Final = ("tp", "pp", "dp", "ep")
COLUMNS: Final = (
    "llm", "accelerator", "engine", "engine_version", "precision", "kv_precision", *_PARALLEL, "role",
    "input_tokens", "output_tokens", "concurrency", "ttft_s", "itl_s", "rps", "power_w", "at", "source", "row",
)  # fmt: skip
_REQUIRED: Final = (
    "llm", "accelerator", "engine", "precision", "input_tokens", "output_tokens", "concurrency", "ttft_s", "itl_s",
    "rps", "source",
)  # fmt: skip
_SLACK: Final = 1.05
"""Rounded figures may miss Little's law by this factor."""


def write_profile(points: Iterable[MeasuredPoint], path: Path) -> None:
    """Write ``points`` as a profile table in UTF-8.

    Raises:
        OSError: the file cannot be written.
    """
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_cells(point) for point in points)


def read_profile(path: Path) -> tuple[MeasuredPoint, ...]:
    """Read a profile table.

    Raises:
        CatalogError: the file is not readable or holds problems; lists all of them, each with its line.
    """
    text = read_text(path)
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as cause:
        fault = Finding(str(path), reader.line_num, "", str(cause), allowed="comma-separated values")
        raise CatalogError.from_findings([fault]) from cause
    if not rows:
        empty = Finding(str(path), None, "", "an empty file", allowed=f"a header line: {','.join(COLUMNS)}")
        raise CatalogError.from_findings([empty])
    header = [name.strip() for name in rows[0][1]]
    findings = list(check_header(str(path), header, known=COLUMNS, required=_REQUIRED))
    if findings:
        raise CatalogError.from_findings(findings)
    points, findings = _points(str(path), header, rows[1:])
    if findings:
        raise CatalogError.from_findings(findings)
    return points


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte-order mark.

    Raises:
        CatalogError: there is no such file, or it is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as cause:
        fault = Finding(
            str(path), None, "", cause.strerror or "an unreadable file", allowed="a readable file"
        )
        raise CatalogError.from_findings([fault]) from cause
    except UnicodeDecodeError as cause:
        line = cause.object[: cause.start].count(b"\n") + 1
        found = f"byte 0x{cause.object[cause.start]:02x}, which is not UTF-8"
        raise CatalogError.from_findings(
            [Finding(str(path), line, "", found, allowed="UTF-8 text")]
        ) from cause


def check_header(
    file: str, header: Sequence[str], *, known: Sequence[str], required: Sequence[str]
) -> Iterator[Finding]:
    """Columns that are unknown, missing, or there twice."""
    for name in header:
        if name not in known:
            yield Finding(file, 1, name, "an unknown column", ", ".join(known), nearest(name, known))
    for name in required:
        if name not in header:
            yield Finding(file, 1, name, "no such column", allowed=f"a column {name}")
    for name in sorted({name for name in header if header.count(name) > 1}):
        yield Finding(file, 1, name, f"the column {header.count(name)} times", allowed="once")


def _points(
    file: str, header: Sequence[str], rows: Sequence[tuple[int, list[str]]]
) -> tuple[tuple[MeasuredPoint, ...], list[Finding]]:
    points: list[MeasuredPoint] = []
    findings: list[Finding] = []
    first_line: dict[object, int] = {}
    for line, row in rows:
        if len(row) != len(header):
            findings.append(
                Finding(file, line, "", f"{len(row)} cells", allowed=f"{len(header)}, one per column")
            )
            continue
        try:
            point = MeasuredPoint.model_validate(_fields(dict(zip(header, row, strict=True))))
        except ValidationError as cause:
            findings.extend(_finding(file, line, dict(error)) for error in cause.errors(include_url=False))
            continue
        points.append(point)
        findings.extend(_little(file, line, point))
        earlier = first_line.setdefault(_identity(point), line)
        if earlier != line:
            findings.append(
                Finding(file, line, "", f"the same point as line {earlier}", allowed="each point once")
            )
    return tuple(points), findings


def _fields(cells: dict[str, str]) -> dict[str, Any]:
    """Cells as fields of a point; empty cells fall back to the field's default."""
    filled = {name: cell.strip() for name, cell in cells.items() if cell.strip()}
    degrees = {name: filled.pop(name) for name in _PARALLEL if name in filled}
    return {**filled, "parallelism": degrees}


def _cells(point: MeasuredPoint) -> dict[str, object]:
    fields = point.model_dump(mode="json")
    return {
        name: _cell(value) for name, value in (fields | fields.pop("parallelism")).items() if name in COLUMNS
    }


def _cell(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.10g}"
    return "" if value is None else value


def _finding(file: str, line: int, error: dict[str, Any]) -> Finding:
    where = [str(part) for part in error["loc"] if part not in ("parallelism", "float", "literal['mean']")]
    raw = error.get("input")
    found = "no value" if isinstance(raw, dict) else repr(raw)
    return Finding(
        file, line, ".".join(where), found, allowed=str(error["msg"]).removeprefix("Value error, ")
    )


def _little(file: str, line: int, point: MeasuredPoint) -> Iterator[Finding]:
    """Requests in flight = rate x residence time: a rate beyond the concurrency cannot have been measured."""
    stay = residence_s(point.role, ttft_s=point.ttft_s, itl_s=point.itl_s, output_tokens=point.output_tokens)
    if point.rps * stay > point.concurrency * _SLACK:
        found = f"{point.rps:g} req/s x {stay:g} s = {point.rps * stay:.4g} requests in flight"
        yield Finding(
            file, line, "rps", found, f"at most the concurrency, {point.concurrency}", "latencies in seconds"
        )


def _identity(point: MeasuredPoint) -> object:
    """What makes two rows the same point: everything but what was measured."""
    return (
        point.llm, point.accelerator, point.engine, point.engine_version, point.precision, point.kv_precision,
        point.parallelism, point.role, point.input_tokens, point.output_tokens, point.concurrency, point.at,
        point.row,
    )  # fmt: skip
