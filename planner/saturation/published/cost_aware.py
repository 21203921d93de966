"""Cost-aware scaling of one service without any GPU budget."""

from __future__ import annotations

import math
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import replace

from planner.saturation.published.amounts import Number
from planner.saturation.published.capacity import (
    AnalyzerSignal,
    ServiceState,
    Targets,
    VariantState,
    anchor_of,
    by_efficiency,
    current_targets,
    roles_of,
    sum_of,
    voters_of,
)
from planner.saturation.published.pairing import (
    Pick,
    grow_jointly,
    largest,
    needs_more,
    required_of,
    roles_asked,
)

__all__ = ["cost_aware", "dearest_first", "scale_down", "scale_up", "shed"]


def cost_aware(service: ServiceState) -> Targets:
    """Targets of one service: it grows if any analyzer misses capacity in any role, else it may shrink.

    Never both: a shortage of decode postpones the release of prefill to a later cycle. Held if no analyzer can size
    the variants.

    Source: WVA (arXiv 2603.09730) unconstrained mode; llm-d autoscaling v0.9,
    internal/engines/pipeline/cost_aware_optimizer.go.
    """
    return scale_up(service) if needs_more(required_of(voters_of(service))) else scale_down(service)


def scale_up(service: ServiceState) -> Targets:
    """Grow the variants with the lowest cost / PRC until every analyzer is covered in every role (up = maximum).

    The ceiling of a variant sends the rest to the next; pending replicas keep nobody from being picked. Ties of
    cost / PRC go to the name that sorts first. What nobody could cover is in `unmet`.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/cost_aware_optimizer.go (role pick).
    """
    anchor = anchor_of(service)
    if anchor is None:
        return Targets.held(service)
    voters = voters_of(service)
    roles = roles_asked(voters)
    targets = current_targets(service)

    def pick(role: str) -> Pick | None:
        for variant in by_efficiency(service.serving(role), anchor):
            room = variant.room_above(targets[variant.name])
            if room > 0:
                return Pick(variant, anchor.size_of(variant), room)
        return None

    def commit(variant: VariantState, count: int) -> None:
        targets[variant.name] += count

    missing = grow_jointly(voters, required_of(voters), roles=roles, pick=pick, commit=commit)
    left = {role: largest(missing, role) for role in roles if largest(missing, role) > 0}
    return replace(Targets.moved(service, targets), unmet=left)


def scale_down(service: ServiceState) -> Targets:
    """Shrink the dearest variants of each role while every live analyzer has spare capacity (down = unanimous minimum).

    Analyzers that are not live neither veto nor permit; if none is live nothing shrinks.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/cost_aware_optimizer.go (role-iterated scale-down).
    """
    anchor = anchor_of(service)
    if anchor is None:
        return Targets.held(service)
    voters = voters_of(service)
    live = [signal for signal in voters if signal.live]
    targets = current_targets(service)
    for role in roles_of(service.variants):
        spare = [signal.spare.get(role, 0) for signal in live]
        if live and min(spare) > 0:
            order = dearest_first(service.serving(role), voters)
            _release(order, targets, anchor=anchor, live=live, spare=spare)
    return Targets.moved(service, targets)


def dearest_first(variants: Sequence[VariantState], voters: Sequence[AnalyzerSignal]) -> list[VariantState]:
    """Variants by cost descending, then score-weighted PRC ascending, then name ascending.

    Among equally dear ones the most capable stands last, which is the place that keeps one replica.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/cost_aware_optimizer.go (scale-down order).
    """

    def weight(variant: VariantState) -> Number:
        return sum_of(signal.score * signal.size_of(variant) for signal in voters)

    return sorted(variants, key=lambda variant: (-variant.cost, weight(variant), variant.name))


def shed(
    order: Sequence[VariantState],
    targets: MutableMapping[str, int],
    *,
    anchor: AnalyzerSignal,
    allowed: Callable[[VariantState], int],
    removed: Callable[[VariantState, int], None],
) -> None:
    """Take replicas away in the given order, within what `allowed` says, down to each variant's minimum.

    The last variant of the order keeps one replica, but only if none before it holds any. A variant without a size is
    passed over; if it stands last, nobody has that protection (as published).

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/cost_aware_optimizer.go (variant set scale-down).
    """
    for place, variant in enumerate(order):
        current = targets[variant.name]
        removable = current - variant.floor
        if anchor.size_of(variant) <= 0 or removable <= 0:
            continue
        count = min(allowed(variant), removable)
        last = place == len(order) - 1
        if last and current - count < 1 and all(targets[dearer.name] <= 0 for dearer in order[:place]):
            count = current - 1
        if count > 0:
            targets[variant.name] = current - count
            removed(variant, count)


def _release(
    order: Sequence[VariantState],
    targets: MutableMapping[str, int],
    *,
    anchor: AnalyzerSignal,
    live: Sequence[AnalyzerSignal],
    spare: list[Number],
) -> None:
    """Shed the replicas that all live analyzers can spare; `spare` (one entry per live analyzer) is used up."""

    def allowed(variant: VariantState) -> int:
        counts = [
            math.floor(left / signal.size_of(variant))
            for signal, left in zip(live, spare, strict=True)
            if signal.size_of(variant) > 0
        ]
        return max(0, min(counts, default=0))

    def removed(variant: VariantState, count: int) -> None:
        for index, signal in enumerate(live):
            spare[index] = max(0, spare[index] - count * max(0, signal.size_of(variant)))

    shed(order, targets, anchor=anchor, allowed=allowed, removed=removed)
