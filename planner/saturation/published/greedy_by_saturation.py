"""Greedy-by-Saturation: of the variants that ask to grow, the fullest gets GPUs first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.saturation.published.amounts import Number
from planner.saturation.published.capacity import UNBOUNDED, Reason, VariantState, direction
from planner.saturation.published.limiters import known_type

__all__ = ["Grant", "Growth", "Limiter", "greedy_by_saturation", "limit_in_sequence"]

Limiter = Mapping[str, int]
"""Free GPUs by accelerator type; a negative count means unlimited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """One variant's wish.

    Attributes:
        service: key of its service.
        variant: the variant as it runs.
        target: replicas wished for; a wish at or below `current` is left as it is.
        headroom: residual headroom δ, the spare capacity that orders the wishes; smaller = fuller.
    """

    service: str
    variant: VariantState
    target: int
    headroom: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What one wish became.

    Attributes:
        growth: the wish.
        target: replicas granted.
        gpus: GPUs taken from the pool. A minimum may exceed what the pool had: then
            (target - current) x GPUs is more than this, and the reason says so.
        limited: fewer replicas than wished for want of GPUs (a ceiling does not count).
        reason: why.
        rank: place in the order of service, 0 first; None if it did not ask to grow.
    """

    growth: Growth
    target: int
    gpus: int
    limited: bool
    reason: Reason
    rank: int | None


def greedy_by_saturation(growths: Sequence[Growth], free: Limiter) -> tuple[Grant, ...]:
    """Hand out GPUs by headroom ascending, then cost ascending, until the pools are empty; answers in input order.

    Each wish is capped by its ceiling, then granted whole replicas only. A minimum is a hard floor even without GPUs,
    so the answer may exceed the budget: such a grant is `limited` with reason `minimum-without-gpus`. A ceiling below
    what runs lowers the target to it, minimum or not (as published). Further ties, which the published sort leaves
    open, go by service, then variant name.

    Source: WVA (arXiv 2603.09730) section on the Global Optimizer, constrained mode; llm-d autoscaling v0.9,
    internal/engines/pipeline/greedy_saturation_algorithm.go.
    """
    left = {kind: UNBOUNDED if gpus < 0 else gpus for kind, gpus in free.items()}
    grants: dict[int, Grant] = {}
    asking = [index for index, growth in enumerate(growths) if growth.target > growth.variant.current]
    for rank, index in enumerate(sorted(asking, key=lambda index: _urgency(growths[index]))):
        growth = growths[index]
        kind = known_type(growth.variant.accelerator, left)
        grant = _grant(growth, left[kind] if kind is not None else 0, rank)
        if kind is not None and left[kind] < UNBOUNDED:
            left[kind] -= grant.gpus
        grants[index] = grant
    return tuple(grants.get(index) or _untouched(growth) for index, growth in enumerate(growths))


def limit_in_sequence(growths: Sequence[Growth], limiters: Sequence[Limiter | None]) -> tuple[Grant, ...]:
    """The composite limiter: each limiter in turn cuts what the one before has granted.

    A grant tells of the original wish: GPUs are those of the last limiter, `limited` is set if any limiter cut it. A
    limiter that cannot answer (None) leaves all wishes as they are, unconstrained: the published limiter fails open.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline (composite limiter).
    """
    if not limiters or any(limiter is None for limiter in limiters):
        return tuple(_untouched(growth) for growth in growths)
    wishes = list(growths)
    limited = [False] * len(wishes)
    reasons: list[Reason | None] = [None] * len(wishes)
    grants: tuple[Grant, ...] = ()
    for limiter in limiters:
        grants = greedy_by_saturation(wishes, limiter or {})
        for index, grant in enumerate(grants):
            if grant.limited or grant.reason is Reason.MAXIMUM:
                reasons[index] = grant.reason
            limited[index] |= grant.limited
            wishes[index] = replace(wishes[index], target=grant.target)
    return tuple(
        replace(grant, growth=growth, limited=cut, reason=reason or grant.reason)
        for grant, growth, cut, reason in zip(grants, growths, limited, reasons, strict=True)
    )


def _urgency(growth: Growth) -> tuple[Number, Number, str, str]:
    """Sort key: smaller is served earlier."""
    return growth.headroom, growth.variant.cost, growth.service, growth.variant.name


def _grant(growth: Growth, free: int, rank: int) -> Grant:
    """One wish against the GPUs that are free for it."""
    variant = growth.variant
    wished = growth.target - variant.current
    ceiling = variant.room_above(0)
    wanted = min(growth.target, ceiling) - variant.current
    if wanted <= 0:
        return Grant(growth=growth, target=ceiling, gpus=0, limited=False, reason=Reason.MAXIMUM, rank=rank)
    given = min(wanted, free // variant.gpus)
    target = max(variant.current + given, variant.floor)
    if target > variant.current + given:
        reason = Reason.MINIMUM_WITHOUT_GPUS
    elif given < wanted:
        reason = Reason.GPUS_EXHAUSTED
    else:
        reason = Reason.MAXIMUM if wanted < wished else Reason.SCALE_UP
    return Grant(
        growth=growth,
        target=target,
        gpus=given * variant.gpus,
        limited=given < wanted,
        reason=reason,
        rank=rank,
    )


def _untouched(growth: Growth) -> Grant:
    """A wish that passes as it is and takes nothing from the pools."""
    reason = direction(growth.variant.current, growth.target)
    return Grant(growth=growth, target=growth.target, gpus=0, limited=False, reason=reason, rank=None)
