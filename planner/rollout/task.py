"""What has to change: every candidate that runs or shall run, and how many of its replicas come and go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from models.ids import CandidateId, PoolId
from models.problem import Candidate, Problem
from models.solution import Solution
from planner.errors import ConfigurationError
from planner.referee import Unplaced, pack
from planner.rollout.places import Places, places_at_start

__all__ = ["State", "Task", "Unit", "task_of"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One candidate on its way.

    Attributes:
        ready: replicas that serve now.
        awaited: replicas on order that stay on order and are ready after the first wave.
        cancelled: replicas on order that the solution does not want; they go at the beginning of the first wave.
        starts: replicas to come, moved ones included.
        late: so many of them are on order and have no room yet; they are not ordered again.
        drains: ready replicas to drain and remove, moved ones included.
    """

    candidate: Candidate
    ready: int
    awaited: int
    cancelled: int
    starts: int
    late: int
    drains: int

    @property
    def wanted(self) -> int:
        """Replicas in the solution."""
        return self.ready + self.awaited + self.starts - self.drains

    @property
    def on_order(self) -> int:
        """Replicas that are ready or on order now."""
        return self.ready + self.awaited + self.late + self.cancelled


@dataclass(frozen=True, slots=True)
class State:
    """How far things are between two waves; positions are those of the units and of the growing pools of a task.

    Attributes:
        settled: what was on order is ready or cancelled: true after the first wave.
        started: replicas started so far.
        drained: replicas drained so far.
        nodes: nodes added so far.
    """

    settled: bool
    started: tuple[int, ...]
    drained: tuple[int, ...]
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """The whole way: units sorted as candidates are, pools that get nodes, and where replicas sit.

    ``problem`` has only the candidates that run or shall run, which decide all that is held; the full problem decides
    what is served.
    """

    full: Problem
    problem: Problem
    units: tuple[Unit, ...]
    growing: tuple[tuple[PoolId, int], ...]
    places: Places

    @cached_property
    def start(self) -> State:
        """The fleet as it runs. Nothing on order means that it is settled."""
        still = (0,) * len(self.units)
        unsettled = any(unit.awaited or unit.cancelled for unit in self.units)
        return State(not unsettled, still, still, (0,) * len(self.growing))

    @cached_property
    def goal(self) -> State:
        """The solution."""
        return State(
            True,
            tuple(unit.starts for unit in self.units),
            tuple(unit.drains for unit in self.units),
            tuple(nodes for _, nodes in self.growing),
        )

    @property
    def changes(self) -> int:
        """Σ |n_c − on order_c| + moves."""
        return sum(u.cancelled + max(u.starts - u.late, u.drains) for u in self.units)

    def held(self, started: tuple[int, ...], drained: tuple[int, ...]) -> tuple[int, ...]:
        """Replicas that hold accelerators once these are ordered and those are gone, by unit."""
        return tuple(
            u.ready + u.awaited + a - b for u, a, b in zip(self.units, started, drained, strict=True)
        )

    def serving(
        self, started: tuple[int, ...], drained: tuple[int, ...], *, settled: bool
    ) -> tuple[int, ...]:
        """Replicas that are ready and not draining, by unit."""
        return tuple(
            u.ready + (u.awaited if settled else 0) + a - b
            for u, a, b in zip(self.units, started, drained, strict=True)
        )

    def counts(self, numbers: tuple[int, ...]) -> dict[CandidateId, int]:
        """Numbers by unit as counts by candidate, zeros left out."""
        return {unit.candidate.id: n for unit, n in zip(self.units, numbers, strict=True) if n}

    def nodes_added(self, nodes: tuple[int, ...]) -> dict[PoolId, int]:
        """Numbers by growing pool as nodes by pool, zeros left out."""
        return {pool: n for (pool, _), n in zip(self.growing, nodes, strict=True) if n}


def task_of(problem: Problem, solution: Solution) -> Task:
    """The way from what runs and is on order to the solution.

    Raises:
        ConfigurationError: the solution has no plan, or speaks of what the problem does not have.
    """
    if not solution.has_plan:
        raise ConfigurationError(
            f"There is nothing to roll out: the solution is {solution.status} and has no plan."
        )
    unknown = sorted(set(solution.counts) - set(problem.candidate)) + sorted(
        set(solution.nodes_added) - set(problem.pool)
    )
    if unknown:
        raise ConfigurationError(f"The solution is of another problem, which has {', '.join(unknown)}.")
    moving = tuple(c for c in problem.candidates if c.on_order or solution.count(c.id))
    small = problem.but(candidates=moving)
    places = places_at_start(small, solution)
    crowded = _crowded(small, solution)
    units = tuple(
        _unit(c, solution.count(c.id), (places.moves.get(c.id, 0), c.pool in crowded)) for c in moving
    )
    growing = tuple(
        (pool.id, solution.nodes_added[pool.id])
        for pool in problem.pools
        if solution.nodes_added.get(pool.id, 0)
    )
    return Task(problem, small, units, growing, places)


def _crowded(problem: Problem, solution: Solution) -> set[PoolId]:
    """Pools in which not all replicas on order have room now, even without those that the solution cancels."""
    found = set()
    for pool in problem.pools:
        held = {
            c.id: max(c.current, min(c.on_order, solution.count(c.id)))
            for c in problem.candidates
            if c.pool == pool.id
        }
        if isinstance(pack(problem, held), Unplaced):
            found.add(pool.id)
    return found


def _unit(candidate: Candidate, wanted: int, way: tuple[int, bool]) -> Unit:
    moved, crowded = way
    staying = max(0, min(candidate.pending, wanted - candidate.current))
    late = staying if crowded else 0
    return Unit(
        candidate,
        ready=candidate.current,
        awaited=staying - late,
        cancelled=candidate.pending - staying,
        starts=max(0, wanted - candidate.on_order) + late + moved,
        late=late,
        drains=max(0, candidate.current - wanted) + moved,
    )
