"""The roofline as a performance source: the most requests in flight whose modeled latencies keep the promises.

Modeled latencies are taken at the quantile that the scenario asks for (``performance.pessimism``), from the
residuals of measured rows; the interval is the same answer at the 10th and at the 90th percentile. The fitted
rows are means and medians, so promises at a percentile are answered by the queueing model with the roofline's
iteration times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from models.explanation import Fact, Reason
from models.performance import Interval, Origin, Rating, RatingQuestion, Unrated
from models.queueing import QueueingParameters
from models.variant import Role
from planner.performance.given import kv_capacity
from planner.performance.protocol import Knowledge
from planner.performance.residence import promises, residence_s, resident_tokens
from planner.performance.roofline.formula import Shares, first_token_s, prefill_s, step_s
from planner.performance.roofline.known import KnownShares, known_shares
from planner.performance.roofline.queue import queueing_parameters, rate_queued
from planner.performance.roofline.work import Work, lacking, setup_of, work_of

__all__ = ["Latencies", "Roofline", "Setting", "latencies"]

_PROBABILITY: Final = 0.8
_BISECTIONS: Final = 24
_BUSIEST_PREFILL: Final = 0.9
"""Share of time that a prefill replica may compute; above it the wait is a matter of luck."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One question, ready to be answered at any load.

    Attributes:
        work: of the replica.
        shares: of its engine.
        role: of the replica.
        factors: what modeled ITL and TTFT are multiplied by.
    """

    work: Work[float]
    shares: Shares[float]
    role: Role
    factors: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies and rate at one load. A prefill replica has no ITL, a decode replica no TTFT."""

    ttft_s: float
    itl_s: float
    rps: float


def latencies(setting: Setting, in_flight: float) -> Latencies:
    """Latencies with so many requests in flight.

    Prefill replicas compute one prompt after another (a queue with constant service times: the wait is half of
    rho / (1 - rho) service times), so the load follows from Little's law.
    """
    work, (itl_factor, ttft_factor) = setting.work, setting.factors
    if setting.role is Role.PREFILL:
        return _prefill(setting, in_flight)
    itl = step_s(work, setting.shares, in_flight) * itl_factor
    ttft = 0.0
    if setting.role is Role.BOTH:
        ttft = first_token_s(work, setting.shares, in_flight) * ttft_factor
    stay = residence_s(setting.role, ttft_s=ttft, itl_s=itl, output_tokens=round(work.output_tokens))
    return Latencies(ttft, itl, in_flight / (stay or itl))


class Roofline:
    """Rates what nobody measured, at the scenario's pessimism.

    Args:
        knowledge: whose choice says how pessimistic to be.
        known: fitted shares; None: those that came with fleetplan.
    """

    name = "roofline"

    def __init__(self, knowledge: Knowledge, known: KnownShares | None = None) -> None:
        self._known = known or known_shares()
        self._pessimism = knowledge.choice.pessimism

    def rate(self, question: RatingQuestion) -> Rating | Unrated:
        """The rating, modeled, with its interval; unrated where a figure of the hardware or the LLM is unknown."""
        refusal = _cannot(question)
        if refusal is not None:
            return refusal
        limits = _limits(question, kv_capacity(question), self._known.in_flight_most)
        if limits[0] < 1:
            return _too_little_kv(question, kv_capacity(question))
        answer = self._at(question, limits, self._pessimism)
        if isinstance(answer, Unrated):
            return answer
        return answer.but(
            source=f"roofline, {self._engine(question)}, at the {self._pessimism:.0%} quantile; {answer.source}".rstrip(
                "; "
            ),
            interval=self._interval(question, limits),
        )

    def _at(self, question: RatingQuestion, limits: tuple[float, float], level: float) -> Rating | Unrated:
        """The answer with latencies at this quantile of their residuals."""
        setting = self.setting(question, level)
        rated = _most(setting, question, limits[0])
        if rated is None:
            return Unrated(reason=Reason.SLO_NOT_MET, facts=_best_facts(question, latencies(setting, 1.0)))
        if _at_percentile(question):
            parameters, first_base_s = _queued(setting, rated[0], limits[0])
            return rate_queued(question, parameters, first_base_s=first_base_s)
        return _rating(question, rated, _most(setting, question, limits[1]) or rated)

    def setting(self, question: RatingQuestion, level: float) -> Setting:
        """The question ready to be answered at any load, with latencies at this quantile of their residuals."""
        setup = setup_of(question)
        factors = self._known.residuals.factors(level)
        return Setting(work_of(setup), self._known.of(question.variant.engine), setup.role, factors)

    def queued(self, question: RatingQuestion, level: float) -> tuple[QueueingParameters, float]:
        """Parameters of the queueing model that stands for the roofline where a promise is at a percentile.

        Returns:
            The parameters, and the part of the first token's time that is no iteration, s.
        """
        setting, most = self.setting(question, level), self.most_in_flight(question)
        rated = _most(setting, question, max(1.0, most))
        return _queued(setting, 1.0 if rated is None else rated[0], most)

    def most_in_flight(self, question: RatingQuestion) -> float:
        """Requests in flight inside the trigger, and no more than any measured row had."""
        return _limits(question, kv_capacity(question), self._known.in_flight_most)[0]

    def _engine(self, question: RatingQuestion) -> str:
        engine = question.variant.engine
        return engine if engine in {name.partition("@")[0] for name in self._known.engines} else "all engines"

    def _interval(self, question: RatingQuestion, limits: tuple[float, float]) -> Interval:
        """The rate if latencies are at their 90th and at their 10th percentile."""
        levels = ((1 + _PROBABILITY) / 2, (1 - _PROBABILITY) / 2)
        answers = [self._at(question, limits, level) for level in levels]
        rates = [answer.rated_rps if isinstance(answer, Rating) else 0.0 for answer in answers]
        return Interval(low_rps=min(rates), high_rps=max(rates), probability=_PROBABILITY)


