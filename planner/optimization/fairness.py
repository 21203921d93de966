"""What stays unserved, shared out fairly: by priority class, max-min on shares inside a class.

Max-min in rounds. Each round makes the largest unserved share of the class small, then as few
services as possible stay at it; those are set aside and the next round looks at the rest. What is
left after the last round is decided by the sum of the unserved load.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import gcd
from typing import Final

from models.ids import ServiceId
from models.problem import Demand
from models.workload import ServiceKind
from planner.optimization.formulation.goals import unserved_load_goal, unserved_share
from planner.optimization.formulation.index import Index
from planner.optimization.levels import Descent
from planner.optimization.program import Column, Goal, Key, Row
from planner.optimization.scaling import GRID

__all__ = ["minimize_unserved"]

_ROUNDS: Final = 12
Shares = Mapping[ServiceId, Mapping[Key, int]]
"""Unserved share by service, in the coarsest steps that all of them have in common."""


def minimize_unserved(descent: Descent, index: Index) -> None:
    """Solve the unserved levels of every priority class, most important first."""
    classes = list(_classes(index))
    if not classes:
        descent.minimize(Goal("unserved", {}, unit_name="req/s"))
        return
    for label, demands in classes:
        worst = _worst_level(descent, index, label, demands)
        if worst is None:
            return
        load = unserved_load_goal(index, demands, f"unserved-load/{label}")
        if worst == 0:
            _hold_all(descent, index, demands)
        if descent.minimize(load if worst else Goal(load.name, {}, unit_name="req/s")) is None:
            return


def _classes(index: Index) -> Iterator[tuple[str, tuple[Demand, ...]]]:
    """Services whose demand is no promise, by priority descending, online before batch."""
    groups: dict[tuple[int, bool], list[Demand]] = defaultdict(list)
    for demand in index.problem.demands:
        if not index.problem.promised(demand):
            groups[-demand.priority, demand.kind is ServiceKind.BATCH].append(demand)
    for (negative, batch), demands in sorted(groups.items()):
        yield f"priority{-negative}{'/batch' if batch else ''}", tuple(demands)


def _worst_level(descent: Descent, index: Index, label: str, demands: tuple[Demand, ...]) -> int | None:
    """All rounds of one class; the largest share of the first round, or None when there is no plan."""
    shares = _coarsest({demand.service: unserved_share(demand, index) for demand in demands})
    name = f"unserved-share/{label}"
    if len(demands) == 1:
        only = next(iter(shares.values()))
        return descent.minimize(Goal(name, only, unit=1 / _whole(shares), unit_name="share"), exactly=True)
    aside: dict[ServiceId, list[Key]] = defaultdict(list)
    first: int | None = None
    count_aside = 0
    for turn in range(_ROUNDS):
        worst = _largest(descent, f"{name}/round{turn}", name, shares, aside, first=turn == 0)
        if worst is None:
            return first
        first = worst if first is None else first
        if worst == 0 or descent.seconds_left <= 0:
            break
        staying = _set_aside(descent, f"{name}/round{turn}", worst, shares, aside)
        if staying is None:
            return first
        count_aside += staying
        if count_aside >= len(demands):
            break
    return first


def _coarsest(shares: Shares) -> Shares:
    """Small numbers are solved faster: without routing by length a step is one of the grid."""
    step = gcd(*(weight for terms in shares.values() for weight in terms.values()))
    return {service: {key: w // step for key, w in terms.items()} for service, terms in shares.items()}


def _whole(shares: Shares) -> int:
    """A whole demand in steps."""
    return GRID * max(sum(terms.values()) for terms in shares.values())


def _largest(
    descent: Descent,
    key: str,
    name: str,
    shares: Shares,
    aside: Mapping[ServiceId, list[Key]],
    *,
    first: bool,
) -> int | None:
    """Make the largest share small among the services that are not set aside."""
    largest: Key = ("t", key)
    whole = _whole(shares)
    rows = tuple(
        Row(
            ("unserved", key, service),
            dict(terms) | {largest: -1} | dict.fromkeys(aside[service], -whole),
            upper=0,
        )
        for service, terms in shares.items()
    )
    descent.extend((Column(largest, 0, whole),), rows)
    descent.hint = {}
    return descent.minimize(
        Goal(name, {largest: 1}, unit=1 / whole, unit_name="share"), record=first, exactly=True
    )


def _set_aside(
    descent: Descent,
    key: str,
    worst: int,
    shares: Shares,
    aside: Mapping[ServiceId, list[Key]],
) -> int | None:
    """As few services as possible stay at the largest share; their number, or None without a plan."""
    marks: dict[ServiceId, Key] = {service: ("stays", key, service) for service in shares}
    rows = tuple(
        Row(
            ("unserved", key, service, "below"),
            dict(terms) | dict.fromkeys([*aside[service], marks[service]], -_whole(shares)),
            upper=worst - 1,
        )
        for service, terms in shares.items()
    )
    descent.extend(tuple(Column(mark, 0, 1) for mark in marks.values()), rows)
    descent.hint = {}
    staying = descent.minimize(Goal(key, dict.fromkeys(marks.values(), 1)), record=False, exactly=True)
    for service, mark in marks.items():
        aside[service].append(mark)
    return staying


def _hold_all(descent: Descent, index: Index, demands: tuple[Demand, ...]) -> None:
    """Everything is served: say so once, and the shares are no decision any more."""
    for demand in demands:
        terms = unserved_share(demand, index)
        descent.extend(rows=(Row(("unserved", demand.service), terms, upper=0),))
