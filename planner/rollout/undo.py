"""The way back: the same waves from the last to the first, each step turned round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from models.ids import CandidateId, PoolId
from models.plan import Plan, Step, StepKind, Wave
from models.problem import Problem
from planner.rollout.writing import ORDER_OF_KINDS, duration_of

__all__ = ["reverse"]

BACK: Final[dict[StepKind, tuple[StepKind, ...]]] = {
    StepKind.ADD_NODES: (StepKind.REMOVE_NODES,),
    StepKind.REMOVE_NODES: (StepKind.ADD_NODES,),
    StepKind.START: (StepKind.DRAIN, StepKind.REMOVE),
    StepKind.AWAIT: (StepKind.DRAIN, StepKind.REMOVE),
    StepKind.DRAIN: (),
    StepKind.REMOVE: (StepKind.START,),
    StepKind.CANCEL: (StepKind.START,),
    StepKind.RESIZE: (StepKind.RESIZE,),
}
CHANGE: Final = {
    StepKind.ADD_NODES: 1,
    StepKind.START: 1,
    StepKind.REMOVE: -1,
    StepKind.CANCEL: -1,
    StepKind.REMOVE_NODES: -1,
}

Turned = tuple[StepKind, Step]
"""A step that is turned round: its new kind, and what it was."""


def reverse(plan: Plan, problem: Problem) -> Plan:
    """The plan that leads back to the counts that were ready or on order.

    While a wave runs backward it holds and serves what it does forward, so it is as safe. What was on order and is
    awaited in the first wave had room from the beginning and stays. What was cancelled, and what came later than the
    first wave, is ordered again in a wave of its own at the end, where there is as much room for it as there was at
    the beginning. Nodes that were added are empty when they are removed.

    Args:
        plan: a plan of `roll_out`, stuck or not.
        problem: the problem it was made for; its start-up times count.
    """
    waves: list[list[Turned]] = []
    again: list[Turned] = []
    for number in reversed(range(len(plan.waves))):
        turned: list[Turned] = []
        for step in plan.waves[number].steps:
            if step.kind is StepKind.CANCEL:
                again.append((StepKind.START, step))
            elif step.kind is StepKind.AWAIT:
                turned += [(kind, step) for kind in BACK[step.kind] if number]
                again += [(StepKind.START, step)] if number else []
            else:
                turned += [(kind, step) for kind in BACK[step.kind]]
        waves.append(turned)
    extra = [wave.extra_gpus for wave in reversed(plan.waves)]
    return _plan(plan, problem, [*zip(waves, extra, strict=True), (again, {})])


def _plan(plan: Plan, problem: Problem, waves: Iterable[tuple[list[Turned], dict[PoolId, int]]]) -> Plan:
    now: dict[CandidateId | PoolId, int] = {}
    for step in (step for wave in plan.waves for step in wave.steps):
        now[step.candidate or step.pool] = step.after
    found = []
    for turned, extra in waves:
        steps = tuple(_numbered(turned, now))
        if steps:
            duration = duration_of(steps, problem, plan.limits)
            found.append(Wave(steps=steps, duration_s=duration, extra_gpus=extra))
    return Plan(
        waves=tuple(found),
        duration_s=sum(wave.duration_s for wave in found),
        changes=plan.changes,
        limits=plan.limits,
        derived_from=plan.fingerprint,
    )


def _numbered(turned: Iterable[Turned], now: dict[CandidateId | PoolId, int]) -> Iterator[Step]:
    """Steps in the order of a wave, with counts that run through them; ``now`` is kept up to date."""
    for kind, step in sorted(turned, key=lambda it: ORDER_OF_KINDS.index(it[0])):
        key = step.candidate or step.pool
        before = now[key]
        change = step.before - step.after if kind is StepKind.RESIZE else CHANGE.get(kind, 0) * step.count
        now[key] = before + change
        yield step.but(kind=kind, before=before, after=now[key])
