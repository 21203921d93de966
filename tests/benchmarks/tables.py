"""Records as Markdown tables and as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.records import GAPS, Record, bounds_of, final_gap, time_to

__all__ = ["WHOLE", "detail_table", "draw", "replan_table", "summary_table"]

WHOLE: Final = ("pulp", "pulp-cbc", "cp-sat", "scip")
"""Solvers on the whole program, which ours are compared with."""

_PROVEN: Final = 0.001


def detail_table(records: Sequence[Record]) -> str:
    """Every solve: times to gaps, the gap at the end against the best bound of the run, memory."""
    heads = [f"to {gap:.1%} s".replace(".0%", " %").replace("%", " %").replace("  %", " %") for gap in GAPS]
    lines = [
        f"| instance | candidates | solver | status | formulate s | {' | '.join(heads)} | total s | gap at the end | unserved req/s | cost | MiB |",
        "|---|--:|---|---|--:|" + "--:|" * (len(GAPS) + 5),
    ]
    for record in records:
        rivals = _of_instance(record, records)
        gap = final_gap(record, bounds_of(record, rivals))
        lines.append(
            f"| {record.task.instance} | {record.candidates} | {record.task.solver} | {record.status}"
            f" | {record.formulate_s:.2f} | {' | '.join(_time(record, each) for each in GAPS)} | {record.total_s:.2f}"
            f" | {'–' if not isfinite(gap) else f'{gap:.3%}'} | {_shown(record.unserved_rps)} | {_shown(record.cost)}"
            f" | {record.peak_mib:.0f} |"
        )
    return "\n".join(lines)


def summary_table(records: Sequence[Record], ours: str) -> str:
    """Our time to each gap beside the best whole-program solver's, and how many times faster that is."""
    columns = [f"{ours} to {gap:g} | whole to {gap:g} | faster" for gap in GAPS]
    lines = [f"| instance | {' | '.join(columns)} |", "|---|" + "--:|" * (3 * len(GAPS))]
    for record in (r for r in records if r.task.solver == ours and not r.again):
        rivals = [r for r in _of_instance(record, records) if r.task.solver in WHOLE]
        cells = [_compared(record, rivals, gap) for gap in GAPS]
        lines.append(f"| {record.task.instance} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _compared(record: Record, rivals: Sequence[Record], gap: float) -> str:
    mine = time_to(record, gap)
    theirs = min((t for rival in rivals if (t := time_to(rival, gap)) is not None), default=None)
    cut = max((rival.task.seconds for rival in rivals), default=None)
    whole = "–" if cut is None else f"> {cut:g} s" if theirs is None else f"{theirs:.2f} s"
    against = theirs if theirs is not None else cut
    faster = "–"
    if mine is not None and against is not None:
        faster = f"{'> ' if theirs is None else ''}{against / max(mine, 1e-3):.1f}×"
    return f"{_time(record, gap)} | {whole} | {faster}"


def replan_table(records: Sequence[Record]) -> str:
    """Planning again after a drift of demands: from nothing, and from what the plan before left."""
    lines = [
        "| instance | solver | cold s | warm s | warm / cold | gap cold | gap warm |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for record in (r for r in records if r.again):
        cold, warm = record.again["cold_s"], record.again["warm_s"]
        gaps = (f"{record.again[name]:.3%}" for name in ("cold_gap", "warm_gap"))
        lines.append(
            f"| {record.task.instance} | {record.task.solver} | {cold:.2f} | {warm:.2f} | {warm / cold:.0%} |"
            f" {' | '.join(gaps)} |"
        )
    return "\n".join(lines)


def draw(records: Sequence[Record], path: Path) -> None:
    """Time to a proven gap of 0.1 % by instance and solver, on a logarithmic axis; what was cut stands at its limit."""
    import altair as alt

    rows: list[dict[str, Any]] = []
    for record in (r for r in records if not r.again):
        reached = time_to(record, _PROVEN)
        rows.append(
            {
                "family": record.task.family,
                "size": record.task.size,
                "solver": record.task.solver,
                "seconds": max(1e-2, record.task.seconds if reached is None else reached),
                "ended": "cut" if reached is None else "proven",
            }
        )
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, size=70, opacity=0.85)
        .encode(
            x=alt.X("seconds:Q", scale=alt.Scale(type="log"), title="s to a proven gap of 0.1 %"),
            y=alt.Y("family:N", title=None),
            color=alt.Color("solver:N", title="solver"),
            shape=alt.Shape(
                "ended:N", title=None, scale=alt.Scale(domain=["proven", "cut"], range=["circle", "cross"])
            ),
        )
        .properties(width=330, height=170)
        .facet(facet=alt.Facet("size:O", title="services (or GPU types)"), columns=2)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    chart.save(str(path))


def _of_instance(record: Record, records: Sequence[Record]) -> list[Record]:
    return [
        r for r in records if r.task.instance == record.task.instance and r.task.solver != record.task.solver
    ]


def _time(record: Record, gap: float) -> str:
    reached = time_to(record, gap)
    return "never" if reached is None else f"{reached:.2f}"


def _shown(value: float | None) -> str:
    return "–" if value is None or value == inf else f"{value:.2f}"
