"""Random small problems of every kind, with numbers as people write them, and the brute force that judges solvers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from models.hardware import NodeGrowth, PowerDomain, Quota
from models.problem import BucketRating, Candidate, Demand, Incumbent, PoolState, Problem
from models.report import Assessment
from models.saturation import Headroom
from models.variant import Role
from models.workload import PrefillDecodeRatio, Routing, ServiceKind, Survive
from planner.referee import assess, best_service
from tests.builders import (
    a_bucket,
    a_candidate,
    a_demand,
    a_node,
    a_pool,
    a_problem,
    a_solution,
    an_incumbent,
)

__all__ = ["brute_force", "every_plan", "random_problem"]


def random_problem(seed: int, **fields: Any) -> Problem:
    """One to three services on one to three pools with a random set of families; small enough for brute force."""
    rng = random.Random(seed)  # noqa: S311 - instances, not secrets
    pools = [_pool(rng, name) for name in ("east", "north", "west")[: rng.randint(1, 3)]]
    demands, candidates = [], []
    for name in ("chat", "code", "search")[: rng.randint(1, 3)]:
        demand, own = _service(rng, name, pools)
        demands.append(demand)
        candidates += own
    if rng.random() < 0.2:
        _guest(rng, demands, candidates)
    problem = a_problem(demands, candidates, pools, **(_limits(rng, pools) | fields))
    return problem.but(incumbents=_incumbents(rng, problem))


def _pool(rng: random.Random, name: str) -> PoolState:
    nodes = []
    spans = rng.random() < 0.25
    for number in range(rng.randint(0, 3)):
        gpus = rng.choice((2, 4, 8))
        free = gpus if rng.random() < 0.6 else rng.randint(0, gpus)
        open_to_pods = rng.random() < 0.9
        domain = rng.choice(("rack-a", "rack-b")) if spans else None
        nodes.append(
            a_node(f"{name}-{number}", gpus, free_gpus=free, accepts_pods=open_to_pods, fabric_domain=domain)
        )
    growth = None
    if rng.random() < 0.3:
        growth = NodeGrowth(
            gpus_per_node=rng.choice((2, 4)), max_nodes=rng.randint(0, 2), usd_per_node_h=_money(rng)
        )
    return a_pool(name, nodes, growth=growth, power_domain="hall", idle_gpu_w=50.0, node_overhead_w=100.0)


def _service(rng: random.Random, name: str, pools: list[PoolState]) -> tuple[Demand, list[Candidate]]:
    kind = rng.choices(("plain", "split", "two paths", "by length"), (10, 3, 1, 3))[0]
    roles = {
        "plain": (Role.BOTH,),
        "by length": (Role.BOTH,),
        "split": (Role.PREFILL, Role.DECODE),
        "two paths": (Role.BOTH, Role.PREFILL, Role.DECODE),
    }[kind]
    candidates = []
    for role in roles:
        for pool in rng.sample(pools, rng.randint(1, min(2, len(pools))) if kind != "two paths" else 1):
            candidates += [
                _candidate(rng, name, f"{role.value}{number}", pool, role)
                for number in range(rng.randint(1, 2) if kind == "plain" else 1)
            ]
    extra = _promises(rng, pools, split=kind == "split")
    rps = rng.choice((0.0, 0.7, 2.1, 3.0, 4.5, 6.0))
    if kind == "by length":
        extra |= {
            "routing": Routing.BY_LENGTH,
            "buckets": (a_bucket("short", rps), a_bucket("long", rng.choice((0.5, 1.0)))),
        }
        candidates = [_by_length(rng, candidate) for candidate in candidates]
    return a_demand(name, rps=rps, **extra), candidates


def _promises(rng: random.Random, pools: list[PoolState], *, split: bool) -> dict[str, Any]:
    extra: dict[str, Any] = {"priority": rng.randint(1, 2)}
    if rng.random() < 0.3:
        extra["headroom"] = Headroom(relative=rng.choice((0.1, 0.25)))
    elif rng.random() < 0.2:
        extra["headroom"] = Headroom(burst_rps=rng.randint(1, 3))
    elif rng.random() < 0.2:
        extra["headroom"] = Headroom(kv_tokens=rng.choice((1000, 5000)))
    if rng.random() < 0.2:
        extra["survive"] = Survive(share=rng.choice((0.5, 1.0)), failure_domains=tuple(p.id for p in pools))
    if split and rng.random() < 0.5:
        extra["ratio"] = PrefillDecodeRatio(min=rng.choice((None, 0.5)), max=2.0)
    if rng.random() < 0.2:
        extra["max_replicas"] = rng.randint(1, 4)
    return extra


def _by_length(rng: random.Random, candidate: Candidate) -> Candidate:
    """Ratings by bucket; one candidate in five cannot serve the long ones."""
    ratings = {"short": _bucket_rating(rng, candidate.rated_rps)}
    if rng.random() < 0.8:
        ratings["long"] = _bucket_rating(rng, candidate.rated_rps * 0.4)
    return candidate.but(by_bucket=ratings)


def _bucket_rating(rng: random.Random, rated_rps: float) -> BucketRating:
    surge = rated_rps * rng.choice((1.0, 1.2))
    return BucketRating(rated_rps=rated_rps, surge_rps=surge, kv_tokens_per_rps=rng.choice((500, 2000)))


def _guest(rng: random.Random, demands: list[Demand], candidates: list[Candidate]) -> None:
    """A batch service that may borrow from the first online service, with replicas of its own one time in two."""
    host = demands[0]
    demands.append(
        a_demand(
            "nightly",
            rps=rng.choice((0.5, 1.0, 2.0)),
            kind=ServiceKind.BATCH,
            shares_replicas_of=host.service,
            priority=rng.randint(1, 2),
        )
    )
    for position, candidate in enumerate(candidates):
        if candidate.service == host.service and rng.random() < 0.9:
            rate = candidate.surge_rps * rng.choice((0.5, 0.8))
            candidates[position] = candidate.but(guest_surge_rps={"nightly": rate})
    if rng.random() < 0.5:
        pool = candidates[0].pool
        candidates.append(
            a_candidate("nightly", "own", pool, rated_rps=0.5, surge_rps=0.6, cost=_money(rng), power_w=300.0)
        )


def _candidate(rng: random.Random, service: str, variant: str, pool: PoolState, role: Role) -> Candidate:
    rated = rng.choice((0.7, 1.0, 1.5, 2.1, 3.0))
    current = rng.choice((0, 0, 0, 1, 2))
    domains = sorted({node.fabric_domain for node in pool.nodes if node.fabric_domain})
    spanning = bool(domains) and rng.random() < 0.6
    return a_candidate(
        service,
        variant,
        pool.id,
        rng.choice(domains) if spanning else None,
        role=role,
        pods_per_replica=2 if spanning else 1,
        gpus_per_pod=rng.choice((1, 1, 2, 2, 3, 4)),
        kv_capacity_tokens=float(rng.choice((4000, 10000))),
        kv_tokens_per_rps=float(rng.choice((500, 2000))),
        rated_rps=rated,
        surge_rps=rated * rng.choice((1.0, 1.2)),
        cost=_money(rng),
        startup_cost=rng.choice((0.0, 0.0, 1.5)),
        power_w=float(rng.choice((300, 400, 700))),
        current=current,
        pending=rng.choice((0, 0, 0, 1)),
        scale_in_permitted=rng.random() < 0.9,
        min_replicas=rng.choice((0, 0, 0, 0, 1)),
        max_replicas=rng.choice((None, None, 2, 3)),
    )


def _money(rng: random.Random) -> float:
    return rng.choice((0.5, 1.0, 1.25, 2.0, 2.5, 4.0))


def _limits(rng: random.Random, pools: list[PoolState]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if rng.random() < 0.2:
        fields["quotas"] = (Quota(id="q", gpus=rng.randint(2, 10)),)
    if rng.random() < 0.2:
        fields["power"] = (PowerDomain(id="hall", cap_w=float(rng.choice((1000, 2000, 3000)))),)
        fields["power_basis"] = rng.choice(("tdp", "expected"))
    if rng.random() < 0.15:
        fields["spend_usd_per_h"] = float(rng.randint(3, 12))
    if rng.random() < 0.15:
        fields["max_changes"] = rng.randint(0, 6)
    if rng.random() < 0.3:
        fields["incumbents_rule"] = "movable"
    return fields


def _incumbents(rng: random.Random, problem: Problem) -> tuple[Incumbent, ...]:
    """Known nodes for some of the replicas that run, where they really fit together."""
    room = {node.id: node.free_gpus for pool in problem.pools for node in pool.nodes}
    found = []
    for candidate in problem.candidates:
        for _ in range(candidate.current if candidate.pods_per_replica == 1 else 0):
            fitting = [
                n.id for n in problem.pool[candidate.pool].nodes if room[n.id] >= candidate.gpus_per_pod
            ]
            if fitting and rng.random() < 0.7:
                node = rng.choice(fitting)
                room[node] -= candidate.gpus_per_pod
                found.append(an_incumbent(candidate, node))
    merged: dict[tuple[str, tuple[str, ...]], int] = {}
    for one in found:
        merged[one.candidate, one.nodes] = merged.get((one.candidate, one.nodes), 0) + 1
    return tuple(
        an_incumbent(problem.candidate[name], *nodes, count=count)  # type: ignore[index]
        for (name, nodes), count in sorted(merged.items())
    )


def brute_force(problem: Problem, *, most: int = 6) -> tuple[float, float, float, int] | None:
    """Cost, power and changes of the best plan that serves all, by trying every count; None when there is none.

    Independent of the formulation: every state is judged by the referee.
    """
    best: tuple[float, ...] | None = None
    for figures in every_plan(problem, most=most):
        key = (round(figures.cost, 9), round(figures.power_w or 0.0, 6), figures.changes)
        best = key if best is None else min(best, key)
    return best  # type: ignore[return-value]


def every_plan(problem: Problem, *, most: int = 6) -> Iterator[Assessment]:
    """Figures of every plan that serves all and that the referee finds nothing against."""
    for counts, nodes in _states(problem, most):
        serving = best_service(problem, counts)
        solution = a_solution(
            problem,
            counts,
            nodes_added=nodes,
            served=serving.served,
            borrowed=serving.borrowed,
            shares=serving.shares,
        )
        figures = assess(problem, solution)
        if not figures.violations:
            yield figures


def _states(problem: Problem, most: int) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    ranges = [
        range(most + 1 if c.max_replicas is None else min(most, c.max_replicas) + 1)
        for c in problem.candidates
    ]
    growing = [p for p in problem.pools if p.growth is not None]
    for counts in itertools.product(*ranges):
        for nodes in itertools.product(*(range((p.growth.max_nodes or 0) + 1) for p in growing if p.growth)):
            yield (
                {c.id: n for c, n in zip(problem.candidates, counts, strict=True) if n},
                {p.id: n for p, n in zip(growing, nodes, strict=True) if n},
            )
