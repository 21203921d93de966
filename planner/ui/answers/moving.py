"""The way to a plan: totals, why it is stuck, steps over time, accelerators in use, and every step as a table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import streamlit as st

from models.plan import Plan, Step, StepKind
from models.problem import Problem
from planner.charts.timeline import held_chart, time_unit, timeline_chart
from planner.rollout.timeline import Bar, Level, bars_of, levels_of
from planner.ui.answers.drawing import show_chart
from planner.ui.answers.frames import show_rows
from planner.ui.words import said, spaced
from planner.wording import number, rollout_sentence, stuck_sentence, time_span

__all__ = ["Way", "held_rows", "lane_rows", "show_way", "step_rows"]

Row = dict[str, Any]

_MOST_LANES: Final = 40
_MOST_POOLS: Final = 12
_OUT: Final = frozenset({StepKind.DRAIN, StepKind.REMOVE, StepKind.CANCEL})
_VIOLATIONS: Final = 20


@dataclass(frozen=True, slots=True)
class Way:
    """What is drawn.

    Attributes:
        problem: that the plan is for.
        plan: the waves.
        undone: the plan that these lead back from; None: they lead to the plan.
    """

    problem: Problem
    plan: Plan
    undone: Plan | None = None


def show_way(way: Way) -> None:
    """Draw it."""
    plan = way.plan
    st.markdown(said(rollout_sentence(plan)))
    if plan.stuck is not None:
        st.error(said(stuck_sentence(plan.stuck)), icon=":material/front_hand:")
        broken = plan.stuck.violations[:_VIOLATIONS]
        if broken:
            st.markdown("**What the next replica would break**")
            st.markdown("\n".join(f"- {said(each.text)}" for each in broken))
    if not plan.waves:
        return
    bars = [bar for bar in bars_of(plan, way.problem) if not bar.step.is_other_side]
    levels = levels_of(plan, way.problem, undone=way.undone)
    _show_totals(plan, bars)
    unit, scale = time_unit(plan.duration_s)
    rows = lane_rows(bars, scale=scale)
    st.header("Steps over time")
    begins = _begins(plan, scale)
    says = f"{number(len(bars))} steps in {number(len(plan.waves))} waves; a thin line stands where a wave begins."
    show_chart(timeline_chart(rows, waves=begins, unit=unit), rows, name="timeline", says=says)
    st.header("GPUs in use")
    _show_levels(levels, unit, scale)
    st.header("Every step")
    show_rows(
        step_rows(bars),
        name="steps",
        says="Every step with its wave, when it begins and how long it takes, and counts before and after.",
        help={
            "before → after": "Replicas that are wanted, or ranks of one that changes its size; a drain and a wait change nothing by themselves.",
            "on nodes": "Where pods start, drain or stop, as far as it is known.",
        },
    )


def _show_totals(plan: Plan, bars: Sequence[Bar]) -> None:
    counts: Counter[StepKind] = Counter()
    for bar in bars:
        counts[bar.step.kind] += bar.step.count
    extra = max((sum(wave.extra_gpus.values()) for wave in plan.waves), default=0)
    gone = counts[StepKind.REMOVE] + counts[StepKind.CANCEL]
    figures = (
        ("Waves", number(len(plan.waves)), "A wave waits for all of the wave before."),
        (
            "Duration",
            time_span(plan.duration_s),
            "Start-up and drain times of the waves, one after the other.",
        ),
        ("Replicas started", number(counts[StepKind.START]), "Moved ones included."),
        ("Replicas stopped", number(gone), "Drained first where they serve; cancelled ones included."),
        ("Extra GPUs", number(extra), "Held on the way above the larger of start and plan, at most."),
    )
    for column, (name, value, meaning) in zip(st.columns(len(figures)), figures, strict=True):
        column.metric(name, spaced(value), help=meaning)


def _begins(plan: Plan, scale: float) -> list[float]:
    begins, now_s = [], 0.0
    for wave in plan.waves:
        begins.append(now_s / scale)
        now_s += wave.duration_s
    return begins


def lane_rows(bars: Sequence[Bar], *, scale: float) -> list[Row]:
    """A row per step with its lane; where there are too many lanes, steps of a pool, wave and kind are one.

    Args:
        bars: of the plan.
        scale: seconds of the unit of time.
    """
    lanes = {_lane(bar) for bar in bars}
    detailed = len(lanes) <= _MOST_LANES
    groups: dict[tuple[str, int, StepKind, float, float], list[Bar]] = defaultdict(list)
    for bar in bars:
        lane = _lane(bar) if detailed else str(bar.step.pool)
        groups[lane, bar.wave, bar.step.kind, bar.start_s, bar.end_s].append(bar)
    rows = [
        {
            "lane": lane,
            "kind": kind.value.replace("_", " "),
            "from": start_s / scale,
            "to": end_s / scale,
            "count": sum(bar.step.count for bar in members),
            "gpus": sum(bar.gpus for bar in members),
            "wave": wave,
        }
        for (lane, wave, kind, start_s, end_s), members in groups.items()
    ]
    return sorted(rows, key=lambda row: (row["lane"], row["from"], row["kind"]))


def _lane(bar: Bar) -> str:
    """Pool first, so that its lanes stand together; what comes and what goes of one candidate apart."""
    step = bar.step
    if step.candidate is None:
        return f"{step.pool}: nodes"
    if step.resize is not None:
        return f"{step.pool}: {step.resize.of.partition('@')[0]} {_ranks(step)}"
    way = "out" if step.kind in _OUT else "in"
    return f"{step.pool}: {step.service}/{step.variant} {way}"


def _ranks(step: Step) -> str:
    """``16 → 20 ranks``; empty for a step that changes no size."""
    return "" if step.ranks is None else "{} → {} ranks".format(*step.ranks)


def held_rows(levels: Sequence[Level], *, scale: float) -> list[Row]:
    """What each pool holds from one moment to the next; the pools that move most.

    Args:
        levels: by pool, then by time.
        scale: seconds of the unit of time.
    """
    of_pool: dict[str, list[Level]] = defaultdict(list)
    for level in levels:
        of_pool[level.pool].append(level)
    moved = {
        pool: max(each.held for each in own) - min(each.held for each in own) for pool, own in of_pool.items()
    }
    shown = sorted(sorted(of_pool), key=lambda pool: -moved[pool])[:_MOST_POOLS]
    return [
        {
            "pool": pool,
            "from": before.at_s / scale,
            "to": after.at_s / scale,
            "held": before.held,
            "there": before.limit,
            "share": _share(before, of_pool[pool]),
        }
        for pool in sorted(shown)
        for before, after in pairwise(of_pool[pool])
        if after.at_s > before.at_s
    ]


def _share(level: Level, own: Sequence[Level]) -> float:
    """How full a pool is; one without a limit is full when it holds most."""
    whole = level.limit if level.limit is not None else max(each.held for each in own)
    return level.held / whole if whole else 0.0


def _show_levels(levels: Sequence[Level], unit: str, scale: float) -> None:
    rows = held_rows(levels, scale=scale)
    if not rows:
        st.caption("All of it takes no time.")
        return
    pools, shown = len({level.pool for level in levels}), len({row["pool"] for row in rows})
    all_of = "" if pools == shown else f" The {shown} of {pools} pools that move most are drawn."
    says = (
        "GPUs that replicas hold (ready, on order, starting or draining), of those that nodes have for us, the darker the "
        f"fuller; left of 0 is now.{all_of}"
    )
    show_chart(held_chart(rows, unit=unit), rows, name="gpus-in-use", says=says)


def step_rows(bars: Sequence[Bar]) -> list[Row]:
    """A line per step."""
    return [
        {
            "wave": bar.wave,
            "step": bar.step.kind.value.replace("_", " "),
            "service": bar.step.service or "",
            "variant": bar.step.variant or "",
            "pool": bar.step.pool,
            "count": bar.step.count,
            "before → after": _ranks(bar.step) or f"{bar.step.before} → {bar.step.after}",
            "GPUs": bar.gpus,
            "begins after": time_span(bar.start_s) if bar.start_s else "0 s",
            "takes": time_span(bar.end_s - bar.start_s) if bar.end_s > bar.start_s else "no time",
            "on nodes": ", ".join(_counted_nodes(bar)),
        }
        for bar in bars
    ]


def _counted_nodes(bar: Bar) -> list[str]:
    return [
        name if count == 1 else f"{name} (×{count})"
        for name, count in sorted(Counter(bar.step.nodes).items())
    ]
