"""GPU budgets: what providers grant, how grants merge, and what a namespace may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from planner.saturation.published.capacity import UNBOUNDED, ServiceState

__all__ = [
    "UNKNOWN_ACCELERATORS",
    "Allowance",
    "Budget",
    "Provider",
    "known_type",
    "merge_providers",
    "tighter",
    "used_gpus",
]

UNKNOWN_ACCELERATORS = frozenset({"", "unknown", "unresolved"})
"""Names that say that nobody knows the accelerator."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """A limit in GPUs and what is used of it. Limit -1 (or below) = unlimited; None = denied."""

    limit: int | None
    used: int = 0

    @property
    def free(self) -> int:
        """GPUs left, at least 0; `UNBOUNDED` when unlimited.

        Source: llm-d autoscaling v0.9, internal/engines/pipeline (resource pools: -1 unlimited, nil deny).
        """
        if self.limit is None:
            return 0
        return UNBOUNDED if self.limit < 0 else max(0, self.limit - self.used)


@dataclass(frozen=True, slots=True)
class Provider:
    """One source of limits: GPUs in the cluster, a cluster quota, quotas of namespaces.

    Attributes:
        pools: allowance by accelerator type, for everybody.
        namespaces: allowance by namespace and type. A namespace that is named here is a closed list: a type that it
            does not list is denied, and an empty list denies everything.
    """

    pools: Mapping[str, Allowance] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, Allowance]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Budget:
    """Free GPUs by accelerator type, for the cluster and for each namespace with a closed list.

    A type that the cluster does not list is denied to namespaces without a list of their own. Unlimited = `UNBOUNDED`;
    below 0 = overdrawn (see `fair_share`), which counts as nothing left.
    """

    cluster: Mapping[str, int] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def _pools(self) -> tuple[Mapping[str, int], ...]:
        """All pools, whoever they bind."""
        return (self.cluster, *self.namespaces.values())

    def free(self, namespace: str, accelerator: str) -> int:
        """GPUs of a type that a service of this namespace may take now: the smaller of cluster and namespace.

        Source: llm-d autoscaling v0.9, internal/engines/pipeline/greedy_score_optimizer.go (effective budget).
        """
        closed = self.namespaces.get(namespace)
        if closed is None:
            return self.cluster.get(accelerator, 0)
        return min(closed.get(accelerator, 0), self.cluster.get(accelerator, UNBOUNDED))

    def spend(self, namespace: str, accelerator: str, gpus: int) -> Budget:
        """The budget after taking GPUs; what is unlimited stays unlimited."""
        cluster = _less(self.cluster, accelerator, gpus)
        if namespace not in self.namespaces:
            return Budget(cluster, self.namespaces)
        listed = _less(self.namespaces[namespace], accelerator, gpus)
        return Budget(cluster, {**self.namespaces, namespace: listed})

    @property
    def exhausted(self) -> bool:
        """Whether no type has a GPU left anywhere."""
        return not any(free > 0 for pool in self._pools for free in pool.values())


def tighter(first: int, second: int) -> int:
    """The more restrictive of two limits, -1 (or below) standing for unlimited in both and in the answer.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline (budget merge).
    """
    if first < 0:
        return second if second >= 0 else -1
    return first if second < 0 else min(first, second)


def merge_providers(providers: Sequence[Provider | None]) -> Budget | None:
    """The budget that all providers that answered allow: the smallest free count of each type.

    Returns None when none answered (None in the list): then the published optimizer silently turns unconstrained. A
    provider that answers "no GPUs" does block.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/cost_aware_optimizer.go (constraint merge).
    """
    answered = [provider for provider in providers if provider is not None]
    if not answered:
        return None
    names = sorted({name for provider in answered for name in provider.namespaces})
    closed = {name: _merge([provider.namespaces.get(name, {}) for provider in answered]) for name in names}
    return Budget(_merge([provider.pools for provider in answered]), closed)


def used_gpus(services: Iterable[ServiceState]) -> dict[str, int]:
    """GPUs by type that the managed variants hold now: current replicas x GPUs per replica.

    Foreign pods are not seen, as published.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline (limiter usage).
    """
    used: dict[str, int] = {}
    for service in services:
        for variant in service.variants:
            used[variant.accelerator] = used.get(variant.accelerator, 0) + variant.current * variant.gpus
    return used


def known_type(accelerator: str, types: Iterable[str]) -> str | None:
    """The pool that a variant draws from, or None: it gets no GPU.

    An unknown accelerator draws from the only type of a cluster that has one type; in a mixed cluster from none.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline (type inventory).
    """
    known = sorted(set(types))
    if accelerator in UNKNOWN_ACCELERATORS:
        return known[0] if len(known) == 1 else None
    return accelerator if accelerator in known else None


def _merge(pools: Sequence[Mapping[str, Allowance]]) -> dict[str, int]:
    """The smallest free count of each type that any pool lists."""
    types = sorted({accelerator for pool in pools for accelerator in pool})
    return {kind: min(pool[kind].free for pool in pools if kind in pool) for kind in types}


def _less(pool: Mapping[str, int], accelerator: str, gpus: int) -> Mapping[str, int]:
    """A pool with fewer GPUs of one type; unlimited and unlisted types stay as they are."""
    free = pool.get(accelerator, UNBOUNDED)
    return pool if free >= UNBOUNDED else {**pool, accelerator: free - gpus}
