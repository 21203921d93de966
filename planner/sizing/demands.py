"""What each service needs, as the solvers read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from models.ids import DomainId, PoolId
from models.problem import Candidate, Demand, DemandBucket, PoolState, VariantBounds
from models.workload import Service, Survive

__all__ = ["demand_of"]


def demand_of(service: Service, candidates: Iterable[Candidate], pools: Mapping[PoolId, PoolState]) -> Demand:
    """The demand of a service, buckets and variants sorted by name, failure domains resolved.

    Args:
        service: normalized.
        candidates: of this service.
        pools: all pools by identity.
    """
    buckets = (
        DemandBucket.model_validate(bucket.model_dump(exclude={"cached_share"})) for bucket in service.buckets
    )
    bounds = (
        VariantBounds(variant=v.id, min_replicas=v.min_replicas, max_replicas=v.max_replicas)
        for v in service.variants
    )
    return Demand(
        service=service.id,
        llm=service.llm,
        namespace=service.namespace,
        team=service.team,
        kind=service.kind,
        priority=service.priority,
        best_effort=service.best_effort,
        routing=service.routing,
        buckets=tuple(sorted(buckets, key=lambda bucket: bucket.id)),
        headroom=service.headroom,
        min_replicas=service.min_replicas,
        max_replicas=service.max_replicas,
        variants=tuple(sorted(bounds, key=lambda bound: bound.variant)),
        survive=_survive(service, candidates, pools),
        ratio=service.ratio,
        max_variants=service.max_variants,
        shares_replicas_of=service.shares_replicas_of,
    )


def _survive(
    service: Service, candidates: Iterable[Candidate], pools: Mapping[PoolId, PoolState]
) -> Survive | None:
    """Named domains as they are; else those of the service's candidates; without a candidate, every domain.

    A promise of nothing is none.
    """
    if service.survive is None or service.survive.share == 0:
        return None
    used = {pools[candidate.pool].failure_domain for candidate in candidates}
    named = set(service.survive.failure_domains) or used or {pool.failure_domain for pool in pools.values()}
    return service.survive.but(failure_domains=tuple(DomainId(name) for name in sorted(named)))
