"""The least that would let a stuck fleet move: accelerators in a pool, or less of a service for a while."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from models.ids import NodeId, PoolId, ServiceId
from models.plan import Stuck, WaveLimits
from models.problem import NodeState, PoolState, Problem
from models.report import Violation
from models.solution import Solution
from planner.rollout.exact import every_order, is_small
from planner.rollout.greedy import best_filled
from planner.rollout.judge import Judge, Tick, never
from planner.rollout.order import Order
from planner.rollout.task import State, task_of

__all__ = ["Question", "find_order", "why_stuck"]

ASKED: Final = 64
"""Candidates whose next replica is asked for in order to say what forbids it."""

SHOWN: Final = 12
"""Violations that a stuck plan shows."""

FINE: Final = 1e-4
"""Exactness of the smallest drop: shares are on this grid."""

PARTS: Final = 64
"""Into so many parts the accelerators of all starts are divided where not every order can be tried."""

COARSE: Final = 1e-2
"""The same where not every order can be tried."""


@dataclass(frozen=True)
class Question:
    """What is to be rolled out, and with what given beside."""

    problem: Problem
    solution: Solution
    limits: WaveLimits
    tick: Tick = never

    def judge(
        self,
        extra: Mapping[PoolId, int] | None = None,
        give: Mapping[ServiceId, float] | None = None,
    ) -> Judge:
        """The judge of the task, with more accelerators in pools or less service for a while."""
        plain = task_of(self.problem, self.solution)
        if not extra:
            return Judge(plain, self.limits, plain.problem, give or {}, self.tick)
        wider = task_of(with_slack(self.problem, extra), self.solution)
        return Judge(wider, self.limits, plain.problem, give or {}, self.tick)


def find_order(judge: Judge, *, quick: bool = False) -> Order:
    """The best order that is found: every order is tried where a quick one is not proven and the task is small.

    Which replicas move is decided before, so where some do, no more than one wave is proven to be the fewest. A quick
    answer is one try, which may miss what more tries would find.
    """
    places = replace(judge.task.places, tick=judge.tick)
    order = best_filled(judge, places, quick=quick)
    if not order.proven and is_small(judge.task):
        exact = every_order(judge, places)
        proven = exact.proven and not order.done
        order = exact if exact.done else replace(order, proven=proven)
    certain = not any(places.moves.values()) or (order.done and len(order.legs) <= 1)
    return replace(order, proven=order.proven and certain)


def with_slack(problem: Problem, extra: Mapping[PoolId, int]) -> Problem:
    """The problem with so many accelerators more in pools, on empty nodes as large as the pool's."""

    def wider(pool: PoolState) -> PoolState:
        largest = max((c.gpus_per_pod for c in problem.candidates if c.pool == pool.id), default=1)
        size, gpus = max([largest, *(node.gpus for node in pool.nodes)]), extra[pool.id]
        sizes = [size] * (gpus // size) + ([gpus % size] if gpus % size else [])
        slack = (
            NodeState(id=NodeId(f"{pool.id}+slack{i}"), gpus=n, free_gpus=n) for i, n in enumerate(sizes)
        )
        return pool.but(nodes=(*pool.nodes, *slack))

    return problem.but(pools=tuple(wider(pool) if extra.get(pool.id) else pool for pool in problem.pools))


def why_stuck(question: Question, judge: Judge, order: Order) -> Stuck:
    """What forbids the next step, and the least that would let the fleet reach the solution."""
    probe = _Probe(question, judge, certain=order.proven)
    extra = probe.least_gpus()
    drop = probe.least_drop()
    return Stuck(
        proven=order.proven,
        violations=_objections(judge, order.last(judge.task)),
        extra_gpus=extra,
        drop=drop,
        smallest=probe.certain,
    )


def _objections(judge: Judge, state: State) -> tuple[Violation, ...]:
    """What each further replica alone would break, each row once; what services would lack is said last."""
    goal = judge.task.goal
    found: dict[tuple[bool, str, tuple[str, ...]], Violation] = {}
    moving = [i for i in range(len(goal.started)) if _is_behind(state, goal, i)]
    for i in moving[:ASKED]:
        ahead = []
        if goal.started[i] > state.started[i]:
            ahead.append(State(True, _one_more(state.started, i), state.drained, state.nodes))
        if goal.drained[i] > state.drained[i]:
            ahead.append(State(True, state.started, _one_more(state.drained, i), state.nodes))
        for violation in (text for after in ahead for text in judge.objections(state, after)):
            found.setdefault((violation.family == "demand", violation.family, violation.key), violation)
    return tuple(found[key] for key in sorted(found))[:SHOWN]


def _is_behind(state: State, goal: State, i: int) -> bool:
    return (state.started[i], state.drained[i]) != (goal.started[i], goal.drained[i])


def _one_more(numbers: tuple[int, ...], i: int) -> tuple[int, ...]:
    return (*numbers[:i], numbers[i] + 1, *numbers[i + 1 :])


@dataclass
class _Probe:
    """Asks again with something given; ``certain`` as long as every refusal is proven."""

    question: Question
    judge: Judge
    certain: bool

    @cached_property
    def small(self) -> bool:
        """Whether every order can be tried each time."""
        return is_small(self.judge.task)

    def _asked(self, judge: Judge) -> Order:
        order = find_order(judge, quick=not self.small)
        self.certain = self.certain and (order.done or order.proven)
        return order

    def _reached(self, extra: Mapping[PoolId, int]) -> bool:
        return self._asked(self.question.judge(extra)).done

    def least_gpus(self) -> dict[PoolId, int]:
        """The smallest number of accelerators in one pool that does, else in several; empty: none does."""
        most: Counter[PoolId] = Counter()
        for unit in self.judge.task.units:
            if unit.starts:
                most[unit.candidate.pool] += unit.starts * unit.candidate.gpus
        if not most or not self._reached(most):
            return {}
        return self._least_gpus(most) if self.small else self._few_gpus(most)

    def _least_gpus(self, most: Mapping[PoolId, int]) -> dict[PoolId, int]:
        best: dict[PoolId, int] = {}
        for pool in sorted(most):
            high = min([most[pool], *(n - 1 for n in best.values())])
            if high > 0 and self._reached({pool: high}):
                best = {pool: self._least({}, pool, high)}
        if best:
            self.certain = self.certain and self.judge.task.places.followed.issuperset(best)
            return best
        self.certain = False
        extra = dict(most)
        for pool in sorted(extra):
            extra[pool] = self._least(extra, pool, extra[pool])
        return {pool: n for pool, n in extra.items() if n}

    def _few_gpus(self, most: Mapping[PoolId, int]) -> dict[PoolId, int]:
        """Equal parts of what all starts take, as small as halving finds; then none in pools that do without."""
        low, high = 0, PARTS
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._reached(_part(most, middle)) else (middle, high)
        extra = _part(most, high)
        for pool in sorted(extra):
            fewer = {other: n for other, n in extra.items() if other != pool}
            if fewer and self._reached(fewer):
                extra = fewer
        return extra

    def _least(self, others: Mapping[PoolId, int], pool: PoolId, high: int) -> int:
        """The smallest number for one pool beside those of others; ``high`` does, and more never hurts."""
        low = 0
        while low < high:
            middle = (low + high) // 2
            if self._reached({**others, pool: middle}):
                high = middle
            else:
                low = middle + 1
        return low

    def least_drop(self) -> dict[ServiceId, float]:
        """Drops of an order whose worst drop is smallest; services that need none are left out; empty: none does."""
        services = sorted(d.service for group in self.judge.groups for d in group.problem.demands)
        best = self._drops(dict.fromkeys(services, 1.0))
        if not best:
            return {}
        low, high = 0.0, max(best.values())
        step = FINE if self.small else COARSE
        while high - low > step:
            middle = (low + high) / 2
            found = self._drops(dict.fromkeys(services, middle))
            if found:
                best, high = found, max(found.values())
            else:
                low = middle
        for service in sorted(best) if self.small else ():
            fewer = {other: share for other, share in best.items() if other != service}
            best = (self._drops(fewer) if fewer else None) or best
        return {service: min(1.0, share) for service, share in sorted(best.items())}

    def _drops(self, give: Mapping[ServiceId, float]) -> dict[ServiceId, float] | None:
        """By how much each service is below its floor at worst in an order that gives no more; None: there is none."""
        order = self._asked(self.question.judge(give=give))
        if not order.done:
            return None
        worst: dict[ServiceId, float] = {}
        for leg in order.legs:
            task = self.judge.task
            serving = task.serving(leg.before.started, leg.after.drained, settled=leg.before.settled)
            for service, short in self.judge.drop(serving).items():
                worst[service] = max(worst.get(service, 0.0), short)
        return worst


def _part(most: Mapping[PoolId, int], part: int) -> dict[PoolId, int]:
    return {pool: -(-n * part // PARTS) for pool, n in most.items()}
