"""Inputs that were moved, and what that did, in words."""

from __future__ import annotations

from typing import Final

from models.problem import CostUnit
from models.sensitivity import Lever, LeverKind, Moved, Sensitivity
from models.solution import Status
from planner.wording.numbers import money, number, percent

__all__ = ["breaks_more", "lever_phrase", "moved_phrase", "sensitivity_sentence"]

_NOUNS: Final = {
    LeverKind.DEMAND: "demand",
    LeverKind.PRICE: "prices",
    LeverKind.SLO: "latency promises",
    LeverKind.TAU: "τ of the KV cache",
    LeverKind.GAMMA: "γ of the KV cache",
}
_NOISE: Final = 1e-9
_NO_PLAN: Final = {
    Status.TIMED_OUT: "no plan was found in the time given",
    Status.FAILED: "the solver failed",
    Status.INFEASIBLE: "no plan keeps every limit",
}


def lever_phrase(lever: Lever) -> str:
    """The input: ``demand of chat``, ``prices``."""
    return f"{_NOUNS[lever.kind]}{f' of {lever.target}' if lever.target is not None else ''}"


def breaks_more(base: Moved, side: Moved) -> bool:
    """Whether demand stays unserved that the unmoved answer serves: the cost then is that of less."""
    return (side.unserved_rps or 0.0) > (base.unserved_rps or 0.0) + _NOISE


def moved_phrase(base: Moved, side: Moved, unit: CostUnit) -> str:
    """What becomes of the answer: ``× 1.1: 1,013.20 $/h (+90.72)``, with the demand that stays unserved first."""
    factor = f"× {number(side.factor)}{', at most' if side.clipped else ''}"
    if side.cost is None or base.cost is None:
        return f"{factor}: {_NO_PLAN.get(side.status, 'there is no plan')}"
    suffix = " $/h" if unit is CostUnit.USD_PER_H else ""
    change = side.cost - base.cost
    cost = f"{money(side.cost)}{suffix} ({'+' if change > 0 else ''}{money(change)})"
    if not breaks_more(base, side):
        return f"{factor}: {cost}"
    more = (side.unserved_rps or 0.0) - (base.unserved_rps or 0.0)
    promised = "no plan keeps every promise; at best " if side.status is Status.INFEASIBLE else ""
    return f"{factor}: {promised}{number(more)} req/s more stay unserved, at {cost}"


def sensitivity_sentence(found: Sensitivity) -> str:
    """What the answer hangs on most."""
    broken = [
        lever_phrase(swing.lever)
        for swing in found.swings
        if any(breaks_more(found.base, side) for side in swing.sides)
    ]
    share = percent(found.share)
    if broken:
        return f"Moved by {share}, these leave demand unserved: {', '.join(broken)}."
    if not found.swings or found.base.cost is None:
        return "Nothing was moved."
    first = found.swings[0]
    most = max((abs((side.cost or 0.0) - found.base.cost) for side in first.sides), default=0.0)
    if most <= _NOISE:
        return f"Moved by {share}, nothing changes the cost."
    unit = " $/h" if found.cost_unit is CostUnit.USD_PER_H else ""
    return (
        f"Moved by {share}, {lever_phrase(first.lever)} moves the cost most: by up to {money(most)}{unit}, "
        f"{percent(most / found.base.cost) if found.base.cost else 'from nothing'}."
    )
