"""From the values of a program to a solution, in a canonical form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from models.ids import CandidateId, PoolId, ServiceId
from models.problem import Candidate, Problem
from models.solution import Borrowed, BucketShare, Proof, Served, Solution, Status
from models.workload import Routing
from planner.optimization.formulation.index import Index, added, borrowed, served, share
from planner.optimization.program import Key
from planner.optimization.scaling import GRID

__all__ = [
    "bucket_shares",
    "canonical_counts",
    "counts_of",
    "loans",
    "nodes_added",
    "served_shares",
    "solution_at",
]

Values = Mapping[Key, int]


def solution_at(index: Index, values: Values, *, status: Status, proof: Proof) -> Solution:
    """The solution that values of a program stand for."""
    problem = index.problem
    return Solution(
        status=status,
        counts=canonical_counts(problem, counts_of(index, values)),
        nodes_added=nodes_added(index, values),
        served=tuple(served_shares(index, values)),
        borrowed=tuple(loans(index, values)),
        shares=tuple(bucket_shares(index, values)),
        proof=proof,
        derived_from=problem.fingerprint,
    )


def counts_of(index: Index, values: Values) -> dict[CandidateId, int]:
    """Replicas by candidate, zeros left out."""
    keys = zip(index.problem.candidates, index.figures.keys, strict=True)
    return {candidate.id: count for candidate, key in keys if (count := values[key])}


def canonical_counts(problem: Problem, counts: Mapping[CandidateId, int]) -> dict[CandidateId, int]:
    """Counts with interchangeable candidates in order of their names: the first has the most.

    Candidates are interchangeable when nothing but their name tells them apart. Which of them a solver
    fills is an accident, so it is decided by name and not by another solve.
    """
    tied = {incumbent.candidate for incumbent in problem.incumbents}
    canonical = dict(counts)
    for group in _interchangeable(problem, counts):
        if any(c.id in tied for c in group):
            continue
        ordered = sorted((counts.get(c.id, 0) for c in group), reverse=True)
        for candidate, count in zip(sorted(group, key=lambda c: c.id), ordered, strict=True):
            canonical[candidate.id] = count
    return {key: canonical[key] for key in sorted(canonical) if canonical[key]}


def _interchangeable(problem: Problem, counts: Mapping[CandidateId, int]) -> Iterator[list[Candidate]]:
    """Groups of two and more candidates that only their names tell apart, where some of the service and pool run."""
    running: dict[ServiceId, set[PoolId]] = defaultdict(set)
    for candidate in map(problem.candidate.__getitem__, counts):
        running[candidate.service].add(candidate.pool)
    alike: dict[tuple[object, ...], list[Candidate]] = defaultdict(list)
    for service, pools in running.items():
        for c in problem.candidates_of[service]:
            if c.pool in pools:
                alike[c.service, c.pool, c.gpus_per_pod, c.cost, c.rated_rps, c.surge_rps].append(c)
    for some in alike.values():
        groups: dict[str, list[Candidate]] = defaultdict(list)
        for candidate in some if len(some) > 1 else ():
            groups[_anonymous(problem, candidate)].append(candidate)
        yield from (group for group in groups.values() if len(group) > 1)


def _anonymous(problem: Problem, candidate: Candidate) -> str:
    """What a candidate is but for its names; routed by length, shares would have to be swapped too."""
    if candidate.by_bucket:
        return candidate.id
    demand = problem.demand[candidate.service]
    bounded = {bounds.variant for bounds in demand.variants}
    if demand.max_variants is not None:
        bounded.add(candidate.variant)
    nameless = {"id": "", "source": ""} | ({} if candidate.variant in bounded else {"variant": ""})
    return candidate.model_copy(update=nameless).model_dump_json()


def nodes_added(index: Index, values: Values) -> dict[PoolId, int]:
    """Nodes added by pool, zeros left out."""
    found = {pool.id: values.get(added(pool), 0) for pool in index.problem.pools}
    return {pool: count for pool, count in found.items() if count}


def served_shares(index: Index, values: Values) -> Iterator[Served]:
    """Served shares by path and bucket."""
    for demand in index.problem.demands:
        for bucket in index.buckets(demand):
            for path in index.paths(demand):
                portion = values[served(demand, path, bucket)] / GRID
                yield Served(service=demand.service, path=path, share=portion, bucket=bucket)


def loans(index: Index, values: Values) -> Iterator[Borrowed]:
    """Shares that batch services take on the replicas of online ones."""
    for demand in index.problem.demands:
        for path in index.host_paths(demand):
            portion = values[borrowed(demand, path)] / GRID
            if portion:
                yield Borrowed(service=demand.service, path=path, share=portion)


def bucket_shares(index: Index, values: Values) -> Iterator[BucketShare]:
    """Shares of buckets by candidate, zeros left out."""
    for candidate in index.problem.candidates:
        demand = index.problem.demand[candidate.service]
        if demand.routing is Routing.BY_LENGTH:
            for bucket in demand.buckets:
                portion = values.get(share(candidate, bucket.id), 0) / GRID
                if portion:
                    yield BucketShare(candidate=candidate.id, bucket=bucket.id, share=portion)