def _rating(
    question: RatingQuestion, rated: tuple[float, Latencies], surge: tuple[float, Latencies]
) -> Rating:
    """The rating at a load inside the trigger and one inside tau; its source and interval are told by the caller."""
    (in_flight, found), role = rated, question.variant.role
    return Rating(
        rated_rps=found.rps,
        surge_rps=max(found.rps, surge[1].rps),
        ttft_s=None if role is Role.DECODE else found.ttft_s,
        itl_s=None if role is Role.PREFILL else found.itl_s,
        kv_capacity_tokens=kv_capacity(question),
        kv_tokens_per_rps=in_flight / found.rps * resident_tokens(question),
        origin=Origin.MODELED,
        source="",
    )


def _queued(setting: Setting, in_flight: float, most: float) -> tuple[QueueingParameters, float]:
    """Parameters that agree with the roofline at a load, and the part of the first token that is no iteration, s."""
    shares, (itl_factor, ttft_factor) = setting.shares, setting.factors
    parameters = queueing_parameters(
        setting.work, shares, in_flight=in_flight, factor=itl_factor, max_batch=max(1, int(most))
    )
    return parameters, shares.first_base_s * ttft_factor


def _at_percentile(question: RatingQuestion) -> bool:
    slo = question.slo
    return slo.at != "mean" and (slo.ttft_s, slo.itl_s, slo.e2e_s) != (None, None, None)


def _prefill(setting: Setting, in_flight: float) -> Latencies:
    shares = setting.shares
    service = (shares.first_prefill * prefill_s(setting.work, shares)) * setting.factors[1]
    base = (shares.first_base_s + shares.first_steps * shares.base_s) * setting.factors[1]
    ranks = setting.work.ranks * setting.work.stages
    queued = in_flight / ranks
    # Little: queued = rho + rho^2 / (2 (1 - rho)) in service and waiting; solved for rho.
    rho = min(_BUSIEST_PREFILL, queued + 1 - math.sqrt(queued * queued + 1))
    wait = service * rho / (2 * (1 - rho))
    return Latencies(base + service + wait, 0.0, rho * ranks / service)


def _most(setting: Setting, question: RatingQuestion, limit: float) -> tuple[float, Latencies] | None:
    """The most requests in flight up to ``limit`` that keep the promises; None: not even one."""

    def keeps(found: Latencies) -> bool:
        return all(
            seen <= target for _, seen, target in promises(question, ttft_s=found.ttft_s, itl_s=found.itl_s)
        )

    low, high = 1.0, limit
    if not keeps(latencies(setting, low)):
        return None
    top = latencies(setting, high)
    if keeps(top):
        return high, top
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(latencies(setting, middle)) else (low, middle)
    return low, latencies(setting, low)


def _cannot(question: RatingQuestion) -> Unrated | None:
    """What keeps the formula from answering; another source may know."""
    slo, variant = question.slo, question.variant
    missing = list(lacking(setup_of(question)))
    if question.llm.opaque:
        missing = ["the shape of the LLM"]
    if variant.pods_per_replica > 1:
        missing.append("a link between pods")
    if slo.e2e_s is not None and variant.role is not Role.BOTH:
        missing.append("the other phase of the request")
    if not missing:
        return None
    return Unrated(reason=Reason.NO_MEASUREMENT, facts={"roofline_lacks": ", ".join(missing)})


def _limits(question: RatingQuestion, kv_tokens: float | None, most: float) -> tuple[float, float]:
    """Requests in flight inside the trigger and inside tau, by KV cache; never more than any measured row had."""
    most = min(most, question.variant.engine_arguments.max_requests or most)
    if kv_tokens is None:
        return most, most
    thresholds, tokens = question.thresholds, resident_tokens(question)
    rated = (thresholds.tau_kv - thresholds.gamma_kv) * kv_tokens / tokens
    return min(most, rated), min(most, thresholds.tau_kv * kv_tokens / tokens)


def _too_little_kv(question: RatingQuestion, kv_tokens: float | None) -> Unrated:
    thresholds = question.thresholds
    inside = (thresholds.tau_kv - thresholds.gamma_kv) * (kv_tokens or 0.0)
    facts: dict[str, Fact] = {"request_tokens": resident_tokens(question), "kv_tokens_inside_trigger": inside}
    return Unrated(reason=Reason.REQUEST_DOES_NOT_FIT, facts=facts)


def _best_facts(question: RatingQuestion, best: Latencies) -> dict[str, Fact]:
    """For each promise what one request alone would see, s, and its target."""
    facts: dict[str, Fact] = {}
    for name, seen, target in promises(question, ttft_s=best.ttft_s, itl_s=best.itl_s):
        facts[f"best_{name}"] = seen
        facts[f"target_{name}"] = target
    return facts
