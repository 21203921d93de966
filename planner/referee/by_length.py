"""Rows of services with routing ``by_length``: each candidate gets its share of each bucket."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from models.problem import PATHS, Candidate, Demand, ServingPath
from models.variant import Role
from models.workload import Routing, ServiceKind
from planner.referee.index import Index, rate_of
from planner.referee.routing import routable
from planner.referee.rows import Row
from planner.referee.tolerance import exact

__all__ = ["burst_factor", "headroom_by_length", "rate_by_length", "replicas_busy", "survive_by_length"]

ZERO = Fraction(0)


def _services(index: Index) -> Iterator[tuple[Demand, ServingPath, Role, list[Candidate]]]:
    for one in index.problem.demands:
        if one.routing is Routing.BY_LENGTH:
            for path in index.paths(one.service):
                for role in PATHS[path]:
                    yield one, path, role, index.by_role[one.service, role]


def replicas_busy(index: Index, demand: Demand, candidate: Candidate, *, surge: bool) -> Fraction:
    """Σ_b a_{c,b}·λ_b/μ_{c,b}: replicas' worth of load (``surge``: of σ instead of μ)."""
    routed = index.routed.get(candidate.id, {})
    busy = ZERO
    for bucket in demand.buckets:
        rating = candidate.by_bucket.get(bucket.id)
        if rating is not None and bucket.id in routed:
            rps = rating.surge_rps if surge else rating.rated_rps
            busy += routed[bucket.id] * exact(bucket.arrival_rps) / exact(rps)
    return busy


def burst_factor(demand: Demand) -> Fraction | None:
    """What the load grows by where headroom is a share of it or a burst: 1+δ or (λ+x)/λ; None: neither is owed."""
    wish, rps = demand.headroom, rate_of(demand)
    if demand.kind is not ServiceKind.ONLINE or rps == 0:
        return None
    if wish.relative is not None:
        return 1 + exact(wish.relative)
    return (rps + exact(wish.burst_rps)) / rps if wish.burst_rps is not None else None


def rate_by_length(index: Index) -> Iterator[Row]:
    """Σ_b a_{c,b}·λ_b/μ_{c,b} ≤ n_c per candidate (batch: σ), and Σ_{c∈r} a_{c,b} = y_{s,p,b} per bucket."""
    for demand, path, role, candidates in _services(index):
        batch = demand.kind is ServiceKind.BATCH
        for candidate in candidates:
            if index.count(candidate) or candidate.id in index.routed:
                busy = replicas_busy(index, demand, candidate, surge=batch)
                yield _replica_row(index, "rate", (candidate, path, busy), "rated rates")
        for bucket in demand.buckets:
            routed = sum((index.routed.get(c.id, {}).get(bucket.id, ZERO) for c in candidates), ZERO)
            share = index.path_share(demand, path, bucket.id)
            key = (demand.service, path.value, role.value, bucket.id)
            say = f"Bucket {bucket.id} of {demand.service} is served to {{allowed}} and routed to {{found}} of it in role {role}."
            for least in (False, True):
                yield Row(
                    family="rate", key=key, found=routed, allowed=share, unit="share", say=say, least=least
                )


def headroom_by_length(index: Index) -> Iterator[Row]:
    """Relative and burst: factor·Σ_b a_{c,b}·λ_b/σ_{c,b} ≤ n_c; tokens: Σ_c K_c·n_c ≥ Σ kv_{c,b}·λ_b·a_{c,b} + δ·min_b y."""
    for demand, path, role, candidates in _services(index):
        factor = burst_factor(demand)
        for candidate in candidates if factor is not None else ():
            if index.count(candidate) or candidate.id in index.routed:
                busy = (factor or ZERO) * replicas_busy(index, demand, candidate, surge=True)
                yield _replica_row(index, "headroom", (candidate, path, busy), "load with headroom")
        if demand.kind is ServiceKind.ONLINE and demand.headroom.kv_tokens is not None:
            yield _token_row(index, demand, (path, role, candidates))


def _replica_row(index: Index, family: str, used: tuple[Candidate, ServingPath, Fraction], of: str) -> Row:
    candidate, path, busy = used
    return Row(
        family=family,
        key=(candidate.service, path.value, candidate.role.value, candidate.id),
        found=busy,
        allowed=Fraction(index.count(candidate)),
        unit="replica",
        say=f"Candidate {candidate.id} needs {{found}} replicas by its {of} and has {{allowed}}.",
        step=Fraction(1),
    )


def _token_row(index: Index, demand: Demand, carriers: tuple[ServingPath, Role, list[Candidate]]) -> Row:
    path, role, candidates = carriers
    resident = capacity = ZERO
    parts: list[Fraction] = []
    for c in candidates:
        if c.kv_capacity_tokens is None or any(r.kv_tokens_per_rps is None for r in c.by_bucket.values()):
            continue
        if index.count(c):
            parts.append(exact(c.kv_capacity_tokens))
            capacity += parts[-1] * index.count(c)
        routed = index.routed.get(c.id, {})
        for bucket in demand.buckets:
            rating = c.by_bucket.get(bucket.id)
            if rating is not None and bucket.id in routed:
                resident += (
                    exact(rating.kv_tokens_per_rps or 0.0) * exact(bucket.arrival_rps) * routed[bucket.id]
                )
    least_served = min(index.path_share(demand, path, bucket.id) for bucket in demand.buckets)
    return Row(
        family="headroom",
        key=(demand.service, path.value, role.value),
        found=resident + exact(demand.headroom.kv_tokens or 0.0) * least_served,
        allowed=capacity,
        unit="token",
        say=f"Service {demand.service} needs {{found}} KV tokens with headroom in role {role} and its replicas have {{allowed}}.",
        step=min(parts, default=ZERO),
    )


def survive_by_length(index: Index) -> Iterator[Row]:
    """Without any one failure domain, some routing of share·y fits σ; found is the part of y that can be routed."""
    for demand, path, role, candidates in _services(index):
        if demand.survive is None:
            continue
        loads = {b.id: b.arrival_rps * float(index.path_share(demand, path, b.id)) for b in demand.buckets}
        for domain in demand.survive.failure_domains:
            outside = [
                (c, index.count(c))
                for c in candidates
                if index.count(c) and index.problem.pool[c.pool].failure_domain != domain
            ]
            yield Row(
                family="survive",
                key=(demand.service, path.value, role.value, domain),
                found=exact(round(routable(outside, loads, most=demand.survive.share), 12)),
                allowed=exact(demand.survive.share),
                unit="share",
                say=f"Without {domain}, {{found}} of the served demand of {demand.service} fits role {role}; {{allowed}} is asked for.",
                least=True,
            )
