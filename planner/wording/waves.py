"""Waves, what stops them, and the plan near by, as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from models.plan import Plan, Step, StepKind, Stuck, Wave
from models.problem import Resize
from models.report import Assessment, Comparison, FewestMoves
from planner.wording.numbers import money, number, number_up, percent, quantity
from planner.wording.phrases import counted

__all__ = ["near_sentence", "rollout_sentence", "stuck_sentence", "time_span", "wave_sentence"]

_BROKEN: Final = 3
"""Rules that a stuck plan names; more are counted."""

_MINUTES_FROM_S: Final = 180
_HOURS_FROM_S: Final = 3 * 3600

_DO: Final = {
    StepKind.ADD_NODES: "add",
    StepKind.RESIZE: "resize",
    StepKind.CANCEL: "cancel what is on order:",
    StepKind.AWAIT: "wait for what is on order:",
    StepKind.START: "start",
    StepKind.DRAIN: "drain",
    StepKind.REMOVE: "remove",
    StepKind.REMOVE_NODES: "remove",
}


def rollout_sentence(plan: Plan) -> str:
    """How long the way is: ``3 waves, about 7 min, 29 changes; proven to be the fewest waves.``."""
    if not plan.waves:
        return "Nothing changes: what runs is the plan." if plan.stuck is None else "No wave is possible."
    waves = f"{counted(len(plan.waves), 'wave')}, about {time_span(plan.duration_s)}"
    changes = quantity(plan.changes, "change")
    if plan.stuck is not None:
        return f"{waves}, and then no further on the way of {changes}."
    return f"{waves}, {changes}; {'proven' if plan.proven_fewest else 'not proven'} to be the fewest waves."


def wave_sentence(wave: Wave, *, most: int | None = None) -> str:
    """The steps of a wave: ``start 3 × chat/small on east; drain 2 × chat/large on west; about 120 s``.

    Args:
        wave: what.
        most: steps that are named, the others are counted; None: all.
    """
    drained = {step.candidate: step.count for step in wave.steps if step.kind is StepKind.DRAIN}
    told = [
        step
        for step in wave.steps
        if not (step.kind is StepKind.REMOVE and drained.get(step.candidate) == step.count)
        and not step.is_other_side
    ]
    parts = [
        f"{_DO[kind]} {', '.join(map(_what, steps))}"
        for kind, steps in groupby(told[:most], key=lambda step: step.kind)
    ]
    if most is not None and len(told) > most:
        parts.append(f"and {len(told) - most} more steps")
    more = [f"{counted(gpus, 'GPU')} of {pool}" for pool, gpus in sorted(wave.extra_gpus.items()) if gpus]
    if more:
        parts.append(f"takes {' and '.join(more)} more than start and plan")
    # Cancelling takes no time that is known.
    return "; ".join([*parts, *([f"about {time_span(wave.duration_s)}"] if wave.duration_s else [])])


def stuck_sentence(stuck: Stuck) -> str:
    """Why the waves end too early, and what would let them go on."""
    texts = [violation.text.rstrip(".") for violation in stuck.violations[:_BROKEN]]
    hidden = len(stuck.violations) - _BROKEN
    broken = "; ".join([*texts, *([f"and {hidden} more"] if hidden > 0 else [])])
    why = f": the next replica would break a rule ({broken})" if broken else ""
    ways = [" and ".join(way) for way in (_more_gpus(stuck), _less_served(stuck)) if way]
    would = f" What would do: {', or '.join(ways)}." if ways else ""
    least = " Less of either is proven not to do." if stuck.smallest and ways else ""
    tried = " Every order was tried." if stuck.proven else ""
    return f"The waves end before the solution is reached{why}.{would}{least}{tried}"


def near_sentence(found: FewestMoves, answer: Assessment, beside: Sequence[Comparison], unit: str) -> str:
    """What is to be had at almost the same cost.

    Args:
        found: what was found.
        answer: the figures of the plan that it is compared with.
        beside: the answers among which it stands.
        unit: of costs; empty for relative ones.
    """
    within = f"Within {percent(found.within)} of the cost"
    other = next((each.assessment for each in beside if each.name == found.name), None)
    if other is None:
        return f"{within} no plan needs fewer changes."
    cost = f"{money(other.cost)} {unit}".strip()
    waves = found.rollout
    reached = f", {counted(len(waves.waves), 'wave')}" if waves is not None and waves.stuck is None else ""
    doubt = "" if found.proven else "; fewer may do"
    return (
        f"{within} ({cost}, {_difference(other.cost, answer.cost)}): {quantity(other.changes, 'change')} "
        f"instead of {number(answer.changes)}{reached}{doubt}."
    )


def time_span(seconds: float) -> str:
    """A duration as one figure: ``120 s``, ``7 min``, ``3.5 h``."""
    if seconds < _MINUTES_FROM_S:
        return f"{number(seconds, 3)} s"
    if seconds < _HOURS_FROM_S:
        return f"{number(seconds / 60, 2)} min"
    return f"{number(seconds / 3600, 2)} h"


def _what(step: Step) -> str:
    if step.candidate is None:
        way = "from" if step.kind is StepKind.REMOVE_NODES else "to"
        return f"{counted(step.count, 'node')} {way} {step.pool}"
    if step.resize is not None:
        return _resized(step, step.resize)
    return f"{step.count} × {step.service}/{step.variant} on {step.pool}"


def _resized(step: Step, resize: Resize) -> str:
    """``1 × chat/moe@rack from 16 to 20 ranks by C (0.82 s without service)``."""
    before, after = step.ranks or (resize.from_ranks, resize.to_ranks)
    down = f"{time_span(resize.downtime_s)} without service" if resize.downtime_s else "none without service"
    return f"{step.count} × {resize.of} from {before} to {after} ranks by {resize.mode.value} ({down})"


def _difference(value: float, beside: float) -> str:
    if not beside:
        return "the answer costs nothing"
    share = value / beside - 1
    return f"{'+' if share >= 0 else '-'}{percent(abs(share))}"


def _more_gpus(stuck: Stuck) -> list[str]:
    return [f"{counted(gpus, 'GPU')} more in pool {pool}" for pool, gpus in sorted(stuck.extra_gpus.items())]


def _less_served(stuck: Stuck) -> list[str]:
    shares = sorted(stuck.drop.items())
    # Rounded up: what is shown must be enough.
    return [
        f"{number_up(share * 100, 3)} % less of {service} served for a while" for service, share in shares
    ]
