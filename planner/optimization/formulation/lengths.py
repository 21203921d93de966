"""Loads and rates of all services that are routed by length as arrays: a fleet's rows of occupancy are made at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, repeat
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.problem import Candidate, Demand
from models.workload import Routing, ServiceKind
from planner.optimization.program import Key
from planner.optimization.scaling import Number, occupy_each

if TYPE_CHECKING:
    from planner.optimization.formulation.index import Index

__all__ = ["Lengths", "Occupied", "lengths_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Occupied:
    """Integers of  free·n ≥ Σ_b busy[b]·a[b],  one row per candidate of :class:`Lengths`.

    Attributes:
        free: by candidate.
        busy: by candidate and bucket with traffic.
    """

    free: Sequence[int]
    busy: Sequence[int]


@dataclass(frozen=True)
class Lengths:
    """Candidates of services that are routed by length, group after group, with their buckets that have traffic.

    Attributes:
        candidates: in the order of the paths and roles of their services.
        demands: the service of each.
        keys: shares of the buckets that have traffic, by candidate.
        starts: buckets of candidate i are ``starts[i]:starts[i + 1]``.
        loads: req/s of each bucket.
        rated: of one replica up to the trigger, req/s of that bucket alone.
        surge: likewise up to tau.
    """

    candidates: Sequence[Candidate]
    demands: Sequence[Demand]
    keys: Sequence[Sequence[Key]]
    starts: Ints
    loads: Floats
    rated: Floats
    surge: Floats

    @cached_property
    def spans(self) -> Sequence[slice]:
        """Where the buckets of each candidate are."""
        ends = self.starts.tolist()
        return [slice(first, last) for first, last in pairwise(ends)]

    @cached_property
    def whole(self) -> Floats:
        """Replicas of each candidate that carry all of its buckets, up to the trigger and up to tau."""
        parts = np.maximum(self.loads / self.rated, self.loads / self.surge)
        found, some = np.zeros(len(self.candidates)), np.diff(self.starts) > 0
        if some.any():
            found[some] = np.add.reduceat(parts, self.starts[:-1][some])
        return found

    @cached_property
    def at_rate(self) -> Occupied:
        """Inside SLO and trigger; batch up to tau."""
        batch = np.array([demand.kind is ServiceKind.BATCH for demand in self.demands], dtype=bool)
        return self.occupied(np.where(batch[self._row], self.surge, self.rated), repeat(1))

    @cached_property
    def at_tau(self) -> Occupied:
        """Up to tau."""
        return self.occupied(self.surge, repeat(1))

    def under(self, factors: Mapping[int, Number]) -> Occupied:
        """Up to tau, with the load of some candidates (by number) times a factor; the others count for nothing."""
        return self.occupied(self.surge, (factors.get(i, 1) for i in range(len(self.candidates))))

    def occupied(self, rates: Floats, factors: Iterator[Number]) -> Occupied:
        """The integers at these rates."""
        some = np.diff(self.starts) > 0
        starts = np.append(self.starts[:-1][some], self.starts[-1])
        chosen = [factor for factor, has in zip(factors, some.tolist(), strict=False) if has]
        free, busy = occupy_each(self.loads, rates, starts, chosen)
        every = np.zeros(len(self.candidates), dtype=np.int64)
        every[some] = free
        return Occupied(every.tolist(), busy.tolist())

    @cached_property
    def _row(self) -> Ints:
        return np.repeat(np.arange(len(self.candidates)), np.diff(self.starts))


def lengths_of(index: Index) -> Lengths:
    """All services of a problem that are routed by length."""
    groups = [
        (demand, [bucket.id for bucket in demand.buckets if bucket.arrival_rps > 0], group)
        for demand in index.problem.demands
        if demand.routing is Routing.BY_LENGTH
        for _, _, group in index.path_roles(demand)
    ]
    candidates = [candidate for _, _, group in groups for candidate in group]
    served = [[b for b in busy if b in c.by_bucket] for _, busy, group in groups for c in group]
    ratings = [c.by_bucket[b] for c, buckets in zip(candidates, served, strict=True) for b in buckets]
    rates = np.array([(one.rated_rps, one.surge_rps) for one in ratings], dtype=np.float64).reshape(-1, 2)
    demands = list(chain.from_iterable([demand] * len(group) for demand, _, group in groups))
    load = {demand.service: {b.id: b.arrival_rps for b in demand.buckets} for demand, _, _ in groups}
    loads = [load[c.service][b] for c, buckets in zip(candidates, served, strict=True) for b in buckets]
    keys = index.bucket_shares
    return Lengths(
        candidates,
        demands,
        [[keys[c.id][b] for b in buckets] for c, buckets in zip(candidates, served, strict=True)],
        np.concatenate(([0], np.cumsum([len(buckets) for buckets in served], dtype=np.int64))),
        np.array(loads, dtype=np.float64),
        np.ascontiguousarray(rates[:, 0]),
        np.ascontiguousarray(rates[:, 1]),
    )
