"""What runs now and is no candidate: it must not vanish from the problem.

Its accelerators are taken, its removal is a change, and a plan that does not name it would end it unasked.
So it becomes a candidate that cannot grow:

======================================  ====================================================================
why it is refused                       what becomes of the replicas that run
======================================  ====================================================================
the place: lists, pin, pod size         leave (``max_replicas`` 0): whoever changed the rule wants that
it cannot keep the promises             leave if the service has a candidate of that role, else stay
nobody knows what it carries            stay, and carry nothing of what is promised
price or power unknown                  an error: no plan can count them
======================================  ====================================================================

"Stay" is ``max_replicas`` = on order, and scaling in is not permitted. Neither kind counts where the figures of
the worst candidate decide for all (tokens per request, the weight of a guest). The rejection is in the problem
beside the candidate, so that reports can say why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from models.explanation import Reason
from models.performance import Origin
from models.problem import Candidate
from models.variant import Role
from planner.errors import Finding
from planner.sizing.candidates import Offer, Setting, candidate_of
from planner.sizing.mixing import MixRating
from planner.sizing.money import Price
from planner.sizing.references import finding

__all__ = ["UNRATED_RPS", "leftover", "leftover_findings"]

UNRATED_RPS: Final = 1e-6
"""Stands where a rate must be for a replica that is ``unrated``, req/s."""

# The guest's weight is the worst surge / guest rate over the candidates of a role, and a missing rate forbids
# borrowing altogether. What leaves or carries nothing must decide neither, and no rate is larger than this.
_NO_HINDRANCE_RPS: Final = 1e9

_UNKNOWN: Final = {Reason.NO_MEASUREMENT, Reason.PERCENTILE_NOT_MEASURED}
_BROKEN_PROMISES: Final = {
    Reason.SLO_NOT_MET,
    Reason.CONTEXT_TOO_LONG,
    Reason.REQUEST_DOES_NOT_FIT,
    Reason.WEIGHTS_DO_NOT_FIT,
}


def leftover_findings(offers: Collection[Offer], setting: Setting) -> Iterator[Finding]:
    """What runs and cannot be counted: its price is unknown, or its power where a cap speaks of its pool."""
    for offer in offers:
        if not offer.tally.on_order or offer.refusal is None:
            continue
        what = f"{offer.service.id}/{offer.variant.id}@{offer.pool.id} runs"
        if offer.price is None:
            yield finding("fleet.running", f"{what} and its cost is unknown", allowed="cost in the variant")
        if offer.draw.power_w is None and offer.pool.id in setting.capped:
            yield finding(
                "fleet.running",
                f"{what} under a power cap and its power is unknown",
                allowed="tdp_w of its accelerator",
            )


def leftover(offer: Offer, price: Price, setting: Setting, *, roles: Collection[Role]) -> Candidate:
    """The candidate that a refused offer with replicas becomes.

    Args:
        offer: refused, and something of it runs or is on order.
        price: of one replica.
        setting: of the problem.
        roles: that the service has real candidates of.
    """
    stays = _stays(offer, roles)
    reason = offer.refusal.reason if offer.refusal is not None else None
    known = candidate_of(offer, offer.rating or _nothing(), price, setting)
    guests = setting.guests.get(offer.service.id, ())
    return known.but(
        unrated=offer.rating is None,
        guest_surge_rps={guest.id: _NO_HINDRANCE_RPS for guest in guests},
        kv_capacity_tokens=None,
        kv_tokens_per_rps=None,
        max_replicas=offer.tally.on_order if stays else 0,
        scale_in_permitted=not stays,
        max_step_down=None,
        source=f"no candidate ({reason}), {'kept as it is' if stays else 'to be ended'}; {known.source}",
    )


def _stays(offer: Offer, roles: Collection[Role]) -> bool:
    reason = offer.refusal.reason if offer.refusal is not None else None
    return reason in _UNKNOWN or (reason in _BROKEN_PROMISES and offer.variant.role not in roles)


def _nothing() -> MixRating:
    return MixRating(
        rated_rps=UNRATED_RPS,
        surge_rps=UNRATED_RPS,
        kv_capacity_tokens=None,
        kv_tokens_per_rps=None,
        power_w=None,
        origin=Origin.MODELED,
        source="nothing rates it",
    )
