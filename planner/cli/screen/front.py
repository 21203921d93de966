"""The screen of ``pareto``: a chart, and a line per plan."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.text import Text

from models.pareto import Axis, ParetoFront, ParetoPoint
from models.solution import Status
from planner.cli.screen.layout import Column, table
from planner.wording import axis_figure, axis_name, front_sentence, money, number, percent

__all__ = ["chart", "show_front"]

_WIDTH: Final = 60
_HEIGHT: Final = 15
_MARK: Final = "*"


def show_front(console: Console, front: ParetoFront) -> None:
    """Print a front."""
    style = "bold green" if front.status is Status.OPTIMAL else "bold yellow" if front.points else "bold red"
    console.print(Text.assemble((str(front.status), style), "  ", (front.problem, "bold")))
    console.print(front_sentence(front))
    if not front.points:
        return
    if len(front.points) > 1:
        console.print()
        for line in chart(front):
            console.print(Text(line.rstrip()))
    headers = (axis_name(front.x, front.x_unit), axis_name(front.y, front.y_unit))
    rest = [axis for axis in Axis if axis not in (front.x, front.y)]
    made = table(
        [
            *(Column(name) for name in (*headers, *(_NAMED[axis] for axis in rest), "gap")),
            Column("status", right=False),
        ]
    )
    for point in front.points:
        figures = (axis_figure(point.x, front.x_unit), axis_figure(point.y, front.y_unit))
        gap = "unknown" if point.gap is None else percent(point.gap)
        made.add_row(*figures, *(_figure(point, axis) for axis in rest), gap, str(point.status))
    console.print()
    console.print(made)


_NAMED: Final = {
    Axis.COST: "cost",
    Axis.POWER: "W",
    Axis.UNSERVED: "unserved req/s",
    Axis.CHANGES: "changes",
    Axis.HEADROOM: "headroom",
}


def _figure(point: ParetoPoint, axis: Axis) -> str:
    match axis:
        case Axis.COST:
            return money(point.cost)
        case Axis.POWER:
            return "?" if point.power_w is None else f"{point.power_w:,.0f}"
        case Axis.UNSERVED:
            return number(point.unserved_rps)
        case Axis.CHANGES:
            return str(point.changes)
        case Axis.HEADROOM:
            return "–" if point.headroom is None else percent(point.headroom)


def chart(front: ParetoFront) -> list[str]:
    """Points as marks, y upwards and x to the right, each from its smallest to its largest."""
    xs, ys = [p.x for p in front.points], [p.y for p in front.points]
    cells = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    for x, y in zip(xs, ys, strict=True):
        row = _HEIGHT - 1 - _place(y, ys, _HEIGHT)
        cells[row][_place(x, xs, _WIDTH)] = _MARK
    top, bottom = axis_figure(max(ys), front.y_unit), axis_figure(min(ys), front.y_unit)
    left, right = axis_figure(min(xs), front.x_unit), axis_figure(max(xs), front.x_unit)
    margin = max(len(top), len(bottom))
    labels = [top, *[""] * (_HEIGHT - 2), bottom]
    indent = " " * (margin + 2)
    return [
        str(front.y),
        *(f"{label:>{margin}} |{''.join(line)}" for label, line in zip(labels, cells, strict=True)),
        f"{indent[:-1]}+{'-' * _WIDTH}",
        f"{indent}{left}{right:>{_WIDTH - len(left)}}",
        f"{indent}{front.x!s:>{_WIDTH}}",
    ]


def _place(value: float, values: list[float], size: int) -> int:
    low, high = min(values), max(values)
    return 0 if high == low else round((value - low) / (high - low) * (size - 1))
