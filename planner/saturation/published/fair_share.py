"""Fair share (GreedyByScore): services that need more split scarce GPUs around the mean of what they miss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heapify, heappop, heapreplace

from planner.saturation.published.amounts import Number
from planner.saturation.published.capacity import (
    BOTH,
    AnalyzerSignal,
    Reason,
    ServiceState,
    Targets,
    VariantState,
    anchor_of,
    by_efficiency,
    check_unique,
    current_targets,
    sum_of,
    voters_of,
)
from planner.saturation.published.cost_aware import scale_down
from planner.saturation.published.limiters import Budget
from planner.saturation.published.pairing import (
    Demand,
    Pick,
    grow_jointly,
    largest,
    required_of,
    roles_asked,
)

__all__ = ["fair_share", "share_value"]


def fair_share(services: Sequence[ServiceState], budget: Budget | None) -> tuple[dict[str, Targets], Budget]:
    """Targets by service key and the budget that is left.

    A service that misses capacity takes part; the others shrink as in cost-aware (no GPU that they free is handed out
    in this cycle). No budget at all (None) denies every growth. Equal services are served by key ascending; the mean is
    an exact sum, so the order of the input does not matter.

    The roles of a service pick at the same moment, each looking at the same free GPUs. Where they draw on one pool, the last
    round may take more than it has, as published: such a service has `conflict`, and the budget left is below 0.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/greedy_score_optimizer.go.

    Raises:
        ValueError: two services share a key, or two variants of one a name.
    """
    check_unique(services)
    pool = _Pool(budget or Budget())
    answers: dict[str, Targets] = {}
    working: list[_Work] = []
    for service in services:
        work = _work(service)
        if work is None:
            answers[service.key] = scale_down(service)
        else:
            working.append(work)
    _share(working, pool)
    answers.update((work.service.key, _answer(work)) for work in working)
    return {service.key: answers[service.key] for service in services}, pool.budget


def share_value(priority: Number, voters: Sequence[AnalyzerSignal], demand: Demand) -> Number:
    """Priority x sum over analyzers of score x missing capacity of all roles; if that is 0, the largest missing capacity.

    So priority 0 or score 0 does not silence a service, it only takes away its weight.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/greedy_score_optimizer.go (fair-share value).
    """
    weighted = sum_of(
        signal.score * sum_of(entry.values()) for signal, entry in zip(voters, demand, strict=True)
    )
    value = priority * weighted
    return value if value > 0 else max((0, *(amount for entry in demand for amount in entry.values())))


@dataclass(slots=True)
class _Pool:
    """The budget as it is spent during one call."""

    budget: Budget


@dataclass(slots=True)
class _Work:
    """One service during one call: what it still misses and has been given."""

    service: ServiceState
    anchor: AnalyzerSignal
    voters: tuple[AnalyzerSignal, ...]
    roles: tuple[str, ...]
    missing: Demand
    remaining: Number
    targets: dict[str, int]
    overdrawn: bool = False

    @property
    def single(self) -> bool:
        """Whether the service tells no roles apart."""
        return self.roles == (BOTH,)


def _work(service: ServiceState) -> _Work | None:
    """The start of a service that misses capacity, or None."""
    anchor, voters = anchor_of(service), voters_of(service)
    missing = required_of(voters)
    remaining = share_value(service.priority, voters, missing)
    if anchor is None or remaining <= 0:
        return None
    return _Work(service, anchor, voters, roles_asked(voters), missing, remaining, current_targets(service))


def _share(working: Sequence[_Work], pool: _Pool) -> None:
    """The loop: the service that misses most is brought to the mean, until nobody misses anything or no GPU is left.

    A service leaves the loop when it gained nothing, is still above the mean, or misses nothing.
    """
    active = [(-work.remaining, work.service.key, work) for work in working]
    heapify(active)
    whole = sum((Fraction(work.remaining) for work in working), Fraction(0))
    while active and not pool.budget.exhausted:
        first = active[0][2]
        before = first.remaining
        mean = (float(whole) if isinstance(before, float) else whole) / len(active)
        gained = _allocate(first, before - _level(before, mean, len(active)), pool)
        stays = gained and 0 < first.remaining <= mean
        whole += (Fraction(first.remaining) if stays else 0) - Fraction(before)
        if stays:
            heapreplace(active, (-first.remaining, first.service.key, first))
        else:
            heappop(active)


def _level(remaining: Number, mean: Number, active: int) -> Number:
    """The value the first service is brought down to: the mean, 0 if it is alone, below the mean among equals."""
    if active == 1:
        return 0
    return mean - remaining / active if remaining <= mean else mean


def _allocate(work: _Work, target: Number, pool: _Pool) -> bool:
    """Grow one service by at most `target` per role; True if it misses less than before.

    `target` is a share value and caps capacities, as published: with priority or score other than 1 the two differ.
    Without roles, what is missing shrinks by each analyzer's own PRC. With roles the published code starts every call
    from the original requirement and measures what remains against the cap, so such a service leaves the loop once its
    first share is served.
    """
    if target <= 0:
        return False
    before = work.remaining
    capped = [{role: min(entry.get(role, 0), target) for role in work.roles} for entry in work.missing]

    def pick(role: str) -> Pick | None:
        return _pick(work, role, target, pool.budget)

    def commit(variant: VariantState, count: int) -> None:
        work.targets[variant.name] += count
        pool.budget = pool.budget.spend(work.service.namespace, variant.accelerator, count * variant.gpus)
        work.overdrawn |= pool.budget.free(work.service.namespace, variant.accelerator) < 0
        if work.single:
            _serve(work, variant, count)

    left = grow_jointly(work.voters, capped, roles=work.roles, pick=pick, commit=commit)
    work.remaining = share_value(work.service.priority, work.voters, work.missing if work.single else left)
    return work.remaining < before


def _pick(work: _Work, role: str, target: Number, budget: Budget) -> Pick | None:
    """The variant with the lowest cost / PRC that has GPUs and room for a replica, ties by name."""
    for variant in by_efficiency(work.service.serving(role), work.anchor):
        size = work.anchor.size_of(variant)
        fitting = budget.free(work.service.namespace, variant.accelerator) // variant.gpus
        most = min(math.ceil(target / size), fitting, variant.room_above(work.targets[variant.name]))
        if most > 0:
            return Pick(variant, size, most)
    return None


def _serve(work: _Work, variant: VariantState, count: int) -> None:
    """Book replicas against what each analyzer misses, in its own unit; no size, no booking."""
    for signal, entry in zip(work.voters, work.missing, strict=True):
        entry[BOTH] = max(0, entry.get(BOTH, 0) - count * max(0, signal.size_of(variant)))


def _answer(work: _Work) -> Targets:
    """The targets of a service that took part, with what it still misses by the anchor's count."""
    moved = Targets.moved(work.service, work.targets)
    left = {role: max(0, largest(required_of(work.voters), role) - _added(work, role)) for role in work.roles}
    unmet = {role: amount for role, amount in left.items() if amount > 0}
    limited = {
        variant.name
        for variant in work.service.variants
        if variant.serves in unmet and _could_grow(work, variant)
    }
    reasons: Mapping[str, Reason] = {
        name: Reason.GPUS_EXHAUSTED if name in limited else reason for name, reason in moved.reasons.items()
    }
    return replace(moved, reasons=reasons, limited=frozenset(limited), conflict=work.overdrawn, unmet=unmet)


def _added(work: _Work, role: str) -> Number:
    """Capacity given to a role, by the anchor's sizes."""
    return sum_of(
        (work.targets[variant.name] - variant.current) * work.anchor.size_of(variant)
        for variant in work.service.serving(role)
    )


def _could_grow(work: _Work, variant: VariantState) -> bool:
    """Whether only GPUs stand between a variant and one more replica."""
    return work.anchor.size_of(variant) > 0 and variant.room_above(work.targets[variant.name]) > 0
