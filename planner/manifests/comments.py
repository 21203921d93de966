"""What stands in comments: where the text is from, what changes, and what no command can do. One line each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from models.plan import Step
from planner.manifests.resizes import resize_calls, resize_sentence
from planner.manifests.route import Change, Route
from planner.wording import counted, stuck_sentence

__all__ = [
    "GAUGE",
    "MADE_BY",
    "SHEBANG",
    "as_comments",
    "calls_behind",
    "counts_of",
    "gauge_of",
    "gauges_of",
    "heading_of",
    "is_ours",
    "left_to_do",
    "not_done",
    "one_line",
]

MADE_BY: Final = "# Made by fleetplan."
"""First words of every file of ours."""

SHEBANG: Final = "#!/bin/sh\n"
"""First line of a script."""

GAUGE: Final = "wva_desired_replicas"
"""Gauge from which an autoscaler reads the count of a VariantAutoscaling."""


def is_ours(path: Path) -> bool:
    """Whether a file bears the mark, in its first line or behind the line that names the shell."""
    with path.open("rb") as file:
        head = file.read(len(SHEBANG) + len(MADE_BY)).decode(errors="replace")
    return head.removeprefix(SHEBANG).startswith(MADE_BY)


def one_line(text: str) -> str:
    """Text that cannot leave its comment: no line break, nothing but printable characters."""
    return "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))


def as_comments(lines: Sequence[str]) -> str:
    """Each line behind a number sign."""
    return "".join(f"# {one_line(line)}\n" if line else "#\n" for line in lines)


def heading_of(route: Route) -> Iterator[str]:
    """Where a text is from, and what is not in it."""
    way = "The way back from the plan" if route.way_back else "The plan"
    yield f"{way} for {json.dumps(route.name, ensure_ascii=False)}, solution {route.derived_from or 'unnamed'}."
    if route.stuck:
        yield stuck_sentence(route.stuck)
    for name in route.left_out:
        yield f"Left out, for want of an object in the scenario: {name}."
    for change in route.ends:
        if len(change.target.pools) > 1 and not change.idle:
            yield (
                f"{change.target.label} may run in pools {', '.join(change.target.pools)}: one count cannot say "
                f"how many go where; the scheduler decides."
            )


def counts_of(change: Change) -> str:
    """The object and its counts: ``chat/small: Deployment llm/chat-small from 3 to 5 replicas``."""
    target = change.target
    name = f"{target.label}: {target.object.kind} {target.namespace}/{target.object.name}"
    places = _places(change)
    if change.old == change.new:
        return f"{name} stays at {counted(change.new, 'replica')}{places}"
    return f"{name} from {change.old} to {counted(change.new, 'replica')}{places}"


def _places(change: Change) -> str:
    """Counts by place where there are several: `` (meant for east 2 to 3, west 1 to 2)``."""
    candidates = change.target.candidates
    if len(candidates) == 1:
        return ""
    moves = [
        f"{c.pool}{f'#{c.fabric_domain}' if c.fabric_domain else ''} {change.before[c.id]} to {change.after[c.id]}"
        for c in candidates
        if change.before[c.id] or change.after[c.id]
    ]
    return f" (meant for {', '.join(moves)})" if moves else ""


def gauge_of(change: Change) -> str:
    """The series that says the count of a VariantAutoscaling."""
    target = change.target
    labels = f'variant_name="{target.scaler_name}",namespace="{target.namespace}"'
    accelerator = f'accelerator_type="{target.candidates[0].accelerator}"'
    return f"{GAUGE}{{{labels},{accelerator}}} {change.new}"


def not_done(step: Step) -> str:
    """A step that no object carries out."""
    if step.resize is not None:
        return resize_sentence(step, step.resize)
    if step.candidate is None:
        counts = f"from {step.before} to {counted(step.after, 'node')}"
        return f"Not done here: the nodes added to pool {step.pool}, {counts}."
    counts = f"from {step.before} to {counted(step.after, 'replica')}"
    return (
        f"Not done here, for want of an object: {step.service}/{step.variant} in pool {step.pool}, {counts}."
    )


def calls_behind(step: Step) -> list[str]:
    """The very calls of a resize, for people to compare or to send themselves; none for other steps."""
    return [] if step.resize is None else list(resize_calls(step, step.resize))


def gauges_of(route: Route) -> Iterator[str]:
    """The series at the end that a control plane has to emit, since a VariantAutoscaling has no count."""
    for change in route.ends:
        if change.target.object.scaler == "variantautoscaling" and change.old != change.new:
            yield gauge_of(change)


def left_to_do(route: Route) -> Iterator[str]:
    """Whatever of a plan no object and no command carries out, wave by wave."""
    for number, stage in enumerate(route.stages, start=1):
        for step in stage.elsewhere:
            yield f"wave {number}: {not_done(step)}"
        for change in stage.swaps:
            yield f"wave {number}: {counts_of(change)}; no command moves replicas between the places of one object."
