"""Rescale: under contention a group of services moves towards priority-weighted shares of its GPUs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.saturation.published.capacity import (
    BOTH,
    UNBOUNDED,
    AnalyzerSignal,
    Reason,
    ServiceState,
    Targets,
    VariantState,
    anchor_of,
    by_efficiency,
    check_unique,
    current_targets,
    roles_of,
    voters_of,
)
from planner.saturation.published.cost_aware import dearest_first, shed
from planner.saturation.published.fair_share import fair_share
from planner.saturation.published.limiters import Budget
from planner.saturation.published.water_filling import Claim, split_by_weight, water_fill

__all__ = ["RescaleScope", "demand_gpus", "rescale", "rescaled_fair_share"]


@dataclass(frozen=True, slots=True)
class RescaleScope:
    """Where rescale is switched on: the cluster budget, and the quotas of these namespaces, each by itself."""

    cluster: bool = True
    namespaces: frozenset[str] = frozenset()

    def covers(self, namespace: str, *, closed: bool) -> bool:
        """Whether a service takes part; a namespace with a quota of its own obeys its own switch only."""
        return namespace in self.namespaces if closed else self.cluster


def rescaled_fair_share(
    services: Sequence[ServiceState], budget: Budget | None, scope: RescaleScope
) -> tuple[dict[str, Targets], Budget]:
    """Fair share with the rescale pass before it: services in contended groups are settled there, the rest after.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/greedy_score_optimizer.go (rescale pre-pass).

    Raises:
        ValueError: two services share a key, or two variants of one a name.
    """
    settled, left = rescale(services, budget or Budget(), scope)
    others, left = fair_share([service for service in services if service.key not in settled], left)
    return {service.key: (settled | others)[service.key] for service in services}, left


def rescale(
    services: Sequence[ServiceState], budget: Budget, scope: RescaleScope
) -> tuple[dict[str, Targets], Budget]:
    """Targets of the services in contended groups, and the budget after what they took.

    A group is one accelerator type in one budget scope. It is contended when its services' demand in GPUs exceeds its
    free GPUs plus what it holds. Services spread over several types are left out. Reclaimed GPUs are not handed out in
    this cycle: growth draws on what is free now, by priority descending, then key ascending.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/rescale.go.

    Raises:
        ValueError: two services share a key, or two variants of one a name.
    """
    check_unique(services)
    answers: dict[str, Targets] = {}
    for (kind, name), group in sorted(_groups(services, budget, scope).items()):
        listed = budget.namespaces[name] if name else budget.cluster
        free = listed.get(kind, 0)
        if free >= UNBOUNDED:
            continue
        total = free + sum(_held(member.service.variants) for member in group)
        if sum(_demand_of(member) for member in group) <= total:
            continue
        shares = water_fill([_claim(member, total) for member in group], total)
        for member in sorted(group, key=lambda one: (-one.service.priority, one.service.key)):
            key, namespace = member.service.key, member.service.namespace
            # Physical GPUs bound what a namespace may fill this cycle, its quota bounds only the share.
            targets, taken = _settle(member, shares.gpus[key], free=max(0, budget.free(namespace, kind)))
            budget = budget.spend(namespace, kind, taken)
            answers[key] = _explained(member.service, targets, conflict=shares.conflict)
    return answers, budget


def demand_gpus(service: ServiceState, anchor: AnalyzerSignal, role: str) -> int:
    """GPUs that a role's whole demand needs: replicas of its most efficient variant, rounded up, times their GPUs.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/rescale.go (role demand in GPUs).
    """
    efficient = by_efficiency(_placed(service.serving(role)), anchor)
    if not efficient:
        return 0
    return max(0, math.ceil(anchor.demand_of(role) / anchor.size_of(efficient[0]))) * efficient[0].gpus


@dataclass(frozen=True, slots=True)
class _Member:
    """A service of a group and the analyzer that sizes it."""

    service: ServiceState
    anchor: AnalyzerSignal


def _groups(
    services: Sequence[ServiceState], budget: Budget, scope: RescaleScope
) -> dict[tuple[str, str], list[_Member]]:
    """Members by (accelerator type, namespace with a quota or empty for the cluster)."""
    groups: dict[tuple[str, str], list[_Member]] = {}
    for service in services:
        anchor = anchor_of(service)
        closed = service.namespace in budget.namespaces
        kinds = {variant.accelerator for variant in service.variants if variant.accelerator}
        if anchor is None or len(kinds) != 1 or not scope.covers(service.namespace, closed=closed):
            continue
        key = (kinds.pop(), service.namespace if closed else "")
        groups.setdefault(key, []).append(_Member(service, anchor))
    return groups


def _claim(member: _Member, total: int) -> Claim:
    """What a service brings to the water-filling; without a ceiling on every variant the group's GPUs are its ceiling."""
    variants = _placed(member.service.variants)
    bounded = all(variant.room_above(0) < UNBOUNDED for variant in variants)
    most = sum(variant.room_above(0) * variant.gpus for variant in variants) if bounded else total
    floor = sum(variant.floor * variant.gpus for variant in variants)
    return Claim(
        id=member.service.key,
        priority=member.service.priority,
        demand=member.anchor.demand_of(BOTH),
        floor_gpus=floor,
        cap_gpus=max(floor, min(_demand_of(member), most)),
    )


