"""The verdict: every family over one index, and every figure recomputed."""

from __future__ import annotations

from collections.abc import Iterator

from models.problem import Problem
from models.report import Assessment, Violation
from models.solution import Solution
from planner.collecting import collection_paused
from planner.referee import by_length, elastic, money_power, physical, traffic
from planner.referee.borrowing import borrowing
from planner.referee.change import change, changes
from planner.referee.claims import claims
from planner.referee.equalized import candidate_figures, overloads
from planner.referee.figures import service_figures
from planner.referee.index import Index, index_of
from planner.referee.rows import Row
from planner.referee.seating import Seating

__all__ = ["assess", "check"]

_FAMILIES = (
    traffic.demand,
    traffic.rate,
    by_length.rate_by_length,
    borrowing,
    traffic.headroom,
    by_length.headroom_by_length,
    physical.gpus,
    physical.nodes,
    physical.quota,
    money_power.power,
    money_power.spend,
    physical.bounds,
    physical.safe_scale_in,
    traffic.survive,
    by_length.survive_by_length,
    physical.ratio,
    physical.variants,
    elastic.elastic,
    elastic.moving,
)


def check(problem: Problem, solution: Solution) -> tuple[Violation, ...]:
    """Every rule that a solution breaks; nothing where it brings no plan to judge.

    Demand that is not served is a violation (family ``demand``) only where it is promised; whoever judges a state
    that need not keep promises yet asks with ``allow_unserved``. A solution with placements is judged by them, one
    without is packed.
    """
    if not solution.has_plan:
        return ()
    with collection_paused():
        index = index_of(problem, solution)
        seating = Seating(index)
        return _violations(index, seating, _rows(index, seating))


def assess(problem: Problem, solution: Solution) -> Assessment:
    """Everything recomputed from the two values: violations, figures, and the use of every shared limit.

    Candidates without replicas have no figures. Without a plan there are no violations and no rows.
    """
    with collection_paused():
        return _assess(problem, solution)


def _assess(problem: Problem, solution: Solution) -> Assessment:
    index = index_of(problem, solution)
    seating = Seating(index)
    rows = _rows(index, seating) if solution.has_plan else ()
    candidates = {demand.service: tuple(candidate_figures(index, demand)) for demand in problem.demands}
    services = tuple(service_figures(index, demand, candidates[demand.service]) for demand in problem.demands)
    figures = tuple(one for of_service in candidates.values() for one in of_service)
    switching = money_power.switching_cost(index)
    draw = money_power.power_of(index, problem.pools)
    return Assessment(
        violations=_violations(index, seating, rows) if solution.has_plan else (),
        unserved_rps=sum(one.unserved_rps for one in services),
        unserved_share_worst=max((one.unserved_share for one in services), default=0.0),
        cost=float(money_power.running_cost(index) + switching),
        switching_cost=float(switching),
        power_w=None if draw is None else float(draw),
        changes=changes(index, seating.moves),
        gpus_used={pool.id: physical.gpus_used(index, pool) for pool in problem.pools},
        nodes_added=dict(sorted(index.nodes_added.items())),
        services=services,
        candidates=figures,
        rows=(*(use for row in rows if (use := row.use()) is not None), *(seating.uses() if rows else ())),
        overloads_when_equalized=overloads(figures),
    )


def _rows(index: Index, seating: Seating) -> tuple[Row, ...]:
    def every() -> Iterator[Row]:
        for family in _FAMILIES:
            yield from family(index)
        yield from change(index, seating.moves if index.problem.max_changes is not None else 0)

    return tuple(every())


def _violations(index: Index, seating: Seating, rows: tuple[Row, ...]) -> tuple[Violation, ...]:
    return (
        *claims(index),
        *(row.violation() for row in rows if row.broken),
        *seating.placement(),
        *seating.incumbents(),
    )
