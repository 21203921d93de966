"""Targets of the percentage analyzer: one replica more on the cheapest variant, or one fewer on the dearest.

Source: llm-d autoscaling v0.9 and @4fcefe6b, internal/saturationv1 (targets). Roles are looked at one by one, as the
later of the two does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from planner.saturation.published import Reason, Targets, VariantState
from planner.saturation.published.capacity import direction, roles_of
from planner.saturation.published.enforcer import cost_then_name
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
        return _held(variants)
    states = [one.state for one in variants]
    targets = {state.name: state.current for state in states}
    growing = [state for state in states if not spill or state.room_above(state.current) > 0]
    if signal.scale_up and growing:
        targets[min(growing, key=cost_then_name).name] += 1
    elif signal.scale_in_safe:
        larger = [state for state in states if state.current > _ONE]
        if larger:
            targets[max(larger, key=cost_then_name).name] -= 1
    return _clamped(states, targets)


def shift_roles(
    variants: Sequence[Shifting], signals: Mapping[str, SaturationSignal | None], *, spill: bool = False
) -> Targets:
    """Targets of a whole service, each role by its own signal; a role without a signal (no metrics) is held."""
    replicas: dict[str, int] = {}
    reasons: dict[str, Reason] = {}
    for role in roles_of(one.state for one in variants):
        group = [one for one in variants if one.state.serves == role]
        signal = signals.get(role)
        found = _held(group) if signal is None else shift_one(group, signal, spill=spill)
        replicas |= found.replicas
        reasons |= found.reasons
    return Targets(replicas=replicas, reasons=reasons)


def _held(variants: Sequence[Shifting]) -> Targets:
    replicas = {one.state.name: one.held_at for one in variants}
    return Targets(replicas=replicas, reasons=dict.fromkeys(replicas, Reason.HELD))


def _clamped(states: Sequence[VariantState], targets: Mapping[str, int]) -> Targets:
    replicas, reasons = {}, {}
    for state in states:
        wanted = targets[state.name]
        ceiling = max(state.floor, state.room_above(0))
        replicas[state.name] = max(state.floor, min(wanted, ceiling))
        reason = direction(state.current, replicas[state.name])
        reasons[state.name] = Reason.MAXIMUM if replicas[state.name] < wanted else reason
    return Targets(replicas=replicas, reasons=reasons)