def _settle(member: _Member, share: int, *, free: int) -> tuple[dict[str, int], int]:
    """Move one service towards its share; returns targets and the GPUs taken from `free`."""
    targets = current_targets(member.service)
    variants = _placed(member.service.variants)
    by_role = {role: [one for one in variants if one.serves == role] for role in roles_of(variants)}
    held = {role: _held(ones) for role, ones in by_role.items()}
    shares = split_by_weight(
        share,
        weights={role: demand_gpus(member.service, member.anchor, role) for role in by_role},
        fallback=held,
        floors={role: sum(one.floor * one.gpus for one in ones) for role, ones in by_role.items()},
    )
    taken = 0
    for role, ones in by_role.items():
        if shares[role] < held[role]:
            _reclaim(member, ones, targets, held[role] - shares[role])
        else:
            taken += _fill(member, ones, targets, min(shares[role] - held[role], free - taken))
    return targets, taken


def _reclaim(member: _Member, variants: Sequence[VariantState], targets: dict[str, int], gpus: int) -> None:
    """Shed whole replicas worth at most `gpus`, dearest first, with the protections of scale-down."""
    left = gpus

    def allowed(variant: VariantState) -> int:
        return left // variant.gpus

    def removed(variant: VariantState, count: int) -> None:
        nonlocal left
        left -= count * variant.gpus

    order = dearest_first(variants, voters_of(member.service))
    shed(order, targets, anchor=member.anchor, allowed=allowed, removed=removed)


def _fill(member: _Member, variants: Sequence[VariantState], targets: dict[str, int], gpus: int) -> int:
    """Add whole replicas worth at most `gpus`, lowest cost / PRC first; returns the GPUs taken."""
    taken = 0
    for variant in by_efficiency(variants, member.anchor):
        count = min((gpus - taken) // variant.gpus, variant.room_above(targets[variant.name]))
        targets[variant.name] += max(0, count)
        taken += max(0, count) * variant.gpus
    return taken


def _explained(service: ServiceState, targets: Mapping[str, int], *, conflict: bool) -> Targets:
    """Targets with rescale's own reasons."""
    words = {Reason.SCALE_UP: Reason.FILLED, Reason.SCALE_DOWN: Reason.RECLAIMED}
    moved = Targets.moved(service, targets)
    reasons = {name: words.get(reason, reason) for name, reason in moved.reasons.items()}
    return replace(moved, reasons=reasons, conflict=conflict)


def _demand_of(member: _Member) -> int:
    """Demand of a service in GPUs, all roles together."""
    roles = roles_of(_placed(member.service.variants))
    return sum(demand_gpus(member.service, member.anchor, role) for role in roles)


def _held(variants: Sequence[VariantState]) -> int:
    """GPUs that variants hold now."""
    return sum(variant.current * variant.gpus for variant in _placed(variants))


def _placed(variants: Sequence[VariantState]) -> list[VariantState]:
    """Variants whose accelerator is named; the others are not counted."""
    return [variant for variant in variants if variant.accelerator]
