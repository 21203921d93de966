"""Whether a wave may run: the state while it runs and the state after it, each judged by the referee's own rows.

While a wave runs, what starts and what drains holds accelerators and serves nothing. So *held* is what was there and
what starts, *serving* is what was ready and does not drain. Every limit from above is judged on what is held, every
limit from below on what serves.

A row may be broken by no more than it is at the start or in the solution, whichever is more; a row that both keep may
not be broken at all. Where the pods of a pool do not fit at one of these ends, a state in which they do not fit may hold
no more of any candidate than that end. A service may not serve less than it does at the start or in the solution,
whichever is less. Replicas on order count for budgets from the beginning, and for room as soon as there is any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from models.ids import CandidateId, PoolId, ServiceId
from models.plan import WaveLimits
from models.problem import Problem
from models.report import Violation
from models.solution import Proof, Solution, Status
from planner.referee import Unplaced, money_power, pack, physical
from planner.referee.index import index_of, is_unlimited
from planner.referee.rows import Row
from planner.rollout.room import Tick, never
from planner.rollout.serving import Group, groups_of
from planner.rollout.task import State, Task
from planner.rollout.wave_limits import LimitRows

__all__ = ["Judge", "Tick", "never"]

CEILINGS: Final = (
    physical.nodes,
    physical.quota,
    money_power.power,
    money_power.spend,
    physical.bounds,
)
ZERO: Final = Fraction(0)
EPSILON: Final = 1e-9

RowKey = tuple[str, tuple[str, ...], bool]
Numbers = tuple[int, ...]


@dataclass
class Judge:
    """Judges states of one task; remembers what it has seen.

    Attributes:
        budgets: the problem whose budgets count: that of the task, or where a task is tried with more accelerators,
            the one without them.
        give: how much less of its demand a service may serve for a while.
        tick: called before each judgement; may raise.
    """

    task: Task
    limits: WaveLimits
    budgets: Problem
    give: Mapping[ServiceId, float] = field(default_factory=dict)
    tick: Tick = never

    def __post_init__(self) -> None:
        self.names = tuple(unit.candidate.id for unit in self.task.units)
        self.groups: tuple[Group, ...] = groups_of(self.task.full, self.names)
        self._held: dict[tuple[Numbers, Numbers, Numbers], bool] = {}
        self._serving: dict[Numbers, bool] = {}
        self._wave_limits = LimitRows.of(self.task, self.limits)
        self._levels: dict[RowKey, Fraction] = {}
        self._misplaced: dict[PoolId, list[dict[CandidateId, int]]] = {}
        self._floors: dict[ServiceId, tuple[float, float]] = {}
        self._pools = _by_pool(self.task.problem)
        self._learn()

    def permits(self, before: State, after: State) -> bool:
        """Whether the wave that leads from one state to the other may run."""
        self.tick()
        task = self.task
        return (
            self._wave_limits.step_permits(before, after)
            and self.holds(task.held(after.started, before.drained), before.nodes, after.nodes)
            and self.serves(task.serving(before.started, after.drained, settled=before.settled))
            and self.holds(task.held(after.started, after.drained), after.nodes, after.nodes)
            and self.serves(task.serving(after.started, after.drained, settled=True))
        )

    def holds(self, held: Numbers, standing: Numbers, coming: Numbers) -> bool:
        """Whether these replicas may hold accelerators, with nodes that stand and nodes that are paid for."""
        key = (held, standing, coming)
        if key not in self._held:
            self._held[key] = next(self._too_much(held, standing, coming), None) is None
        return self._held[key]

    def serves(self, serving: Numbers) -> bool:
        """Whether it is enough that these replicas serve."""
        if serving not in self._serving:
            self._serving[serving] = all(self.group_serves(group, serving) for group in self.groups)
        return self._serving[serving]

    def group_serves(self, group: Group, serving: Numbers) -> bool:
        """The same for the services of one group."""
        self.tick()
        return next(self._too_little(group, serving), None) is None

    def objections(self, before: State, after: State) -> tuple[Violation, ...]:
        """Everything that forbids the wave from one state to the other, while it runs."""
        held = self.task.held(after.started, before.drained)
        serving = self.task.serving(before.started, after.drained, settled=before.settled)
        return (
            *self._too_much(held, before.nodes, after.nodes),
            *(text for group in self.groups for text in self._too_little(group, serving)),
            *self._wave_limits.step_objections(before, after),
        )

    def drop(self, serving: Numbers) -> dict[ServiceId, float]:
        """By how much services are below what they may not go below, whatever is given; those that are not left out."""
        found = {}
        for group in self.groups:
            served = group.at(serving, self.names)
            for service, share in served.worst.items():
                short = max(self._floors[service][0] - share, self._lost(service, served.load[service]))
                if short > EPSILON:
                    found[service] = short
        return found

    def _lost(self, service: ServiceId, load: float) -> float:
        rps = self.task.full.demand[service].arrival_rps
        return (self._floors[service][1] - load) / rps if rps else 0.0

    def _learn(self) -> None:
        """Levels of rows and floors of services, from both ends."""
        task, plain = self.task, _by_pool(self.budgets)
        ordered = tuple(unit.on_order for unit in task.units)
        held = task.held(task.start.started, task.start.drained)
        end = tuple(unit.wanted for unit in task.units)
        ends = (
            (ordered, held, task.start.nodes, tuple(unit.ready for unit in task.units)),
            (end, end, task.goal.nodes, end),
        )
        for budgeted, room, nodes, serving in ends:
            rows = self._ceilings(self._solution(room, nodes), self._solution(budgeted, nodes), self.budgets)
            for row in rows:
                self._level(row)
            for pool, inside, _ in self._unplaced(room, nodes, plain):
                self._misplaced.setdefault(pool, []).append(inside)
            for group in self.groups:
                self.tick()
                served = group.at(serving, self.names)
                for row in served.rows:
                    self._level(row)
                for service, share in served.worst.items():
                    low, load = self._floors.get(service, (share, served.load[service]))
                    self._floors[service] = (min(low, share), min(load, served.load[service]))

    def _level(self, row: Row) -> None:
        if row.broken:
            self._levels[_key(row)] = max(self._levels.get(_key(row), ZERO), _excess(row))

    def _worse(self, row: Row) -> bool:
        level = self._levels.get(_key(row), ZERO)
        return row.broken and _excess(row) > level + abs(row.allowed) * Fraction(1, 10**9)

    def _solution(self, held: Numbers, nodes: Numbers) -> Solution:
        return Solution(
            status=Status.FEASIBLE,
            counts=self.task.counts(held),
            nodes_added=self.task.nodes_added(nodes),
            proof=Proof(solver="state"),
        )

    def _ceilings(self, standing: Solution, coming: Solution, room: Problem) -> Iterator[Row]:
        """Rows on what is held: room on the nodes that stand, and budgets with those that are on their way."""
        index = index_of(self.budgets, coming)
        for family in CEILINGS:
            yield from (row for row in family(index) if not row.least)
        yield from physical.gpus(index_of(room, standing))

    def _unplaced(
        self, held: Numbers, nodes: Numbers, pools: Mapping[PoolId, Problem]
    ) -> Iterator[tuple[PoolId, dict[CandidateId, int], Unplaced]]:
        counts, added = self.task.counts(held), self.task.nodes_added(nodes)
        for pool, problem in pools.items():
            self.tick()
            inside = {c.id: counts[c.id] for c in problem.candidates if c.id in counts}
            packed = pack(problem, inside, added)
            if isinstance(packed, Unplaced):
                yield pool, inside, packed

    def _too_much(self, held: Numbers, standing: Numbers, coming: Numbers) -> Iterator[Violation]:
        yield from self._wave_limits.surge_objections(held)
        rows = self._ceilings(self._solution(held, standing), self._solution(held, coming), self.task.problem)
        yield from (row.violation() for row in rows if self._worse(row))
        for pool, inside, unplaced in self._unplaced(held, standing, self._pools):
            if not any(_within(inside, end) for end in self._misplaced.get(pool, ())):
                yield Violation(
                    family="placement",
                    key=(pool, str(unplaced.size)),
                    found=unplaced.missing,
                    allowed=0,
                    unit="pod",
                    text=f"{unplaced.missing} pods of {unplaced.size} GPUs would find no node in pool {pool}.",
                )

    def _too_little(self, group: Group, serving: Numbers) -> Iterator[Violation]:
        served = group.at(serving, self.names)
        yield from (row.violation() for row in served.rows if self._worse(row))
        for service, share in served.worst.items():
            floor = self._floors[service][0]
            give = self.give.get(service, 0.0) + EPSILON
            if share < floor - give or self._lost(service, served.load[service]) > give:
                found = share if share < floor - give else floor - self._lost(service, served.load[service])
                yield Violation(
                    family="demand",
                    key=(service,),
                    found=found,
                    allowed=floor,
                    unit="share",
                    text=f"{found:.6g} of the demand of {service} would be served for a while, and {floor:.6g} must be.",
                )
        yield from self._wave_limits.unavailable_objections(group, serving)


def _key(row: Row) -> RowKey:
    return (row.family, row.key, row.found < row.allowed)


def _excess(row: Row) -> Fraction:
    return abs(row.found - row.allowed)


def _within(counts: Mapping[CandidateId, int], most: Mapping[CandidateId, int]) -> bool:
    return all(n <= most.get(candidate, 0) for candidate, n in counts.items())


def _by_pool(problem: Problem) -> dict[PoolId, Problem]:
    """Each pool alone, as far as packing looks at it; without those that have no limits or no candidates."""
    found = {}
    for pool in problem.pools:
        members = tuple(c for c in problem.candidates if c.pool == pool.id)
        if members and not is_unlimited(problem, pool.id):
            own = {c.id for c in members}
            incumbents = tuple(one for one in problem.incumbents if one.candidate in own)
            found[pool.id] = problem.but(candidates=members, pools=(pool,), incumbents=incumbents)
    return found
