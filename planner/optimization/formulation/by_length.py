"""Rows of traffic that is routed by length: each bucket has shares of its own on each candidate.

a[c,b] is the share of bucket b that candidate c takes; one replica of c carries μ[c,b] req/s of that
bucket alone, so a[c,b]·λ[b]/μ[c,b] is the number of replicas that it occupies.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from models.problem import Candidate, Demand, ServingPath
from models.variant import Role
from models.workload import Routing, ServiceKind
from planner.optimization.formulation.index import Index, replicas, served, share
from planner.optimization.formulation.lengths import Lengths, Occupied
from planner.optimization.formulation.traffic import covering, guest_load, headroom_target, load_of
from planner.optimization.program import Key, Row
from planner.optimization.scaling import Number, exact

__all__ = ["failure_share", "headroom_rows", "rate_rows", "survive_rows"]


def rate_rows(index: Index) -> Iterator[Row]:
    """Σ_c a[c,b] = y[b]  and  Σ_b a[c,b]·λ[b]/μ[c,b] ≤ n[c]; guests as in ``traffic`` on what is left up to τ."""
    for demand, path, role, group, first in _by_length(index):
        for bucket in demand.buckets:
            shares = index.bucket_shares
            terms: dict[Key, int] = {shares[c.id][bucket.id]: 1 for c in group if bucket.id in c.by_bucket}
            terms[served(demand, path, bucket.id)] = -1
            yield Row(("rate", demand.service, path, role, bucket.id), terms, 0, 0)
        for number, candidate in enumerate(group, first):
            key = ("rate", demand.service, path, role, candidate.id)
            yield from _occupancy(key, index.lengths, number, index.lengths.at_rate)
        yield from _guest_row(index, demand, path, role, group)


def headroom_rows(index: Index) -> Iterator[Row]:
    """The same routing must hold under the surge:  (1+δ)·Σ_b a[c,b]·λ[b]/σ[c,b] ≤ n[c].

    In KV tokens:  Σ_c (τK[c]·n[c] − Σ_b kv[c,b]·λ[b]·a[c,b]) ≥ δ·y[b]  for every bucket b.
    """
    factors = _surge_factors(index)
    occupied = index.lengths.under(factors) if factors else None
    for demand, path, role, group, first in _by_length(index):
        if demand.kind is not ServiceKind.BATCH and demand.headroom.kv_tokens is not None:
            yield from _token_rows(demand, path, role, group)
        for number, candidate in enumerate(group, first):
            if number in factors and occupied is not None:
                key = ("headroom", demand.service, path, role, candidate.id)
                yield from _occupancy(key, index.lengths, number, occupied)


def _surge_factors(index: Index) -> dict[int, Fraction]:
    """(λ + δ)/λ by number of the candidate, where more than the load must be carried up to τ."""
    found = dict[int, Fraction]()
    for demand, _, _, group, first in _by_length(index):
        if demand.kind is ServiceKind.BATCH or demand.headroom.kv_tokens is not None:
            continue
        load, target = load_of(demand), headroom_target(demand)
        if 0 < load < target:
            found |= dict.fromkeys(range(first, first + len(group)), target / load)
    return found


def survive_rows(index: Index) -> Iterator[Row]:
    """After the loss of f some routing of the share outside f fits σ; its shares are columns of their own."""
    for demand, path, role, group, first in _by_length(index):
        if demand.survive is None:
            continue
        kept_share = exact(demand.survive.share).limit_denominator(10**6)
        for domain in demand.survive.failure_domains:
            outside = [
                (number, c)
                for number, c in enumerate(group, first)
                if index.problem.pool[c.pool].failure_domain != domain
            ]
            for bucket in demand.buckets:
                key = ("survive", demand.service, path, role, domain, bucket.id)
                terms = {
                    failure_share(c, bucket.id, domain): kept_share.denominator
                    for _, c in outside
                    if bucket.id in c.by_bucket
                }
                yield Row(key, terms | {served(demand, path, bucket.id): -kept_share.numerator}, lower=0)
            for number, candidate in outside:
                key = ("survive", demand.service, path, role, domain, candidate.id)
                yield from _occupancy(key, index.lengths, number, index.lengths.at_tau, domain=domain)


def failure_share(candidate: Candidate, bucket: str, domain: str) -> Key:
    """Share of a bucket that a candidate takes after the loss of a failure domain."""
    return ("a", candidate.id, bucket, domain)


def _occupancy(
    key: Key, lengths: Lengths, number: int, occupied: Occupied, *, domain: str | None = None
) -> Iterator[Row]:
    """Factor · Σ_b a[c,b]·λ[b]/rate[c,b] ≤ n[c], in integers: what is occupied is ceiled."""
    keys = lengths.keys[number]
    if len(keys) == 1:
        return
    if domain is not None:
        keys = [keys[0], *((*share, domain) for share in keys[1:])]
    yield Row(key, dict(zip(keys, occupied[lengths.spans[number]], strict=True)), lower=0)


def _token_rows(demand: Demand, path: ServingPath, role: Role, group: tuple[Candidate, ...]) -> Iterator[Row]:
    known = [
        c
        for c in group
        if c.kv_capacity_tokens is not None
        and all(rating.kv_tokens_per_rps is not None for rating in c.by_bucket.values())
    ]
    have = {replicas(c): c.kv_capacity_tokens or 0.0 for c in known}
    held: dict[Key, Number] = {
        share(c, bucket.id): exact(bucket.arrival_rps)
        * exact(c.by_bucket[bucket.id].kv_tokens_per_rps or 0.0)
        for c in known
        for bucket in demand.buckets
        if bucket.id in c.by_bucket
    }
    owed = demand.headroom.kv_tokens or 0.0
    for bucket in demand.buckets:
        key = ("headroom", demand.service, path, role, bucket.id)
        yield from covering(key, have, held | {served(demand, path, bucket.id): owed})


def _guest_row(
    index: Index, demand: Demand, path: ServingPath, role: Role, group: tuple[Candidate, ...]
) -> Iterator[Row]:
    """Σ_c σ[c]·n[c] ≥ Σ_c Σ_b σ[c]·a[c,b]·λ[b]/σ[c,b] + Σ_g κ[g]·λ[g]·w[g]."""
    loans = guest_load(index, demand, path, group)
    if not loans:
        return
    own: dict[Key, Number] = {
        share(c, bucket.id): exact(c.surge_rps)
        * exact(bucket.arrival_rps)
        / exact(c.by_bucket[bucket.id].surge_rps)
        for c in group
        for bucket in demand.buckets
        if bucket.id in c.by_bucket
    }
    key = ("rate", demand.service, path, role, "guests")
    yield from covering(key, {replicas(c): c.surge_rps for c in group}, own | loans)


def _by_length(index: Index) -> Iterator[tuple[Demand, ServingPath, Role, tuple[Candidate, ...], int]]:
    """Groups of candidates, and the number of the first of each among all of :class:`Lengths`."""
    first = 0
    for demand in index.problem.demands:
        if demand.routing is Routing.BY_LENGTH:
            for path, role, group in index.path_roles(demand):
                yield demand, path, role, group, first
                first += len(group)
