"""A plan as a shell script: waves in order, each line with what it does and how it is undone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from planner.manifests.comments import MADE_BY, as_comments, counts_of, gauge_of, heading_of, not_done
from planner.manifests.orders import Kubectl, Order
from planner.manifests.route import Change, Route, Stage

__all__ = ["MARGIN_S", "render_script", "timeout_s"]

MARGIN_S: Final = 60
"""Added to every time limit, s."""


def timeout_s(change: Change, previous_s: float) -> int:
    """How long a script waits for replicas to become ready, s.

    Twice the start-up time, the time that the wave before may take to leave its accelerators, and a margin.

    Args:
        change: with its start-up time.
        previous_s: duration of the wave before, s.
    """
    return math.ceil(2 * change.target.startup_s + previous_s) + MARGIN_S


def render_script(route: Route) -> str:
    """A script for ``sh``; it stops at the first line that fails, and any part may be run by hand."""
    kubectl = Kubectl(contexts=len(route.clusters) > 1)
    return "".join(_parts(route, kubectl))


def _parts(route: Route, kubectl: Kubectl) -> Iterator[str]:
    yield f"#!/bin/sh\n{MADE_BY}\n"
    yield as_comments([*heading_of(route), *_rules(route, kubectl)])
    yield "set -eu\n"
    yield _bounds(route, kubectl)
    number = len(route.stages)
    previous_s = 0.0
    for index, stage in enumerate(route.stages, start=1):
        yield f"\n# Wave {index} of {number}: about {math.ceil(stage.duration_s)} s.\n"
        yield f"echo 'wave {index} of {number}'\n"
        yield as_comments([not_done(step) for step in stage.elsewhere])
        yield from (_change(change, kubectl, way_back=route.way_back) for change in stage.changes)
        yield _waits(stage, kubectl, previous_s)
        previous_s = stage.duration_s
    if not any(stage.changes for stage in route.stages):
        yield "\n# There is no count to change.\n"
    yield _release(route, kubectl)


def _rules(route: Route, kubectl: Kubectl) -> Iterator[str]:
    yield "It stops at the first line that fails: a count that is not the expected one, or a wait that is too long."
    if kubectl.contexts:
        yield "The names of the clusters are taken as names of contexts of kubectl."
    if any(change.new < change.old for stage in route.stages for change in stage.changes):
        yield (
            "Replicas that go are drained by Kubernetes: their pods get SIGTERM and the grace period of the pod; "
            "which ones go is its choice."
        )


def _changed(route: Route, scaler: str) -> list[Change]:
    """Objects of one scaler whose count some stage changes, each once."""
    touched = {
        change.target.key for stage in route.stages for change in stage.changes if change.old != change.new
    }
    return [c for c in route.ends if c.target.key in touched and c.target.object.scaler == scaler]


def _bounds(route: Route, kubectl: Kubectl) -> str:
    pinned = [] if route.way_back else _changed(route, "hpa")
    if not pinned:
        return ""
    lines = "".join(f"{kubectl.bounds(change.target)}\n" for change in pinned)
    return f"\n# Show the bounds of each HPA as they are now: keep them, to write them back after the plan.\n{lines}"


def _release(route: Route, kubectl: Kubectl) -> str:
    """How KEDA gets its counts back; for people, since the plan holds only as long as it has not."""
    held = _changed(route, "keda")
    if not held:
        return ""
    lines = [kubectl.released(change.target) for change in held]
    return "\n" + as_comments(["KEDA scales again after:", *lines])


def _change(change: Change, kubectl: Kubectl, *, way_back: bool) -> str:
    text = f"\n{as_comments([f'{counts_of(change)}.'])}"
    if change.old == change.new:
        return text + as_comments(["No command moves replicas between the places of one object."])
    if change.target.object.scaler == "variantautoscaling":
        return text + _managed(change, kubectl, way_back=way_back)
    undo = [f"Undo: {order.line}" for order in kubectl.orders(change.back())]
    return text + as_comments(undo) + "".join(map(_told, kubectl.orders(change)))


def _managed(change: Change, kubectl: Kubectl, *, way_back: bool) -> str:
    """A VariantAutoscaling: metadata, and the gauge that carries the count. On the way back the metadata stays."""
    gauge = f"Its count goes through a gauge that the control plane emits, not through this script: {gauge_of(change)}"
    if way_back:
        return as_comments([gauge])
    undo = f"Undo, if it had none of these before: {kubectl.without_metadata(change.target)}"
    return as_comments([gauge, undo]) + _told(kubectl.metadata(change.target))


def _waits(stage: Stage, kubectl: Kubectl, previous_s: float) -> str:
    """What is awaited before the next wave. Counts that a control plane moves are its own business."""
    orders: list[Order] = []
    changed = [c for c in stage.changes if c.old != c.new and c.target.object.scaler != "variantautoscaling"]
    for change in changed:
        orders.extend(kubectl.asked(change))
        if change.new > change.old:
            orders.append(kubectl.ready(change, timeout_s(change, previous_s)))
    keys = {change.target.key for change in changed}
    pending = [change for change in stage.awaited if change.target.key not in keys and change.new]
    orders += [kubectl.ready(change, timeout_s(change, previous_s)) for change in pending]
    return "\n" + "".join(map(_told, orders)) if orders else ""


def _told(order: Order) -> str:
    return f"{as_comments([order.what])}{order.line}\n"
