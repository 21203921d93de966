"""Splitting whole GPUs by weight, with floors, caps and largest remainders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from planner.saturation.published.amounts import Number
from planner.saturation.published.capacity import sum_of

__all__ = ["Claim", "Shares", "split_by_weight", "water_fill"]

_TOLERANCE = 1e-9
"""A share this close to a cap has reached it; published value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One service's part in the split.

    Attributes:
        id: unique; ties go to the id that sorts first.
        priority: at least 0, larger = more.
        demand: its demand, in a unit that all claims share.
        floor_gpus: GPUs it gets in any case.
        cap_gpus: GPUs it gets at most; a cap below the floor counts as the floor.
    """

    id: str
    priority: Number
    demand: Number
    floor_gpus: int = 0
    cap_gpus: int

    @property
    def weight(self) -> Number:
        """Priority x demand."""
        return self.priority * self.demand

    @property
    def above_floor(self) -> int:
        """GPUs between floor and cap."""
        return max(0, self.cap_gpus - self.floor_gpus)


@dataclass(frozen=True, slots=True)
class Shares:
    """GPUs by claim id. `conflict`: the floors alone exceed the budget, so everyone stands at its floor."""

    gpus: Mapping[str, int]
    conflict: bool


def water_fill(claims: Sequence[Claim], budget: int) -> Shares:
    """floor_i + (budget - Σ floor) · w_i / Σ w, capped, the excess split again, rounded by largest remainder.

    The shares sum to at most the budget unless `conflict`. A claim without weight stays at its floor.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/rescale.go (priority-weighted water-filling).

    Raises:
        ValueError: two claims share an id.
    """
    gpus = {claim.id: claim.floor_gpus for claim in claims}
    if len(gpus) != len(claims):
        raise ValueError("claim ids must be unique")
    left = budget - sum(gpus.values())
    if left <= 0:
        return Shares(gpus, conflict=left < 0)
    above = _pour([claim for claim in claims if claim.weight > 0 and claim.above_floor > 0], left)
    rooms = {claim.id: claim.above_floor for claim in claims}
    # Python rounds halves to even, the published code away from zero; the sum is whole here but for the noise of floats.
    for key, count in _whole(above, round(sum_of(above.values())), rooms).items():
        gpus[key] += count
    return Shares(gpus, conflict=False)


def split_by_weight(
    total: int, *, weights: Mapping[str, int], fallback: Mapping[str, int], floors: Mapping[str, int]
) -> dict[str, int]:
    """GPUs of one service by role: floors first, the rest by weight, or by `fallback` where no role has weight.

    One role takes all. Without any weight the rest goes to the role that sorts first. A total below the floors gives
    every role its floor.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/rescale.go (role split).
    """
    roles = sorted(weights)
    if len(roles) <= 1:
        return dict.fromkeys(roles, total)
    left = total - sum(floors[role] for role in roles)
    used = weights if sum(weights.values()) > 0 else fallback
    whole = sum(used[role] for role in roles)
    if left <= 0:
        return {role: floors[role] for role in roles}
    if whole <= 0:
        return {role: floors[role] + (left if role == roles[0] else 0) for role in roles}
    parts = _whole({role: Fraction(left * used[role], whole) for role in roles}, left, None)
    return {role: floors[role] + parts[role] for role in roles}


def _pour(claims: Sequence[Claim], amount: int) -> dict[str, Number]:
    """Fractional shares above the floor; claims that reach their cap leave the rest to the others."""
    active, left = sorted(claims, key=lambda claim: claim.id), amount
    parts: dict[str, Number] = {}
    while active and left > _TOLERANCE:
        weight = sum_of(claim.weight for claim in active)
        shares = {claim.id: left * claim.weight / weight for claim in active}
        full = [claim for claim in active if shares[claim.id] >= claim.above_floor - _TOLERANCE]
        if not full:
            return parts | shares
        parts |= {claim.id: claim.above_floor for claim in full}
        left -= sum(claim.above_floor for claim in full)
        active = [claim for claim in active if claim.id not in parts]
    return parts


def _whole(parts: Mapping[str, Number], total: int, rooms: Mapping[str, int] | None) -> dict[str, int]:
    """Round parts to whole numbers that sum to `total`: floors, then one each by largest remainder, then key."""
    counts = {key: math.floor(part) for key, part in parts.items()}
    left = total - sum(counts.values())
    for key in sorted(parts, key=lambda key: (counts[key] - parts[key], key)):
        if left > 0 and (rooms is None or counts[key] < rooms[key]):
            counts[key] += 1
            left -= 1
    return counts
