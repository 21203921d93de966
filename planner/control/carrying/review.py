"""What carrying a plan out would do now, and what forbids it. Pure: from a route, readings and room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from models.applied import ApplyReview, FieldChange, ObjectState
from models.observation import Finding
from planner.control.carrying.objects import ObjectReading, counted_object
from planner.control.carrying.room import Room
from planner.control.carrying.writing import fields_of, fields_to_free
from planner.manifests import Change, Route, Stage, gauges_of, left_to_do
from planner.manifests.orders import NOT_PAUSED
from planner.manifests.resizes import resized_to
from planner.manifests.targets import Target, TargetKey

__all__ = ["Begun", "gates", "next_stage", "review_of", "scaled_targets", "touched"]

_AS_STARTED: Final = "plan again from what runs now, or bring the count back"
States = Mapping[TargetKey, ObjectState]


def scaled_targets(route: Route) -> tuple[Target, ...]:
    """Objects that run, shall run, or are touched on the way."""
    touched = {change.target.key for stage in route.stages for change in stage.changes}
    return tuple(c.target for c in route.ends if not c.idle or c.target.key in touched)


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known of the way so far.

    Attributes:
        done: waves that are done.
        some: the next wave may be begun, as a record or somebody says: an object may have its count from before it or
            from after it. Otherwise another count than before it was written by somebody else.
    """

    done: int = 0
    some: bool = False


def next_stage(route: Route, states: States, begun: Begun) -> int | None:
    """The stage with which the plan goes on, from 0; as many as there are: the cluster is at its end. None: at none.

    Where something is begun, stages of which counts before and after both fit are begun again: what is written already
    is not written twice, and waits return at once.

    Args:
        route: with the stages.
        states: objects as they are.
        begun: what is known of the way so far.
    """
    counts = _counts(route)
    now = {key: _wanted(states, key) for key in counts[0]}
    last = len(route.stages)
    if now == counts[last] and (begun.done == last or all(_is_settled(states[key]) for key in now)):
        return last
    if not begun.some:
        return begun.done if begun.done < last and now == counts[begun.done] else None
    for number in range(begun.done, last):
        before, after = counts[number], counts[number + 1]
        if all(now[key] in (before[key], after[key]) for key in now):
            return number
    return None


def _counts(route: Route) -> list[dict[TargetKey, int]]:
    """Counts of all objects that are looked at, before the first stage and after each."""
    old = {change.target.key: change.old for change in route.ends}
    counts = [{target.key: old[target.key] for target in scaled_targets(route)}]
    for stage in route.stages:
        counts.append(counts[-1] | {change.target.key: change.new for change in stage.changes})
    return counts


def _is_settled(state: ObjectState) -> bool:
    """Whether nothing of it starts or ends."""
    return state.settled and state.ready == state.held == state.wanted


def _wanted(states: States, key: TargetKey) -> int | None:
    """The count that an object asks for; one that is not there asks for none, which a plan without it may start from."""
    state = states.get(key)
    return None if state is None else state.wanted


def review_of(
    route: Route,
    reading: ObjectReading,
    *,
    room: Room | None = None,
    begun: Begun | None = None,
    assume_done: bool = False,
) -> ApplyReview:
    """What is still to be written, and everything that forbids it at once.

    Args:
        route: the plan as counts of objects.
        reading: objects as they are.
        room: accelerators that are free; None: nobody could tell.
        begun: what is known of the way so far; None: it starts.
        assume_done: what this route cannot start is ready, as somebody says.
    """
    states = reading.states
    stage = None if reading.findings else next_stage(route, states, begun or Begun())
    number = len(route.stages) if stage is None else stage
    refusals = [*reading.findings, *gates(route, states)]
    if stage is None and not reading.findings:
        refusals += _elsewhere(route, states, begun or Begun())
    if stage is not None and not assume_done:
        refusals += _unconfirmed(route.stages[: number + 1])
    if stage is not None and stage < len(route.stages):
        refusals += _no_room(route.stages[stage], states, room)
    return ApplyReview(
        waves=len(route.stages),
        next_wave=number + 1,
        states=tuple(states[target.key] for target in scaled_targets(route) if target.key in states),
        changes=tuple(_changes(route, states, number)) if stage is not None else (),
        refusals=tuple(dict.fromkeys(refusals)),
        passing=reading.passing and len(refusals) == len(reading.findings),
        notes=tuple(_notes(route, room)),
    )


def gates(route: Route, states: States) -> Iterator[Finding]:
    """What people or other controllers forbid, whatever the counts are."""
    for target in scaled_targets(route):
        state = states.get(target.key)
        if state is None:
            continue
        subject = str(state.object)
        if state.paused_by:
            remedy = "remove it, or leave the object out of the plan"
            yield Finding(subject=subject, problem=f"people hold it: {state.paused_by}", remedy=remedy)
        if state.controlled_by:
            problem = f"{state.controlled_by} holds its scaler, and would take the count back"
            remedy = "pause the service in the controller, or let that decide"
            yield Finding(subject=subject, problem=problem, remedy=remedy)
        for rival in state.rivals:
            problem = f"{rival} scales it too, and would take the count back"
            yield Finding(
                subject=subject, problem=problem, remedy="name it as scaler of the object in the scenario"
            )


