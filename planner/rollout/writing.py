"""An order as a plan: steps with counts before and after, how long each wave takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from models.ids import NodeId
from models.plan import Plan, Step, StepKind, Wave, WaveLimits
from models.problem import Problem
from planner.rollout.order import Leg, Order
from planner.rollout.seats import Place
from planner.rollout.task import State, Task, Unit
from planner.rollout.wave_limits import gpus_by_pool

__all__ = ["ORDER_OF_KINDS", "duration_of", "plan_of"]

ORDER_OF_KINDS: Final = tuple(StepKind)
"""Steps of a wave in the order of this list: room first, then what comes, then what goes."""


def plan_of(task: Task, order: Order, limits: WaveLimits) -> Plan:
    """The plan of an order, without what is stuck."""
    waves = tuple(_wave(task, leg, limits) for leg in order.legs)
    return Plan(
        waves=waves,
        duration_s=sum(wave.duration_s for wave in waves),
        changes=task.changes,
        proven_fewest=order.done and order.proven,
        limits=limits,
    )


def duration_of(steps: tuple[Step, ...], problem: Problem, limits: WaveLimits) -> float:
    """The longest of what a wave's steps take, s; cancelling and removing take no time."""
    return max((_seconds(step, problem, limits) for step in steps), default=0.0)


def _seconds(step: Step, problem: Problem, limits: WaveLimits) -> float:
    if step.kind is StepKind.ADD_NODES:
        return limits.node_start_s
    if step.kind is StepKind.DRAIN:
        return limits.drain_s
    if step.kind in (StepKind.START, StepKind.AWAIT, StepKind.RESIZE) and step.candidate is not None:
        return problem.candidate[step.candidate].startup_s
    return 0.0


def _wave(task: Task, leg: Leg, limits: WaveLimits) -> Wave:
    steps = [*_node_steps(task, leg)]
    for i, unit in enumerate(task.units):
        steps += _unit_steps(unit, i, leg)
    steps.sort(key=lambda step: ORDER_OF_KINDS.index(step.kind))
    held = gpus_by_pool(task, task.held(leg.after.started, leg.before.drained))
    ends = gpus_by_pool(task, tuple(u.on_order for u in task.units)) | gpus_by_pool(
        task, tuple(u.wanted for u in task.units)
    )
    return Wave(
        steps=tuple(steps),
        duration_s=duration_of(tuple(steps), task.full, limits),
        extra_gpus=dict(sorted((held - ends).items())),
    )


def _node_steps(task: Task, leg: Leg) -> Iterator[Step]:
    for (pool, _), before, after in zip(task.growing, leg.before.nodes, leg.after.nodes, strict=True):
        if after > before:
            yield Step(kind=StepKind.ADD_NODES, pool=pool, count=after - before, before=before, after=after)


def _unit_steps(unit: Unit, i: int, leg: Leg) -> Iterator[Step]:
    """Steps of one candidate in a wave; the counts run through them in their order."""
    before, after = leg.before, leg.after
    wanted = _wanted(unit, before, i)
    come = [*leg.trip.started.get(unit.candidate.id, ())]
    if not before.settled and unit.cancelled:
        yield _step(StepKind.CANCEL, unit, (wanted, wanted - unit.cancelled, unit.cancelled), [])
        wanted -= unit.cancelled
    late = min(after.started[i], unit.late) - min(before.started[i], unit.late)
    awaited = late + (unit.awaited if not before.settled else 0)
    if awaited:
        yield _step(StepKind.AWAIT, unit, (wanted, wanted, awaited), come[:awaited])
    starts = after.started[i] - before.started[i] - late
    if starts:
        yield _step(StepKind.START, unit, (wanted, wanted + starts, starts), come[awaited:])
        wanted += starts
    drains = after.drained[i] - before.drained[i]
    if drains:
        gone = leg.trip.drained.get(unit.candidate.id, ())
        yield _step(StepKind.DRAIN, unit, (wanted, wanted, drains), gone)
        yield _step(StepKind.REMOVE, unit, (wanted, wanted - drains, drains), gone)


def _wanted(unit: Unit, state: State, i: int) -> int:
    """Replicas that are ready or on order in a state."""
    ordered = max(0, state.started[i] - unit.late)
    return unit.on_order - (unit.cancelled if state.settled else 0) + ordered - state.drained[i]


def _step(
    kind: StepKind, unit: Unit, numbers: tuple[int, int, int], places: list[Place] | tuple[Place, ...]
) -> Step:
    before, after, count = numbers
    one = unit.candidate
    nodes: tuple[NodeId, ...] = tuple(sorted(node for place in places for node in place))
    return Step(
        kind=kind,
        pool=one.pool,
        candidate=one.id,
        service=one.service,
        variant=one.variant,
        count=count,
        before=before,
        after=after,
        nodes=nodes,
    )
