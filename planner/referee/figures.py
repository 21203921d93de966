"""Figures of one service: load, what stays unserved, headroom, cost, power."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from models.problem import PATHS, CostUnit, Demand
from models.report import CandidateFigures, ServiceFigures
from models.workload import Routing
from planner.referee.borrowing import surge_capacity
from planner.referee.by_length import replicas_busy
from planner.referee.index import Index, rate_of
from planner.referee.tolerance import exact

__all__ = ["service_figures"]

ZERO: Final = Fraction(0)
ONE: Final = Fraction(1)
SECONDS_PER_HOUR: Final = 3600
JOULES_PER_KWH: Final = 3_600_000


def service_figures(index: Index, demand: Demand, candidates: Sequence[CandidateFigures]) -> ServiceFigures:
    """Figures of a service from its shares and its candidates' figures.

    Cost and power are those of its own replicas, with their part of the nodes that are added: what a guest borrows is
    paid by the host, starts by no service.
    """
    parts = _parts(index, demand)
    served = sum((rps * share for rps, share, _ in parts), ZERO)
    arriving = rate_of(demand)
    cost = sum(one.cost for one in candidates)
    powers = [one.power_w for one in candidates]
    power_w = None if None in powers else sum(power for power in powers if power is not None)
    return ServiceFigures(
        service=demand.service,
        demand_rps=float(arriving),
        served_rps=float(served),
        unserved_rps=float(arriving - served),
        unserved_share=float(max((ONE - share for rps, share, _ in parts if rps > 0), default=ZERO)),
        headroom=_headroom(index, demand),
        cost=cost,
        usd_per_million_tokens=_usd_per_million_tokens(index, cost, parts),
        power_w=power_w,
        kwh_per_million_tokens=_kwh_per_million_tokens(power_w, parts),
    )


Part = tuple[Fraction, Fraction, int]


def _parts(index: Index, demand: Demand) -> list[Part]:
    """Req/s, served share (at most 1) and tokens per request of each bucket."""
    by_length = demand.routing is Routing.BY_LENGTH
    return [
        (
            exact(bucket.arrival_rps),
            min(ONE, index.served_share(demand, bucket.id if by_length else None)),
            bucket.input_tokens + bucket.output_tokens,
        )
        for bucket in demand.buckets
    ]


def _usd_per_million_tokens(index: Index, cost: float, parts: Sequence[Part]) -> float | None:
    tokens_per_s = sum((rps * share * tokens for rps, share, tokens in parts), ZERO)
    if index.problem.cost_unit is not CostUnit.USD_PER_H or tokens_per_s == 0:
        return None
    return cost / float(tokens_per_s * SECONDS_PER_HOUR) * 1e6


def _kwh_per_million_tokens(power_w: float | None, parts: Sequence[Part]) -> float | None:
    tokens_per_s = sum((rps * share * tokens for rps, share, tokens in parts), ZERO)
    if power_w is None or tokens_per_s == 0:
        return None
    return power_w / float(tokens_per_s) / JOULES_PER_KWH * 1e6


def _headroom(index: Index, demand: Demand) -> float | None:
    """(surge capacity − load) / load of the scarcest role; by length of the scarcest candidate, as routed."""
    found = [
        *(
            _headrooms_by_length(index, demand)
            if demand.routing is Routing.BY_LENGTH
            else _headrooms(index, demand)
        )
    ]
    return float(min(found)) if found else None


def _headrooms(index: Index, demand: Demand) -> Iterator[Fraction]:
    for path in index.paths(demand.service):
        load = index.load_on(demand, path)
        if load > 0:
            yield from (surge_capacity(index, demand.service, role) / load - 1 for role in PATHS[path])


def _headrooms_by_length(index: Index, demand: Demand) -> Iterator[Fraction]:
    for candidate in index.of_service[demand.service]:
        busy = replicas_busy(index, demand, candidate, surge=True)
        if busy > 0:
            yield index.count(candidate) / busy - 1
