"""Targets of the percentage analyzer: one replica more on the cheapest variant, or one fewer on the dearest.

Source: llm-d autoscaling v0.9 and @4fcefe6b, internal/saturationv1 (targets). Roles are looked at one by one, as the
later of the two does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from planner.saturation.published import Reason, Targets, VariantState
from planner.saturation.published.enforcer import DEFAULT_COST
from planner.saturation.signal import SaturationSignal

__all__ = ["Shifting", "shift_one", "shift_roles"]

_ONE: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifting:
    """One variant under the percentage analyzer.

    Attributes:
        state: the variant; ``current`` is what its scale target asks for.
        desired: what was last decided for it; None or 0: nothing.
    """

    state: VariantState
    desired: int | None = None

    @property
    def in_transition(self) -> bool:
        """Whether an earlier decision has not arrived yet."""
        return self.state.pending > 0 or bool(self.desired and self.desired != self.state.current)

    @property
    def held_at(self) -> int:
        """What a variant in transition is to be: the decision that is under way, else what runs."""
        return self.desired or self.state.current


def shift_one(variants: Sequence[Shifting], signal: SaturationSignal, *, spill: bool = False) -> Targets:
    """Targets of variants that pool together (one service, one role).

    While any of them is in transition all keep what is under way, bounds or not. Otherwise at most one changes by one:
    up the cheapest (ties: the name that sorts first), else, where scaling in is safe, down the dearest that has more
    than one (ties: the name that sorts last). Then each is held in its bounds.
    """
    if any(one.in_transition for one in variants):
        return Targets(
            replicas={one.state.name: one.held_at for one in variants},
            reasons={one.state.name: Reason.HELD for one in variants},
        )
    targets = {one.state.name: one.state.current for one in variants}
    growing = [one for one in variants if not spill or one.state.room_above(one.state.current) > 0]
    if signal.scale_up and growing:
        targets[min(growing, key=_cost_then_name).state.name] += 1
    elif signal.scale_in_safe:
        larger = [one for one in variants if one.state.current > _ONE]
        if larger:
            targets[max(larger, key=_cost_then_name).state.name] -= 1
    return _clamped(variants, targets)


def shift_roles(
    variants: Sequence[Shifting], signals: Mapping[str, SaturationSignal | None], *, spill: bool = False
) -> Targets:
    """Targets of a whole service, each role by its own signal; a role without a signal (no metrics) is held."""
    replicas: dict[str, int] = {}
    reasons: dict[str, Reason] = {}
    for role in sorted({one.state.serves for one in variants}):
        group = [one for one in variants if one.state.serves == role]
        signal = signals.get(role)
        if signal is None:
            replicas |= {one.state.name: one.held_at for one in group}
            reasons |= dict.fromkeys((one.state.name for one in group), Reason.HELD)
        else:
            found = shift_one(group, signal, spill=spill)
            replicas |= found.replicas
            reasons |= found.reasons
    return Targets(replicas=replicas, reasons=reasons)


def _clamped(variants: Sequence[Shifting], targets: Mapping[str, int]) -> Targets:
    replicas, reasons = {}, {}
    for one in variants:
        state, wanted = one.state, targets[one.state.name]
        ceiling = max(state.floor, state.room_above(0))
        replicas[state.name] = max(state.floor, min(wanted, ceiling))
        moved = replicas[state.name] - state.current
        reason = Reason.SCALE_UP if moved > 0 else Reason.SCALE_DOWN if moved < 0 else Reason.STEADY
        reasons[state.name] = Reason.MAXIMUM if replicas[state.name] < wanted else reason
    return Targets(replicas=replicas, reasons=reasons)


def _cost_then_name(one: Shifting) -> tuple[float, str]:
    cost = one.state.cost
    return float(cost if cost > 0 else DEFAULT_COST), one.state.name
