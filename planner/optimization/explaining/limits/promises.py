"""Promises to users that may be made smaller: headroom, what survives a failure, latency."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from models.explanation import Fact, Rejection
from models.ids import ServiceId
from models.problem import Candidate, Demand, Problem
from models.saturation import Headroom
from models.workload import ServiceKind
from planner.optimization.explaining.limits.counts import with_demand
from planner.optimization.explaining.limits.limit import Ladder, Limit

__all__ = ["SLO_STEPS", "Rerate", "Rerated", "headroom", "headroom_way", "slo", "survive", "with_headroom"]

SLO_STEPS: Final = (1.1, 1.25, 1.5, 2.0, 3.0)
"""Factors by which the latency promises of a service are made looser."""

_NOTCHES: Final = 100
_WAYS: Final = (("relative", "share"), ("burst_rps", "req/s"), ("kv_tokens", "tokens"))


@dataclass(frozen=True)
class Rerated:
    """A problem that was sized again with looser latency promises of one service, and what they are now."""

    problem: Problem
    facts: Mapping[str, Fact] = field(default_factory=dict)


_Owned = TypeVar("_Owned", Candidate, Rejection)

Rerate = Callable[[ServiceId, float], "Rerated | None"]
"""Size again with the latency promises of a service times a factor; None: it has none, or nothing changes."""


def headroom(problem: Problem) -> Iterator[Limit]:
    """Less headroom: a hundredth of it less, again and again."""
    for demand in problem.demands:
        if demand.kind is ServiceKind.BATCH:
            continue
        for way, unit in _WAYS:
            kept = getattr(demand.headroom, way)
            if kept:
                yield Limit(
                    family="headroom",
                    key=(demand.service,),
                    value=kept,
                    unit=unit,
                    rows=(("headroom", demand.service),),
                    moved=lambda needed, demand=demand: with_headroom(problem, demand, needed),  # type: ignore[misc]
                    search=Ladder(_downwards(kept)),
                )


def headroom_way(demand: Demand) -> str | None:
    """In which way a service keeps headroom; None: in none."""
    return next((way for way, _ in _WAYS if getattr(demand.headroom, way)), None)


def with_headroom(problem: Problem, demand: Demand, kept: float) -> Problem:
    """The problem with another headroom of a service, stated in the same way."""
    way = headroom_way(demand)
    return with_demand(problem, demand.but(headroom=Headroom() if way is None else Headroom(**{way: kept})))


def survive(problem: Problem) -> Iterator[Limit]:
    """A smaller share that survives the loss of a failure domain."""
    for demand in problem.demands:
        promise = demand.survive
        if promise is not None and promise.share:
            yield Limit(
                family="survive",
                key=(demand.service,),
                value=promise.share,
                unit="share",
                rows=(("survive", demand.service),),
                moved=lambda needed, demand=demand, promise=promise: with_demand(  # type: ignore[misc]
                    problem, demand.but(survive=promise.but(share=needed) if needed else None)
                ),
                search=Ladder(_downwards(promise.share)),
            )


def slo(problem: Problem, rerate: Rerate | None) -> Iterator[Limit]:
    """Looser latency promises, in steps; sized again by whoever can."""
    if rerate is None:
        return
    for demand in problem.demands:
        again = _Again(problem, demand.service, rerate)
        yield Limit(
            family="slo",
            key=(demand.service,),
            value=1.0,
            unit="times",
            rows=tuple((family, demand.service) for family in ("rate", "headroom", "survive", "demand")),
            moved=again.problem_at,
            search=Ladder(SLO_STEPS),
            facts=again.facts_at,
        )


@dataclass(frozen=True)
class _Again:
    """A problem sized again for factors of one service's latency promises, each once."""

    problem: Problem
    service: ServiceId
    rerate: Rerate
    known: dict[float, Rerated | None] = field(default_factory=dict)

    def problem_at(self, factor: float) -> Problem | None:
        """The problem with what the service's candidates can do then; all else, promises too, as it was."""
        new = self._at(factor)
        if new is None:
            return None
        old = self.problem
        candidates = self._own_of(old.candidates, new.problem.candidates)
        return old.but(
            demands=tuple(self._demand(new.problem, demand) for demand in old.demands),
            candidates=tuple(sorted(candidates, key=lambda each: each.id)),
            rejected=tuple(self._own_of(old.rejected, new.problem.rejected)),
        )

    def _own_of(self, old: Iterable[_Owned], new: Iterable[_Owned]) -> Iterator[_Owned]:
        """What is new of this service, and of the others what there was: it may have been changed meanwhile."""
        yield from (each for each in new if each.service == self.service)
        yield from (each for each in old if each.service != self.service)

    def facts_at(self, factor: float) -> Mapping[str, Fact]:
        """The promises themselves."""
        new = self._at(factor)
        return {} if new is None else new.facts

    def _at(self, factor: float) -> Rerated | None:
        if factor not in self.known:
            self.known[factor] = self.rerate(self.service, factor)
        return self.known[factor]

    def _demand(self, sized: Problem, demand: Demand) -> Demand:
        """Failure domains follow the candidates; everything else is as it was."""
        new = sized.demand.get(demand.service) if demand.service == self.service else None
        return demand if new is None else demand.but(survive=new.survive)


def _downwards(value: float) -> tuple[float, ...]:
    """A hundredth less, again and again, down to nothing."""
    return tuple(float(f"{value * left / _NOTCHES:.6g}") for left in range(_NOTCHES - 1, -1, -1))
