"""Request shapes that no candidate of a service carries: each variant's reason, so that they can be named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from models.explanation import Fact, Rejection
from models.performance import Unrated
from models.problem import PATHS
from models.variant import Role
from models.workload import Bucket, Routing, Service
from planner.sizing.candidates import Offer
from planner.sizing.rating import Ratings

__all__ = ["uncarried_shapes"]


def uncarried_shapes(
    services: Iterable[Service], offers: Sequence[Offer], ratings: Ratings
) -> Iterator[Rejection]:
    """A rejection for each offer that could have carried a shape that nothing carries.

    Only services routed by length: where replicas see the whole mix, a variant that misses one shape is no
    candidate at all. Shapes of which nothing arrives are no concern.

    Args:
        services: of the scenario.
        offers: of all services.
        ratings: what replicas carry.
    """
    for service in services:
        if service.routing is not Routing.BY_LENGTH:
            continue
        own = [offer for offer in offers if offer.service.id == service.id and offer.refusal is None]
        if not own:
            continue
        for bucket in service.buckets:
            if bucket.arrival_rps > 0 and not _is_carried(own, bucket):
                yield from _rejections(own, bucket, ratings)


def _is_carried(offers: Sequence[Offer], bucket: Bucket) -> bool:
    """Whether on some path every role has an offer that carries the shape."""
    there: set[Role] = {
        offer.variant.role
        for offer in offers
        if offer.rating is not None and bucket.id in offer.rating.by_bucket
    }
    return any(there.issuperset(roles) for roles in PATHS.values())


def _rejections(offers: Sequence[Offer], bucket: Bucket, ratings: Ratings) -> Iterator[Rejection]:
    for offer in offers:
        answer = ratings.alone(offer.service, offer.variant, bucket)
        if isinstance(answer, Unrated):
            shape: dict[str, Fact] = {
                "bucket": bucket.id,
                "request_shape": f"{bucket.input_tokens} × {bucket.output_tokens}",
            }
            yield Rejection(
                service=offer.service.id,
                variant=offer.variant.id,
                pool=offer.pool.id,
                reason=answer.reason,
                facts=shape | answer.facts,
            )
