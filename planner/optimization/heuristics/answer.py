"""A heuristic's counts as a solution: the nodes that they need, and the most that they serve."""

from __future__ import annotations

from collections.abc import Mapping

from models.ids import CandidateId, PoolId
from models.problem import PoolState, Problem
from models.solution import Proof
from planner.clock import Clock, SolvingClock
from planner.optimization.formulation.index import Index
from planner.optimization.heuristics.solvers import HEURISTICS, Outcome
from planner.optimization.protocol import Progress, SolveOptions, SolveResult, silent
from planner.referee import WHILE_NOTHING_FAILS, Unplaced, pack, state_with

__all__ = ["HeuristicSolver", "nodes_needed"]


class HeuristicSolver:
    """A published heuristic as a solver. It proves nothing: the status is FEASIBLE and there is no bound.

    It serves all that its replicas carry today. Whether that survives a loss it was never told; the referee says so.
    """

    def __init__(self, name: str, *, clock: Clock | None = None) -> None:
        self._name = name
        self._clock = clock or SolvingClock()

    def __call__(self, problem: Problem, options: SolveOptions, progress: Progress = silent) -> SolveResult:
        """Answer ``problem``; a heuristic is over before a time limit could matter."""
        start = self._clock.monotonic_s()
        outcome = HEURISTICS[self._name](problem)
        nodes = nodes_needed(problem, outcome.counts)
        solution = state_with(
            problem, outcome.counts, nodes_added=nodes, solver=self._name, families=WHILE_NOTHING_FAILS
        )
        proof = Proof(solver=self._name, notes=_notes(outcome))
        return SolveResult(solution.but(proof=proof), 0.0, self._clock.monotonic_s() - start)


def _notes(outcome: Outcome) -> tuple[str, ...]:
    if outcome.rests:
        return ()
    return (
        f"did not come to rest; of {outcome.fleets} fleets that it passes through, the one that serves most",
    )


def nodes_needed(problem: Problem, counts: Mapping[CandidateId, int]) -> dict[PoolId, int]:
    """The fewest nodes that each growing pool must add to hold these counts; at most as many as it may add."""
    index = Index(problem)
    return {
        pool.id: nodes
        for pool in problem.pools
        if pool.growth is not None and index.by_pool[pool.id] and (nodes := _nodes(index, pool, counts))
    }


def _nodes(index: Index, pool: PoolState, counts: Mapping[CandidateId, int]) -> int:
    growth = pool.growth
    if growth is None:
        return 0
    own = {c.id: counts.get(c.id, 0) for c in index.by_pool[pool.id]}
    used = sum(index.problem.candidate[name].gpus * count for name, count in own.items())
    usable = sum(node.free_gpus for node in pool.nodes if node.accepts_pods and node.holds_pods)
    nodes = max(0, -((usable - used) // growth.gpus_per_node))
    most = index.most_nodes(pool)
    limit = nodes + used if most is None else most
    while nodes < limit and isinstance(pack(index.problem, own, {pool.id: nodes}), Unplaced):
        nodes += 1
    return min(nodes, limit)
