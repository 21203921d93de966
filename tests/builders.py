"""Small problems and solutions for tests: every argument has a good default, every field can be set by name.

A bare ``a_problem()`` is one online service ``chat`` at 10 req/s, one candidate ``chat/small@east`` that carries
1 req/s with one GPU, and one pool ``east`` of two nodes with 8 GPUs each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from models.ids import DomainId, NodeId, PoolId, ServiceId, VariantId
from models.problem import (
    PATHS,
    Candidate,
    Demand,
    DemandBucket,
    Incumbent,
    NodeState,
    PoolState,
    Problem,
    ServingPath,
    candidate_id,
)
from models.solution import Proof, Served, Solution, Status
from models.workload import Routing

__all__ = [
    "a_bucket",
    "a_candidate",
    "a_demand",
    "a_node",
    "a_pool",
    "a_problem",
    "a_solution",
    "an_incumbent",
    "fully_served",
]


def a_bucket(name: str = "all", rps: float = 10.0, **fields: Any) -> DemandBucket:
    """A bucket of 1,000 input and 200 output tokens per request that arrives at ``rps`` req/s."""
    return DemandBucket.model_validate(
        {"id": name, "arrival_rps": rps, "input_tokens": 1000, "output_tokens": 200} | fields
    )


def a_demand(service: str = "chat", rps: float = 10.0, **fields: Any) -> Demand:
    """The demand of an online service with one bucket ``all`` at ``rps`` req/s (or with ``buckets``)."""
    return Demand.model_validate(
        {"service": service, "llm": "llama-8b", "buckets": (a_bucket(rps=rps),)} | fields
    )


def a_candidate(
    service: str = "chat",
    variant: str = "small",
    pool: str = "east",
    domain: str | None = None,
    **fields: Any,
) -> Candidate:
    """A candidate whose replica carries 1 req/s, holds one GPU and costs 1; named ``service/variant@pool[#domain]``.

    ``surge_rps`` equals ``rated_rps`` unless it is given.
    """
    identity = candidate_id(
        ServiceId(service), VariantId(variant), PoolId(pool), DomainId(domain) if domain is not None else None
    )
    place = {"id": identity, "service": service, "variant": variant, "pool": pool, "fabric_domain": domain}
    figures = {
        "accelerator": "H100",
        "rated_rps": 1.0,
        "surge_rps": fields.get("rated_rps", 1.0),
        "cost": 1.0,
    }
    return Candidate.model_validate(place | figures | fields)


def a_node(name: str = "n0", gpus: int = 8, **fields: Any) -> NodeState:
    """A node that is empty, ready and accepts pods."""
    return NodeState.model_validate({"id": name, "gpus": gpus, "free_gpus": gpus} | fields)


def a_pool(
    name: str = "east", nodes: int | Iterable[NodeState] = 2, gpus: int = 8, **fields: Any
) -> PoolState:
    """A pool of H100s, a failure domain of its own; ``nodes`` is a number of empty nodes or the nodes themselves.

    Nodes that are only counted are named ``<pool>-0``, ``<pool>-1``, ... and have ``gpus`` GPUs each.
    """
    made = (
        tuple(a_node(f"{name}-{i}", gpus) for i in range(nodes)) if isinstance(nodes, int) else tuple(nodes)
    )
    return PoolState.model_validate(
        {"id": name, "accelerator": "H100", "failure_domain": name, "nodes": made} | fields
    )


def an_incumbent(candidate: Candidate, *nodes: str, count: int = 1) -> Incumbent:
    """``count`` ready replicas of a candidate, one pod of each on every one of ``nodes``."""
    return Incumbent(candidate=candidate.id, nodes=tuple(NodeId(node) for node in nodes), count=count)


def a_problem(
    demands: Iterable[Demand] | None = None,
    candidates: Iterable[Candidate] | None = None,
    pools: Iterable[PoolState] | None = None,
    **fields: Any,
) -> Problem:
    """A problem with its sequences sorted by identity; what is not given has one default member."""
    return Problem.model_validate(
        {
            "name": "test",
            "demands": _sorted(demands if demands is not None else (a_demand(),), "service"),
            "candidates": _sorted(candidates if candidates is not None else (a_candidate(),), "id"),
            "pools": _sorted(pools if pools is not None else (a_pool(),), "id"),
        }
        | fields
    )


def a_solution(problem: Problem, counts: Mapping[str, int] | None = None, **fields: Any) -> Solution:
    """A solution with these counts by candidate id that claims OPTIMAL and, unless told otherwise, to serve all."""
    return Solution.model_validate(
        {
            "status": Status.OPTIMAL,
            "counts": dict(counts or {}),
            "served": fully_served(problem),
            "proof": Proof(solver="test"),
            "derived_from": problem.fingerprint,
        }
        | fields
    )


def fully_served(problem: Problem, share: float = 1.0) -> tuple[Served, ...]:
    """This share of every demand, on the first path whose every role has a candidate."""
    found = []
    for demand in problem.demands:
        roles = {candidate.role for candidate in problem.candidates_of[demand.service]}
        path = next(
            (path for path, needed in PATHS.items() if roles.issuperset(needed)), ServingPath.AGGREGATED
        )
        buckets = [b.id for b in demand.buckets] if demand.routing is Routing.BY_LENGTH else [None]
        found += [Served(service=demand.service, path=path, share=share, bucket=bucket) for bucket in buckets]
    return tuple(found)


def _sorted(values: Iterable[Any], key: str) -> Sequence[Any]:
    return tuple(sorted(values, key=lambda value: getattr(value, key)))
