"""A chart with its downloads: every chart of the app can be had as a picture and as a table."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from planner.charts import save_chart

__all__ = ["csv_of", "show_chart", "show_panels"]

Chart = Any
"""Any chart of Altair; it has no common type."""


def show_chart(
    chart: Chart,
    rows: Sequence[Mapping[str, Any]],
    *,
    name: str,
    says: str,
    wide: bool = True,
    picks: str | None = None,
) -> list[dict[str, Any]]:
    """Draw a chart, what it says for those who do not see it, and its downloads.

    Args:
        chart: any Altair chart.
        rows: the figures that it draws.
        name: of the files, and of the widgets.
        says: one sentence, read to those who do not see the chart.
        wide: stretch it over the page.
        picks: name of a selection in the chart; the page runs again when somebody clicks.

    Returns:
        What is selected, a mapping for each; nothing where nothing can be.
    """
    picked = _drawn(chart, f"chart-{name}", width="stretch" if wide else "content", picks=picks)
    _show_below(chart, rows, name=name, says=says)
    return picked


def show_panels(
    panels: Mapping[str, Chart],
    whole: Chart,
    rows: Sequence[Mapping[str, Any]],
    *,
    name: str,
    says: str,
    columns: int = 1,
) -> None:
    """Charts below and beside each other, each stretched over its column, with one sentence and one set of downloads.

    Args:
        panels: charts by name; panels of one chart have a width that no page can change.
        whole: all of them in one chart, for the downloads.
        rows: the figures that they draw.
        name: of the files, and of the widgets.
        says: one sentence, read to those who do not see the charts.
        columns: beside each other; a narrow window has one.
    """
    places = st.columns(columns)
    for number, (panel, chart) in enumerate(panels.items()):
        with places[number % columns]:
            _drawn(chart, f"chart-{name}-{panel}", width="stretch", picks=None)
    _show_below(whole, rows, name=name, says=says)


def _show_below(chart: Chart, rows: Sequence[Mapping[str, Any]], *, name: str, says: str) -> None:
    """What a chart says, and its downloads."""
    st.caption(says)
    with st.container(horizontal=True):
        st.download_button(
            "PNG",
            lambda: _png(chart),
            file_name=f"{name}.png",
            on_click="ignore",
            mime="image/png",
            icon=":material/image:",
            key=f"png-{name}",
            help=f"The chart {name} as a picture.",
        )
        st.download_button(
            "CSV",
            csv_of(rows),
            file_name=f"{name}.csv",
            on_click="ignore",
            mime="text/csv",
            icon=":material/table:",
            key=f"csv-{name}",
            help=f"The figures of the chart {name} as a table.",
        )


def _drawn(
    chart: Chart, key: str, *, width: Literal["stretch", "content"], picks: str | None
) -> list[dict[str, Any]]:
    if picks is None:
        st.altair_chart(chart, width=width, key=key)
        return []
    event: Any = st.altair_chart(chart, width=width, key=key, on_select="rerun", selection_mode=picks)
    return list(event.selection.get(picks) or [])


def csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV; a cell that a spreadsheet would take for a formula is quoted as text."""
    out = io.StringIO()
    names = list(rows[0]) if rows else []
    writer = csv.DictWriter(out, names, extrasaction="ignore")
    writer.writeheader()
    writer.writerows({name: _safe(row.get(name)) for name in names} for row in rows)
    return out.getvalue()


def _safe(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+-@\t\r" and cell else cell


def _png(chart: Chart) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chart.png"
        save_chart(chart.configure(background="white"), path)
        return path.read_bytes()
