"""Rows of services with routing ``mixed``: what a share of the demand takes, and what replicas carry.

Every row of these families has the form ``per_share · y <= capacity`` with y the share served on one path, so the
same limits judge a share that is claimed and give the largest one that counts carry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from models.problem import PATHS, Candidate, Demand, ServingPath
from models.variant import Role
from models.workload import Routing, ServiceKind
from planner.referee.index import Index, rate_of
from planner.referee.rows import Row
from planner.referee.tolerance import exact

__all__ = [
    "BOUNDING",
    "WHILE_NOTHING_FAILS",
    "Limit",
    "demand",
    "headroom",
    "limits",
    "owes_absolute_headroom",
    "rate",
    "survive",
]

ZERO = Fraction(0)

BOUNDING: Final = frozenset({"rate", "headroom", "survive"})
"""Families whose rows bound the share of a demand that counts can serve."""

WHILE_NOTHING_FAILS: Final = BOUNDING - {"survive"}
"""Those that hold for what is served now; that it is still served after a loss is a promise of its own."""


@dataclass(frozen=True, slots=True)
class Limit:
    """``per_share · y <= capacity`` for the share y that is served on one path; ``step`` is one replica's part."""

    family: str
    key: tuple[str, ...]
    per_share: Fraction
    capacity: Fraction
    step: Fraction
    unit: str
    say: str

    def row(self, share: Fraction) -> Row:
        """This limit at a share."""
        return Row(
            family=self.family,
            key=self.key,
            found=self.per_share * share,
            allowed=self.capacity,
            unit=self.unit,
            say=self.say,
            step=self.step,
        )


def demand(index: Index) -> Iterator[Row]:
    """A promise is kept: Σ_p y_{s,p} + w_s = 1 per promised service (by length: per bucket).

    A rate of zero owes nothing, unless absolute headroom is asked for whatever the rate.
    """
    for one in index.problem.demands:
        if not index.problem.promised(one):
            continue
        by_length = one.routing is Routing.BY_LENGTH
        parts = [(b.id, exact(b.arrival_rps)) for b in one.buckets] if by_length else [(None, rate_of(one))]
        for bucket, rps in parts:
            if rps > 0 or owes_absolute_headroom(one):
                yield Row(
                    family="demand",
                    key=(one.service,) if bucket is None else (one.service, bucket),
                    found=index.served_share(one, bucket),
                    allowed=Fraction(1),
                    unit="share",
                    say=f"Service {one.service} is promised all of its demand and {{found}} of it is served.",
                    least=True,
                )


def owes_absolute_headroom(demand: Demand) -> bool:
    """Whether headroom is owed even where nothing arrives."""
    return demand.kind is ServiceKind.ONLINE and bool(demand.headroom.burst_rps or demand.headroom.kv_tokens)


def rate(index: Index) -> Iterator[Row]:
    """Load stays inside what replicas are rated at: Σ_{c∈r} μ_c·n_c ≥ λ_s·y_{s,p} (batch: σ_c)."""
    yield from _rows(index, _rate_limit)


def headroom(index: Index) -> Iterator[Row]:
    """Room above the load: Σ σ_c·n_c ≥ (1+δ)·λ·y, or ≥ (λ+x)·y, or Σ K_c·n_c ≥ (κ·λ+δ)·y. None for batch."""
    yield from _rows(index, _headroom_limit)


def survive(index: Index) -> Iterator[Row]:
    """Without any one failure domain f: Σ_{c∈r, outside f} σ_c·n_c ≥ share·λ_s·y_{s,p}."""
    yield from _rows(index, _survive_limits)


def _rows(index: Index, family: Callable[[Index, Demand, Carriers], Iterator[Limit]]) -> Iterator[Row]:
    for one in index.problem.demands:
        if one.routing is Routing.MIXED:
            for path in index.paths(one.service):
                share = index.path_share(one, path)
                for role in PATHS[path]:
                    yield from (limit.row(share) for limit in family(index, one, (path, role)))


Carriers = tuple[ServingPath, Role]


def limits(
    index: Index, demand: Demand, path: ServingPath, *, families: Collection[str] = BOUNDING
) -> Iterator[Limit]:
    """Every limit of these families on the share of a mixed service that its own replicas serve on a path."""
    every = {"rate": _rate_limit, "headroom": _headroom_limit, "survive": _survive_limits}
    for role in PATHS[path]:
        for name, family in every.items():
            if name in families:
                yield from family(index, demand, (path, role))


def _key(demand: Demand, path: ServingPath, role: Role) -> tuple[str, ...]:
    return (demand.service, path.value, role.value)


def _carried(index: Index, candidates: list[Candidate], figure: str) -> tuple[Fraction, Fraction]:
    """Σ figure_c · n_c and the smallest figure of a candidate that runs (0 where none does)."""
    figures = [(getattr(c, figure), index.count(c)) for c in candidates]
    total = sum((exact(each) * n for each, n in figures if n), ZERO)
    return total, exact(min((each for each, n in figures if n), default=0.0))


def _rate_limit(index: Index, demand: Demand, carriers: Carriers) -> Iterator[Limit]:
    path, role = carriers
    figure = "surge_rps" if demand.kind is ServiceKind.BATCH else "rated_rps"
    capacity, step = _carried(index, index.running.get((demand.service, role), []), figure)
    say = f"Service {demand.service} serves {{found}} req/s with role {role}, above the {{allowed}} req/s that its replicas are rated at."
    yield Limit("rate", _key(demand, path, role), rate_of(demand), capacity, step, "req/s", say)


def _headroom_limit(index: Index, demand: Demand, carriers: Carriers) -> Iterator[Limit]:
    if demand.kind is not ServiceKind.ONLINE:
        return
    path, role = carriers
    wish, rps, key = demand.headroom, rate_of(demand), _key(demand, path, role)
    subject = f"Service {demand.service} needs"
    if wish.kv_tokens is not None:
        candidates = index.by_role[demand.service, role]
        known = [
            c for c in candidates if c.kv_capacity_tokens is not None and c.kv_tokens_per_rps is not None
        ]
        kappa = max((exact(c.kv_tokens_per_rps or 0.0) for c in known), default=ZERO)
        capacity, step = _carried(index, known, "kv_capacity_tokens")
        say = f"{subject} {{found}} KV tokens with headroom in role {role} and its replicas have {{allowed}}."
        yield Limit("headroom", key, kappa * rps + exact(wish.kv_tokens), capacity, step, "token", say)
        return
    capacity, step = _carried(index, index.running.get((demand.service, role), []), "surge_rps")
    say = f"{subject} {{found}} req/s with headroom in role {role} and its replicas carry {{allowed}} req/s."
    if wish.relative is not None:
        yield Limit("headroom", key, (1 + exact(wish.relative)) * rps, capacity, step, "req/s", say)
    elif wish.burst_rps is not None:
        yield Limit("headroom", key, rps + exact(wish.burst_rps), capacity, step, "req/s", say)


def _survive_limits(index: Index, demand: Demand, carriers: Carriers) -> Iterator[Limit]:
    if demand.survive is None:
        return
    path, role = carriers
    candidates = index.running.get((demand.service, role), [])
    for domain in demand.survive.failure_domains:
        outside = [c for c in candidates if index.problem.pool[c.pool].failure_domain != domain]
        capacity, step = _carried(index, outside, "surge_rps")
        say = f"Without {domain}, service {demand.service} needs {{found}} req/s in role {role} and has {{allowed}} req/s."
        per_share = exact(demand.survive.share) * rate_of(demand)
        yield Limit("survive", (*_key(demand, path, role), domain), per_share, capacity, step, "req/s", say)
