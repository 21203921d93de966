"""What the published heuristics read and what they answer: frozen values, nothing else.

Capacity is in whatever unit an analyzer counts (tokens of KV cache, tokens per second); it only has to be the
same unit in one analyzer's required, spare and per-replica capacity. Amounts may be floats, whole numbers or
fractions; of fractions every sum, quotient, floor and ceiling is exact.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from planner.saturation.published.amounts import Number

__all__ = [
    "BOTH",
    "SATURATION",
    "UNBOUNDED",
    "AnalyzerSignal",
    "Reason",
    "ServiceState",
    "Targets",
    "VariantState",
    "anchor_of",
    "by_efficiency",
    "check_unique",
    "current_targets",
    "direction",
    "roles_of",
    "sum_of",
    "voters_of",
]

BOTH: Final = "both"
"""The role of a replica that does prefill and decode, and of a variant that names none."""

SATURATION: Final = "saturation"
"""The analyzer that carries the identity of the variants, and their sizes while it may vote."""

UNBOUNDED: Final = sys.maxsize
"""A count that nothing limits."""


class Reason(StrEnum):
    """Why a variant has the target it has."""

    STEADY = "steady"
    SCALE_UP = "scale-up"
    SCALE_DOWN = "scale-down"
    HELD = "held"
    RECLAIMED = "reclaimed"
    FILLED = "filled"
    MAXIMUM = "maximum"
    GPUS_EXHAUSTED = "gpus-exhausted"
    MINIMUM_WITHOUT_GPUS = "minimum-without-gpus"
    IDLE = "idle"
    KEPT_ONE = "kept-one"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantState:
    """One variant as it runs now.

    Attributes:
        name: unique inside its service.
        accelerator: GPU type; empty or `unknown` when nobody knows.
        cost: cost of one replica, any unit that is the same for all variants of a service.
        per_replica_capacity: PRC, capacity of one replica in the saturation analyzer's unit; 0 = no data.
        current: replicas asked for now.
        role: `prefill`, `decode` or `both`; empty means `both`.
        pending: replicas asked for and not ready. No published rule reads it: pending replicas are already
            inside the anticipated supply that required capacity is measured against.
        min_replicas: floor, None for none.
        max_replicas: ceiling, None or 0 for none.
        gpus_per_replica: GPUs of one replica; 0 or less counts as 1.
        engine: serving engine; the enforcer acts on `vllm` alone.
    """

    name: str
    accelerator: str
    cost: Number
    per_replica_capacity: Number
    current: int
    role: str = BOTH
    pending: int = 0
    min_replicas: int | None = None
    max_replicas: int | None = None
    gpus_per_replica: int = 1
    engine: str = "vllm"

    @property
    def serves(self) -> str:
        """The role, with the empty one read as `both`."""
        return self.role or BOTH

    @property
    def gpus(self) -> int:
        """GPUs of one replica, at least 1."""
        return self.gpus_per_replica if self.gpus_per_replica > 0 else 1

    @property
    def floor(self) -> int:
        """Replicas that may not be taken away."""
        return self.min_replicas or 0

    def room_above(self, target: int) -> int:
        """Replicas that the ceiling still allows above `target`; `UNBOUNDED` without a ceiling, never negative."""
        if self.max_replicas is None or self.max_replicas <= 0:
            return UNBOUNDED
        return max(0, self.max_replicas - target)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzerSignal:
    """One analyzer's word on one service.

    Attributes:
        name: `saturation` is the one that carries the variants' identity.
        required: capacity missing, by role (`both` where roles are not told apart).
        spare: capacity that may go, by role.
        demand: total demand by role, read by rescale alone.
        total_demand: demand of the whole service; None means the sum over roles.
        score: weight of this analyzer in the order of services and in ties of scale-down.
        enabled: the configuration lets it vote.
        live: its last informative result is fresh.
        informative: at least one variant has a usable size.
        capacities: PRC by variant in this analyzer's unit; None means the variants' own PRC. A variant that
            is missing has no size for this analyzer.
    """

    name: str = SATURATION
    required: Mapping[str, Number] = field(default_factory=dict)
    spare: Mapping[str, Number] = field(default_factory=dict)
    demand: Mapping[str, Number] = field(default_factory=dict)
    total_demand: Number | None = None
    score: Number = 1
    enabled: bool = True
    live: bool = True
    informative: bool = True
    capacities: Mapping[str, Number] | None = None

    def size_of(self, variant: VariantState) -> Number:
        """PRC of `variant` for this analyzer; 0 where it has none."""
        if self.capacities is None:
            return variant.per_replica_capacity
        return self.capacities.get(variant.name, 0)

    def demand_of(self, role: str) -> Number:
        """Total demand of one role; `both`, and a role the analyzer does not know, is the whole service."""
        if role != BOTH and role in self.demand:
            return self.demand[role]
        return sum_of(self.demand.values()) if self.total_demand is None else self.total_demand


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceState:
    """One service: its variants and what the analyzers say of it. Larger priority = more important."""

    name: str
    variants: tuple[VariantState, ...]
    signals: tuple[AnalyzerSignal, ...]
    namespace: str = "default"
    priority: Number = 1

    @property
    def key(self) -> str:
        """`namespace/name`, the identity of a service: one LLM may be served in two namespaces."""
        return f"{self.namespace}/{self.name}"

    def serving(self, role: str) -> list[VariantState]:
        """The variants that serve exactly this role."""
        return [variant for variant in self.variants if variant.serves == role]


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The answer for one service.

    Attributes:
        replicas: target by variant name; every variant of the service is there.
        reasons: why, by variant name.
        limited: variants that got less than was asked, for want of GPUs.
        conflict: the answer exceeds a budget, as published: minima alone do, or the roles of the service took the last
            GPUs of one pool twice.
        unmet: required capacity left uncovered, by role; the largest over the analyzers that vote.
    """

    replicas: Mapping[str, int]
    reasons: Mapping[str, Reason]
    limited: frozenset[str] = frozenset()
    conflict: bool = False
    unmet: Mapping[str, Number] = field(default_factory=dict)

    @classmethod
    def moved(cls, service: ServiceState, replicas: Mapping[str, int]) -> Targets:
        """Targets whose reasons follow from the direction of each variant."""
        return cls(
            replicas=dict(replicas),
            reasons={
                variant.name: direction(variant.current, replicas[variant.name])
                for variant in service.variants
            },
        )

    @classmethod
    def held(cls, service: ServiceState) -> Targets:
        """Everything stays as it is because nothing may decide."""
        names = [variant.name for variant in service.variants]
        return cls(replicas=current_targets(service), reasons=dict.fromkeys(names, Reason.HELD))


