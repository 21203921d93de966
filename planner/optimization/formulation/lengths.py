"""Loads and rates of all services that are routed by length as arrays: a fleet's rows of occupancy are made at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, repeat
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.problem import Candidate, Demand
from models.workload import Routing, ServiceKind
from planner.optimization.program import Key
from planner.optimization.scaling import GRID, Number, occupy_each

if TYPE_CHECKING:
    from planner.optimization.formulation.index import Index

__all__ = ["Lengths", "Occupied", "lengths_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


Occupied = Sequence[int]
"""Coefficients of  free·n − Σ_b busy[b]·a[b] >= 0,  row after row of :class:`Lengths`; shares in grid steps."""


@dataclass(frozen=True)
class Lengths:
    """Candidates of services that are routed by length, group after group, with their buckets that have traffic.

    Attributes:
        candidates: in the order of the paths and roles of their services.
        demands: the service of each.
        keys: by candidate its replicas and its shares of the buckets that have traffic.
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
        """Where the coefficients of each row are."""
        ends = (self.starts + np.arange(len(self.starts))).tolist()
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
        values = np.zeros(len(self.loads) + len(some), dtype=np.int64)
        of_replicas = self.starts[:-1] + np.arange(len(some))
        shares = np.ones(len(values), dtype=bool)
        shares[of_replicas] = False
        values[of_replicas[some]] = free * GRID
        values[shares] = -busy
        return values.tolist()

    @cached_property
    def _row(self) -> Ints:
        return np.repeat(np.arange(len(self.candidates)), np.diff(self.starts))


def lengths_of(index: Index) -> Lengths:
    """All services of a problem that are routed by length."""
    keys = index.bucket_shares
    candidates, demands = list[Candidate](), list[Demand]()
    shares, loads, rates = list[Sequence[Key]](), list[float](), list[tuple[float, float]]()
    for demand in index.problem.demands:
        if demand.routing is not Routing.BY_LENGTH:
            continue
        traffic = {bucket.id: bucket.arrival_rps for bucket in demand.buckets if bucket.arrival_rps > 0}
        order = list(traffic)
        for _, _, group in index.path_roles(demand):
            candidates += group
            demands += [demand] * len(group)
            for c in group:
                rated = c.by_bucket
                if list(rated) == order:
                    loads += traffic.values()
                    rates += [(one.rated_rps, one.surge_rps) for one in rated.values()]
                    shares.append((("n", c.id), *keys[c.id].values()))
                else:
                    served = [b for b in order if b in rated]
                    loads += [traffic[b] for b in served]
                    rates += [(rated[b].rated_rps, rated[b].surge_rps) for b in served]
                    shares.append((("n", c.id), *(keys[c.id][b] for b in served)))
    figures = np.array(rates, dtype=np.float64).reshape(-1, 2)
    starts = np.concatenate(([0], np.cumsum([len(each) - 1 for each in shares], dtype=np.int64)))
    return Lengths(
        candidates,
        demands,
        shares,
        starts,
        np.array(loads, dtype=np.float64),
        np.ascontiguousarray(figures[:, 0]),
        np.ascontiguousarray(figures[:, 1]),
    )
