"""What one replica of a variant carries of a service's traffic, and of a guest's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from models.explanation import Fact
from models.hardware import Accelerator
from models.llm import Llm
from models.performance import MeasuredPoint, PerformanceChoice, Rating, RatingQuestion, Unrated
from models.queueing_profile import QueueingProfile
from models.saturation import SaturationThresholds
from models.variant import Variant
from models.workload import Bucket, Routing, Service, Slo
from planner.performance import chosen_sources, rate_many
from planner.performance.given import without_rates
from planner.performance.protocol import ManyAtOnce, PerformanceSource
from planner.sizing.mixing import MixRating, bucket_rating, mix, weights
from planner.sizing.names import Names

__all__ = ["Rate", "Ratings", "question_about", "rate_by_profiles"]

Rate = Callable[[RatingQuestion], Rating | Unrated]
"""Who says what one replica can do."""


def rate_by_profiles(
    profiles: Mapping[str, tuple[MeasuredPoint, ...]],
    choice: PerformanceChoice | None = None,
    *,
    queueing: tuple[QueueingProfile, ...] = (),
) -> Rate:
    """Rates from given figures and the chosen sources over these profile tables.

    Raises:
        ConfigurationError: the choice names a source or a table that is not there.
    """
    return _BySources(chosen_sources(choice or PerformanceChoice(), profiles, queueing=queueing))


@dataclass(frozen=True, slots=True)
class _BySources:
    """Given figures, formulas and sources; asked for many questions at once where that is faster."""

    sources: tuple[PerformanceSource, ...]

    def __call__(self, question: RatingQuestion) -> Rating | Unrated:
        return rate_many((question,), self.sources)[0]

    def many(self, questions: Sequence[RatingQuestion]) -> list[Rating | Unrated]:
        return rate_many(questions, self.sources)

    def rather_together(self, variant: Variant) -> bool:
        """Whether questions about a variant go to a model that answers many at once."""
        if variant.capacity.rated_rps is not None:
            return False
        return variant.queueing is not None or any(isinstance(each, ManyAtOnce) for each in self.sources)


class Ratings:
    """Ratings of every variant, each asked for once.

    Rates that a variant states (``variant.capacity``) are for its service's own mix. Where one bucket alone or
    a guest's traffic is asked about, the rates without them are taken and scaled so that the own mix gives
    what the variant states.

    Args:
        rate: who says what one replica can do.
        names: accelerators and LLMs by name.
    """

    def __init__(self, rate: Rate, names: Names) -> None:
        self._rate = rate
        self._names = names
        self._own: dict[tuple[str, str], MixRating | Unrated] = {}
        self._foreseen: dict[tuple[int, int], Rating | Unrated] = {}
        self._guests: dict[tuple[str, str, str], float | None] = {}

    def own(self, service: Service, variant: Variant) -> MixRating | Unrated:
        """What a replica carries of the service's own mix (routing by length: of the buckets it can serve)."""
        key = (service.id, variant.id)
        if key not in self._own:
            by_length = service.routing is Routing.BY_LENGTH
            self._own[key] = self._by_length(service, variant) if by_length else self._mixed(service, variant)
        return self._own[key]

    def foresee(self, service: Service) -> None:
        """Ask what will be asked about a service's own traffic, together where that is faster."""
        self._foreseen = {}
        if not isinstance(self._rate, _BySources):
            return
        share = weights(service.buckets)
        asked = [
            (variant, bucket)
            for variant in service.variants
            if self._rate.rather_together(variant)
            for bucket in service.buckets
            if share[bucket.id] > 0 or service.routing is Routing.BY_LENGTH
        ]
        questions = [self._question(service, *each, service.thresholds) for each in asked]
        for (variant, bucket), answer in zip(asked, self._rate.many(questions), strict=True):
            self._foreseen[id(variant), id(bucket)] = answer

    def alone(self, service: Service, variant: Variant, bucket: Bucket) -> Rating | Unrated:
        """What a replica carries of one bucket alone, whatever rate the variant states for the mix."""
        return self._ask(service, without_rates(variant), bucket, service.thresholds)

    def guest_surge_rps(self, host: Service, variant: Variant, guest: Service) -> float | None:
        """Req/s of a guest's mix up to τ, inside the guest's SLO, on a replica of its host; None: unknown."""
        key = (host.id, variant.id, guest.id)
        if key not in self._guests:
            self._guests[key] = self._surge_of_guest(host, variant, guest)
        return self._guests[key]

    def _surge_of_guest(self, host: Service, variant: Variant, guest: Service) -> float | None:
        own = self.own(host, variant)
        if isinstance(own, Unrated):
            return None
        if _same_traffic(host, guest):
            return own.surge_rps
        asked = without_rates(variant)
        ratings, unrated = self._asked(guest, asked, host.thresholds)
        if unrated is not None:
            return None
        found = mix(ratings, weights(guest.buckets)).surge_rps
        if variant.capacity.rated_rps is None:
            return found
        ratings, unrated = self._asked(host, asked, host.thresholds)
        if unrated is not None:
            return None
        return found * own.surge_rps / mix(ratings, weights(host.buckets)).surge_rps

    def _mixed(self, service: Service, variant: Variant) -> MixRating | Unrated:
        """Every bucket that arrives must be servable; a rate that the variant states is that of the mix."""
        ratings, unrated = self._asked(service, variant, service.thresholds)
        if unrated is not None:
            return unrated
        found = mix(ratings, weights(service.buckets))
        stated = variant.capacity.rated_rps
        if stated is None:
            return found
        surge = variant.capacity.surge_rps or found.surge_rps
        return replace(found, rated_rps=stated, surge_rps=max(stated, surge))

    def _by_length(self, service: Service, variant: Variant) -> MixRating | Unrated:
        """Buckets that cannot be served are left out; none left: the reason of the first."""
        stated = variant.capacity.rated_rps
        asked = variant if stated is None or len(service.buckets) == 1 else without_rates(variant)
        buckets = sorted(service.buckets, key=lambda bucket: bucket.id)
        answers = {bucket.id: self._ask(service, asked, bucket, service.thresholds) for bucket in buckets}
        ratings = {name: answer for name, answer in answers.items() if isinstance(answer, Rating)}
        if not ratings:
            return next(
                _about(bucket, answer)
                for bucket in buckets
                if isinstance(answer := answers[bucket.id], Unrated)
            )
        by_bucket = {name: bucket_rating(rating) for name, rating in ratings.items()}
        found = replace(mix(ratings, weights(buckets)), by_bucket=by_bucket)
        return found if stated is None else _as_stated(found, stated, variant.capacity.surge_rps)

    def _asked(
        self, service: Service, variant: Variant, thresholds: SaturationThresholds
    ) -> tuple[dict[str, Rating], Unrated | None]:
        """Ratings of the buckets that arrive, in the order of their names, up to the first without one."""
        share = weights(service.buckets)
        ratings: dict[str, Rating] = {}
        for bucket in sorted(service.buckets, key=lambda bucket: bucket.id):
            if share[bucket.id] == 0:
                continue
            answer = self._ask(service, variant, bucket, thresholds)
            if isinstance(answer, Unrated):
                return ratings, _about(bucket, answer)
            ratings[bucket.id] = answer
        return ratings, None

    def _ask(
        self, service: Service, variant: Variant, bucket: Bucket, thresholds: SaturationThresholds
    ) -> Rating | Unrated:
        foreseen = self._foreseen.get((id(variant), id(bucket)))
        if foreseen is not None and thresholds == service.thresholds:
            return foreseen
        return self._rate(self._question(service, variant, bucket, thresholds))

    def _question(
        self, service: Service, variant: Variant, bucket: Bucket, thresholds: SaturationThresholds
    ) -> RatingQuestion:
        llm, accelerator = self._names.llms[service.llm], self._names.accelerators[variant.accelerator]
        question = question_about(service, bucket, variant=variant, llm=llm, accelerator=accelerator)
        return question if thresholds == service.thresholds else question.but(thresholds=thresholds)


