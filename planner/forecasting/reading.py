"""A series from a file: lines of a time and a value, with a header. Every line that cannot be read is named at once."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from planner.errors import ConfigurationError, Finding
from planner.forecasting.series import Series, series_of

__all__ = ["read_series"]

_TOLD: Final = 20
_LONGEST: Final = 64 * 2**20
_TIMES: Final = ("time", "timestamp", "at_s", "time_s", "date")


def read_series(path: Path, *, step_s: float) -> Series:
    """Times (seconds of the epoch, or ISO 8601; without a zone UTC) and values, from a CSV file with a header.

    The column of times is called time, timestamp, at_s, time_s or date; the value is the first other one. An empty value is
    a gap.

    Raises:
        ConfigurationError: the file or some of its lines cannot be read; each is named.
    """
    try:
        if path.stat().st_size > _LONGEST:
            raise ConfigurationError(f"{path}: found more than {_LONGEST:,} bytes; allowed: a shorter series")
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
    except OSError as cause:
        raise ConfigurationError(f"{path}: cannot be read: {cause.strerror or cause}") from cause
    except (UnicodeDecodeError, csv.Error) as cause:
        raise ConfigurationError(f"{path}: is no CSV file in UTF-8: {cause}") from cause
    header = [cell.strip().casefold() for cell in rows[0]] if rows else []
    at = next((header.index(name) for name in _TIMES if name in header), None)
    if at is None or len(header) < 2:  # noqa: PLR2004 - a time and a value
        found = ", ".join(header) or "no header"
        raise ConfigurationError.from_findings(
            [Finding(str(path), 1, "", found, "a header with time and a value")]
        )
    value = next(place for place in range(len(header)) if place != at)
    samples, findings = [], []
    for line, row in enumerate(rows[1:], start=2):
        read = _row(row, at, value)
        if isinstance(read, str):
            findings.append(
                Finding(str(path), line, header[value], read, "a time and a number that is not negative")
            )
        elif read is not None:
            samples.append(read)
    if findings:
        raise ConfigurationError.from_findings(findings[:_TOLD])
    return series_of(samples, step_s=step_s)


def _row(row: list[str], at: int, value: int) -> tuple[float, float] | str | None:
    """Time and value; None: an empty line, or a gap; a text: what cannot be read."""
    if not any(cell.strip() for cell in row):
        return None
    if len(row) <= max(at, value):
        return f"{len(row)} columns"
    if not row[value].strip():
        return None
    time_s = _time(row[at].strip())
    try:
        figure = float(row[value])
    except ValueError:
        figure = math.nan
    if time_s is None:
        return repr(row[at])
    return (time_s, figure) if math.isfinite(figure) and figure >= 0 else repr(row[value])


def _time(text: str) -> float | None:
    for read in _ways(text):
        if math.isfinite(read) and abs(read) < 1e12:  # noqa: PLR2004 - beyond the year 33,000
            return read
    return None


def _ways(text: str) -> Iterator[float]:
    try:
        yield float(text)
    except ValueError:
        try:
            told = datetime.fromisoformat(text)
        except ValueError:
            return
        yield (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()
