"""What stays unserved, shared out fairly: by priority class, max-min on shares inside a class.

Max-min in rounds. Each round makes the largest unserved share of the class small, then as few
services as possible stay at it; those are set aside and the next round looks at the rest. What is
left after the last round is decided by the sum of the unserved load. Classes of many services have one
round (``fairness_of_many``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from models.ids import ServiceId
from models.problem import Demand
from models.workload import ServiceKind
from planner.optimization.fairness_of_many import Shares, coarsest, share_many, whole_of
from planner.optimization.formulation.goals import unserved_load_goal, unserved_share
from planner.optimization.formulation.index import Index
from planner.optimization.levels import Descent
from planner.optimization.program import Column, Goal, Key, Row

__all__ = ["minimize_unserved"]

_ROUNDS: Final = 12

_MANY: Final = 40
"""Services of a class from which one round is all: marks of who stays are binaries that no bound helps with."""


def minimize_unserved(descent: Descent, index: Index) -> None:
    """Solve the unserved levels of every priority class, most important first."""
    classes = list(_classes(index))
    if not classes:
        descent.minimize(Goal("unserved", {}, unit_name="req/s"))
        return
    for position, (label, demands) in enumerate(classes):
        # Later classes and the cost wait: what one class does not use is there for the next.
        share = 1 / (len(classes) - position + 1)
        if len(demands) > _MANY:
            share_many(descent, index, label, demands, share)
            continue
        worst = _worst_level(descent, index, label, demands, share)
        load = unserved_load_goal(index, demands, f"unserved-load/{label}")
        if worst == 0:
            _hold_all(descent, index, demands)
            load = Goal(load.name, {}, unit_name="req/s")
        descent.minimize(load, share=share)


def _classes(index: Index) -> Iterator[tuple[str, tuple[Demand, ...]]]:
    """Services whose demand is no promise: online before batch, which is shed first; by priority descending in each."""
    groups: dict[tuple[bool, int], list[Demand]] = defaultdict(list)
    for demand in index.problem.demands:
        if not index.problem.promised(demand):
            groups[demand.kind is ServiceKind.BATCH, -demand.priority].append(demand)
    for (batch, negative), demands in sorted(groups.items()):
        yield f"priority{-negative}{'/batch' if batch else ''}", tuple(demands)


def _worst_level(
    descent: Descent, index: Index, label: str, demands: tuple[Demand, ...], share: float
) -> int | None:
    """All rounds of one class; the largest share of the first round, or None when there is no plan."""
    shares = coarsest(index, demands)
    name = f"unserved-share/{label}"
    if len(demands) == 1:
        only = next(iter(shares.values()))
        goal = Goal(name, only, unit=1 / whole_of(shares), unit_name="share")
        return descent.minimize(goal, share=share, exactly=True)
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
        if not staying:
            return first  # without a proof of the largest share nobody has to stay at it
        count_aside += staying
        if count_aside >= len(demands):
            break
    return first


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
    whole = whole_of(shares)
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
            dict(terms) | dict.fromkeys([*aside[service], marks[service]], -whole_of(shares)),
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
