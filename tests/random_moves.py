"""Random fleets that must change places in tight pools: what a rollout has to find its way through."""

from __future__ import annotations

import random
from typing import Any

from models.ids import NodeId
from models.plan import WaveLimits
from models.problem import Candidate, Problem
from models.solution import Solution
from planner.referee import Unplaced, pack
from tests.builders import a_candidate, a_demand, a_node, a_pool, a_problem, a_solution, an_incumbent

__all__ = ["random_limits", "random_move"]


def random_move(seed: int, *, narrow: bool = False) -> tuple[Problem, Solution]:
    """Two or three services in two pools; each runs on one candidate and shall run on another, or on more or less.

    Narrow: nodes that nothing runs on are gone, unless the solution would not fit, and everything that runs is needed.
    """
    rng = random.Random(seed)  # noqa: S311 - instances, not secrets
    rooms = {
        pool: [[f"{pool}{i}", gpus] for i, gpus in enumerate(rng.choices((2, 4, 4), k=rng.randint(1, 3)))]
        for pool in ("east", "west")
    }
    pools = [a_pool(name, [a_node(*node) for node in nodes]) for name, nodes in rooms.items()]
    if rng.random() < 0.3:
        growth = {"gpus_per_node": 4, "max_nodes": 1, "usd_per_node_h": 2.0}
        pools[0] = pools[0].but(growth=growth)
    demands, candidates, incumbents, target = [], [], [], {}
    for name in ("chat", "code", "search")[: rng.randint(2, 3)]:
        own, seats = _service(rng, name, rooms)
        incumbents += seats
        candidates += own
        running = sum(c.current * c.rated_rps for c in own)
        demands.append(
            a_demand(
                name, rps=max(1.0, (1.0 if narrow else rng.choice((0.5, 1.0))) * running), **_floor(rng, own)
            )
        )
        target |= {c.id: rng.choice((0, 1, 2)) for c in own if rng.random() < 0.7}
    fields: dict[str, Any] = {"allow_unserved": True}
    held = sum(c.gpus * c.current for c in candidates)
    if rng.random() < 0.3:
        fields["quotas"] = ({"id": "all", "gpus": held + rng.randint(0, 4)},)
    if rng.random() < 0.2:
        fields["spend_usd_per_h"] = float(sum(c.current for c in candidates) + rng.randint(0, 3))
    known = tuple(incumbents) if rng.random() < 0.7 else ()
    problem = a_problem(demands, candidates, pools, incumbents=known, **fields)
    nodes = {"east": 1} if problem.pool["east"].growth is not None and rng.random() < 0.7 else {}  # type: ignore[index]
    if narrow:
        problem = _narrowed(problem, target)
        nodes = {}
    return problem, a_solution(problem, target, nodes_added=nodes)


def _narrowed(problem: Problem, target: dict[str, int]) -> Problem:
    """Without the nodes that both the fleet and the solution can do without."""
    now = {c.id: c.current for c in problem.candidates}
    for pool in problem.pools:
        for node in pool.nodes:
            left = problem.pool[pool.id]
            fewer = left.but(nodes=tuple(one for one in left.nodes if one.id != node.id), growth=None)
            used = {name for one in problem.incumbents for name in one.nodes}
            smaller = problem.but(pools=tuple(fewer if p.id == pool.id else p for p in problem.pools))
            fit = not any(isinstance(pack(smaller, counts), Unplaced) for counts in (now, target))  # type: ignore[arg-type]
            if fit and node.id not in used:
                problem = smaller
    return problem


def _service(
    rng: random.Random, name: str, rooms: dict[str, list[list[Any]]]
) -> tuple[list[Candidate], list[Any]]:
    own, seats = [], []
    for number, pool in enumerate(rng.sample(("east", "west", "east", "west"), 2)):
        size, count, sits = rng.choice((1, 2, 2, 4)), 0, []
        for _ in range(rng.choice((0, 1, 2))):
            node = next((n for n in rooms[pool] if n[1] >= size), None)
            if node is not None:
                node[1] -= size
                count += 1
                sits.append(node[0])
        figures = {"gpus_per_pod": size, "rated_rps": float(rng.choice((1, 2))), "current": count}
        pending = 1 if rng.random() < 0.1 else 0
        candidate = a_candidate(name, f"v{number}", pool, pending=pending, startup_s=100.0, **figures)
        own.append(candidate)
        seats += [an_incumbent(candidate, NodeId(node)) for node in sits]
    return own, seats


def _floor(rng: random.Random, own: list[Candidate]) -> dict[str, int]:
    return {"min_replicas": min(1, sum(c.current for c in own))} if rng.random() < 0.3 else {}


def random_limits(seed: int) -> WaveLimits:
    """No limits, or one or two of each kind; never too small for one replica."""
    rng = random.Random(seed)  # noqa: S311 - instances, not secrets
    return WaveLimits(
        max_surge_gpus=rng.choice((None, None, 0, 2, 4)),
        max_surge_replicas=rng.choice((None, None, 0, 1)),
        max_unavailable=rng.choice((None, None, 0, 1)),
        max_step_gpus=rng.choice((None, None, 4)),
    )
