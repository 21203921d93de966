"""Rows as a data frame for the table editor, and what came back of it as rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from planner.ui.editing.tables import NUMBER, OWNER, Column, Kind, Row, Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["frame_of", "rows_in"]

_TYPES: Final = {Kind.TEXT: "string", Kind.NUMBER: "Float64", Kind.COUNT: "Int64", Kind.FLAG: "boolean"}


def frame_of(rows: Sequence[Row], table: Table) -> pd.DataFrame:
    """A data frame with a column for every column of the table; empty cells are missing values."""
    import pandas as pd

    columns: dict[str, pd.Series[Any]] = {NUMBER: pd.Series([row.get(NUMBER) for row in rows], dtype="Int64")}
    if table.owner:
        columns[OWNER] = pd.Series([row.get(OWNER) for row in rows], dtype="string")
    for column in table.columns:
        cells = [_cell(row.get(column.path), column) for row in rows]
        columns[column.path] = pd.Series(cells, dtype=_TYPES[column.kind])
    return pd.DataFrame(columns)


def rows_in(frame: pd.DataFrame) -> list[Row]:
    """Rows with bare values; missing ones are None. Rows in which nothing was typed are left out."""
    import pandas as pd

    rows = [
        {name: None if pd.isna(value) else _bare(value) for name, value in row.items()}
        for row in frame.to_dict("records")
    ]
    return [row for row in rows if any(value is not None for name, value in row.items() if name != NUMBER)]


def _cell(value: object, column: Column) -> object:
    """A value that the column can show; what is of another kind (a unit in words, say) is shown where it was read."""
    if column.kind is Kind.TEXT or value is None:
        return value
    return value if isinstance(value, int | float) else None


def _bare(value: Any) -> object:  # noqa: ANN401 - any cell
    return value.item() if hasattr(value, "item") else value
