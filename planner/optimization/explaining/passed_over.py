"""Candidates that the plan does not use, and the first reason why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from models.explanation import BindingRow, Fact, Reason, Rejection
from models.problem import Candidate, Problem, Resize
from models.solution import Solution

__all__ = ["passed_over"]


def passed_over(problem: Problem, solution: Solution, binding: Sequence[BindingRow]) -> Iterator[Rejection]:
    """Why each unused candidate is unused: a limit that binds where it would go, or a cheaper one in use."""
    for demand in problem.demands:
        group = problem.candidates_of[demand.service]
        question = _Question(problem, solution, binding)
        used = [c for c in group if solution.count(c.id)]
        rivals = {
            role: question.cheapest(c for c in used if c.role is role) for role in {c.role for c in group}
        }
        for candidate in group:
            if not solution.count(candidate.id):
                yield question.reason(candidate, rivals[candidate.role])


@dataclass(frozen=True, slots=True)
class _Question:
    problem: Problem
    solution: Solution
    binding: Sequence[BindingRow]

    def cheapest(self, used: Iterable[Candidate]) -> Candidate | None:
        """The one that costs least per req/s; None where nothing is in use."""
        return min(used, key=self._per_rps, default=None)

    def reason(self, candidate: Candidate, rival: Candidate | None) -> Rejection:
        """Why a candidate is not among those in use; the rival is the cheapest of those of its service and role."""
        own = self._per_rps(candidate)
        facts: dict[str, Fact] = {"cost_per_rps": own}
        if candidate.resize is not None and rival is not None:
            return self._way(candidate, candidate.resize)
        if rival is not None and self._per_rps(rival) <= own:
            facts |= {"instead": rival.id, "instead_cost_per_rps": self._per_rps(rival)}
            return _rejection(candidate, Reason.DEARER, facts)
        limit = next((row for row in self.binding if _touches(self.problem, candidate, row)), None)
        if limit is not None:
            facts |= {"family": limit.family, "limit": " / ".join(limit.key)}
            return _rejection(candidate, Reason.LIMIT_BINDS, facts)
        # Neither: whole replicas, headroom or a later level of the objective tipped the balance.
        return _rejection(candidate, Reason.NOT_NEEDED, facts)

    def _way(self, candidate: Candidate, resize: Resize) -> Rejection:
        """A way of an elastic replica: what it costs once is what tells it from its size."""
        facts: dict[str, Fact] = {
            "from_ranks": resize.from_ranks,
            "to_ranks": resize.to_ranks,
            "mode": resize.mode.value,
            "once": candidate.startup_cost,
            "downtime_s": resize.downtime_s,
            "hindered": round(resize.hindered_requests),
            "idle_gpu_h": float(f"{resize.idle_gpu_seconds / 3600:.3g}"),
        }
        return _rejection(candidate, Reason.WAY_COSTS, facts)

    def _per_rps(self, candidate: Candidate) -> float:
        """Cost of one req/s at the rated capacity, to four digits, with its part of nodes that are paid for."""
        cost = candidate.cost + self._node_cost(candidate)
        return float(f"{cost / candidate.rated_rps:.4g}")

    def _node_cost(self, candidate: Candidate) -> float:
        """What the GPUs of one replica cost as part of an added node; 0 where nodes of the pool's own are enough."""
        pool = self.problem.pool[candidate.pool]
        grows = self.solution.nodes_added.get(pool.id, 0) > 0 or not pool.nodes
        if pool.growth is None or not grows:
            return 0.0
        return pool.growth.usd_per_node_h / pool.growth.gpus_per_node * candidate.gpus


def _rejection(candidate: Candidate, reason: Reason, facts: dict[str, Fact]) -> Rejection:
    return Rejection(
        service=candidate.service, variant=candidate.variant, pool=candidate.pool, reason=reason, facts=facts
    )


def _touches(problem: Problem, candidate: Candidate, row: BindingRow) -> bool:
    """Whether one more replica of the candidate would use a limit."""
    match row.family:
        case "gpus" | "nodes" | "placement":
            smallest = int(row.key[1]) if row.family == "placement" else 0
            return row.key[0] == candidate.pool and candidate.gpus_per_pod >= smallest
        case "quota":
            quota = next((q for q in problem.quotas if q.id == row.key[0]), None)
            return quota is not None and quota.accelerator in (None, candidate.accelerator)
        case "power":
            domain = next((d for d in problem.power if d.id == row.key[0]), None)
            pool = problem.pool[candidate.pool]
            return domain is not None and (
                candidate.pool in domain.pools or (not domain.pools and pool.power_domain == domain.id)
            )
        case "spend":
            return candidate.cost > 0
        case "bounds":
            return candidate.id in row.key or candidate.service in row.key
        case _:
            return False
