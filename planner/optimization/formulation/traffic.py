"""Rows of mixed traffic: what is served, at the trigger, under a surge, and after a failure.

Notation as in docs/formulation.md. With mixed routing every replica of a service sees the service's
own mix, so a candidate has one capacity and a service one served share per path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import NamedTuple

import numpy as np

from models.ids import ServiceId
from models.problem import Candidate, Demand, ServingPath
from models.variant import Role
from models.workload import Routing, ServiceKind
from planner.optimization.formulation.index import Index, borrowed, replicas, served, unserved
from planner.optimization.program import Key, Row
from planner.optimization.scaling import GRID, Number, cover, cover_each, exact

__all__ = [
    "covering",
    "demand_rows",
    "guest_load",
    "headroom_rows",
    "headroom_target",
    "load_of",
    "rate_rows",
    "survive_rows",
]


def demand_rows(index: Index) -> Iterator[Row]:
    """Served or declared unserved:  Σ_p y[s,p] + Σ_p w[s,p] + z[s] = 1  per service (by length: per bucket)."""
    for demand in index.problem.demands:
        loans = {borrowed(demand, path): 1 for path in index.host_paths(demand)}
        for bucket in index.buckets(demand):
            terms = {served(demand, path, bucket): 1 for path in index.paths(demand)}
            key = ("demand", demand.service, *(() if bucket is None else (bucket,)))
            yield Row(key, terms | loans | {unserved(demand, bucket): 1}, GRID, GRID)


def rate_rows(index: Index) -> Iterator[Row]:
    """Inside SLO and trigger:  Σ_c μ[c]·n[c] ≥ λ·y  per path and role; with guests also up to τ.

    With guests:  Σ_c σ[c]·n[c] ≥ λ·y + Σ_g κ[g]·λ[g]·w[g],  κ[g] = max_c σ[c]/σ[c,g].
    """
    found: list[Cover] = []
    for demand, path, role, group in _mixed(index):
        batch = demand.kind is ServiceKind.BATCH
        have = [c.surge_rps for c in group] if batch else [c.rated_rps for c in group]
        key, columns = ("rate", demand.service, path, role), _columns(index, demand, role, group)
        owes: dict[Key, Number] = {served(demand, path): load_of(demand)}
        found.append(Cover(key, columns, have, owes))
        loans = guest_load(index, demand, path, group)
        if loans:
            surge = [c.surge_rps for c in group]
            found.append(Cover((*key, "guests"), columns, surge, owes | loans))
    return _rows(found)


def guest_load(
    index: Index, host: Demand, path: ServingPath, group: Iterable[Candidate]
) -> dict[Key, Number]:
    """Load of all guests in req/s of the host's traffic, safe for every split of a guest over the role."""
    candidates = tuple(group)
    return {
        borrowed(guest, path): load_of(guest) * worst_exchange(candidates, guest.service)
        for guest in index.guests_on(host, path)
        if guest.arrival_rps > 0
    }


def worst_exchange(group: Iterable[Candidate], guest: ServiceId) -> Fraction:
    """κ: req/s of the host that one req/s of the guest displaces where it displaces most."""
    return max((exact(c.surge_rps) / exact(c.guest_surge_rps[guest]) for c in group), default=Fraction(1))


def headroom_rows(index: Index) -> Iterator[Row]:
    """Capacity_target = Load + δ:  Σ_c σ[c]·n[c] ≥ (λ + δ)·y,  or in KV tokens  Σ_c τK[c]·n[c] ≥ (κ·λ + δ)·y."""
    found: list[Cover] = []
    for demand, path, role, group in _mixed(index):
        if demand.kind is ServiceKind.BATCH:
            continue
        key = ("headroom", demand.service, path, role)
        tokens = demand.headroom.kv_tokens
        if tokens is not None:
            known = [c for c in group if c.kv_capacity_tokens is not None and c.kv_tokens_per_rps is not None]
            have = [c.kv_capacity_tokens or 0.0 for c in known]
            held = load_of(demand) * exact(max((c.kv_tokens_per_rps or 0.0 for c in known), default=0.0))
            owes = {served(demand, path): held + exact(tokens)}
            found.append(Cover(key, [replicas(c) for c in known], have, owes))
        elif (target := headroom_target(demand)) > load_of(demand):
            surge = [c.surge_rps for c in group]
            columns = _columns(index, demand, role, group)
            found.append(Cover(key, columns, surge, {served(demand, path): target}))
    return _rows(found)


