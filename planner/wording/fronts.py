"""Fronts of two objectives, in words."""

from __future__ import annotations

from models.pareto import Axis, ParetoFront
from models.solution import Status
from planner.wording.numbers import percent, quantity

__all__ = ["axis_figure", "axis_name", "front_sentence"]

_NAMES = {
    Axis.COST: "cost",
    Axis.POWER: "power",
    Axis.UNSERVED: "unserved",
    Axis.CHANGES: "changes",
    Axis.HEADROOM: "headroom",
}


def axis_name(axis: Axis, unit: str) -> str:
    """An axis with its unit: ``power W``."""
    known = {"share": "", str(axis): ""}.get(unit, unit)
    return f"{_NAMES[axis]} {known}".strip()


def axis_figure(value: float, unit: str) -> str:
    """A figure of an axis: ``21.2 kW``, ``12.5 %``."""
    return percent(value, 3) if unit == "share" else quantity(value, {"cost": ""}.get(unit, unit))


def front_sentence(front: ParetoFront) -> str:
    """How many plans there are, and what is proven of them."""
    if front.status is Status.INFEASIBLE:
        return "No plan keeps every promise; 'fleetplan plan' says what to relax."
    if not front.points:
        return "No plan was found in the time given. There may be some: allow more time."
    count = len(front.points)
    plans = "1 plan" if count == 1 else f"{count} plans"
    if count == 1 and front.complete:
        return f"1 plan is the best in {_NAMES[front.x]} and in {_NAMES[front.y]}; it is proven."
    if front.complete:
        return f"{plans}, each proven; for every other plan one of them is at least as good in both."
    between = "there may be more between them"
    if front.status is Status.OPTIMAL:
        return f"{plans}, each proven; {between}: --points, or more time, shows them."
    return f"{plans}, not all of them proven in the time given; {between}."
