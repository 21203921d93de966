"""What a deployment carries at a size, from what was measured at other sizes; never more than was measured tells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from models.elastic import RankRate

__all__ = ["measured_sizes", "rate_at"]


def measured_sizes(rates: Sequence[RankRate]) -> tuple[int, ...]:
    """Sizes at which something was measured, the smallest first."""
    return tuple(sorted({rate.ranks for rate in rates}))


def rate_at(rates: Sequence[RankRate], ranks: int, *, redeployed: bool) -> RankRate | None:
    """The rate of a size: as measured, else between its two neighbors in proportion; None outside what was measured.

    A launch at this size holds fewer experts on each rank than a resize to it, so it carries no less: what was measured
    of a resized deployment stands in where no launch was measured, and never the other way round.

    Args:
        rates: all that were measured.
        ranks: size that is asked for.
        redeployed: launched at this size.
    """
    own = sorted((rate for rate in rates if rate.redeployed == redeployed), key=lambda rate: rate.ranks)
    found = _between(own, ranks)
    if found is None and redeployed:
        return rate_at(rates, ranks, redeployed=False)
    return found


def _between(rates: Sequence[RankRate], ranks: int) -> RankRate | None:
    exact = next((rate for rate in rates if rate.ranks == ranks), None)
    if exact is not None:
        return exact
    for low, high in pairwise(rates):
        if low.ranks < ranks < high.ranks:
            return _mixed(low, high, (ranks - low.ranks) / (high.ranks - low.ranks), ranks)
    return None


def _mixed(low: RankRate, high: RankRate, part: float, ranks: int) -> RankRate:
    def at(a: float | None, b: float | None) -> float | None:
        return None if a is None or b is None else a + (b - a) * part

    return RankRate(
        ranks=ranks,
        rated_rps=low.rated_rps + (high.rated_rps - low.rated_rps) * part,
        surge_rps=at(low.surge_rps, high.surge_rps),
        kv_tokens=at(low.kv_tokens, high.kv_tokens),
        redeployed=low.redeployed,
    )
