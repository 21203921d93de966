"""Files as rows with their lines: CSV with a header, JSON objects line by line, both also packed by gzip."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from planner.errors import ConfigurationError, Finding

__all__ = ["Rows", "beginning", "csv_rows", "json_rows", "opened"]

_GZIP: Final = b"\x1f\x8b"
_DELIMITERS: Final = ",;\t|"
_HEAD: Final = 65_536
_LONGEST: Final = 1 << 24
"""Characters of a line at most."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A table.

    Attributes:
        file: as the user named it.
        names: of its columns.
        line: where they stand.
        read: opens the file anew; (line, values by name) of each row. A value that a row lacks is missing.
    """

    file: str
    names: tuple[str, ...]
    line: int
    read: Callable[[], Iterator[tuple[int, Mapping[str, Any]]]]

    def __iter__(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        return self.read()


@contextmanager
def opened(path: Path, file: str) -> Iterator[TextIO]:
    """A text, unpacked where its first bytes say that it is packed by gzip; a byte-order mark is left out.

    Raises:
        ConfigurationError: it cannot be read, or a packed file ends too early.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(len(_GZIP)) == _GZIP
            raw.seek(0)
            source = gzip.GzipFile(fileobj=raw) if packed else raw
            # A letter of another encoding makes one bad row, not a bad file.
            yield io.TextIOWrapper(source, encoding="utf-8-sig", errors="replace", newline="")
    except (EOFError, zlib.error, gzip.BadGzipFile) as cause:
        raise _unreadable(file, f"packed data that ends or breaks too early ({cause})") from cause
    except OSError as cause:
        raise _unreadable(file, f"that it cannot be read: {cause.strerror or cause}") from cause


def _unreadable(file: str, found: str) -> ConfigurationError:
    return ConfigurationError.from_findings(
        [Finding(file, None, "", found, "a file of text, or of text packed by gzip")]
    )


def beginning(path: Path, file: str) -> str:
    """The first characters of a text.

    Raises:
        ConfigurationError: as :func:`opened`, or it is no text.
    """
    with opened(path, file) as text:
        head = text.read(_HEAD)
    if head.startswith("PAR1"):
        raise _unreadable(file, "a Parquet file; write it as CSV or as JSON lines")
    if "\0" in head:
        raise _unreadable(file, "bytes that are no text")
    return head


def _lines(text: TextIO, file: str) -> Iterator[str]:
    number = 0
    while line := text.readline(_LONGEST):
        number += 1
        if len(line) == _LONGEST:
            found = f"a line of more than {_LONGEST:,} characters"
            raise ConfigurationError.from_findings([Finding(file, number, "", found)])
        yield line


def csv_rows(path: Path, file: str, head: str) -> Rows:
    """A table whose first line that is not empty names its columns; told apart by comma, semicolon, tab or bar."""
    first = next((line for line in head.splitlines() if line.strip()), "")
    delimiter = max(_DELIMITERS, key=first.count)
    skipped = head[: head.index(first)].count("\n") if first else 0
    names = tuple(name.strip() for name in next(csv.reader([first], delimiter=delimiter), []))
    return Rows(file, names, skipped + 1, lambda: _read_csv(path, file, delimiter, names))


def _read_csv(
    path: Path, file: str, delimiter: str, names: tuple[str, ...]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with opened(path, file) as text:
        reader = csv.reader(_lines(text, file), delimiter=delimiter)
        is_header = True
        try:
            for values in reader:
                if not values or (len(values) == 1 and not values[0].strip()):
                    continue
                if is_header:
                    is_header = False
                    continue
                # A row with more values than columns says nothing for certain: it lacks every one, and is bad.
                surplus = any(value.strip() for value in values[len(names) :])
                yield reader.line_num, {} if surplus else dict(zip(names, values, strict=False))
        except csv.Error as cause:
            raise ConfigurationError.from_findings(
                [Finding(file, reader.line_num, "", f"what is no row of a table ({cause})")]
            ) from cause


def json_rows(path: Path, file: str, head: str) -> Rows:
    """Objects line by line; the first one names the columns."""
    number, first = next(
        ((i, line) for i, line in enumerate(head.splitlines(), start=1) if line.strip()), (1, "")
    )
    value = _object(first)
    if value is None:
        found = (
            "a first line that is no JSON object" if len(first) < _HEAD else "a first line that is too long"
        )
        raise ConfigurationError.from_findings([Finding(file, number, "", found, "one object per line")])
    return Rows(file, tuple(value), number, lambda: _read_json(path, file))


def _read_json(path: Path, file: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with opened(path, file) as text:
        for number, line in enumerate(_lines(text, file), start=1):
            if line.strip():
                # A line that is no object lacks every value, and is a bad row for that.
                yield number, _object(line) or {}


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
