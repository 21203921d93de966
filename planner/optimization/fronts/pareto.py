"""The exact staircase of two objectives, every point a plan that is proven and judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from models.pareto import Axis, ParetoFront, ParetoPoint
from models.problem import CostUnit, Problem
from models.solution import Status
from planner.clock import Clock, SolvingClock
from planner.errors import ConfigurationError, Finding
from planner.optimization.backends.engine import Termination
from planner.optimization.explaining.explain import promising_all
from planner.optimization.formulation import Formulation, formulate
from planner.optimization.formulation.goals import changes_goal, cost_goal, power_goal, unserved_load_goal
from planner.optimization.fronts.asking import Asking
from planner.optimization.fronts.boxes import Staircase, staircase
from planner.optimization.fronts.plans import (
    HEADROOM_STEPS,
    BesideHeadroom,
    Plan,
    Plans,
    TwoGoals,
    least_headroom,
)
from planner.optimization.program import Goal
from planner.optimization.protocol import SolveOptions

__all__ = ["EXACTLY", "pareto"]

EXACTLY: Final = SolveOptions(gap=0.0)
"""With a gap, a point may be dominated by that much."""

_ENDS: Final = 2
_NO_POINT: Final = {Termination.INFEASIBLE: Status.INFEASIBLE, Termination.TIMED_OUT: Status.TIMED_OUT}


def _untold(front: ParetoFront) -> None:
    """Nobody wants to hear of points as they are found."""


def pareto(
    problem: Problem,
    axes: tuple[Axis, Axis],
    *,
    points: int = 25,
    options: SolveOptions = EXACTLY,
    clock: Clock | None = None,
    told: Callable[[ParetoFront], None] = _untold,
) -> ParetoFront:
    """Plans of which none is better than another in both axes, from the best in x to the best in y.

    Cost, power and changes are weighed at the least unserved demand that there can be. With ``unserved`` as an axis no
    demand is a promise, and all of it counts alike, in req/s. ``headroom`` is the relative headroom that every online
    service has at once, in thousandths of its load and at most the load itself; it replaces what the services ask for,
    and all demand must be served.

    Args:
        problem: the question.
        axes: x and y.
        points: how many at most; the ends are always two of them.
        options: time for all of them together, gap, threads; once cancelled, the points so far are the answer.
        clock: measures that time.
        told: is given the front so far whenever there is another point.

    Raises:
        ConfigurationError: the axes are the same, or cannot be weighed against one another.
        InternalError: a plan fails the referee.
    """
    _refuse(axes, points)
    clock = clock or SolvingClock()
    x, y = axes
    asking = _asking(options, clock)
    turned = x is Axis.HEADROOM
    plans = _plans(problem, (y, x) if turned else axes, asking)
    stairs: Staircase[Plan] = Staircase()

    def front(so_far: list[Plan], *, complete: bool = False) -> ParetoFront:
        found = tuple(_point(problem, plan, axes) for plan in so_far)
        return ParetoFront(
            problem=problem.name,
            x=x,
            y=y,
            x_unit=_unit(problem, x),
            y_unit=_unit(problem, y),
            status=_status(found, asking),
            points=found[::-1] if turned else found,
            complete=complete and _proven(found),
            derived_from=problem.fingerprint,
        )

    if plans is not None:
        stairs = staircase(plans.leftmost, plans.lowest, most=points, told=lambda so_far: told(front(so_far)))
    ended = asking.seconds_left <= 0 or options.cancelled()
    return front(stairs.points, complete=stairs.complete and not ended)


def _refuse(axes: tuple[Axis, Axis], points: int) -> None:
    findings = []
    if axes[0] is axes[1]:
        findings.append(Finding("", None, "--y", repr(str(axes[1])), "another axis than --x"))
    if set(axes) == {Axis.HEADROOM, Axis.UNSERVED}:
        findings.append(
            Finding(
                "",
                None,
                "--y",
                repr(str(axes[1])),
                "headroom is asked for all demand: cost, power or changes beside it",
            )
        )
    if points < _ENDS:
        findings.append(Finding("", None, "--points", str(points), "at least 2, the ends"))
    if findings:
        raise ConfigurationError.from_findings(findings)


def _asking(options: SolveOptions, clock: Clock) -> Asking:
    from planner.optimization.solvers import exact_engine

    return Asking(exact_engine(clock), options, clock, clock.monotonic_s() + options.time_limit_s)


def _plans(problem: Problem, axes: tuple[Axis, Axis], asking: Asking) -> Plans | None:
    x, y = axes
    if y is Axis.HEADROOM:
        return BesideHeadroom(asking, promising_all(problem), lambda formulation: _goal(formulation, x))
    if Axis.UNSERVED in axes:
        formulation = formulate(problem.but(allow_unserved=True))
        program = formulation.program
    else:
        held = asking.served_best(problem)
        if held is None:
            return None
        formulation, program = held
    return TwoGoals(asking, formulation, program, (_goal(formulation, x), _goal(formulation, y)))


def _goal(formulation: Formulation, axis: Axis) -> Goal:
    index = formulation.index
    match axis:
        case Axis.COST:
            return cost_goal(index)
        case Axis.POWER:
            return power_goal(index)
        case Axis.CHANGES:
            return changes_goal(index)
        case Axis.UNSERVED:
            return unserved_load_goal(index, index.problem.demands, "unserved-load")
        case Axis.HEADROOM:
            raise ValueError("headroom is no sum of columns")


def _point(problem: Problem, plan: Plan, axes: tuple[Axis, Axis]) -> ParetoPoint:
    figures = plan.assessment
    headroom = least_headroom(figures, problem)
    known: dict[Axis, float] = {
        Axis.COST: figures.cost,
        Axis.POWER: figures.power_w or 0.0,
        Axis.UNSERVED: figures.unserved_rps,
        Axis.CHANGES: figures.changes,
        Axis.HEADROOM: -plan.place[1] / HEADROOM_STEPS,
    }
    return ParetoPoint(
        x=known[axes[0]],
        y=known[axes[1]],
        status=Status.OPTIMAL if plan.proven else Status.FEASIBLE,
        gap=plan.gap,
        cost=figures.cost,
        unserved_rps=figures.unserved_rps,
        power_w=figures.power_w,
        changes=figures.changes,
        headroom=headroom,
        solution=plan.solution,
    )


def _status(points: tuple[ParetoPoint, ...], asking: Asking) -> Status:
    if not points:
        return _NO_POINT.get(asking.stopped, Status.FAILED)
    return Status.OPTIMAL if _proven(points) else Status.FEASIBLE


def _proven(points: tuple[ParetoPoint, ...]) -> bool:
    return all(point.status is Status.OPTIMAL for point in points)


def _unit(problem: Problem, axis: Axis) -> str:
    cost = "$/h" if problem.cost_unit is CostUnit.USD_PER_H else "cost"
    units = {Axis.COST: cost, Axis.POWER: "W", Axis.UNSERVED: "req/s", Axis.CHANGES: "changes"}
    return units.get(axis, "share")
