"""Everything that several families look up in a solution, made once; what cannot be meant is left out.

What is left out (unknown names, numbers that are none) is a violation of the family ``solution``, see ``claims.py``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from models.ids import CandidateId, PoolId, ServiceId
from models.problem import PATHS, Candidate, Demand, Problem, ServingPath
from models.scenario import Mode
from models.solution import Borrowed, Served, Solution
from models.variant import Role
from models.workload import Routing
from planner.referee.tolerance import exact

__all__ = [
    "Index",
    "LoanKey",
    "ShareKey",
    "index_of",
    "is_count",
    "is_share",
    "is_unlimited",
    "paths_of",
    "rate_of",
]

ZERO = Fraction(0)

ShareKey = tuple[ServiceId, ServingPath, str | None]
LoanKey = tuple[ServiceId, ServingPath]


def is_count(value: object) -> bool:
    """Whether this is a whole number that is not negative."""
    return isinstance(value, int) and value >= 0


def is_share(value: float) -> bool:
    """Whether this is a finite number that is not negative; the sum of shares is judged elsewhere."""
    return math.isfinite(value) and value >= 0


def paths_of(candidates: Iterable[Candidate]) -> tuple[ServingPath, ...]:
    """The paths for which there is a candidate of every role."""
    roles = {candidate.role for candidate in candidates}
    return tuple(path for path, needed in PATHS.items() if roles.issuperset(needed))


def is_unlimited(problem: Problem, pool: PoolId) -> bool:
    """Whether the accelerators of a pool do not bound the plan: unconstrained mode, and no growth by nodes."""
    return problem.mode is Mode.UNCONSTRAINED and problem.pool[pool].growth is None


@dataclass(frozen=True)
class Index:
    """A solution beside its problem, ready to be judged.

    Attributes:
        counts: replicas by candidate, only known ones and only above 0.
        nodes_added: nodes by pool, only known ones and only above 0.
        of_service: candidates of each service, those at zero too.
        by_role: the same by (service, role).
        running: the same, only those with replicas.
        in_pool: candidates by pool, only those with replicas.
        served: share by (service, path, bucket or None).
        borrowed: share of a guest by (guest, path of the host), the same for each of its buckets.
        routed: by length: share of each bucket by candidate.
        guests: batch demands that may borrow from a host, by host.
    """

    problem: Problem
    solution: Solution
    counts: dict[CandidateId, int]
    nodes_added: dict[PoolId, int]
    of_service: Mapping[ServiceId, tuple[Candidate, ...]]
    by_role: Mapping[tuple[ServiceId, Role], list[Candidate]]
    running: Mapping[tuple[ServiceId, Role], list[Candidate]]
    in_pool: Mapping[PoolId, list[Candidate]]
    served: dict[ShareKey, Fraction]
    borrowed: dict[LoanKey, Fraction]
    routed: dict[CandidateId, dict[str, Fraction]]
    guests: Mapping[ServiceId, list[Demand]]

    def count(self, candidate: Candidate) -> int:
        """Replicas of a candidate."""
        return self.counts.get(candidate.id, 0)

    @cached_property
    def _paths(self) -> dict[ServiceId, tuple[ServingPath, ...]]:
        return {service: paths_of(candidates) for service, candidates in self.of_service.items()}

    def paths(self, service: ServiceId) -> tuple[ServingPath, ...]:
        """The paths of a service for which there is a candidate of every role."""
        return self._paths[service]

    @cached_property
    def of_size(self) -> Mapping[PoolId, dict[int, Candidate]]:
        """By pool, a candidate of each number of GPUs per pod: those at zero too, the last one of each number."""
        found: dict[PoolId, dict[int, Candidate]] = defaultdict(dict)
        for candidate in self.problem.candidates:
            found[candidate.pool][candidate.gpus_per_pod] = candidate
        return found

    def path_share(self, demand: Demand, path: ServingPath, bucket: str | None = None) -> Fraction:
        """Share served on a path by the service's own replicas."""
        return self.served.get((demand.service, path, bucket), ZERO)

    def served_share(self, demand: Demand, bucket: str | None = None) -> Fraction:
        """Share served on all paths, own and borrowed replicas together; every bucket borrows alike."""
        own = (self.served.get((demand.service, path, bucket), ZERO) for path in ServingPath)
        lent = (self.borrowed.get((demand.service, path), ZERO) for path in ServingPath)
        return sum(own, ZERO) + sum(lent, ZERO)

    def load_on(self, demand: Demand, path: ServingPath) -> Fraction:
        """Req/s of a demand that its own replicas serve on a path."""
        if demand.routing is Routing.MIXED:
            return rate_of(demand) * self.path_share(demand, path)
        parts = (
            exact(bucket.arrival_rps) * self.path_share(demand, path, bucket.id) for bucket in demand.buckets
        )
        return sum(parts, ZERO)

    def borrowed_load_on(self, guest: Demand, path: ServingPath) -> Fraction:
        """Req/s of a guest that the host's replicas serve on a path."""
        return rate_of(guest) * self.borrowed.get((guest.service, path), ZERO)


