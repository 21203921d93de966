"""The largest shares that given counts carry: for the fleet as it runs, heuristics' answers and states on the way."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from models.ids import CandidateId, PoolId
from models.problem import Demand, Problem
from models.solution import Borrowed, BucketShare, Proof, Served, Solution, Status
from models.workload import Routing
from planner.referee.index import Index, ShareKey, index_of
from planner.referee.lending import lent
from planner.referee.routing_shares import shares_by_length
from planner.referee.tolerance import exact
from planner.referee.traffic import BOUNDING, limits

__all__ = ["Serving", "best_service", "state_of", "state_with"]

GRID: Final = 10_000
"""Shares are whole multiples of 1/GRID, rounded down, as everywhere."""

ONE: Final = Fraction(1)


@dataclass(frozen=True, slots=True)
class Serving:
    """Shares in the terms of a solution."""

    served: tuple[Served, ...]
    borrowed: tuple[Borrowed, ...] = ()
    shares: tuple[BucketShare, ...] = ()


def state_of(problem: Problem, *, families: Collection[str] = BOUNDING) -> Solution:
    """The fleet as it runs now: what is on order (ready and pending replicas), and the most that it serves.

    Nothing done is thus zero changes. The status is FEASIBLE so that it can be judged like a plan; a promise that it
    does not keep is a violation of the family ``demand``. ``families`` is that of :func:`best_service`.
    """
    running = {c.id: c.on_order for c in problem.candidates if c.on_order}
    return state_with(problem, running, solver="now", families=families)


def state_with(
    problem: Problem,
    counts: Mapping[CandidateId, int],
    *,
    nodes_added: Mapping[PoolId, int] | None = None,
    solver: str = "state",
    families: Collection[str] = BOUNDING,
) -> Solution:
    """A solution of these counts that serves the most they carry; ``families`` is that of :func:`best_service`."""
    serving = best_service(problem, counts, families=families)
    return Solution(
        status=Status.FEASIBLE,
        counts=dict(counts),
        nodes_added=dict(nodes_added or {}),
        served=serving.served,
        borrowed=serving.borrowed,
        shares=serving.shares,
        proof=Proof(solver=solver),
        derived_from=problem.fingerprint,
    )


def best_service(
    problem: Problem, counts: Mapping[CandidateId, int], *, families: Collection[str] = BOUNDING
) -> Serving:
    """The largest shares that keep the rows on traffic at these counts.

    Only rows of ``families`` bound a share. Without ``survive`` a fleet serves all that it carries today, and a broken
    promise for the day of a loss is a violation of its own; with it, what would not survive is not served.

    Mixed routing: exact, the aggregated path first. By length: the smallest share of a bucket is made as large as it
    can be, then the load (a linear program; with token headroom and two paths on the safe side). Guests get what their
    own replicas carry, then what hosts leave over, by priority, with equal shares inside one priority.
    """
    index = index_of(
        problem, Solution(status=Status.FEASIBLE, counts=dict(counts), proof=Proof(solver="state"))
    )
    shares: list[BucketShare] = []
    for demand in problem.demands:
        if demand.routing is Routing.MIXED:
            index.served.update(_mixed(index, demand, families))
        else:
            own, routed = shares_by_length(index, demand, GRID, families=families)
            index.served.update(own)
            shares += routed
            for one in routed:
                index.routed.setdefault(one.candidate, {})[one.bucket] = exact(one.share)
    for host in index.guests:
        if host in problem.demand:
            index.borrowed.update(lent(index, problem.demand[host], GRID))
    return Serving(
        tuple(Served(service=s, path=p, bucket=b, share=float(y)) for (s, p, b), y in index.served.items()),
        tuple(Borrowed(service=s, path=p, share=float(w)) for (s, p), w in index.borrowed.items()),
        tuple(shares),
    )


def _mixed(index: Index, demand: Demand, families: Collection[str]) -> Iterator[tuple[ShareKey, Fraction]]:
    left = ONE
    for path in index.paths(demand.service):
        bounding = limits(index, demand, path, families=families)
        bounds = (limit.capacity / limit.per_share for limit in bounding if limit.per_share > 0)
        share = Fraction(math.floor(min(left, *bounds, ONE) * GRID), GRID)
        if share > 0:
            left -= share
            yield (demand.service, path, None), share
