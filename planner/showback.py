"""Who pays for a plan: cost by team, with headroom and idle capacity shared out.

A replica costs what it costs whether it is full or not. The share of it that carries load is 1/(1+h), where h is the
headroom that the referee finds on the scarcest role of its service; of the rest, what the service asked to keep free
is its headroom and what is beyond that is idle. The referee has added nodes paid by those who hold accelerators on
them; a start is paid by the service that starts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from models.problem import Candidate, Demand, Problem
from models.report import Assessment, ServiceFigures
from models.showback import Bill, Showback
from models.solution import Solution

__all__ = ["showback"]


@dataclass(frozen=True, slots=True)
class _Part:
    """What one service adds to the bill of its team."""

    used: float
    headroom: float
    idle: float
    starts: float


def showback(problem: Problem, solution: Solution, assessment: Assessment) -> Showback:
    """The bills of a plan.

    Args:
        problem: says who belongs to which team.
        solution: counts and added nodes.
        assessment: figures of the referee for it.
    """
    starts = _start_costs(problem, solution, assessment)
    services: dict[str, list[ServiceFigures]] = defaultdict(list)
    for figures in assessment.services:
        demand = problem.demand[figures.service]
        services[demand.team or demand.namespace].append(figures)
    bills = (
        _bill(team, of_team, {s.service: _part(problem.demand[s.service], s, starts) for s in of_team})
        for team, of_team in services.items()
    )
    in_order = tuple(sorted(bills, key=lambda bill: (-bill.total, bill.team)))
    unassigned = max(0.0, assessment.cost - sum(bill.total for bill in in_order))
    return Showback(bills=in_order, unassigned=unassigned, total=assessment.cost)


def _bill(team: str, services: list[ServiceFigures], parts: dict[str, _Part]) -> Bill:
    used, headroom, idle, started = (
        sum(getattr(part, name) for part in parts.values()) for name in _Part.__slots__
    )
    return Bill(
        team=team,
        services=tuple(each.service for each in services),
        used=used,
        headroom=headroom,
        idle=idle,
        starts=started,
        total=used + headroom + idle + started,
    )


def _part(demand: Demand, figures: ServiceFigures, starts: dict[str, float]) -> _Part:
    started = starts.get(figures.service, 0.0)
    if figures.headroom is None or figures.served_rps <= 0:
        return _Part(0.0, 0.0, figures.cost, started)
    spare = max(0.0, figures.headroom)  # less than none: all of it works, and borrows from others
    owed = min(_owed_share(demand, figures), spare)
    each = figures.cost / (1.0 + spare)
    return _Part(each, each * owed, each * (spare - owed), started)


def _owed_share(demand: Demand, figures: ServiceFigures) -> float:
    """Headroom that is asked for, as a share of the load; what is asked for in KV tokens counts as idle."""
    wish = demand.headroom
    if wish.relative is not None:
        return wish.relative
    return 0.0 if wish.burst_rps is None else wish.burst_rps / figures.served_rps


def _start_costs(problem: Problem, solution: Solution, assessment: Assessment) -> dict[str, float]:
    """Switching cost by service, in proportion to what its starts cost."""
    starts: dict[str, float] = defaultdict(float)
    for candidate in problem.candidates:
        starts[candidate.service] += _started(candidate, solution) * candidate.startup_cost
    whole = sum(starts.values())
    return {service: assessment.switching_cost * cost / whole for service, cost in starts.items() if cost}


def _started(candidate: Candidate, solution: Solution) -> int:
    return max(0, solution.count(candidate.id) - candidate.on_order)
