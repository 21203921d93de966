"""The largest served shares of a service that routes by length, and the routing that carries them."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Mapping
from fractions import Fraction
from typing import Final

from models.ids import CandidateId
from models.problem import PATHS, BucketRating, Candidate, Demand, ServingPath
from models.solution import BucketShare
from models.variant import Role
from models.workload import ServiceKind
from planner.referee.by_length import burst_factor
from planner.referee.index import Index, ShareKey
from planner.referee.routing import Program

__all__ = ["shares_by_length"]

_FIRST: Final = 1e6
"""Weight of the smallest share against the sum of shares, which only breaks ties."""

_CRUMB: Final = 1e-3
"""Weight of a bucket at which nothing arrives."""

_ROUNDING: Final = 5e-10
"""Relative rounding of the linear program that is forgiven; inside the tolerance of every row."""


def shares_by_length(
    index: Index, demand: Demand, grid: int, *, families: Collection[str]
) -> tuple[dict[ShareKey, Fraction], list[BucketShare]]:
    """Served shares per path and bucket, rounded down to 1/grid, and each candidate's part of every bucket.

    Of headroom and survive only the ``families`` that are named bound a share; rates always do.
    """
    program = _Shares(index, demand, families)
    columns = program.solve()
    served: dict[ShareKey, Fraction] = {}
    routed: dict[tuple[CandidateId, str], float] = {}
    for path in program.paths:
        for bucket in demand.buckets:
            most = columns["y", path, bucket.id]
            share = Fraction(math.floor(most * (1 + _ROUNDING) * grid), grid)
            if share > 0:
                served[demand.service, path, bucket.id] = share
                for role in PATHS[path]:
                    routed |= _scaled(program.able(role, bucket.id), (columns, bucket.id, float(share)))
    return served, [
        BucketShare(candidate=c, bucket=b, share=a) for (c, b), a in sorted(routed.items()) if a > 0
    ]


def _scaled(
    able: Mapping[CandidateId, BucketRating], wanted: tuple[Mapping[Hashable, float], str, float]
) -> dict[tuple[CandidateId, str], float]:
    """The program's routing of one bucket in one role, brought to sum to the share exactly."""
    columns, bucket, share = wanted
    parts = {c: columns["a", c, bucket] for c in able if columns["a", c, bucket] > 0}
    scale = share / sum(parts.values())
    return {(c, bucket): min(1.0, part * scale) for c, part in parts.items()}


class _Shares:
    """Columns: the smallest share, y per path and bucket, a per candidate and bucket, one routing per lost domain."""

    def __init__(self, index: Index, demand: Demand, families: Collection[str]) -> None:
        self.families = families
        self.index = index
        self.demand = demand
        self.paths = index.paths(demand.service)
        self.program = Program()

    def able(self, role: Role, bucket: str) -> dict[CandidateId, BucketRating]:
        """Candidates that run in a role and can serve a bucket."""
        return {c.id: c.by_bucket[bucket] for c in self._running(role) if bucket in c.by_bucket}

    def solve(self) -> Mapping[Hashable, float]:
        """Columns at the best shares."""
        total = self.demand.arrival_rps or 1.0
        aim: dict[Hashable, float] = {"least": _FIRST}
        for bucket in self.demand.buckets:
            shares: dict[Hashable, float] = {("y", path, bucket.id): 1.0 for path in self.paths}
            self.program.row(shares, 1.0)
            if bucket.arrival_rps > 0:
                self.program.row({"least": 1.0} | dict.fromkeys(shares, -1.0), 0.0)
            aim |= dict.fromkeys(shares, bucket.arrival_rps / total + _CRUMB)
        self.program.row({"least": 1.0}, 1.0)
        for path in self.paths:
            for role in PATHS[path]:
                self._route(path, role)
                if "headroom" in self.families:
                    self._keep_headroom(path, role)
                if "survive" in self.families:
                    self._survive(path, role)
        return self.program.maximize(aim)

    def _running(self, role: Role) -> Iterator[Candidate]:
        candidates = self.index.by_role[self.demand.service, role]
        return (candidate for candidate in candidates if self.index.count(candidate))

    def _route(self, path: ServingPath, role: Role) -> None:
        batch = self.demand.kind is ServiceKind.BATCH
        for bucket in self.demand.buckets:
            routed: dict[Hashable, float] = {("a", c, bucket.id): -1.0 for c in self.able(role, bucket.id)}
            self.program.row({("y", path, bucket.id): 1.0} | routed, 0.0)
        for candidate in self._running(role):
            rated = {b: r.surge_rps if batch else r.rated_rps for b, r in candidate.by_bucket.items()}
            self._busy("a", (candidate, rated), 1.0)

    def _busy(self, name: Hashable, carrier: tuple[Candidate, Mapping[str, float]], factor: float) -> None:
        candidate, rates = carrier
        terms: dict[Hashable, float] = {
            (name, candidate.id, bucket.id): factor * bucket.arrival_rps / rates[bucket.id]
            for bucket in self.demand.buckets
            if bucket.id in rates
        }
        self.program.row(terms, float(self.index.count(candidate)))

    def _keep_headroom(self, path: ServingPath, role: Role) -> None:
        factor = burst_factor(self.demand)
        for candidate in self._running(role) if factor is not None else ():
            surge = {bucket: rating.surge_rps for bucket, rating in candidate.by_bucket.items()}
            self._busy("a", (candidate, surge), float(factor or 1))
        tokens = self.demand.headroom.kv_tokens
        if tokens is None or self.demand.kind is not ServiceKind.ONLINE:
            return
        # Any bucket's share is at least the smallest one, so the row with it is on the safe side; with one path the
        # smallest share itself is a column.
        least: Hashable = "least" if len(self.paths) == 1 else ("y", path, self.demand.buckets[0].id)
        terms: dict[Hashable, float] = {least: tokens}
        capacity = 0.0
        for candidate in self._running(role):
            kv = {bucket: rating.kv_tokens_per_rps for bucket, rating in candidate.by_bucket.items()}
            if candidate.kv_capacity_tokens is None or None in kv.values():
                continue
            capacity += candidate.kv_capacity_tokens * self.index.count(candidate)
            for bucket in self.demand.buckets:
                terms["a", candidate.id, bucket.id] = (kv.get(bucket.id) or 0.0) * bucket.arrival_rps
        self.program.row(terms, capacity)

    def _survive(self, path: ServingPath, role: Role) -> None:
        wish = self.demand.survive
        for domain in wish.failure_domains if wish is not None else ():
            outside = [
                c for c in self._running(role) if self.index.problem.pool[c.pool].failure_domain != domain
            ]
            for bucket in self.demand.buckets:
                spare: dict[Hashable, float] = {
                    ((domain, path), c.id, bucket.id): -1.0 for c in outside if bucket.id in c.by_bucket
                }
                self.program.row(
                    {("y", path, bucket.id): wish.share if wish is not None else 0.0} | spare, 0.0
                )
            for candidate in outside:
                surge = {bucket: rating.surge_rps for bucket, rating in candidate.by_bucket.items()}
                self._busy((domain, path), (candidate, surge), 1.0)
