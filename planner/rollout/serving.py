"""What the replicas that are ready serve, service by service: each is judged apart from all others but its guests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from models.ids import CandidateId, ServiceId
from models.problem import Demand, Problem
from models.scenario import Mode
from models.solution import Proof, Solution, Status
from planner.referee import best_service, physical
from planner.referee.index import index_of
from planner.referee.rows import Row

__all__ = ["Group", "Served", "groups_of"]

FLOORS: Final = (physical.bounds, physical.safe_scale_in, physical.ratio)


@dataclass(frozen=True, slots=True)
class Served:
    """What a group serves at some counts.

    Attributes:
        worst: smallest served share of a bucket, by service.
        load: req/s served, by service.
        rows: minimums and ratios on replicas.
    """

    worst: Mapping[ServiceId, float]
    load: Mapping[ServiceId, float]
    rows: tuple[Row, ...]


@dataclass
class Group:
    """Services that share replicas: one, or a host with its guests.

    Attributes:
        problem: of these services alone, with all their candidates, and no limit that other services are under.
        units: positions of their candidates in a task.
    """

    problem: Problem
    units: tuple[int, ...]
    known: dict[tuple[int, ...], Served] = field(default_factory=dict)

    def at(self, numbers: tuple[int, ...], names: tuple[CandidateId, ...]) -> Served:
        """What is served with these numbers of ready replicas, all units' numbers and names being given."""
        own = tuple(numbers[i] for i in self.units)
        if own not in self.known:
            self.known[own] = self._served({names[i]: numbers[i] for i in self.units if numbers[i]})
        return self.known[own]

    def _served(self, counts: dict[CandidateId, int]) -> Served:
        serving = best_service(self.problem, counts)
        shares: dict[tuple[ServiceId, str | None], float] = defaultdict(float)
        for own in serving.served:
            shares[own.service, own.bucket] += own.share
        for loan in serving.borrowed:
            shares[loan.service, loan.bucket] += loan.share
        worst, load = {}, {}
        for demand in self.problem.demands:
            parts = [
                (bucket.arrival_rps, shares[demand.service, bucket.id] + shares[demand.service, None])
                for bucket in demand.buckets
                if bucket.arrival_rps > 0 or demand.arrival_rps == 0
            ]
            worst[demand.service] = min(share for _, share in parts)
            load[demand.service] = sum(rps * share for rps, share in parts)
        solution = Solution(status=Status.FEASIBLE, counts=counts, proof=Proof(solver="state"))
        index = index_of(self.problem, solution)
        rows = tuple(row for family in FLOORS for row in family(index) if _is_floor(row) and row.broken)
        return Served(worst, load, rows)


def _is_floor(row: Row) -> bool:
    """Maximums are judged on what is held; a ratio is one of replicas that serve, on both sides."""
    return row.least or row.family == "ratio"


def groups_of(problem: Problem, names: tuple[CandidateId, ...]) -> tuple[Group, ...]:
    """Groups with a unit among ``names``; a service on its own that has none is the same in every state."""
    position = {name: i for i, name in enumerate(names)}
    found = []
    for demands in _together(problem):
        candidates = tuple(c for demand in demands for c in problem.candidates_of[demand.service])
        units = tuple(sorted(position[c.id] for c in candidates if c.id in position))
        if units:
            pools = tuple(pool.but(nodes=(), growth=None) for pool in problem.pools)
            alone = problem.but(
                demands=demands,
                candidates=tuple(sorted(candidates, key=lambda c: c.id)),
                pools=pools,
                mode=Mode.UNCONSTRAINED,
                incumbents=(),
                quotas=(),
                power=(),
                rejected=(),
            )
            found.append(Group(alone, units))
    return tuple(found)


def _together(problem: Problem) -> Iterator[tuple[Demand, ...]]:
    hosts = {demand.service: demand for demand in problem.demands}
    by_root: dict[ServiceId, list[Demand]] = {}
    for demand in problem.demands:
        root, seen = demand, {demand.service}
        while root.shares_replicas_of in hosts and root.shares_replicas_of not in seen:
            root = hosts[root.shares_replicas_of]
            seen.add(root.service)
        by_root.setdefault(root.service, []).append(demand)
    yield from (tuple(demands) for demands in by_root.values())