def _elsewhere(route: Route, states: States, begun: Begun) -> Iterator[Finding]:
    """Objects whose count is none that the plan has; where something is begun, at the stage that fits most of them."""
    counts = _counts(route)[begun.done :]
    nearest = min(
        counts if begun.some else counts[:1],
        key=lambda each: sum(_wanted(states, key) != count for key, count in each.items()),
    )
    for target in scaled_targets(route):
        expected, found = nearest[target.key], _wanted(states, target.key)
        if found == expected:
            continue
        subject = str(counted_object(target))
        if found is None:
            yield Finding(
                subject=subject, problem="there is no such object", remedy="repair the object in the scenario"
            )
        else:
            point = "has" if begun.some or begun.done else "starts from"
            problem = f"it asks for {found} replicas, where the plan {point} {expected}"
            yield Finding(subject=subject, problem=problem, remedy=_AS_STARTED)


def _unconfirmed(stages: Iterable[Stage]) -> Iterator[Finding]:
    """What earlier waves need that nobody here can start, before a wave takes anything away."""
    opened: list[str] = []
    resized = False
    for number, stage in enumerate(stages, start=1):
        if stage.takes_away or resized:
            begins = "it takes replicas away" if stage.takes_away else "a size changes before it"
            for line in opened:
                yield Finding(
                    subject=f"wave {number}",
                    problem=f"{begins}, and nobody here can tell whether this is ready: {line}",
                    remedy="see to it, then say --assume-done",
                )
        opened += [
            f"{step.service}/{step.variant} in pool {step.pool} at {step.after} replicas"
            if step.candidate is not None
            else f"{step.after} nodes added to pool {step.pool}"
            for step in stage.elsewhere
            if step.after > step.before and step.resize is None
        ]
        opened += [resized_to(step, step.resize) for step in stage.resizes if step.resize is not None]
        resized = bool(stage.resizes)
        opened += [f"{counted_object(c.target)} at {c.new} replicas" for c in stage.apart if c.new > c.old]


def _no_room(stage: Stage, states: States, room: Room | None) -> Iterator[Finding]:
    """Starts of a wave for which there are not enough accelerators that pods may use."""
    if room is None:
        return
    asked: dict[tuple[str, str], int] = {}
    for change in stage.changes:
        state, target = states.get(change.target.key), change.target
        missing = 0 if state is None else max(0, change.new - max(state.held, state.wanted or 0))
        where = (target.cluster or "", target.candidates[0].accelerator)
        asked[where] = asked.get(where, 0) + missing * target.candidates[0].gpus
    for (cluster, accelerator), gpus in sorted(asked.items()):
        free = room.free(cluster, accelerator)
        if free is not None and gpus > free:
            yield Finding(
                subject=f"{accelerator}{f' in {cluster}' if cluster else ''}",
                problem=f"this wave starts replicas on {gpus} of them, and {free} are free",
                remedy="plan again from what runs now",
            )


def _changes(route: Route, states: States, number: int) -> Iterator[FieldChange]:
    """All that is still to be written, wave by wave."""
    known = dict(states)
    for wave, stage in enumerate(route.stages[number:], start=number + 1):
        for change in stage.changes:
            state = known.get(change.target.key)
            if state is None:
                continue
            for each in fields_of(change, state, way_back=route.way_back):
                yield each.but(wave=wave)
            known[change.target.key] = _after(change, state)
    if route.way_back:
        for change in touched(route):
            state = known.get(change.target.key)
            if state is not None:
                yield from fields_to_free(change.target, state)


def touched(route: Route) -> tuple[Change, ...]:
    """Ends of the objects whose count some stage changes."""
    keys = {c.target.key for stage in route.stages for c in stage.changes if c.old != c.new}
    return tuple(change for change in route.ends if change.target.key in keys)


def _after(change: Change, state: ObjectState) -> ObjectState:
    """The object as it will be, as far as it is written."""
    if change.target.object.scaler == "hpa":
        held = change.new or max(change.old, 1)
        former = state.former or (f"{state.bounds[0]}:{state.bounds[1]}" if state.bounds else "")
        return state.but(wanted=change.new, bounds=(held, held), former=former)
    former = state.former
    if change.target.object.scaler == "keda":
        former = state.former or state.pause or NOT_PAUSED
    return state.but(wanted=change.new, former=former, pause=str(change.new))


def _notes(route: Route, room: Room | None) -> Iterator[str]:
    for name in route.left_out:
        yield f"left out: {name} has no object in the scenario"
    for series in gauges_of(route):
        yield f"the control plane has to emit {series}"
    yield from left_to_do(route)
    yield from () if room is None else (finding.sentence for finding in room.findings)
