"""Figures as tables: numbers stay numbers, so that columns sort; what is shown has thin spaces in thousands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from planner.ui.words import spaced
from planner.wording import money, number, percent

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

__all__ = ["FORMATS", "show_rows"]

FORMATS: Final[Mapping[str, Callable[[float], str]]] = {
    "money": money,
    "number": number,
    "share": percent,
    "watts": lambda watts: f"{watts:,.0f}",
}
_HEIGHT: Final = 460
_ROW: Final = 35
_LONG: Final = 36
_LETTER: Final = 8
_MARGIN: Final = 20
_STYLED_CELLS: Final = 40_000
"""Larger tables are shown as the browser writes numbers; to write every cell here would take seconds."""


def show_rows(
    rows: Sequence[Mapping[str, Any]],
    *,
    name: str,
    says: str,
    formats: Mapping[str, str] | None = None,
    help: Mapping[str, str] | None = None,
) -> None:
    """A table that can be sorted, searched and downloaded.

    Args:
        rows: one mapping each, all with the same names.
        name: of the widget.
        says: what the table holds, for those who do not see it.
        formats: how the numbers of a column are written, a key of :data:`FORMATS`; others are shown as they are.
        help: what a column means.
    """
    import pandas as pd

    formats, notes = formats or {}, help or {}
    frame = pd.DataFrame(list(rows))
    for column in frame.select_dtypes("float").columns:
        if column not in formats and not (frame[column].dropna() % 1).any():
            frame[column] = frame[column].astype("Int64")  # counts, of which some are missing
    for column in formats:
        frame[column] = frame[column].astype("Float64")
    widths = _widths(frame)
    configured = {
        column: st.column_config.Column(help=notes.get(column), width=widths.get(column))
        for column in {*notes, *widths}
    }
    shown: Any = frame
    if frame.size <= _STYLED_CELLS:
        shown = frame.style.format(
            {column: _written(FORMATS[kind]) for column, kind in formats.items()}, na_rep=""
        )
    st.dataframe(
        shown,
        key=f"table-{name}",
        hide_index=True,
        column_config=configured,
        height=min(_HEIGHT, _ROW * (len(frame) + 1) + 3),
        placeholder="",
        alt=says,
    )


def _widths(frame: pd.DataFrame) -> dict[str, int]:
    """Pixels of columns of short texts: a long text beside them would have them cut off."""
    texts = frame.select_dtypes(exclude="number").columns
    longest = {column: int(frame[column].map(str).map(len).max()) for column in texts}
    if max(longest.values(), default=0) <= _LONG:
        return {}
    return {
        str(column): max(length, len(str(column))) * _LETTER + _MARGIN
        for column, length in longest.items()
        if length <= _LONG
    }


def _written(write: Callable[[float], str]) -> Callable[[Any], str]:
    def cell(value: Any) -> str:  # noqa: ANN401 - any cell
        import pandas as pd

        return "" if pd.isna(value) else spaced(write(float(value)))

    return cell
