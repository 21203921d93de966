"""Every variant in every place: a candidate with its figures, or a rejection with the first reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from models.explanation import Reason, Rejection
from models.hardware import Pool
from models.ids import DomainId, PoolId, ServiceId
from models.performance import Unrated
from models.problem import Candidate, PoolState, candidate_id
from models.scenario import Scenario
from models.variant import KubernetesObject, Variant
from models.workload import Service
from planner.sizing.elastic import Expanded
from planner.sizing.mixing import MixRating
from planner.sizing.money import Price, price_of
from planner.sizing.names import Names
from planner.sizing.places import Refusal, refusal_of_place, refusal_of_size
from planner.sizing.pools import fabric_domains
from planner.sizing.power import Draw, draw_of
from planner.sizing.rating import Ratings
from planner.sizing.running import Running, Tally

__all__ = ["Offer", "Setting", "candidate_of", "nowhere", "offers", "rejection_of"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same for every candidate of a problem.

    Attributes:
        scenario: normalized.
        names: accelerators and LLMs.
        pools: states by identity.
        ratings: what replicas carry.
        running: what runs now.
        capped: pools that a power cap speaks of.
        guests: batch services by the service whose replicas they may share.
        elastic: what elastic variants became.
    """

    scenario: Scenario
    names: Names
    pools: Mapping[PoolId, PoolState]
    ratings: Ratings
    running: Running
    capped: frozenset[PoolId]
    guests: Mapping[ServiceId, Sequence[Service]]
    elastic: Expanded


@dataclass(frozen=True, slots=True)
class Offer:
    """A variant in a place, judged.

    Attributes:
        service: that would be served.
        variant: that would run.
        pool: where.
        domain: fabric domain its replicas stay in.
        rating: what a replica carries; None where nothing rates it.
        price: None: unknown.
        draw: power of a replica.
        tally: what of it runs now.
        refusal: why it is no candidate; None: it is one.
    """

    service: Service
    variant: Variant
    pool: Pool
    domain: DomainId | None
    rating: MixRating | None
    price: Price | None
    draw: Draw
    tally: Tally
    refusal: Refusal | None


def offers(service: Service, setting: Setting) -> Iterator[Offer]:
    """Every variant of a service in every pool it may name and every pool it runs in, sorted by name."""
    setting.ratings.foresee(service)
    pools = {pool.id: pool for pool in setting.scenario.pools}
    for variant in sorted(service.variants, key=lambda variant: variant.id):
        runs_in = setting.running.pools_of(service.id, variant.id)
        of_type = {pool.id for pool in pools.values() if pool.accelerator == variant.accelerator}
        for name in sorted(set(variant.pools or of_type) | runs_in):
            for domain in fabric_domains(setting.pools[name], variant.pods_per_replica):
                yield _judged(service, variant, pools[name], domain, setting)


def nowhere(service: Service, setting: Setting) -> Iterator[Rejection]:
    """Variants whose accelerator no pool has."""
    has = {pool.accelerator for pool in setting.scenario.pools}
    for variant in service.variants:
        if variant.accelerator not in has and not variant.pools:
            yield Rejection(
                service=service.id,
                variant=variant.id,
                reason=Reason.NO_POOL_WITH_ACCELERATOR,
                facts={"accelerator": variant.accelerator},
            )


def rejection_of(offer: Offer, refusal: Refusal) -> Rejection:
    """A refused offer as data of the problem."""
    return Rejection(
        service=offer.service.id,
        variant=offer.variant.id,
        pool=offer.pool.id,
        reason=refusal.reason,
        facts=refusal.facts,
    )


def candidate_of(offer: Offer, rating: MixRating, price: Price, setting: Setting) -> Candidate:
    """The candidate that an offer is, with what of it runs now."""
    service, variant = offer.service, offer.variant
    place = (service.id, variant.id, offer.pool.id)
    kv_tokens = rating.kv_capacity_tokens
    way = setting.elastic.ways.get((service.id, variant.id))
    stays = (service.id, variant.id) in setting.elastic.staying
    return Candidate(
        id=candidate_id(*place, offer.domain),
        service=service.id,
        variant=variant.id,
        role=variant.role,
        pool=offer.pool.id,
        accelerator=variant.accelerator,
        fabric_domain=offer.domain,
        parallelism=variant.parallelism.label,
        pods_per_replica=variant.pods_per_replica,
        gpus_per_pod=variant.gpus_per_pod,
        rated_rps=rating.rated_rps,
        surge_rps=rating.surge_rps,
        by_bucket=rating.by_bucket,
        guest_surge_rps=_guests(offer, setting),
        kv_capacity_tokens=None if kv_tokens is None else kv_tokens * service.thresholds.tau_kv,
        kv_tokens_per_rps=rating.kv_tokens_per_rps,
        cost=price.value,
        startup_cost=variant.startup_cost_usd,
        startup_s=variant.startup_s,
        power_w=offer.draw.power_w,
        current=offer.tally.current,
        pending=offer.tally.pending,
        scale_in_permitted=setting.running.scale_in_permitted(place),
        max_replicas=offer.tally.on_order if stays else None,
        resize=None if way is None else way.resize(service.id, offer.domain),
        max_step_up=variant.max_step_up,
        max_step_down=variant.max_step_down,
        object=_object(service, variant),
        origin=rating.origin,
        source=f"rate: {rating.source}; cost: {price.source}; power: {offer.draw.source}",
    )


def _judged(
    service: Service, variant: Variant, pool: Pool, domain: DomainId | None, setting: Setting
) -> Offer:
    """Place first, then size, then rate, then price, then power: the first that fails is the reason."""
    accelerator = setting.names.accelerators[variant.accelerator]
    running_on = setting.running.accelerators_of(service.id)
    refusal = refusal_of_place(service, variant, pool, running_on=running_on)
    refusal = refusal or refusal_of_size(variant, setting.pools[pool.id], domain, setting.scenario.mode)
    tally = setting.running.tally((service.id, variant.id, pool.id), domain)
    answer = setting.ratings.own(service, variant) if refusal is None or tally.on_order else None
    rating = answer if isinstance(answer, MixRating) else None
    if refusal is None and isinstance(answer, Unrated):
        refusal = Refusal(answer.reason, dict(answer.facts))
    price = price_of(variant, pool, accelerator)
    if refusal is None and price is None:
        refusal = Refusal(Reason.UNKNOWN_PRICE, {"accelerator": accelerator.id})
    rated_w, of_w = (None, None) if rating is None else (rating.power_w, rating.power_source)
    draw = draw_of(variant, accelerator, setting.scenario.limits.power_basis, rated_w=rated_w, source=of_w)
    if refusal is None and draw.power_w is None and pool.id in setting.capped:
        refusal = Refusal(Reason.UNKNOWN_POWER, {"accelerator": accelerator.id})
    return Offer(service, variant, pool, domain, rating, price, draw, tally, refusal)


def _object(service: Service, variant: Variant) -> KubernetesObject | None:
    """The object of a variant in the namespace that it names, else in that of its service."""
    if variant.object is None or variant.object.namespace is not None:
        return variant.object
    return variant.object.but(namespace=service.namespace)


def _guests(offer: Offer, setting: Setting) -> dict[ServiceId, float]:
    """What a replica carries of each batch service that may borrow here; one that nothing rates is left out."""
    rates = {
        guest.id: setting.ratings.guest_surge_rps(offer.service, offer.variant, guest)
        for guest in setting.guests.get(offer.service.id, ())
    }
    return {name: rate for name, rate in sorted(rates.items()) if rate is not None}
