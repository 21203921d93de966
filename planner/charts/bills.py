"""Who pays: one bar per team, split into what works, what is kept free, what is left over and starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from models.showback import Bill, Showback
from planner.charts.style import COLORS, styled, values

__all__ = ["bill_rows", "bills_chart"]

_PARTS: Final = {"used": COLORS[0], "headroom": COLORS[4], "idle": COLORS[1], "starts": COLORS[3]}


def bill_rows(showback: Showback, *, most: int = 15) -> list[dict[str, Any]]:
    """Amounts by team and part; the teams that pay most by name, and the rest together.

    Args:
        showback: the bills of a plan.
        most: teams that are named.
    """
    named, rest = showback.bills[:most], showback.bills[most:]
    groups: list[tuple[str, Sequence[Bill]]] = [(bill.team, (bill,)) for bill in named]
    if rest:
        groups.append((f"{len(rest)} other teams", rest))
    return [
        {"team": team, "part": part, "amount": sum(getattr(bill, part) for bill in bills)}
        for team, bills in groups
        for part in _PARTS
    ]


def bills_chart(rows: Sequence[dict[str, Any]], *, unit: str) -> Any:  # noqa: ANN401 - an Altair chart
    """One bar per team, parts side by side in it.

    Args:
        rows: of :func:`bill_rows`.
        unit: of the amounts.
    """
    import altair as alt

    order = {part: place for place, part in enumerate(_PARTS)}
    bars = [{**row, "order": order[row["part"]]} for row in rows if row["amount"]]
    chart = (
        alt.Chart(values(bars), height=alt.Step(24))
        .mark_bar(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("sum(amount):Q", title=f"cost, {unit}" if unit else "cost"),
            y=alt.Y("team:N", title=None, sort=[*dict.fromkeys(row["team"] for row in rows)]),
            color=alt.Color(
                "part:N",
                title=None,
                scale=alt.Scale(domain=[*_PARTS], range=[*_PARTS.values()]),
                sort=[*_PARTS],
                legend=alt.Legend(orient="bottom"),
            ),
            order=alt.Order("order:Q"),
            tooltip=["team:N", "part:N", alt.Tooltip("amount:Q", format=",.2f")],
        )
    )
    return styled(chart)
