"""Accelerators of a pool and nodes that may be added."""

from __future__ import annotations

from collections.abc import Iterator

from models.hardware import NodeGrowth
from models.ids import NodeId
from models.problem import NodeState, PoolState, Problem
from models.scenario import Mode
from planner.optimization.explaining.limits.limit import Limit, Use
from planner.optimization.formulation import Formulation
from planner.optimization.formulation.index import added
from planner.optimization.program import Goal

__all__ = ["more_gpus", "more_nodes", "usable_gpus", "with_new_gpus", "with_pool"]


def more_gpus(problem: Problem) -> Iterator[Limit]:
    """More accelerators in a pool, as nodes that hold one pod of a size that the pool's candidates have."""
    for pool in problem.pools:
        if pool.growth is None and problem.mode is Mode.CONSTRAINED:
            for size in sorted({c.gpus_per_pod for c in problem.candidates if c.pool == pool.id}):
                yield _gpus_in_nodes_of(size, problem, pool)


def _gpus_in_nodes_of(size: int, problem: Problem, pool: PoolState) -> Limit:
    present = usable_gpus(pool)
    growing = pool.but(growth=NodeGrowth(gpus_per_node=size))

    def goal(_: Formulation) -> Goal:
        return Goal("gpus", {added(pool): size}, constant=present)

    def moved(needed: float) -> Problem:
        growth = NodeGrowth(gpus_per_node=size, max_nodes=round((needed - present) / size))
        return with_pool(problem, pool.but(growth=growth))

    return Limit(
        family="gpus",
        key=(pool.id,),
        value=present,
        unit="GPUs",
        rows=(("gpus", pool.id), ("placement", pool.id)),
        moved=moved,
        search=Use(goal, with_pool(problem, growing)),
    )


def more_nodes(problem: Problem) -> Iterator[Limit]:
    """More nodes where a pool grows."""
    for pool in problem.pools:
        if pool.growth is not None and pool.growth.max_nodes is not None:
            yield _nodes_of(problem, pool, pool.growth)


def _nodes_of(problem: Problem, pool: PoolState, growth: NodeGrowth) -> Limit:
    def goal(_: Formulation) -> Goal:
        return Goal("nodes", {added(pool): 1})

    def moved(needed: float) -> Problem:
        return with_pool(problem, pool.but(growth=growth.but(max_nodes=round(needed))))

    return Limit(
        family="nodes",
        key=(pool.id,),
        value=growth.max_nodes or 0,
        unit="nodes",
        rows=(("nodes", pool.id), ("gpus", pool.id), ("placement", pool.id)),
        moved=moved,
        search=Use(goal, with_pool(problem, pool.but(growth=growth.but(max_nodes=None)))),
    )


def usable_gpus(pool: PoolState) -> int:
    """Accelerators on nodes where pods can start."""
    return sum(node.free_gpus for node in pool.nodes if node.accepts_pods and node.holds_pods)


def with_new_gpus(problem: Problem, pool: PoolState, more: int) -> Problem:
    """The problem with so many more accelerators in a pool, on new nodes as large as its largest one.

    A new node is in the fabric domain of the others where all of them are in one.
    """
    largest_pod = max((c.gpus_per_pod for c in problem.candidates if c.pool == pool.id), default=1)
    size = max((node.gpus for node in pool.nodes), default=largest_pod)
    domains = {node.fabric_domain for node in pool.nodes}
    domain = domains.pop() if len(domains) == 1 else None
    sizes = [size] * (more // size) + ([more % size] if more % size else [])
    taken = {node.id for each in problem.pools for node in each.nodes}
    names = (
        name for number in range(len(taken) + len(sizes)) if (name := f"{pool.id}-new-{number}") not in taken
    )
    nodes = tuple(
        NodeState(id=NodeId(name), gpus=gpus, free_gpus=gpus, fabric_domain=domain)
        for name, gpus in zip(names, sizes, strict=False)
    )
    return with_pool(problem, pool.but(nodes=(*pool.nodes, *nodes)))


def with_pool(problem: Problem, changed: PoolState) -> Problem:
    """The problem with one pool changed."""
    return problem.but(pools=tuple(changed if pool.id == changed.id else pool for pool in problem.pools))
