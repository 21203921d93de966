"""Max-min for a class of many services: the bound of the largest share first, then a plan near that bound.

A column for the largest share would tie every service to every other one. So it is only asked for its
bound; then the least unserved load is planned with every share capped just above the bound, and the cap is
raised until there is such a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, gcd
from typing import Final

from models.ids import ServiceId
from models.problem import Demand
from planner.optimization.backends.engine import Termination
from planner.optimization.formulation.goals import unserved_load_goal, unserved_share
from planner.optimization.formulation.index import Index
from planner.optimization.levels import Descent, Proved
from planner.optimization.program import Column, Goal, IntegerProgram, Key, Row
from planner.optimization.scaling import GRID

__all__ = ["Shares", "coarsest", "share_many", "whole_of"]

Shares = Mapping[ServiceId, Mapping[Key, int]]
"""Unserved share by service, in the coarsest steps that all of them have in common."""

_CAPS: Final = (0.0, 0.0005, 0.002, 0.01, 0.05, 0.2, 1.0)
"""How far above the bound shares are capped, relative to it."""


def coarsest(index: Index, demands: tuple[Demand, ...]) -> Shares:
    """Small numbers are solved faster: without routing by length a step is one of the grid."""
    shares = {demand.service: unserved_share(demand, index) for demand in demands}
    step = gcd(*(weight for terms in shares.values() for weight in terms.values()))
    return {service: {key: w // step for key, w in terms.items()} for service, terms in shares.items()}


def whole_of(shares: Shares) -> int:
    """A whole demand in steps."""
    return GRID * max(sum(terms.values()) for terms in shares.values())


def share_many(descent: Descent, index: Index, label: str, demands: tuple[Demand, ...], share: float) -> None:
    """Both levels of one class; takes about ``share`` of the time left."""
    shares = coarsest(index, demands)
    bound = _bound(descent, shares, share / 2)
    load = unserved_load_goal(index, demands, f"unserved-load/{label}")
    for cap in _caps(bound, whole_of(shares)):
        rows = tuple(Row(("unserved", label, service), terms, upper=cap) for service, terms in shares.items())
        outcome = descent.probe(load, rows, share / 2)
        if outcome.values is None:
            continue
        worst = Goal(f"unserved-share/{label}", {}, unit=1 / whole_of(shares), unit_name="share")
        value = _worst(shares, outcome.values)
        proven = value - bound <= descent.options.gap * value
        descent.accept(Proved(worst, bound, proven, lambda v: _worst(shares, v)), outcome.values, rows)
        descent.hold_level(load, outcome)
        return
    descent.unreached = True


def _bound(descent: Descent, shares: Shares, share: float) -> int:
    """No plan has a smaller largest share."""
    largest: Key = ("t", "many")
    rows = tuple(
        Row(("unserved", "many", service), dict(terms) | {largest: -1}, upper=0)
        for service, terms in shares.items()
    )
    probing = Descent(
        descent.engine,
        IntegerProgram(
            (*descent.program.columns, Column(largest, 0, whole_of(shares))), descent.program.rows
        ),
        descent.options,
        descent.tolerance,
        descent.clock,
        descent.progress,
        start_s=descent.start_s,
    )
    outcome = probing.probe(Goal("unserved-share", {largest: 1}), rows, share)
    if outcome.termination is Termination.INFEASIBLE or outcome.bound is None:
        return 0
    return max(0, ceil(outcome.bound - 1e-6))


def _caps(bound: int, whole: int) -> list[int]:
    """Caps to try, tightest first: shares above the bound, in the end none."""
    if bound == 0:
        return sorted({0, *(ceil(whole * part / 100) for part in _CAPS), whole})
    return sorted({*(min(whole, ceil(bound * (1 + part))) for part in _CAPS), whole})


def _worst(shares: Shares, values: Mapping[Key, int]) -> int:
    return max(sum(weight * values[key] for key, weight in terms.items()) for terms in shares.values())
