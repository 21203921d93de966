"""What stays unserved, shared out fairly: by priority class, max-min on shares inside a class.

Max-min in rounds. Each round makes the largest unserved share of the class small; then as few services as
can be stay near it, those are set aside, and the next round looks at the rest. What is left after the last
round is decided by the sum of the unserved load.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Final

from models.ids import ServiceId
from models.problem import Demand
from models.workload import ServiceKind
from planner.optimization.backends.engine import Termination
from planner.optimization.formulation.goals import unserved_load_goal, unserved_share
from planner.optimization.formulation.index import Index
from planner.optimization.least_cap import ROUGHLY, CapSearch, Shares, stepped, worst
from planner.optimization.levels import Descent, Proved
from planner.optimization.program import Column, Goal, Key, Row
from planner.optimization.scaling import GRID

__all__ = ["minimize_unserved"]

_ROUNDS: Final = 12

_STEPS: Final = 100
"""The worst share counts in whole percents of a demand: a finer order would be one of roundings, and no plan is known
to serve a demand, itself a forecast, more exactly."""

_CLASS: Final = 0.6
"""Share of the time left that a class may take at least: most classes need next to nothing."""

_SHARES: Final = 0.8
"""Share of a class's time for its shares; its load has what is left."""

_FORESEEING: Final = 0.3
"""Share of the time for a plan that serves all but the last class whole."""

_ANY: Final = 1.0
"""Gap at which any plan is good enough."""

_TOLD_APART: Final = 12
"""Services of which every set can have a weight of its own that solvers tell from the others."""

_MANY: Final = 40
"""Services of a class from which one round is all: who stays is a choice that no bound helps with."""


def minimize_unserved(descent: Descent, index: Index) -> None:
    """Solve the unserved levels of every priority class, most important first."""
    classes = [_class(descent, index, label, demands) for label, demands in _classes(index)]
    if not classes:
        descent.minimize(Goal("unserved", {}, unit_name="req/s"))
        return
    _foresee(descent, classes)
    for position, one in enumerate(classes):
        # Later classes and the cost wait: what one class does not use is there for the next.
        share = max(1 / (len(classes) - position + 1), _CLASS)
        nobody = one.share_out(share) == 0
        load = Goal(one.load.name, {}, unit_name="req/s") if nobody else one.load
        descent.minimize(load, share=share)


def _foresee(descent: Descent, classes: Sequence[_Class]) -> None:
    """A plan that serves as many of the first classes whole as can be, where one is found soon.

    Their levels are proven by it. Asked for alone, none of them would say what a plan should be made of.
    """
    for count in range(len(classes) - 1, 0, -1):
        rows = tuple(row for one in classes[:count] for row in one.capped(dict.fromkeys(one.shares, 0)))
        outcome = descent.probe(classes[count].load, rows, _FORESEEING * descent.seconds_left, gap=_ANY)
        if outcome.values is not None:
            descent.values = descent.hint = outcome.values
        if outcome.termination is not Termination.INFEASIBLE:
            return


def _classes(index: Index) -> Iterator[tuple[str, tuple[Demand, ...]]]:
    """Services whose demand is no promise: online before batch, which is shed first; by priority descending in each."""
    groups: dict[tuple[bool, int], list[Demand]] = defaultdict(list)
    for demand in index.problem.demands:
        if not index.problem.promised(demand):
            groups[demand.kind is ServiceKind.BATCH, -demand.priority].append(demand)
    for (batch, negative), demands in sorted(groups.items()):
        yield f"priority{-negative}{'/batch' if batch else ''}", tuple(demands)


