"""Several request shapes on one replica become one capacity.

A replica that serves shares w_b of its requests from bucket b spends w_b/μ_b of its time on them, so
1/μ = Σ w_b/μ_b.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from models.performance import Origin, Rating
from models.problem import BucketRating
from models.workload import Bucket

__all__ = ["MixRating", "bucket_rating", "mix", "weights"]


@dataclass(frozen=True, slots=True)
class MixRating:
    """What one replica carries of a mix.

    Attributes:
        rated_rps: req/s of the mix inside SLO and trigger.
        surge_rps: req/s of the mix inside SLO up to τ; never below ``rated_rps``.
        kv_capacity_tokens: the smallest that a bucket's rating states; None where one states none.
        kv_tokens_per_rps: resident tokens per req/s of the mix; None where one bucket's is unknown.
        power_w: the largest draw over the buckets, None where one is unknown.
        origin: the least certain one of the buckets.
        source: where the figures are from.
        power_source: where the draw is from, if not from where the rates are.
        by_bucket: of one bucket alone; empty where nobody needs to know.
    """

    rated_rps: float
    surge_rps: float
    kv_capacity_tokens: float | None
    kv_tokens_per_rps: float | None
    power_w: float | None
    origin: Origin
    source: str
    by_bucket: dict[str, BucketRating] = field(default_factory=dict)
    power_source: str | None = None

    def scaled(self, rated: float, surge: float) -> MixRating:
        """The same with both rates of the mix and of every bucket times a factor."""
        by_bucket = {
            name: one.but(
                rated_rps=one.rated_rps * rated, surge_rps=max(one.rated_rps * rated, one.surge_rps * surge)
            )
            for name, one in self.by_bucket.items()
        }
        rated_rps = self.rated_rps * rated
        surge_rps = max(rated_rps, self.surge_rps * surge)
        return replace(self, rated_rps=rated_rps, surge_rps=surge_rps, by_bucket=by_bucket)


def weights(buckets: Sequence[Bucket]) -> dict[str, float]:
    """Share of each bucket in all requests: λ_b/λ; equal shares where nothing arrives."""
    total = math.fsum(bucket.arrival_rps for bucket in buckets)
    if total == 0:
        return {bucket.id: 1 / len(buckets) for bucket in buckets}
    return {bucket.id: bucket.arrival_rps / total for bucket in buckets}


def mix(ratings: Mapping[str, Rating], shares: Mapping[str, float]) -> MixRating:
    """One rating for a mix of buckets.

    Args:
        ratings: of each bucket alone; not empty.
        shares: of each of those buckets in the requests; need not add up to 1; all 0: equal.
    """
    whole = math.fsum(shares[name] for name in ratings)
    share = {name: shares[name] / whole if whole else 1 / len(ratings) for name in ratings}
    rated = _harmonic({name: rating.rated_rps for name, rating in ratings.items()}, share)
    surge = _harmonic({name: rating.surge_rps for name, rating in ratings.items()}, share)
    kv = {name: rating.kv_tokens_per_rps for name, rating in ratings.items()}
    return MixRating(
        rated_rps=rated,
        surge_rps=max(rated, surge),
        kv_capacity_tokens=_all_known(min, (rating.kv_capacity_tokens for rating in ratings.values())),
        kv_tokens_per_rps=_weighted(kv, share),
        power_w=_all_known(max, (rating.power_w for rating in ratings.values())),
        origin=max((rating.origin for rating in ratings.values()), key=list(Origin).index),
        source=_sources(ratings),
        power_source=next((rating.power_source for rating in ratings.values() if rating.power_source), None),
    )


def _harmonic(rates: Mapping[str, float], share: Mapping[str, float]) -> float:
    # Equal rates mix to that rate, to the last bit: a rate that a user states is the rate of the plan.
    if len(set(rates.values())) == 1:
        return next(iter(rates.values()))
    return 1 / math.fsum(share[name] / rate for name, rate in rates.items())


def _weighted(values: Mapping[str, float | None], share: Mapping[str, float]) -> float | None:
    known = {name: value for name, value in values.items() if value is not None}
    return (
        math.fsum(share[name] * value for name, value in known.items()) if len(known) == len(values) else None
    )


def _all_known(choose: Callable[[Sequence[float]], float], values: Iterable[float | None]) -> float | None:
    listed = list(values)
    known = [value for value in listed if value is not None]
    return choose(known) if len(known) == len(listed) else None


def bucket_rating(rating: Rating) -> BucketRating:
    """The rating of one bucket alone, as a candidate holds it."""
    return BucketRating(
        rated_rps=rating.rated_rps,
        surge_rps=max(rating.rated_rps, rating.surge_rps),
        kv_tokens_per_rps=rating.kv_tokens_per_rps,
    )


def _sources(ratings: Mapping[str, Rating]) -> str:
    """The one source of all, or each with its bucket."""
    if len({rating.source for rating in ratings.values()}) == 1:
        return next(iter(ratings.values())).source
    return "; ".join(f"{name}: {rating.source}" for name, rating in ratings.items())
