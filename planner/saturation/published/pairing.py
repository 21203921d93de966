"""The scale-up loop that cost-aware and fair-share have in common: all roles of a service grow together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planner.saturation.published.amounts import Number
from planner.saturation.published.capacity import AnalyzerSignal, VariantState

__all__ = ["Demand", "Pick", "Picker", "grow_jointly", "largest", "needs_more", "required_of", "roles_asked"]

Demand = list[dict[str, Number]]
"""Capacity still missing: one mapping role -> capacity per voting analyzer, in the voters' order."""


@dataclass(frozen=True, slots=True)
class Pick:
    """The variant that would grow next for a role, its size to the anchor and the most replicas it may get."""

    variant: VariantState
    size: Number
    most: int


Picker = Callable[[str], Pick | None]
"""Chooses for a role, looking at targets and budgets as they are at that moment; None = nobody can grow."""

Commit = Callable[[VariantState, int], None]
"""Told of every variant and the replicas it gets."""


def required_of(voters: Sequence[AnalyzerSignal]) -> Demand:
    """A fresh copy of what each voter requires."""
    return [dict(signal.required) for signal in voters]


def roles_asked(voters: Sequence[AnalyzerSignal]) -> tuple[str, ...]:
    """The roles that any voter speaks of, in required or in spare capacity, sorted."""
    return tuple(sorted({role for signal in voters for role in (*signal.required, *signal.spare)}))


def largest(demand: Demand, role: str) -> Number:
    """The largest capacity that any voter still misses in `role`; never negative."""
    return max((0, *(entry.get(role, 0) for entry in demand)))


def needs_more(demand: Demand) -> bool:
    """Whether any voter still misses capacity in any role."""
    return any(amount > 0 for entry in demand for amount in entry.values())


def grow_jointly(
    voters: Sequence[AnalyzerSignal], demand: Demand, *, roles: Sequence[str], pick: Picker, commit: Commit
) -> Demand:
    """Add replicas round by round until nothing is missing or some role cannot grow; returns what is still missing.

    A round picks one variant per role; if one role has none, nothing of the round is committed. Every role is sized by
    itself (the most demanding analyzer), then all are cut to the smallest share of its demand that any role reaches, so
    prefill does not outrun decode. `commit` hears of every growth before `pick` is asked again.

    Known departure from what one would write today, kept as published: every analyzer's demand shrinks by replicas x
    the anchor's PRC, although analyzers count in different units.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/analyzer_helpers.go (paired allocation).
    """
    missing = [dict(entry) for entry in demand]
    while needs_more(missing):
        picks = _pick_all(roles, pick)
        grown = _matched_growth(voters, missing, picks) if picks else {}
        if not picks or not any(grown.values()):
            break
        for role, count in grown.items():
            commit(picks[role].variant, count)
        missing = [
            _less(entry, {role: grown[role] * picks[role].size for role in grown}) for entry in missing
        ]
    return missing


def _less(missing: Mapping[str, Number], given: Mapping[str, Number]) -> dict[str, Number]:
    """What is missing by role after capacity was given; never negative."""
    return {**missing, **{role: max(0, missing.get(role, 0) - amount) for role, amount in given.items()}}


def _pick_all(roles: Sequence[str], pick: Picker) -> dict[str, Pick] | None:
    """One pick per role, or None if any role has none."""
    picks: dict[str, Pick] = {}
    for role in roles:
        chosen = pick(role)
        if chosen is None:
            return None
        picks[role] = chosen
    return picks


def _matched_growth(
    voters: Sequence[AnalyzerSignal], demand: Demand, picks: dict[str, Pick]
) -> dict[str, int]:
    """Replicas per role after cutting every role to the least served one; all 0 when a role gets nothing it needs."""
    alone = {
        role: min(_bottleneck(voters, demand, role, chosen), chosen.most) for role, chosen in picks.items()
    }
    missing = {role: largest(demand, role) for role in picks}
    share = min(alone[role] * picks[role].size / missing[role] if missing[role] > 0 else 1 for role in picks)
    if share <= 0:
        return dict.fromkeys(picks, 0)
    return {
        role: max(math.floor(share * missing[role] / chosen.size), min(1, alone[role]))
        if missing[role] > 0
        else 0
        for role, chosen in picks.items()
    }


def _bottleneck(voters: Sequence[AnalyzerSignal], demand: Demand, role: str, chosen: Pick) -> int:
    """Replicas of the chosen variant that the most demanding analyzer wants, each counting in its own unit."""
    wanted = 0
    for signal, entry in zip(voters, demand, strict=True):
        size = signal.size_of(chosen.variant)
        if size > 0:
            wanted = max(wanted, math.ceil(entry.get(role, 0) / size))
    return wanted