def coarsest(index: Index, demands: tuple[Demand, ...]) -> Shares:
    """Small numbers are solved faster: without routing by length a step is one of the grid."""
    shares = {demand.service: unserved_share(demand, index) for demand in demands}
    step = gcd(*(weight for terms in shares.values() for weight in terms.values()))
    return {service: {key: w // step for key, w in terms.items()} for service, terms in shares.items()}


def _class(descent: Descent, index: Index, label: str, demands: tuple[Demand, ...]) -> _Class:
    load = unserved_load_goal(index, demands, f"unserved-load/{label}")
    by_size = tuple(d.service for d in sorted(demands, key=lambda d: (d.arrival_rps, d.service)))
    return _Class(descent, coarsest(index, demands), label, load, by_size)


@dataclass
class _Class:
    """One priority class while it is shared out: ``caps`` of the services that are set aside.

    ``by_size``: its services, smallest demand first.
    """

    descent: Descent
    shares: Shares
    label: str
    load: Goal
    by_size: tuple[ServiceId, ...]
    caps: dict[ServiceId, int] = field(default_factory=dict)

    @property
    def _whole(self) -> int:
        return GRID * max(sum(terms.values()) for terms in self.shares.values())

    @property
    def _step(self) -> int:
        return self._whole // _STEPS

    def share_out(self, share: float) -> int | None:
        """All rounds; the largest share of the first one, or None when there is no plan."""
        descent = self.descent
        if descent.stopped is not None and not descent.values:
            return None
        end_s = descent.clock.monotonic_s() + _SHARES * share * descent.seconds_left
        first: int | None = None
        for turn in range(_ROUNDS):
            active = {service: terms for service, terms in self.shares.items() if service not in self.caps}
            found = self._round(active, end_s)
            if found is None:
                return first
            if first is None:
                first = found.value
                self._record(found)
            last = turn == _ROUNDS - 1 or len(self.shares) > _MANY
            staying = active if last or found.value == 0 else self._staying(active, found.value, end_s)
            self.caps |= dict.fromkeys(staying, found.value)
            if len(staying) == len(active):
                break
        descent.extend(rows=self._held())
        return first

    def _round(self, active: Shares, end_s: float) -> CapSearch | None:
        descent = self.descent
        search = CapSearch(
            descent,
            active,
            self._held(),
            self._whole,
            end_s,
            load=self.load,
            step=self._step,
            roughly=ROUGHLY if len(self.shares) <= _MANY else 0.0,
            values=descent.values or None,
        )
        nothing = search.run()
        if nothing is not None or search.values is None:
            if nothing is not None and nothing.termination is Termination.INFEASIBLE and not self.caps:
                descent.stopped = nothing.termination
            descent.unreached = descent.unreached or not self.caps
            return None
        descent.values = descent.hint = self._own(search.values)
        return search

    def _record(self, found: CapSearch) -> None:
        shares, step = self.shares, self._step
        goal = Goal(f"unserved-share/{self.label}", {}, unit=1 / self._whole, unit_name="share")
        self.descent.levels.append(
            Proved(goal, found.bound, found.proven(), lambda v: stepped(worst(shares, v), step))
        )

    def capped(self, caps: Mapping[ServiceId, int]) -> tuple[Row, ...]:
        """Rows that keep the shares of some services at most so large."""
        return tuple(
            Row(("unserved", service), self.shares[service], upper=cap) for service, cap in caps.items()
        )

    def _held(self) -> tuple[Row, ...]:
        return self.capped(self.caps)

    def _own(self, values: Mapping[Key, int]) -> dict[Key, int]:
        return {column.key: values[column.key] for column in self.descent.program.columns}

    def _staying(self, active: Shares, cap: int, end_s: float) -> Shares:
        """As few services as can be that stay near the cap, the small ones; everybody when no better is found."""
        below = cap - self._step
        left = end_s - self.descent.clock.monotonic_s()
        if below < 0 or left <= 0 or len(active) == 1:
            return active
        marks: dict[ServiceId, Key] = {service: ("stays", service) for service in active}
        rows = (
            Row(("bounds", "stays", service), dict(terms) | {marks[service]: below - cap}, upper=below)
            for service, terms in active.items()
        )
        capped = (Row(("unserved", service, "cap"), terms, upper=cap) for service, terms in active.items())
        columns = tuple(Column(mark, 0, 1) for mark in marks.values())
        weights = _few_then_small([service for service in self.by_size if service in active])
        staying = Goal("staying", {marks[service]: weight for service, weight in weights.items()})
        outcome = self.descent.probe(staying, (*self._held(), *capped, *rows), left / 4, columns)
        if outcome.values is None:
            return active
        values = outcome.values
        self.descent.values = self.descent.hint = self._own(values)
        return {service: terms for service, terms in active.items() if values[marks[service]]}


def _few_then_small(by_size: Sequence[ServiceId]) -> dict[ServiceId, int]:
    """Weights of services, smallest demand first, whose least sum names the fewest, and of these the smallest.

    Up to a dozen every set has a sum of its own, so that equal questions have equal answers.
    """
    sizes = range(len(by_size)) if len(by_size) > _TOLD_APART else (2**rank for rank in range(len(by_size)))
    by_rank = list(sizes)
    one = sum(by_rank) + 1
    return {service: one + size for service, size in zip(by_size, by_rank, strict=True)}
