"""A plan as a shell script: waves in order, each line with what it does and how it is undone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from planner.manifests.comments import (
    MADE_BY,
    SHEBANG,
    as_comments,
    calls_behind,
    counts_of,
    gauge_of,
    heading_of,
    not_done,
    one_line,
)
from planner.manifests.orders import FORMER_BOUNDS, FORMER_PAUSE, Kubectl, Order
from planner.manifests.resizes import resized_to
from planner.manifests.route import Change, Route, Stage
from planner.manifests.shell import functions, word

__all__ = ["CONTROL_S", "MARGIN_S", "drain_limit_s", "render_script", "timeout_s"]

MARGIN_S: Final = 60
"""Added to every time limit, s."""

CONTROL_S: Final = 900
"""How long a control plane may take to emit a gauge and a scaler to act on it, s."""


def timeout_s(change: Change, previous_s: float) -> int:
    """How long a script waits for replicas to become ready, s.

    Twice the start-up time, the time that the wave before may take to leave its accelerators, and a margin.

    Args:
        change: with its start-up time.
        previous_s: duration of the wave before, s.
    """
    return math.ceil(2 * change.target.startup_s + previous_s) + MARGIN_S + _control_s(change)


def drain_limit_s(change: Change, drain_s: float) -> int:
    """How long a script waits until pods are gone, beside their grace period, s."""
    return math.ceil(drain_s) + MARGIN_S + _control_s(change)


def _control_s(change: Change) -> int:
    return CONTROL_S if _is_managed(change) else 0


def _is_managed(change: Change) -> bool:
    return change.target.object.scaler == "variantautoscaling"


def render_script(route: Route) -> str:
    """A script for ``sh``; it stops at the first line that fails, and can go on from there."""
    kubectl = Kubectl(contexts=len(route.clusters) > 1)
    return "".join(_parts(route, kubectl))


def _parts(route: Route, kubectl: Kubectl) -> Iterator[str]:
    yield f"{SHEBANG}{MADE_BY}\n"
    yield as_comments([*heading_of(route), *_rules(route, kubectl)])
    yield f"set -eu\n{functions(len(route.stages))}"
    previous_s = 0.0
    open_waves: list[str] = []
    resized = False
    for number, stage in enumerate(route.stages, start=1):
        yield f"\n# Wave {number} of {len(route.stages)}: about {math.ceil(stage.duration_s)} s.\n"
        yield f"if begin {number}; then\n"
        if stage.takes_away or resized:
            yield from open_waves
            open_waves.clear()
        yield _left(stage)
        yield from (_change(change, kubectl, way_back=route.way_back) for change in stage.changes)
        yield _waits(stage, kubectl, previous_s, route.drain_s)
        # The shell wants a command between "then" and "fi", and a wave may have comments alone.
        yield ":\nfi\n"
        previous_s = stage.duration_s
        open_waves += _to_confirm(number, stage)
        resized = bool(stage.resizes)
    if not any(stage.changes for stage in route.stages):
        yield "\n# There is no count to change.\n"
    yield _freed(route, kubectl) if route.way_back else _kept(route)


def _rules(route: Route, kubectl: Kubectl) -> Iterator[str]:
    yield "It stops at the first line that fails: a count that is not the expected one, or a wait that is too long."
    if kubectl.contexts:
        yield "The names of the clusters are taken as names of contexts of kubectl."
    if any(stage.takes_away for stage in route.stages):
        yield (
            "Replicas that go are drained by Kubernetes: their pods get SIGTERM and the grace period of the pod; "
            "which ones go is its choice. A wave ends when they are gone."
        )


def _changed(route: Route, scaler: str) -> list[Change]:
    """Objects of one scaler whose count some stage changes, each once."""
    touched = {
        change.target.key for stage in route.stages for change in stage.changes if change.old != change.new
    }
    return [c for c in route.ends if c.target.key in touched and c.target.object.scaler == scaler]


def _left(stage: Stage) -> str:
    """What somebody else has to do in a wave, said when it begins."""
    return "".join(
        f"{as_comments(calls_behind(step))}echo {word(one_line(not_done(step)))} >&2\n"
        for step in stage.elsewhere
    )


def _to_confirm(number: int, stage: Stage) -> Iterator[str]:
    """The question that a later wave asks before it takes anything away: is ready what only others could start?"""
    started = [
        f"{step.service}/{step.variant} in pool {step.pool} from {step.before} to {step.after} replicas"
        for step in stage.elsewhere
        if step.candidate is not None and step.resize is None and step.after > step.before
    ]
    started += [resized_to(step, step.resize) for step in stage.resizes if step.resize is not None]
    started += [f"{counts_of(c)} in {c.target.cluster}" for c in stage.apart if c.new > c.old]
    if started:
        yield f"confirmed {number} {word(one_line('; '.join(started)))}\n"


def _kept(route: Route) -> str:
    """Where scalers have what they had, for people: the plan holds only as long as they do not get it back."""
    lines = []
    if _changed(route, "hpa"):
        lines.append(f"The former bounds of each HPA are in its annotation {FORMER_BOUNDS}.")
    if _changed(route, "keda"):
        lines.append(f"Whether a ScaledObject was paused before is in its annotation {FORMER_PAUSE}.")
    if not lines:
        return ""
    return "\n" + as_comments([*lines, "The script of 'fleetplan commands --undo' gives all of it back."])


def _freed(route: Route, kubectl: Kubectl) -> str:
    """The last lines of a way back: each scaler gets back what it had."""
    held = [*_changed(route, "hpa"), *_changed(route, "keda")]
    if not held:
        return ""
    return (
        "\n" + "".join(_told(kubectl.freed(change.target)) for change in held) + '[ -z "$left" ] || exit 3\n'
    )


def _change(change: Change, kubectl: Kubectl, *, way_back: bool) -> str:
    text = f"\n{as_comments([f'{counts_of(change)}.'])}"
    if change.old == change.new:
        return text + as_comments(["No command moves replicas between the places of one object."])
    if _is_managed(change):
        return text + _managed(change, kubectl, way_back=way_back)
    undo = [f"Undo: {order.line}" for order in kubectl.orders(change.back())]
    # The way back keeps no record: what a scaler has by then is what the plan gave it.
    orders = list(kubectl.orders(change, recorded=True))
    if way_back and change.target.object.scaler != "scale":
        bare = list(kubectl.orders(change))
        orders = [bare[0], *orders[1:]]
    return text + as_comments(undo) + "".join(map(_told, orders))


def _managed(change: Change, kubectl: Kubectl, *, way_back: bool) -> str:
    """A VariantAutoscaling: metadata, and the gauge that carries the count. On the way back the metadata stays."""
    gauge = f"Its count goes through a gauge that the control plane emits, not through this script: {gauge_of(change)}"
    told = f"echo {word(one_line(f'the control plane has to emit {gauge_of(change)}'))}\n"
    if way_back:
        return as_comments([gauge]) + told
    undo = f"Undo, if it had none of these before: {kubectl.without_metadata(change.target)}"
    return as_comments([gauge, undo]) + _told(kubectl.metadata(change.target)) + told


def _waits(stage: Stage, kubectl: Kubectl, previous_s: float, drain_s: float) -> str:
    """What is awaited before the next wave: starts first, then pods that go."""
    changed = [change for change in stage.changes if change.old != change.new]
    orders: list[Order] = []
    for change in changed:
        orders.extend(kubectl.asked(change))
        if change.new > change.old:
            wait = kubectl.moved if _is_managed(change) else kubectl.ready
            orders.append(wait(change, timeout_s(change, previous_s)))
    keys = {change.target.key for change in changed}
    pending = [change for change in stage.awaited if change.target.key not in keys and change.new]
    orders += [kubectl.ready(change, timeout_s(change, previous_s)) for change in pending]
    orders += [kubectl.gone(c, drain_limit_s(c, drain_s)) for c in changed if c.new < c.old]
    return "\n" + "".join(map(_told, orders)) if orders else ""


def _told(order: Order) -> str:
    return f"{as_comments([order.what])}{order.line}\n"
