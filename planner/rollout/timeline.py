"""A plan over time: when each step begins and ends, and how many accelerators each pool holds meanwhile.

Waves follow one another and steps of a wave begin together, but for a removal, which comes when its drain is over. What
starts or is on order holds its accelerators from the beginning, what drains to the end of the drain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from models.ids import CandidateId, PoolId
from models.plan import Plan, Step, StepKind
from models.problem import Problem
from planner.referee.index import is_unlimited
from planner.rollout.writing import duration_of

__all__ = ["Bar", "Level", "bars_of", "levels_of"]

_BEFORE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Bar:
    """One step over time.

    Attributes:
        wave: number of its wave, from 1.
        step: what.
        start_s: since the beginning of the plan.
        end_s: the same as ``start_s`` where the step takes no time.
        gpus: accelerators of the replicas or nodes that the step is about.
    """

    wave: int
    step: Step
    start_s: float
    end_s: float
    gpus: int


@dataclass(frozen=True, slots=True)
class Level:
    """Accelerators of a pool from a moment on.

    Attributes:
        pool: the pool.
        at_s: since the beginning of the plan.
        held: by replicas that are ready, on order, starting or draining.
        limit: that there are for us on nodes that hold pods; None: as many as are wanted.
    """

    pool: PoolId
    at_s: float
    held: int
    limit: int | None


def bars_of(plan: Plan, problem: Problem) -> list[Bar]:
    """All steps in the order of the plan.

    Args:
        plan: of this problem, or the way back from one.
        problem: its start-up times count.
    """
    bars: list[Bar] = []
    start_s = 0.0
    for number, wave in enumerate(plan.waves, start=1):
        drains = {step.candidate for step in wave.steps if step.kind is StepKind.DRAIN}
        for step in wave.steps:
            waits = step.kind is StepKind.REMOVE and step.candidate in drains
            begin_s = start_s + (plan.limits.drain_s if waits else 0.0)
            end_s = begin_s + duration_of((step,), problem, plan.limits)
            bars.append(Bar(number, step, begin_s, end_s, _gpus(step, problem)))
        start_s += wave.duration_s
    return bars


def _gpus(step: Step, problem: Problem) -> int:
    if step.candidate is not None:
        return problem.candidate[step.candidate].gpus * step.count
    growth = problem.pool[step.pool].growth
    return 0 if growth is None else growth.gpus_per_node * step.count


def levels_of(plan: Plan, problem: Problem, *, undone: Plan | None = None) -> list[Level]:
    """How many accelerators are held and there, by pool and then by time; pools in which nothing moves are left out.

    The first level of a pool is that before the beginning; it begins a tenth of the duration earlier, to be seen.

    Args:
        plan: of this problem.
        problem: what runs before it, and nodes.
        undone: the plan that this one leads back from; None: this one begins at what runs now.
    """
    counts = {candidate.id: candidate.on_order for candidate in problem.candidates}
    nodes: Counter[PoolId] = Counter()
    for step in (step for wave in (() if undone is None else undone.waves) for step in wave.steps):
        if step.candidate is None:
            nodes[step.pool] = step.after
        else:
            counts[step.candidate] = step.after
    changes = sorted(_changes(plan, problem), key=lambda each: each[0])
    moving = sorted({pool for _, pool, _, _ in changes})
    held = _held(problem, counts)
    there = {pool: _there(problem, pool, nodes[pool]) for pool in moving}
    levels = [Level(pool, -plan.duration_s * _BEFORE, held[pool], there[pool]) for pool in moving]
    for at_s, pool, gpus, more in changes:
        held[pool] += gpus
        limit = there[pool]
        there[pool] = None if limit is None else limit + more
        levels.append(Level(pool, at_s, held[pool], there[pool]))
    levels += [Level(pool, plan.duration_s, held[pool], there[pool]) for pool in moving]
    return sorted(_last_of_a_moment(levels), key=lambda level: (level.pool, level.at_s))


def _changes(plan: Plan, problem: Problem) -> Iterator[tuple[float, PoolId, int, int]]:
    """(When, where, accelerators held more, accelerators there more)."""
    for bar in bars_of(plan, problem):
        match bar.step.kind:
            case StepKind.START:
                yield bar.start_s, bar.step.pool, bar.gpus, 0
            case StepKind.CANCEL | StepKind.REMOVE:
                yield bar.end_s, bar.step.pool, -bar.gpus, 0
            case StepKind.ADD_NODES:
                yield bar.end_s, bar.step.pool, 0, bar.gpus
            case StepKind.REMOVE_NODES:
                yield bar.end_s, bar.step.pool, 0, -bar.gpus
            case StepKind.RESIZE:
                yield from _resizing(bar, problem)
            case StepKind.AWAIT | StepKind.DRAIN:
                yield bar.start_s, bar.step.pool, 0, 0


def _resizing(bar: Bar, problem: Problem) -> Iterator[tuple[float, PoolId, int, int]]:
    """Told with the side that has another size than now: both sides together hold so many while it runs."""
    resize = problem.candidate[bar.step.candidate].resize if bar.step.candidate is not None else None
    if resize is None or bar.step.candidate is None:
        return
    way, stays = problem.candidate[bar.step.candidate], problem.candidate[resize.of]
    before, after = (stays, way) if bar.step.after > bar.step.before else (way, stays)
    moving = max(resize.moving_gpus, before.gpus, after.gpus)
    yield bar.start_s, bar.step.pool, (moving - before.gpus) * bar.step.count, 0
    yield bar.end_s, bar.step.pool, (after.gpus - moving) * bar.step.count, 0


def _held(problem: Problem, counts: dict[CandidateId, int]) -> Counter[PoolId]:
    held: Counter[PoolId] = Counter()
    for candidate in problem.candidates:
        held[candidate.pool] += candidate.gpus * counts[candidate.id]
    return held


def _there(problem: Problem, name: PoolId, nodes: int) -> int | None:
    """Accelerators that nodes hold for us with so many nodes added; None: as many as are wanted."""
    if is_unlimited(problem, name):
        return None
    pool = problem.pool[name]
    growth = 0 if pool.growth is None else pool.growth.gpus_per_node * nodes
    return growth + sum(node.free_gpus for node in pool.nodes if node.holds_pods)


def _last_of_a_moment(levels: list[Level]) -> list[Level]:
    """Of all levels of a pool at one moment the last: what comes and goes at once does not add up.

    What starts when a wave begins is held beside what ended before, so the order of changes tells.
    """
    return list({(level.pool, level.at_s): level for level in levels}.values())
