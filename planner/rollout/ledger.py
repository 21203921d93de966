"""Budgets as sums that are kept up to date while a wave is filled: a quick guide, which the judge has to confirm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import floor, inf

from models.ids import CandidateId, PoolId
from models.plan import WaveLimits
from models.problem import Candidate, Problem
from models.scenario import PowerBasis
from planner.referee.index import is_unlimited
from planner.rollout.task import Task
from planner.rollout.wave_limits import gpus_by_pool

__all__ = ["Ledger", "ledger_of"]

SLACK = 1e-9


@dataclass
class Account:
    """Σ each_c · n_c + Σ node_p · m_p ≤ limit."""

    limit: float
    each: Mapping[CandidateId, float]
    node: Mapping[PoolId, float] = field(default_factory=dict)
    used: float = 0.0

    def room(self, each: float) -> float:
        """How many more fit."""
        return inf if each <= 0 else (self.limit - self.used) / each + SLACK


@dataclass
class Ledger:
    """All accounts; ``most`` says how much fits and ``take`` books it."""

    accounts: list[Account]

    def most(self, candidate: CandidateId) -> float:
        """Replicas of a candidate that can be added."""
        return max(
            0.0, min((floor_or_inf(a.room(a.each.get(candidate, 0.0))) for a in self.accounts), default=inf)
        )

    def most_nodes(self, pool: PoolId) -> float:
        """Nodes that can be added to a pool."""
        return max(
            0.0, min((floor_or_inf(a.room(a.node.get(pool, 0.0))) for a in self.accounts), default=inf)
        )

    def take(self, candidate: CandidateId, n: int) -> None:
        """Book replicas."""
        for account in self.accounts:
            account.used += account.each.get(candidate, 0.0) * n

    def take_nodes(self, pool: PoolId, n: int) -> None:
        """Book nodes."""
        for account in self.accounts:
            account.used += account.node.get(pool, 0.0) * n


def floor_or_inf(number: float) -> float:
    """The whole part of a number, which may be infinite."""
    return number if number == inf else floor(number)


def ledger_of(
    task: Task,
    limits: WaveLimits,
    *,
    held: tuple[int, ...],
    nodes: Mapping[PoolId, int],
) -> Ledger:
    """The accounts of a task with these replicas held and nodes added; limits are those that both ends justify."""
    names = [unit.candidate.id for unit in task.units]
    ends = (tuple(u.on_order for u in task.units), tuple(u.wanted for u in task.units))

    def used(account: Account, numbers: tuple[int, ...]) -> float:
        return sum(account.each.get(name, 0.0) * n for name, n in zip(names, numbers, strict=True))

    rooms = [*_rooms(task, nodes)]
    budgets = [*_budgets(task.problem), *_surge(task, limits)]
    for account in budgets:
        growth = sum(account.node.get(pool, 0.0) * n for pool, n in task.growing)
        account.limit = max(account.limit, used(account, ends[0]), used(account, ends[1]) + growth)
    for account in (*rooms, *budgets):
        account.used = used(account, held)
        account.used += sum(account.node.get(pool, 0.0) * n for pool, n in nodes.items())
    return Ledger([*rooms, *budgets])


def _rooms(task: Task, nodes: Mapping[PoolId, int]) -> Iterator[Account]:
    """Accelerators on the nodes that stand, and what the solution takes beyond all that it has."""
    planned = dict(task.growing)
    wanted = gpus_by_pool(task, tuple(unit.wanted for unit in task.units))
    for pool in task.problem.pools:
        if not is_unlimited(task.problem, pool.id):
            size = pool.growth.gpus_per_node if pool.growth is not None else 0
            usable = sum(node.free_gpus for node in pool.nodes if node.holds_pods)
            beyond = max(0, wanted[pool.id] - usable - size * planned.get(pool.id, 0))
            each = {c.id: float(c.gpus) for c in task.problem.candidates if c.pool == pool.id}
            yield Account(float(usable + size * nodes.get(pool.id, 0) + beyond), each)


def _budgets(problem: Problem) -> Iterator[Account]:
    pools = problem.pool
    growths = {pool.id: pool.growth for pool in problem.pools if pool.growth is not None}
    for quota in problem.quotas:
        yield Account(
            float(quota.gpus),
            {
                c.id: float(c.gpus)
                for c in problem.candidates
                if quota.accelerator in (None, c.accelerator)
                and quota.namespace in (None, problem.demand[c.service].namespace)
                and quota.cluster in (None, pools[c.pool].cluster)
            },
        )
    if problem.spend_usd_per_h is not None:
        costs = {c.id: c.cost for c in problem.candidates}
        yield Account(problem.spend_usd_per_h, costs, {p: g.usd_per_node_h for p, g in growths.items()})
    yield from _power(problem)
    for demand in problem.demands:
        if demand.max_replicas is not None:
            yield Account(
                float(demand.max_replicas), {c.id: 1.0 for c in problem.candidates_of[demand.service]}
            )


def _power(problem: Problem) -> Iterator[Account]:
    expected = problem.power_basis is PowerBasis.EXPECTED
    for domain in problem.power:
        named = set(domain.pools)
        inside = {
            pool.id: pool
            for pool in problem.pools
            if (pool.id in named if named else pool.power_domain == domain.id)
        }
        standing = sum(
            pool.idle_gpu_w * sum(node.gpus for node in pool.nodes) + pool.node_overhead_w * len(pool.nodes)
            for pool in inside.values()
        )
        grown = {
            pool.id: pool.growth.overhead_w + pool.idle_gpu_w * pool.growth.gpus_per_node
            for pool in inside.values()
            if pool.growth is not None
        }
        each = {c.id: _draw(c, problem, expected=expected) for c in problem.candidates if c.pool in inside}
        yield Account(domain.cap_w - (standing if expected else 0.0), each, grown if expected else {})


def _draw(candidate: Candidate, problem: Problem, *, expected: bool) -> float:
    idle = problem.pool[candidate.pool].idle_gpu_w * candidate.gpus if expected else 0.0
    return (candidate.power_w or 0.0) - idle


def _surge(task: Task, limits: WaveLimits) -> Iterator[Account]:
    """Pools together may exceed what they hold at both ends by the surge: exact where one pool is meant."""
    if limits.max_surge_gpus is not None:
        ends = (
            tuple(u.on_order for u in task.units),
            tuple(u.wanted for u in task.units),
        )
        for pool, most in (gpus_by_pool(task, ends[0]) | gpus_by_pool(task, ends[1])).items():
            each = {u.candidate.id: float(u.candidate.gpus) for u in task.units if u.candidate.pool == pool}
            yield Account(float(most + limits.max_surge_gpus), each)
    if limits.max_surge_replicas is not None:
        most_of: dict[str, Counter[str]] = {}
        for unit in task.units:
            ends_of = most_of.setdefault(unit.candidate.service, Counter())
            ends_of["start"] += unit.on_order
            ends_of["end"] += unit.wanted
        for service, both in most_of.items():
            each = {u.candidate.id: 1.0 for u in task.units if u.candidate.service == service}
            yield Account(float(max(both.values()) + limits.max_surge_replicas), each)