def load_of(demand: Demand) -> Fraction:
    """λ in req/s, exactly the sum of the decimals of the buckets."""
    return sum((exact(bucket.arrival_rps) for bucket in demand.buckets), Fraction(0))


def headroom_target(demand: Demand) -> Fraction:
    """Rate that must be carried up to τ, req/s: the load, and what may come on top."""
    headroom = demand.headroom
    if headroom.relative is not None:
        return load_of(demand) * (1 + exact(headroom.relative))
    return load_of(demand) + exact(headroom.burst_rps or 0.0)


def survive_rows(index: Index) -> Iterator[Row]:
    """N−1:  Σ_{c outside f} σ[c]·n[c] ≥ share·λ·y  for each failure domain f, path and role."""
    found: list[Cover] = []
    for demand, path, role, group in _mixed(index):
        if demand.survive is None:
            continue
        owes = {served(demand, path): exact(demand.survive.share) * load_of(demand)}
        for domain in demand.survive.failure_domains:
            outside = [c for c in group if index.problem.pool[c.pool].failure_domain != domain]
            key = ("survive", demand.service, path, role, domain)
            found.append(Cover(key, [replicas(c) for c in outside], [c.surge_rps for c in outside], owes))
    return _rows(found)


def covering(key: Key, have: Mapping[Key, Number], owes: Mapping[Key, Number]) -> Iterator[Row]:
    """The row  Σ have·n ≥ Σ owes·share  in integers; none where nothing is owed."""
    due = {share: amount for share, amount in owes.items() if amount > 0}
    if not due:
        return
    left, right = cover(have, due)
    terms = {column: amount * GRID for column, amount in left.items()}
    terms.update({share: -amount for share, amount in right.items()})
    yield Row(key, terms, lower=0)


class Cover(NamedTuple):
    """Σ have·n ≥ Σ owes·share  before it is made whole."""

    key: Key
    columns: Sequence[Key]
    have: Sequence[float]
    owes: Mapping[Key, Number]


def _rows(covers: Sequence[Cover]) -> Iterator[Row]:
    """The rows of :func:`covering` in their order; those of one share, nearly all of a fleet's, are made at once."""
    due = [one for one in covers if any(amount > 0 for amount in one.owes.values())]
    single = [one for one in due if len(one.owes) == 1]
    starts = np.cumsum([0, *(len(one.have) for one in single)], dtype=np.int64)
    have = np.fromiter(chain.from_iterable(one.have for one in single), dtype=np.float64)
    left, right = cover_each(have, starts, [next(iter(one.owes.values())) for one in single])
    whole = iter((left * GRID).tolist())
    owed = iter(right.tolist())
    for one in due:
        if len(one.owes) > 1:
            yield from covering(one.key, dict(zip(one.columns, one.have, strict=True)), one.owes)
            continue
        terms = dict(zip(one.columns, whole, strict=False))
        terms[next(iter(one.owes))] = -next(owed)
        yield Row(one.key, terms, lower=0)


def _columns(index: Index, demand: Demand, role: Role, group: Sequence[Candidate]) -> Sequence[Key]:
    """Replicas of the candidates of a role that serve something."""
    keys = index.role_keys[demand.service, role]
    return keys if len(keys) == len(group) else [replicas(c) for c in group]


def _mixed(index: Index) -> Iterator[tuple[Demand, ServingPath, Role, tuple[Candidate, ...]]]:
    for demand in index.problem.demands:
        if demand.routing is Routing.MIXED:
            for path, role, group in index.path_roles(demand):
                rated = group if not index.unusual.unrated else tuple(c for c in group if not c.unrated)
                yield demand, path, role, rated
