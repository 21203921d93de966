"""Figures that the user measured: they go before every table and every formula."""

from __future__ import annotations

from models.explanation import Fact, Reason
from models.performance import Origin, Rating, RatingQuestion, Unrated
from models.variant import Variant
from planner.performance.memory import kv_capacity_tokens
from planner.performance.residence import resident_tokens

__all__ = ["kv_capacity", "rate_given", "surge_factor", "without_rates"]


def rate_given(question: RatingQuestion) -> Rating | Unrated | None:
    """The rating that ``variant.capacity`` states; None when it states no rate.

    Of rates by shape the one of the asked shape counts, else the largest of the shapes that are at least as
    long in both directions: a replica carries shorter requests at least as fast. A shape whose rate is 0, and
    one that is longer than all, is not carried.

    Where no surge rate is given it is ``rated x tau / (tau - gamma)`` (KV usage grows in proportion to
    the rate), and not more than tau of the KV capacity holds when residence time and capacity are known.
    """
    capacity = question.variant.capacity
    rated = capacity.rated_rps
    if capacity.by_shape:
        found = _of_shape(question)
        if isinstance(found, Unrated):
            return found
        rated = found
    if rated is None:
        return None
    kv_tokens = kv_capacity(question)
    per_rps = None if capacity.residence_s is None else capacity.residence_s * resident_tokens(question)
    surge = capacity.surge_rps
    if surge is None:
        surge = rated * surge_factor(question)
        if kv_tokens is not None and per_rps is not None:
            surge = min(surge, question.thresholds.tau_kv * kv_tokens / per_rps)
    return Rating(
        rated_rps=rated,
        surge_rps=max(rated, surge),
        kv_capacity_tokens=kv_tokens,
        kv_tokens_per_rps=per_rps,
        power_w=capacity.power_w,
        origin=Origin.GIVEN,
        source="variant.capacity",
    )


def _of_shape(question: RatingQuestion) -> float | Unrated:
    """The stated rate of the asked shape, req/s."""
    asked = (question.input_tokens, question.output_tokens)
    rates = {
        (each.input_tokens, each.output_tokens): each.rated_rps for each in question.variant.capacity.by_shape
    }
    facts: dict[str, Fact] = {"asked_shape": f"{asked[0]} × {asked[1]}"}
    longer = [shape for shape in rates if shape[0] >= asked[0] and shape[1] >= asked[1]]
    if asked not in rates and not longer:
        longest = max(rates, key=lambda shape: (shape[0] * shape[1], shape))
        facts["longest_shape"] = f"{longest[0]} × {longest[1]}"
        return Unrated(reason=Reason.SHAPE_NOT_CARRIED, facts=facts)
    rate = rates[asked] if asked in rates else max(rates[shape] for shape in longer)
    return rate or Unrated(reason=Reason.SHAPE_NOT_CARRIED, facts=facts)


def without_rates(variant: Variant) -> Variant:
    """The variant without the rates that it states for its own mix; those by shape stay."""
    return variant.but(capacity=variant.capacity.but(rated_rps=None, surge_rps=None))


def surge_factor(question: RatingQuestion) -> float:
    """How much faster than rated a replica runs when its KV usage is at tau instead of tau - gamma."""
    thresholds = question.thresholds
    return thresholds.tau_kv / (thresholds.tau_kv - thresholds.gamma_kv)


def kv_capacity(question: RatingQuestion) -> float | None:
    """KV capacity of one replica, tokens: as given, else by formula; None when there is neither."""
    given = question.variant.capacity.kv_tokens
    if given is not None:
        return given
    length = question.input_tokens + question.output_tokens
    fit = kv_capacity_tokens(question.llm, question.accelerator, question.variant, sequence_tokens=length)
    return float(fit.kv_tokens) if fit.fits and fit.kv_tokens is not None else None
