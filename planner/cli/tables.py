"""Tables on disk, written piece by piece: Parquet where pyarrow is installed, CSV else."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from planner.errors import ConfigurationError, Finding, nearest

__all__ = ["FORMATS", "Coded", "TableWriter", "chosen_format"]

FORMATS: Final = ("parquet", "csv")

_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column of names: an index into them for each row.

    Attributes:
        codes: whole numbers; one outside the names has none.
        names: by index.
    """

    codes: Any
    names: Sequence[str]


def chosen_format(asked: str | None) -> str:
    """The format that is asked for, else Parquet where it can be written.

    Raises:
        ConfigurationError: there is no such format, or it needs what is not installed.
    """
    there = importlib.util.find_spec("pyarrow") is not None
    if asked is None:
        return "parquet" if there else "csv"
    if asked not in FORMATS:
        finding = Finding("", None, "--tables", repr(asked), ", ".join(FORMATS), nearest(asked, FORMATS))
        raise ConfigurationError.from_findings([finding])
    if asked == "parquet" and not there:
        raise ConfigurationError(
            "--tables parquet needs pyarrow: pip install 'fleetplan[parquet]', or --tables csv"
        )
    return asked


class TableWriter:
    """Writes pieces of a table into one file; use it in a ``with`` block.

    Args:
        stem: path without its ending, which is that of the format.
        form: of :data:`FORMATS`.
    """

    def __init__(self, stem: Path, form: str) -> None:
        self._path = stem.with_name(f"{stem.name}.{form}")
        self._form = form
        self._writer: Any = None
        self._file: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._form == "parquet" and self._writer is not None:
            self._writer.close()
        elif self._file is not None:
            self._file.close()

    def write(self, columns: Mapping[str, Any]) -> None:
        """Write further rows: arrays of one length, or :class:`Coded` names, by name of the column."""
        if self._form == "parquet":
            self._write_parquet(columns)
        else:
            self._write_csv(columns)

    def _write_parquet(self, columns: Mapping[str, Any]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        arrays = {name: _arrow(column) for name, column in columns.items()}
        table = pa.table(arrays)
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table)

    def _write_csv(self, columns: Mapping[str, Any]) -> None:
        if self._file is None:
            self._file = self._path.open("w", encoding="utf-8", newline="")
            self._writer = csv.writer(self._file, lineterminator="\n")
            self._writer.writerow(columns)
        self._writer.writerows(zip(*map(_texts, columns.values()), strict=True))


def _arrow(column: Any) -> Any:  # noqa: ANN401 - an array of numpy, an array of Arrow
    import pyarrow as pa

    if not isinstance(column, Coded):
        return pa.array(column)
    codes = np.asarray(column.codes)
    known = (codes >= 0) & (codes < len(column.names))
    indices = pa.array(np.where(known, codes, 0).astype(np.int32), mask=~known)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(column.names), pa.string()))


def _texts(column: Any) -> list[Any]:  # noqa: ANN401 - an array of numpy
    if isinstance(column, Coded):
        names = column.names
        return [names[code] if 0 <= code < len(names) else "" for code in np.asarray(column.codes).tolist()]
    array = np.asarray(column)
    if array.dtype.kind != "f":
        return list(array.tolist())
    return ["" if value != value else f"{value:.{_DIGITS}g}" for value in array.tolist()]  # noqa: PLR0124 - NaN
