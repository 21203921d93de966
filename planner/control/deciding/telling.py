"""What was decided, for those who act and those who ask why."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from models.explanation import Fact
from planner.control.analysis import Service
from planner.control.deciding.contract import Verdict
from planner.control.deciding.rules import Code, ServiceWays, Way
from planner.control.deciding.victims import victims_of
from planner.control.protocols import SHORT, Decision

__all__ = ["decision_of", "verdicts_of"]

_UNITS: Final = {"saturation": "token", "throughput": "token/s", "queueing-model": "req/s"}


def decision_of(asked: ServiceWays, way: Way, *, later: Service, leaving: Collection[str]) -> Decision:
    """The decision of one variant, with the figures behind it.

    Args:
        asked: its service.
        way: of the variant.
        later: the service that was planned for (:func:`~planner.control.analysis.grown`).
        leaving: nodes that take no pods any more.
    """
    facts: dict[str, Fact] = {
        "wanted": way.wanted,
        "ready": way.seen.observed.ready,
        "pending": way.seen.observed.pending,
    }
    if way.proposed is not None:
        facts["proposed"] = way.proposed
    facts |= way.facts
    if way.short > 0:
        facts[SHORT] = way.short
    facts |= _figures(asked.service, later, way.role)
    code, message = _said(way)
    return Decision(
        variant=way.seen.observed,
        desired=way.target,
        reason=code.value,
        message=message,
        victims=victims_of(way.seen, way.target, leaving=leaving) if way.target < way.wanted else (),
        facts={name: value for name, value in facts.items() if isinstance(value, float | int | str)},
    )


def _said(way: Way) -> tuple[Code, str]:
    """Code and sentence: what moves says where to, what is held says by which rule."""
    if way.fixed and way.code is not Code.SCALED_TO_ZERO:
        return way.code, way.message
    if way.target > way.wanted:
        return Code.SCALED_UP, _sentence(way, "more")
    if way.target < way.wanted:
        code = Code.SCALED_TO_ZERO if way.target == 0 else Code.SCALED_DOWN
        return code, _sentence(way, "fewer")
    if way.code is Code.STEADY and way.short > 0:
        return Code.CONSTRAINED, f"{way.short} more would be needed, and nothing has room for them"
    return way.code, way.message or "nothing is to change"


def _sentence(way: Way, direction: str) -> str:
    moved = f"{way.wanted} to {way.target} replicas: {abs(way.target - way.wanted)} {direction}"
    return f"{moved}; {way.message}" if way.message else moved


def _figures(service: Service, later: Service, role: str) -> dict[str, Fact]:
    """What the token analyzer says of the role."""
    now, step = service.step(service.tokens, role), later.step(later.tokens, role)
    if step is None or now is None:
        return {}
    ahead: dict[str, Fact] = {}
    if service.ahead is not None:
        ahead = {"expected_tokens": round(step.demand, 3), "forecast": service.ahead.said}
    return {
        "demand_tokens": round(now.demand, 3),
        "capacity_tokens": round(step.supply, 3),
        "anticipated_tokens": round(step.anticipated, 3),
        "required_tokens": round(step.required, 3),
        "spare_tokens": round(step.spare, 3),
        **ahead,
    }


def verdicts_of(service: Service, later: Service) -> list[Verdict]:
    """What was found, by role and analyzer.

    Args:
        service: as it was analyzed.
        later: the same as it was planned for (:func:`~planner.control.analysis.grown`).
    """
    found, ahead = [], service.ahead
    for role in sorted(service.seen.roles):
        move = later.move(role)
        for analysis, planned in zip(
            (service.tokens, *service.others.values()), (later.tokens, *later.others.values()), strict=True
        ):
            now, step = service.step(analysis, role), later.step(planned, role)
            if step is not None and now is not None:
                found.append(
                    Verdict(
                        namespace=service.seen.namespace,
                        model=service.seen.model,
                        role=role,
                        policy=service.seen.rules.policy,
                        analyzer=analysis.analyzer,
                        unit=_UNITS.get(analysis.analyzer, ""),
                        demand=now.demand,
                        capacity=step.supply,
                        anticipated=step.anticipated,
                        required=step.required,
                        spare=step.spare,
                        utilization=now.demand / step.supply if step.supply > 0 else None,
                        may=move.value,
                        expected=step.demand if ahead is not None and ahead.method else None,
                        forecast="" if ahead is None else ahead.said,
                    )
                )
    return found
