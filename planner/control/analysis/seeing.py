"""What was observed, sorted by service: variants with their rules and engines, and the traffic of all clusters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

from models.controller import Rules
from models.observation import (
    EngineObservation,
    Freshness,
    FreshnessLimits,
    Observation,
    TrafficObservation,
    VariantObservation,
)
from planner.control.analysis.identity import VariantRef, ref_of
from planner.control.analysis.ruling import RoleRules, RuleBook

__all__ = ["ServiceSeen", "ServiceTraffic", "VariantSeen", "see"]

_WORSE: Final = (Freshness.FRESH, Freshness.STALE, Freshness.UNAVAILABLE, Freshness.MISSING)
_LOOKED_BACK_S: Final = 60.0
"""Metrics are maxima and rates of so long before."""
_FIELDS: Final = ("arrival_rps", "queued", "queued_bytes", "arrived", "in_flight")


class ServiceTraffic(NamedTuple):
    """Traffic of a service over all its clusters. None: one of them does not tell."""

    arrival_rps: float | None = None
    queued: float | None = None
    queued_bytes: float | None = None
    arrived: float | None = None
    in_flight: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantSeen:
    """One variant with what its engines show.

    Attributes:
        ref: who it is.
        name: unique in its service.
        observed: as the cluster states it.
        rules: that hold for it.
        engines: of its ready replicas, those whose metrics are fresh or stale.
        silent: ready replicas of which nothing usable is known.
        freshness: of the worst ready replica; None: no replica is ready.
    """

    ref: VariantRef
    name: str
    observed: VariantObservation
    rules: Rules
    engines: tuple[EngineObservation, ...] = ()
    silent: int = 0
    freshness: Freshness | None = None

    @property
    def wanted(self) -> int:
        """Replicas that its target asks for; 0 where there is no target."""
        return self.observed.wanted or 0

    @property
    def resolved(self) -> bool:
        """Whether its target was found."""
        return self.observed.wanted is not None

    @property
    def paused(self) -> bool:
        """Whether people asked that nothing is changed."""
        return self.observed.paused or self.rules.paused

    @property
    def speaks(self) -> bool:
        """Whether any replica shows usable metrics."""
        return bool(self.engines)

    def unsettled(self, now_s: float) -> str:
        """Why its figures mean nothing since it changes its size, or did so lately; empty: they do mean something."""
        resize = self.observed.resize
        if resize is None:
            return ""
        if resize.phase is None:
            return "the record of its resize cannot be read"
        sizes = f"its resize from {resize.from_ranks} to {resize.to_ranks} ranks"
        if resize.resizing_until_s is None:
            return f"{sizes} is in the phase: {resize.phase.value}"
        left_s = resize.resizing_until_s + _LOOKED_BACK_S - now_s
        return f"{sizes} has ended, and settles for {left_s:.0f} s more" if left_s > 0 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSeen:
    """One service: all variants of one model in one namespace.

    Attributes:
        namespace: of the service.
        model: that it serves.
        variants: by cluster and name.
        traffic: over all clusters.
        rules: of the service.
        roles: rules by role.
    """

    namespace: str
    model: str
    variants: tuple[VariantSeen, ...]
    traffic: ServiceTraffic
    rules: Rules
    roles: Mapping[str, RoleRules]

    @property
    def key(self) -> str:
        """``namespace/model``."""
        return f"{self.namespace}/{self.model}"

    @property
    def replicas(self) -> int:
        """Replicas that all its targets ask for."""
        return sum(one.wanted for one in self.variants)


def see(observation: Observation, book: RuleBook, freshness: FreshnessLimits) -> tuple[ServiceSeen, ...]:
    """Services by namespace and model; two variants under one identity count once, the first."""
    by_owner: dict[VariantRef, list[EngineObservation]] = defaultdict(list)
    for engine in observation.engines:
        if engine.variant:
            by_owner[VariantRef(engine.cluster or "", engine.namespace, engine.variant)].append(engine)
    traffic: dict[tuple[str, str], list[TrafficObservation]] = defaultdict(list)
    for row in observation.traffic:
        traffic[row.namespace, row.model].append(row)
    services: dict[tuple[str, str], dict[VariantRef, VariantObservation]] = defaultdict(dict)
    for variant in observation.variants:
        services[variant.namespace, variant.model].setdefault(ref_of(variant), variant)
    return tuple(
        _service(
            [
                _variant(ref, services[key][ref], by_owner.get(ref, ()), book=book, freshness=freshness)
                for ref in sorted(services[key])
            ],
            traffic.get(key, ()),
            book,
        )
        for key in sorted(services)
    )


def _service(
    variants: Sequence[VariantSeen], traffic: Iterable[TrafficObservation], book: RuleBook
) -> ServiceSeen:
    first = variants[0].observed
    by_role: dict[str, list[VariantObservation]] = defaultdict(list)
    for one in variants:
        by_role[one.observed.role.value].append(one.observed)
    return ServiceSeen(
        namespace=first.namespace,
        model=first.model,
        variants=tuple(variants),
        traffic=_traffic(list(traffic)),
        rules=book.of_all([one.observed for one in variants]),
        roles={role: book.of_role(of_role) for role, of_role in sorted(by_role.items())},
    )


def _traffic(rows: Sequence[TrafficObservation]) -> ServiceTraffic:
    """Sums; unknown where a cluster does not tell, since its part may be anything."""
    if not rows:
        return ServiceTraffic()
    told = [[getattr(row, name) for row in rows] for name in _FIELDS]
    return ServiceTraffic(*(None if None in each else sum(each) for each in told))


def _variant(
    ref: VariantRef,
    variant: VariantObservation,
    engines: Sequence[EngineObservation],
    *,
    book: RuleBook,
    freshness: FreshnessLimits,
) -> VariantSeen:
    """A variant with the engines of its ready pods; those of pods that start or end are not counted yet, or any more."""
    name = f"{ref.cluster}/{ref.name}" if ref.cluster else ref.name
    if not variant.ready:
        return VariantSeen(ref=ref, name=name, observed=variant, rules=book.of(variant))
    ready = set(variant.pods)
    mine = [
        one
        for one in engines
        if (not ready or not one.pod or one.pod in ready) and not _has_left(one, variant)
    ]
    states = [freshness.of(one.age_s) for one in mine]
    usable = [
        one for one, state in zip(mine, states, strict=True) if state in (Freshness.FRESH, Freshness.STALE)
    ]
    seen_pods = {one.pod or one.instance for one in usable}
    silent = max(0, variant.ready - len(seen_pods))
    worst = max((_WORSE.index(state) for state in states), default=0)
    unseen = silent > 0 and variant.ready > len({one.pod or one.instance for one in mine})
    return VariantSeen(
        ref=ref,
        name=name,
        observed=variant,
        rules=book.of(variant),
        engines=tuple(sorted(usable, key=attrgetter("instance"))),
        silent=silent,
        freshness=Freshness.MISSING if unseen else _WORSE[worst],
    )


def _has_left(engine: EngineObservation, variant: VariantObservation) -> bool:
    """Whether it is a rank that a resize has ended: its series stay with their last values until a restart."""
    resize = variant.resize
    if resize is None or resize.ranks is None or engine.rank < resize.ranks:
        return False
    return engine.started_s is None or engine.started_s <= resize.since_s
