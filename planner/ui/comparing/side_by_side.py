"""The table and the chart of all drafts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from models.report import Report
from planner.charts.comparison import comparison_chart
from planner.ui.answers.drawing import show_panels
from planner.ui.answers.frames import show_rows
from planner.ui.comparing.figures import Figures, figures_of, rows_of
from planner.ui.words import spaced
from planner.wording import money, number

__all__ = ["show_side_by_side"]

_MOST_POOLS: Final = 8
_FORMATS: Final = {
    "cost, $/h": "money",
    "cost": "money",
    "difference": "money",
    "unserved, req/s": "number",
    "power, W": "watts",
    "least headroom": "share",
    "gap of cost": "share",
}
_HELP: Final = {
    "difference": "Cost minus that of the draft to compare with; look at unserved demand beside it.",
    "unserved, req/s": "Demand that no replica carries inside its promises.",
    "least headroom": "Of the service that has least, as a share of its load.",
    "changes": "Replicas started, stopped or moved from what runs now.",
    "gap of cost": "How much cheaper a plan might at most be that is as good in what goes before cost.",
}
_IN_A_ROW: Final = 3
_AXIS: Final = 70
_BAR: Final = 26
_MEASURES: Final = ("cost, $/h", "cost", "unserved, req/s", "power, W", "changes", "GPUs")


def show_side_by_side(reports: Mapping[str, Report | None], against: str) -> None:
    """All drafts: figures, and bars."""
    figures = figures_of(reports, against)
    rows = rows_of(figures, pools=_MOST_POOLS)
    formats = {name: kind for name, kind in _FORMATS.items() if name in rows[0]}
    show_rows(rows, name="drafts", says="Figures of all drafts.", formats=formats, help=_HELP)
    solved = [each for each in figures if each.cost is not None]
    if len(solved) > 1:
        drawn = _drawn(solved)
        measures = [name for name in _MEASURES if any(row.get(name) is not None for row in drawn)]
        height = _AXIS + _BAR * len(drawn)
        panels = {
            measure: comparison_chart(drawn, [measure], name="draft").properties(height=height)
            for measure in measures
        }
        whole = comparison_chart(drawn, measures, name="draft")
        show_panels(panels, whole, drawn, name="what-if", says=_says(solved), columns=_IN_A_ROW)


def _drawn(figures: Sequence[Figures]) -> list[dict[str, Any]]:
    """As the table, but all GPUs of a draft in one number."""
    return rows_of(figures, pools=0)


def _says(figures: Sequence[Figures]) -> str:
    """The cheapest of those that serve most, and the dearest."""
    least = min(each.unserved_rps or 0.0 for each in figures)
    serving = [each for each in figures if (each.unserved_rps or 0.0) <= least + 1e-9]
    best = min(serving, key=lambda each: each.cost or 0.0)
    unit = " $/h" if best.in_dollars else ""
    served = "all demand" if least == 0 else f"all but {number(least)} req/s"
    return spaced(
        f"Of the drafts that serve {served}, {best.draft} is the cheapest at {money(best.cost)}{unit}."
    )
