"""The family ``solution``: what a solution says must mean something in its problem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from models.ids import CandidateId, NodeId
from models.problem import Demand, Problem
from models.report import Violation
from models.solution import Borrowed, Served, Solution
from models.workload import Routing
from planner.referee.bays import seats_of
from planner.referee.index import Index, is_count, is_share, paths_of
from planner.referee.rows import figure
from planner.referee.tolerance import exceeds

__all__ = ["claims"]


def claims(index: Index) -> Iterator[Violation]:
    """Names are known, numbers are counts and shares, and the shares of a demand sum to at most 1."""
    yield from _numbers(index.problem, index.solution)
    for one in index.solution.served:
        yield from _share_claim(index, one)
    for guest in index.solution.borrowed:
        yield from _share_claim(index, guest)
    yield from _routing_claims(index.problem, index.solution)
    yield from _placement_claims(index.problem, index.solution)
    for demand in index.problem.demands:
        yield from _sum_claim(index, demand)


def _broken(key: tuple[str, ...], text: str, *, found: float = 1.0, allowed: float = 0.0) -> Violation:
    """A claim that cannot be; a number that is none is reported as 1 wrong claim."""
    return Violation(
        family="solution",
        key=key,
        found=found if math.isfinite(found) else 1.0,
        allowed=allowed,
        unit="1",
        text=text,
    )


def _numbers(problem: Problem, solution: Solution) -> Iterator[Violation]:
    for kind, known, numbers in (
        ("candidate", problem.candidate, solution.counts),
        ("pool", problem.pool, solution.nodes_added),
    ):
        for name, n in numbers.items():
            if name not in known:
                yield _broken(
                    (str(name),), f"The problem has no {kind} {name}.", found=n if is_count(n) else 1.0
                )
            elif not is_count(n):
                yield _broken((str(name),), f"The number {n!r} of {kind} {name} is no count.", found=n)


def _share_claim(index: Index, one: Served | Borrowed) -> Iterator[Violation]:
    problem, key = index.problem, (str(one.service), str(one.path))
    demand = problem.demand.get(one.service)
    if demand is None:
        yield _broken(key, f"The problem has no service {one.service}.")
        return
    if not is_share(one.share):
        yield _broken(key, f"The share {one.share!r} of {one.service} is no share.", found=one.share)
    apart = demand.routing is Routing.BY_LENGTH and isinstance(one, Served)
    if one.bucket not in ({bucket.id for bucket in demand.buckets} if apart else {None}):
        yield _broken(key, f"Service {one.service} has no such share of bucket {one.bucket}.")
    owner = demand.shares_replicas_of if isinstance(one, Borrowed) else one.service
    if owner is None:
        yield _broken(key, f"Service {one.service} borrows, and shares no replicas.")
    elif one.share != 0 and one.path not in paths_of(index.of_service.get(owner, ())):
        yield _broken(key, f"Service {owner} has no candidates for every role of path {one.path}.")


def _routing_claims(problem: Problem, solution: Solution) -> Iterator[Violation]:
    for one in solution.shares:
        key = (str(one.candidate), str(one.bucket))
        candidate = problem.candidate.get(one.candidate)
        if candidate is None:
            yield _broken(key, f"The problem has no candidate {one.candidate}.")
            continue
        if not is_share(one.share):
            yield _broken(key, f"The share {one.share!r} of {one.candidate} is no share.", found=one.share)
        if problem.demand[candidate.service].routing is not Routing.BY_LENGTH:
            yield _broken(key, f"Service {candidate.service} does not route by length.")
        elif one.bucket not in candidate.by_bucket:
            yield _broken(key, f"Candidate {one.candidate} cannot serve bucket {one.bucket}.")


def _placement_claims(problem: Problem, solution: Solution) -> Iterator[Violation]:
    seated: Counter[tuple[CandidateId, NodeId]] = Counter()
    for candidate, seats in seats_of(problem).items() if solution.placements else ():
        for seat in seats:
            for node, pods in seat.pods:
                seated[candidate, node] += pods * seat.replicas
    for one in solution.placements:
        key = (str(one.candidate), str(one.node))
        if one.candidate not in problem.candidate:
            yield _broken(key, f"The problem has no candidate {one.candidate}.")
        elif not is_count(one.pods) or not is_count(one.kept):
            yield _broken(key, f"The pods of {one.candidate} on {one.node} are no count.")
        elif one.kept > (most := min(one.pods, seated[one.candidate, one.node])):
            text = (
                f"{one.kept} pods of {one.candidate} are said to stay on {one.node} and at most {most} can."
            )
            yield _broken(key, text, found=one.kept, allowed=most)


def _sum_claim(index: Index, demand: Demand) -> Iterator[Violation]:
    buckets = [bucket.id for bucket in demand.buckets] if demand.routing is Routing.BY_LENGTH else [None]
    for bucket in buckets:
        total = index.served_share(demand, bucket)
        if exceeds(total, Fraction(1)):
            key = (demand.service,) if bucket is None else (demand.service, bucket)
            text = f"The shares of {demand.service} sum to {figure(total)}, more than all of its demand."
            yield _broken(key, text, found=float(total), allowed=1.0)
