"""Families of fleets: one function makes one problem of so many services from a seed. ``docs/benchmarks.md`` tells them apart."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any, Final

from models.hardware import PowerDomain, Quota
from models.problem import Candidate, PoolState, Problem
from tests.benchmarks.market import KINDS, Site, fragmented, seated, sites, stocked
from tests.benchmarks.need import alone, need, used
from tests.benchmarks.offers import Offer, Traits, offers

__all__ = [
    "ample",
    "buckets",
    "placement",
    "pools_30",
    "power",
    "prefill_decode",
    "quota",
    "scarce_45",
    "scarce_65",
    "tight",
]

_POOLS: Final = len(KINDS)
_MANY_POOLS: Final = 30
_IN_THE_MIDDLE: Final = 0.5
"""Where a cap lies between what the plan that needs least of it takes and what the cheapest plan takes."""


def ample(services: int, seed: int) -> Problem:
    """Budgets twice the need: the best types fill up, the rest stays half empty."""
    return _budgeted("ample", services, seed, 2.0)


def tight(services: int, seed: int) -> Problem:
    """Budgets 0.8 of the need, all demand promised: most pools fill up, and services must go where they run best."""
    return _budgeted("tight", services, seed, 0.8)


def scarce_65(services: int, seed: int) -> Problem:
    """Budgets 0.65 of the need; demand is an objective."""
    return _budgeted("scarce-65", services, seed, 0.65, allow_unserved=True)


def scarce_45(services: int, seed: int) -> Problem:
    """Budgets 0.45 of the need; demand is an objective."""
    return _budgeted("scarce-45", services, seed, 0.45, allow_unserved=True)


def pools_30(services: int, seed: int) -> Problem:
    """Thirty pools in four regions at prices of their own; a service may use eight of them. Budgets as the need."""
    rng = _rng("pools-30", services, seed)
    places = sites(rng, _MANY_POOLS)
    made = offers(rng, services, places, Traits(pools=8))
    return _problem("pools-30", made, stocked(places, _times(need(made), 1.0)))


def placement(services: int, seed: int) -> Problem:
    """Four of five free GPUs are on nodes that others use too; pods of 1 to 8 GPUs, large LLMs over two nodes as well."""
    rng = _rng("placement", services, seed)
    places = sites(rng, _POOLS)
    made = offers(rng, services, places, Traits(spanning=True))
    return _problem("placement", made, fragmented(rng, places, _times(need(made), 1.25), whole=0.2))


def quota(services: int, seed: int) -> Problem:
    """Pools that hold whatever is wanted; namespaces and clusters may not hold what the cheapest plan takes."""
    rng = _rng("quota", services, seed)
    places = sites(rng, _POOLS)
    made = offers(rng, services, places, Traits())
    cheapest, fewest = alone(made, lambda c: c.cost), alone(made, lambda c: float(c.gpus))
    quotas = [
        Quota(id=f"quota-{team}", namespace=team, gpus=gpus)
        for team, gpus in _between(made, fewest, cheapest, by="namespace").items()
    ]
    clusters = used(made, cheapest, lambda _, c: _cluster(places, c), _gpus)
    dearest = max(clusters, key=lambda name: (clusters[name], name))
    quotas.append(Quota(id=f"quota-{dearest}", cluster=dearest, gpus=ceil(0.85 * clusters[dearest])))
    return _problem("quota", made, _roomy(made, places, (cheapest, fewest)), quotas=tuple(quotas))


def power(services: int, seed: int) -> Problem:
    """Pools that hold whatever is wanted; the hall may not draw what the cheapest plan draws."""
    rng = _rng("power", services, seed)
    places = sites(rng, _POOLS)
    made = offers(rng, services, places, Traits())
    cheapest, thriftiest = alone(made, lambda c: c.cost), alone(made, _watts)
    low, high = (
        sum(used(made, counts, lambda _, c: c.pool, _watts).values()) for counts in (thriftiest, cheapest)
    )
    cap = PowerDomain(id="hall", cap_w=round(low + _IN_THE_MIDDLE * (high - low)))
    return _problem("power", made, _roomy(made, places, (cheapest, thriftiest)), power=(cap,))


def buckets(services: int, seed: int) -> Problem:
    """Three to six buckets per service, each routed where it is served best. Budgets as the need."""
    return _budgeted("buckets", services, seed, 1.0, traits=Traits(by_length=True))


def prefill_decode(services: int, seed: int) -> Problem:
    """Replicas that prefill and replicas that decode, some with bounds on their ratio. Budgets as the need."""
    return _budgeted("prefill-decode", services, seed, 1.0, traits=Traits(disaggregated=True))


def _budgeted(
    family: str, services: int, seed: int, budget: float, *, traits: Traits | None = None, **fields: Any
) -> Problem:
    rng = _rng(family if traits else "budgets", services, seed)
    places = sites(rng, _POOLS)
    made = offers(rng, services, places, traits or Traits())
    return _problem(family, made, stocked(places, _times(need(made), budget)), **fields)


def _rng(family: str, services: int, seed: int) -> random.Random:
    return random.Random(f"{family}/{services}/{seed}")  # noqa: S311 - instances, not secrets


def _problem(family: str, made: Sequence[Offer], pools: Iterable[PoolState], **fields: Any) -> Problem:
    pools = tuple(pools)
    candidates = seated([candidate for offer in made for candidate in offer.candidates], pools)
    return Problem(
        name=f"{family}-{len(made)}",
        demands=tuple(sorted((offer.demand for offer in made), key=lambda d: d.service)),
        candidates=tuple(sorted(candidates, key=lambda c: c.id)),
        pools=tuple(sorted(pools, key=lambda p: p.id)),
        **fields,
    )


def _times(need: dict[str, float], factor: float) -> dict[str, float]:
    return {pool: gpus * factor for pool, gpus in need.items()}


def _roomy(
    made: Sequence[Offer], places: Sequence[Site], plans: Sequence[dict[str, int]]
) -> tuple[PoolState, ...]:
    """Pools with the need and what each of some plans takes, all at once."""
    gpus = need(made)
    for plan in plans:
        for pool, more in used(made, plan, lambda _, c: c.pool, _gpus).items():
            gpus[pool] = gpus.get(pool, 0.0) + more
    return stocked(places, gpus)


def _between(made: Sequence[Offer], low: dict[str, int], high: dict[str, int], *, by: str) -> dict[str, int]:
    """GPUs halfway between two plans, by a field of the demand."""
    least, most = (
        used(made, counts, lambda offer, _: getattr(offer.demand, by), _gpus) for counts in (low, high)
    )
    return {name: ceil(least[name] + _IN_THE_MIDDLE * (most[name] - least[name])) for name in sorted(most)}


def _gpus(candidate: Candidate) -> float:
    return float(candidate.gpus)


def _watts(candidate: Candidate) -> float:
    return candidate.power_w or 0.0


def _cluster(places: Sequence[Site], candidate: Candidate) -> str:
    return next(site.cluster for site in places if site.pool == candidate.pool)
