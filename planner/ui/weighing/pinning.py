"""A plan of a front as a scenario that asks for it: one objective held by a limit, the other made small."""

from __future__ import annotations

from math import ceil
from typing import Final

from models.hardware import PowerDomain
from models.ids import DomainId
from models.pareto import Axis, ParetoFront, ParetoPoint
from models.problem import CostUnit, Problem
from models.saturation import Headroom
from models.scenario import ObjectiveLevel, PowerBasis, Scenario
from models.workload import ServiceKind

__all__ = ["pinned"]

_LEVELS: Final = {
    Axis.COST: ObjectiveLevel.COST,
    Axis.POWER: ObjectiveLevel.POWER,
    Axis.CHANGES: ObjectiveLevel.CHANGES,
}
_MICRO: Final = 1e6
_THOUSANDTHS: Final = 1000


def pinned(scenario: Scenario, problem: Problem, front: ParetoFront, point: ParetoPoint) -> Scenario | None:
    """The scenario whose best plan is this one, or one that is as good on both axes.

    With headroom as an axis, that headroom is asked for. With unserved demand as an axis no demand is a promise, and
    what is served is chosen by priority, where the front counts all of it alike.

    Args:
        scenario: what the front was made of.
        problem: what it was sized to.
        front: the front.
        point: one of its points.

    Returns:
        None where no limit of a scenario holds either axis: costs without a unit, or power that counts idle GPUs.
    """
    x, y = front.x, front.y
    if Axis.HEADROOM in (x, y):
        other = x if y is Axis.HEADROOM else y
        return _ordered(_with_headroom(scenario, point.x if x is Axis.HEADROOM else point.y), other)
    for held, value, small in ((y, point.y, x), (x, point.x, y)):
        if held is Axis.UNSERVED:
            continue
        limited = _held(scenario, problem, held, value)
        if limited is None:
            continue
        if small is Axis.UNSERVED:
            services = tuple(service.but(best_effort=True) for service in limited.services)
            return _ordered(limited.but(services=services), held)
        return _ordered(limited, small, held)
    return None


def _held(scenario: Scenario, problem: Problem, axis: Axis, value: float) -> Scenario | None:
    limits = scenario.limits
    match axis:
        case Axis.COST if problem.cost_unit is CostUnit.USD_PER_H:
            most = ceil(value * _MICRO) / _MICRO
            return scenario.but(limits=limits.but(spend_usd_per_h=_smaller(limits.spend_usd_per_h, most)))
        case Axis.POWER if limits.power_basis is PowerBasis.TDP:
            taken = {domain.id for domain in limits.power} | {pool.power_domain for pool in scenario.pools}
            name = "front"
            while name in taken:
                name = f"{name}-more"
            cap = PowerDomain(
                id=DomainId(name),
                cap_w=ceil(value * _MICRO) / _MICRO,
                pools=tuple(pool.id for pool in scenario.pools),
            )
            return scenario.but(limits=limits.but(power=(*limits.power, cap)))
        case Axis.CHANGES:
            return scenario.but(limits=limits.but(max_changes=round(_smaller(limits.max_changes, value))))
        case _:
            return None


def _smaller(limit: float | None, value: float) -> float:
    return value if limit is None else min(limit, value)


def _ordered(scenario: Scenario, *first: Axis) -> Scenario:
    """Unserved demand, then these axes, then the levels that the scenario had."""
    wanted = [ObjectiveLevel.UNSERVED, *(_LEVELS[axis] for axis in first)]
    levels = tuple(dict.fromkeys([*wanted, *scenario.objective.levels]))
    return scenario.but(objective=scenario.objective.but(levels=levels))


def _with_headroom(scenario: Scenario, share: float) -> Scenario:
    headroom = Headroom(relative=round(share * _THOUSANDTHS) / _THOUSANDTHS)
    return scenario.but(
        services=tuple(
            service if service.kind is ServiceKind.BATCH else service.but(headroom=headroom)
            for service in scenario.services
        )
    )