def direction(current: int, target: int) -> Reason:
    """Which way a target moves."""
    if target > current:
        return Reason.SCALE_UP
    return Reason.SCALE_DOWN if target < current else Reason.STEADY


def current_targets(service: ServiceState) -> dict[str, int]:
    """A fresh mapping variant -> replicas asked for now."""
    return {variant.name: variant.current for variant in service.variants}


def sum_of(amounts: Iterable[Number]) -> Number:
    """The sum whose order changes nothing: exact for whole numbers and fractions, rounded once where a float is among them."""
    listed = list(amounts)
    return math.fsum(listed) if any(isinstance(amount, float) for amount in listed) else sum(listed)


def roles_of(variants: Iterable[VariantState]) -> tuple[str, ...]:
    """The roles that the variants serve, sorted."""
    return tuple(sorted({variant.serves for variant in variants}))


def voters_of(service: ServiceState) -> tuple[AnalyzerSignal, ...]:
    """The analyzers whose required and spare capacity count: the enabled ones."""
    return tuple(signal for signal in service.signals if signal.enabled)


def anchor_of(service: ServiceState) -> AnalyzerSignal | None:
    """The analyzer whose PRC sizes the variants, or None: then the service is held.

    Saturation if it is enabled, live and informative; else the one other analyzer that is. Two or more others are no
    answer: their units differ and nothing says which to believe.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/analyzer_helpers.go (binding anchor).
    """
    able = [signal for signal in service.signals if signal.enabled and signal.live and signal.informative]
    for signal in able:
        if signal.name == SATURATION:
            return signal
    return able[0] if len(able) == 1 else None


def by_efficiency(variants: Iterable[VariantState], anchor: AnalyzerSignal) -> list[VariantState]:
    """Variants with a size, by cost / PRC ascending, then name ascending.

    The published sort is unstable and has no further key; ours adds the name.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/cost_aware_optimizer.go (cost efficiency order).
    """
    sized = [variant for variant in variants if anchor.size_of(variant) > 0]
    return sorted(sized, key=lambda variant: (variant.cost / anchor.size_of(variant), variant.name))


def check_unique(services: Sequence[ServiceState]) -> None:
    """Refuse inputs in which a name stands for two things.

    Raises:
        ValueError: two services share a key, or two variants of a service a name.
    """
    seen = Counter(service.key for service in services)
    seen.update(f"{service.key}: {variant.name}" for service in services for variant in service.variants)
    twice = sorted(entry for entry, times in seen.items() if times > 1)
    if twice:
        raise ValueError(f"named more than once: {', '.join(twice)}")
