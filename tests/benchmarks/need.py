"""How many GPUs services need, measured on single candidates: cheap for any number of services.

Two measures. The *need* of a pool: every service spreads its demand over its pools, to each in inverse proportion to
what it would cost to serve all of it there on the best candidate of that pool. That is a plain plan of whole
replicas that prefers cheap pools and uses all of them, so it tells how large a fleet of mixed types should be; a plan
that sends every service where it runs best needs about 0.7 of it. The *alone* plan: every service takes the one
candidate that makes cost, power or GPUs least, as if there were no budgets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil

from models.problem import PATHS, Candidate, Demand, ServingPath
from models.variant import Role
from tests.benchmarks.offers import Offer

__all__ = ["alone", "need", "replicas_alone", "used"]


def replicas_alone(demand: Demand, candidate: Candidate) -> int:
    """Replicas of one candidate that serve a whole demand with its headroom."""
    load, room = demand.arrival_rps, demand.headroom
    surge = load * (1 + (room.relative or 0.0)) + (room.burst_rps or 0.0)
    return max(1, demand.min_replicas, ceil(load / candidate.rated_rps), ceil(surge / candidate.surge_rps))


def need(offers: Iterable[Offer]) -> dict[str, float]:
    """GPUs by pool, by the measure of the module."""
    gpus_needed: dict[str, float] = defaultdict(float)
    for offer in offers:
        for group in _by_role(offer):
            best: dict[str, tuple[float, int]] = {}
            for one in _able(offer.demand, group):
                count = replicas_alone(offer.demand, one)
                found = (count * one.cost, count * one.gpus)
                best[one.pool] = min(found, best.get(one.pool, found))
            worth = {pool: 1 / cost for pool, (cost, _) in best.items()}
            for pool, (_, gpus) in best.items():
                gpus_needed[pool] += gpus * worth[pool] / sum(worth.values())
    return dict(gpus_needed)


def alone(offers: Iterable[Offer], weight: Callable[[Candidate], float]) -> dict[str, int]:
    """Replicas by candidate of the alone plan that makes the sum of a weight least."""
    counts: dict[str, int] = {}
    for offer in offers:
        for group in _by_role(offer):
            best = min(
                _able(offer.demand, group), key=lambda c: (replicas_alone(offer.demand, c) * weight(c), c.id)
            )
            counts[best.id] = replicas_alone(offer.demand, best)
    return counts


def used(
    offers: Iterable[Offer],
    counts: dict[str, int],
    by: Callable[[Offer, Candidate], str],
    what: Callable[[Candidate], float],
) -> dict[str, float]:
    """Sums of a figure of the replicas of a plan, by some name."""
    sums: dict[str, float] = defaultdict(float)
    for offer in offers:
        for candidate in offer.candidates:
            if candidate.id in counts:
                sums[by(offer, candidate)] += counts[candidate.id] * what(candidate)
    return dict(sums)


def _by_role(offer: Offer) -> Iterator[list[Candidate]]:
    """Candidates of each role that the service cannot do without: those of the disaggregated path where there is one."""
    roles = {candidate.role for candidate in offer.candidates}
    path = PATHS[ServingPath.DISAGGREGATED] if Role.PREFILL in roles else (Role.BOTH,)
    for role in path:
        yield [c for c in offer.candidates if c.role is role]


def _able(demand: Demand, group: Sequence[Candidate]) -> Sequence[Candidate]:
    """Those that may have as many replicas as it takes; all of them where none may."""
    most = demand.max_replicas
    able = [
        one
        for one in group
        if (count := replicas_alone(demand, one)) <= (one.max_replicas or count) and count <= (most or count)
    ]
    return able or group