def rate_of(demand: Demand) -> Fraction:
    """Req/s of a demand over all buckets, exactly."""
    return sum((exact(bucket.arrival_rps) for bucket in demand.buckets), ZERO)


def index_of(problem: Problem, solution: Solution) -> Index:
    """Index a solution once for all families."""
    counts = {c: n for c, n in solution.counts.items() if c in problem.candidate and is_count(n) and n > 0}
    of_service: dict[ServiceId, list[Candidate]] = {demand.service: [] for demand in problem.demands}
    by_role: dict[tuple[ServiceId, Role], list[Candidate]] = defaultdict(list)
    running: dict[tuple[ServiceId, Role], list[Candidate]] = defaultdict(list)
    in_pool: dict[PoolId, list[Candidate]] = defaultdict(list)
    for candidate in problem.candidates:
        of_service.setdefault(candidate.service, []).append(candidate)
        by_role[candidate.service, candidate.role].append(candidate)
        if candidate.id in counts:
            running[candidate.service, candidate.role].append(candidate)
            in_pool[candidate.pool].append(candidate)
    return Index(
        problem=problem,
        solution=solution,
        counts=counts,
        nodes_added={
            p: m for p, m in solution.nodes_added.items() if p in problem.pool and is_count(m) and m > 0
        },
        of_service={service: tuple(candidates) for service, candidates in of_service.items()},
        by_role=by_role,
        running=running,
        in_pool=in_pool,
        served=_shares(problem, solution.served),
        borrowed=_loans(problem, solution.borrowed),
        routed=_routed(problem, solution),
        guests=_guests(problem),
    )


def _shares(problem: Problem, served: Iterable[Served]) -> dict[ShareKey, Fraction]:
    found: dict[ShareKey, Fraction] = defaultdict(Fraction)
    for one in served:
        if one.service in problem.demand and is_share(one.share):
            found[one.service, one.path, one.bucket] += exact(one.share)
    return dict(found)


def _loans(problem: Problem, borrowed: Iterable[Borrowed]) -> dict[LoanKey, Fraction]:
    found: dict[LoanKey, Fraction] = defaultdict(Fraction)
    for one in borrowed:
        if one.service in problem.demand and is_share(one.share):
            found[one.service, one.path] += exact(one.share)
    return dict(found)


def _routed(problem: Problem, solution: Solution) -> dict[CandidateId, dict[str, Fraction]]:
    found: dict[CandidateId, dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for one in solution.shares:
        if one.candidate in problem.candidate and is_share(one.share):
            found[one.candidate][one.bucket] += exact(one.share)
    return found


def _guests(problem: Problem) -> dict[ServiceId, list[Demand]]:
    found: dict[ServiceId, list[Demand]] = defaultdict(list)
    for demand in problem.demands:
        if demand.shares_replicas_of is not None:
            found[demand.shares_replicas_of].append(demand)
    return found