def question_about(
    service: Service, bucket: Bucket, *, variant: Variant, llm: Llm, accelerator: Accelerator
) -> RatingQuestion:
    """What planning asks of a variant at one request shape of a service.

    Args:
        service: whose promises and thresholds hold.
        bucket: shape of its requests.
        variant: that is asked about.
        llm: what the service names.
        accelerator: what the variant names.
    """
    return RatingQuestion(
        llm=llm,
        accelerator=accelerator,
        variant=variant,
        input_tokens=bucket.input_tokens,
        output_tokens=bucket.output_tokens,
        cached_share=bucket.cached_share,
        arrival_cv=service.arrival_cv,
        slo=service.slo,
        thresholds=service.thresholds,
    )


def _as_stated(found: MixRating, rated_rps: float, surge_rps: float | None) -> MixRating:
    """The rating scaled so that its mix is what a variant states; without a stated surge both rates scale alike."""
    rated = rated_rps / found.rated_rps
    surge = rated if surge_rps is None else surge_rps / found.surge_rps
    scaled = found.scaled(rated, surge)
    stated = replace(scaled, rated_rps=rated_rps, surge_rps=max(rated_rps, scaled.surge_rps))
    return (
        replace(stated, source=f"variant.capacity, split by {found.source}")
        if len(found.by_bucket) > 1
        else stated
    )


def _about(bucket: Bucket, unrated: Unrated) -> Unrated:
    """The reason with the shape that it is about."""
    shape = f"{bucket.input_tokens} × {bucket.output_tokens}"
    facts: dict[str, Fact] = {"bucket": bucket.id}
    if "asked_shape" not in unrated.facts:
        facts["request_shape"] = shape
    return Unrated(reason=unrated.reason, facts=facts | unrated.facts)


def _same_traffic(host: Service, guest: Service) -> bool:
    """Whether a guest sends the same shapes in the same shares and asks for no other promise than its host, or for none."""
    if guest.slo not in (host.slo, Slo()):
        return False
    return _shapes(host) == _shapes(guest)


def _shapes(service: Service) -> dict[tuple[int, int], float]:
    shapes: dict[tuple[int, int], list[float]] = {}
    share = weights(service.buckets)
    for bucket in service.buckets:
        shapes.setdefault((bucket.input_tokens, bucket.output_tokens), []).append(share[bucket.id])
    return {shape: math.fsum(shares) for shape, shares in shapes.items() if math.fsum(shares) > 0}
