"""Figures of drafts side by side: one row each, with the difference to one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from models.ids import PoolId
from models.problem import CostUnit
from models.report import Assessment, Report
from models.solution import Status

__all__ = ["NOT_SOLVED", "Figures", "figures_of", "rows_of"]

NOT_SOLVED = "not solved"
_COST = "cost"


@dataclass(frozen=True, slots=True)
class Figures:
    """One draft.

    Attributes:
        draft: its name.
        status: how the solve ended; :data:`NOT_SOLVED` where it did not.
        gap: of the cost; None: unknown.
        cost: of the plan that is shown, in the cost unit of the problem.
        unserved_rps: demand that it leaves, req/s.
        power_w: its draw.
        headroom: least of all services, share of the load.
        changes: replicas started, stopped or moved.
        gpus: accelerators held by pool; None: there is no plan.
        difference: cost minus that of the draft to compare with; None: one of them has none.
        in_dollars: whether costs are in $/h.
    """

    draft: str
    status: str = NOT_SOLVED
    gap: float | None = None
    cost: float | None = None
    unserved_rps: float | None = None
    power_w: float | None = None
    headroom: float | None = None
    changes: int | None = None
    gpus: Mapping[PoolId, int] | None = None
    difference: float | None = None
    in_dollars: bool = True


def figures_of(reports: Mapping[str, Report | None], against: str) -> tuple[Figures, ...]:
    """Figures of drafts by name, in their order.

    Args:
        reports: None where a draft is not solved.
        against: name of the draft to compare with.
    """
    found = [_figures(name, report) for name, report in reports.items()]
    base = next((each for each in found if each.draft == against), None)
    return tuple(_compared(each, base) for each in found)


def rows_of(figures: Sequence[Figures], *, pools: int) -> list[dict[str, Any]]:
    """Rows of a table; GPUs by pool where there are at most so many pools, else all together."""
    names = list(dict.fromkeys(pool for each in figures for pool in each.gpus or {}))
    unit = " $/h" if all(each.in_dollars for each in figures) else ""
    return [
        {
            "draft": each.draft,
            "status": each.status,
            f"cost{',' if unit else ''}{unit}": each.cost,
            "difference": each.difference,
            "unserved, req/s": each.unserved_rps,
            "power, W": each.power_w,
            "least headroom": each.headroom,
            "changes": each.changes,
            **_gpus(each, names if len(names) <= pools else []),
            "gap of cost": each.gap,
        }
        for each in figures
    ]


def _gpus(each: Figures, names: Sequence[PoolId]) -> dict[str, int | None]:
    gpus = each.gpus
    if not names:
        return {"GPUs": None if gpus is None else sum(gpus.values())}
    return {f"GPUs {name}": None if gpus is None else gpus.get(name, 0) for name in names}


def _figures(name: str, report: Report | None) -> Figures:
    if report is None:
        return Figures(name)
    status = _status(report)
    shown = report.shown
    plan = shown.assessment
    in_dollars = report.problem.cost_unit is CostUnit.USD_PER_H
    if plan is None:
        return Figures(name, status, in_dollars=in_dollars)
    return Figures(
        draft=name,
        status=status,
        gap=next((level.gap for level in shown.solution.proof.levels if level.name == _COST), None),
        cost=plan.cost,
        unserved_rps=plan.unserved_rps,
        power_w=plan.power_w,
        headroom=_least(plan),
        changes=plan.changes,
        gpus=plan.gpus_used,
        in_dollars=in_dollars,
    )


def _status(report: Report) -> str:
    """As the solver of the draft ended; where no plan keeps every promise, the figures are of what was best then."""
    status = report.answer.solution.status
    if status is Status.INFEASIBLE and report.best_effort is not None:
        return f"{status}, best effort shown"
    return str(status)


def _least(plan: Assessment) -> float | None:
    return min((each.headroom for each in plan.services if each.headroom is not None), default=None)


def _compared(each: Figures, base: Figures | None) -> Figures:
    if base is None or base.draft == each.draft or each.cost is None or base.cost is None:
        return each
    if base.in_dollars is not each.in_dollars:
        return each
    return replace(each, difference=float(f"{each.cost - base.cost:.9g}"))
