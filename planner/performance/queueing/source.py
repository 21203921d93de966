"""The queueing model as a performance source: questions in, ratings of modeled origin out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from models.explanation import Fact, Reason
from models.performance import Origin, Rating, RatingQuestion, Unrated
from models.queueing import QueueingParameters
from models.queueing_profile import QueueingProfile
from models.variant import Role
from models.workload import Slo
from planner.performance.given import kv_capacity, surge_factor
from planner.performance.protocol import Knowledge
from planner.performance.queueing.cases import MEAN, Answers, Bound, Case, columns_of
from planner.performance.residence import resident_tokens

__all__ = ["QueueingSource", "case_of", "from_knowledge", "rate_all_stated", "rate_stated"]

_PERCENT: Final = 100.0
_UNBOUNDED: Final = math.inf
_LEAST_RPS: Final = 1e-6
"""Smallest rate that a rating can state."""

_LEAST_WAITING: Final = 1e-3
"""A threshold of 0 asks for no queue at all, which a mean reaches only at no load."""

_STATED: Final = "variant.queueing"
_LATENCIES: Final = {Bound.TTFT: "ttft_s", Bound.ITL: "itl_s", Bound.E2E: "e2e_s"}


class QueueingSource:
    """Rates from queueing parameters: those that a variant states, else those that profiles know for it.

    Args:
        profiles: rows to look in; of several that fit, one that was fitted goes before one that was stated, then
            more measured points before fewer.
    """

    name = "queueing"

    def __init__(self, profiles: Iterable[QueueingProfile] = ()) -> None:
        index: dict[tuple[str, str], list[QueueingProfile]] = {}
        for profile in sorted(profiles, key=_preference):
            index.setdefault((profile.llm, profile.accelerator), []).append(profile)
        self._profiles = index

    def rate(self, question: RatingQuestion) -> Rating | Unrated:
        """What one replica carries; open where nothing is known of this LLM on this accelerator in this way."""
        return self.rate_many([question])[0]

    def rate_many(self, questions: Sequence[RatingQuestion]) -> list[Rating | Unrated]:
        """As :meth:`rate`, all in one call of the vectorised model."""
        known = [self.known(question) for question in questions]
        asked = [(q, k) for q, k in zip(questions, known, strict=True) if k is not None]
        ratings = iter(_rate_all([question for question, _ in asked], [found for _, found in asked]))
        return [
            next(ratings) if found is not None else self._unknown(question)
            for question, found in zip(questions, known, strict=True)
        ]

    def known(self, question: RatingQuestion) -> tuple[QueueingParameters, str] | None:
        """Parameters for a question and where they are from: what the variant states, else the best profile; None: unknown."""
        if question.variant.queueing is not None:
            return question.variant.queueing, _STATED
        return next(
            (
                (row.parameters, row.source or "profile")
                for row in self._rows(question)
                if _is_for(row, question)
            ),
            None,
        )

    def _rows(self, question: RatingQuestion) -> Iterable[QueueingProfile]:
        for llm in dict.fromkeys((question.llm.id, *question.llm.aliases)):
            for accelerator in dict.fromkeys((question.accelerator.id, *question.accelerator.aliases)):
                yield from self._profiles.get((llm, accelerator), ())

    def _unknown(self, question: RatingQuestion) -> Unrated:
        setups = sorted(
            {f"{row.precision} {row.parallelism.label} {row.role}" for row in self._rows(question)}
        )
        facts: dict[str, Fact] = {
            "llm": question.llm.id,
            "accelerator": question.accelerator.id,
            "asked": f"{question.precision} {question.variant.parallelism.label} {question.variant.role}",
            "measured": "; ".join(setups) or None,
        }
        return Unrated(reason=Reason.NO_MEASUREMENT, facts=facts, is_open=True)


def rate_stated(question: RatingQuestion) -> Rating | Unrated | None:
    """The rating by the parameters that the variant states; None where it states none."""
    return rate_all_stated((question,))[0]


def rate_all_stated(questions: Sequence[RatingQuestion]) -> list[Rating | Unrated | None]:
    """As :func:`rate_stated`, all in one call of the vectorised model."""
    stated = [question.variant.queueing for question in questions]
    asked = [(q, (k, _STATED)) for q, k in zip(questions, stated, strict=True) if k is not None]
    ratings = iter(_rate_all([question for question, _ in asked], [known for _, known in asked]))
    return [None if known is None else next(ratings) for known in stated]


def case_of(question: RatingQuestion, parameters: QueueingParameters) -> Case:
    """The question as a case of the queueing model, inside τ - γ.

    Requests in service at once fit into the KV cache with their mean length; their mean number stays below
    the KV threshold, the mean number that waits below the queue threshold.
    """
    variant, thresholds, slo = question.variant, question.thresholds, question.slo
    arguments = variant.engine_arguments
    if arguments.batched_tokens is not None:
        parameters = parameters.but(chunk_tokens=arguments.batched_tokens)
    kv_tokens, resident = kv_capacity(question), resident_tokens(question)
    usage = thresholds.tau_kv - thresholds.gamma_kv
    limits = [arguments.max_requests] if arguments.max_requests is not None else []
    limits += [max(1, int(kv_tokens // resident))] if kv_tokens is not None else []
    ttft, itl, e2e = _promises(slo, variant.role, question.output_tokens)
    return Case(
        parameters=parameters,
        input_tokens=float(question.input_tokens),
        output_tokens=float(question.output_tokens),
        role=variant.role,
        cached_share=question.cached_share,
        speculation=variant.speculation,
        arrival_cv=question.arrival_cv,
        level=MEAN if slo.at == "mean" else slo.at / _PERCENT,
        ttft_s=ttft,
        itl_s=itl,
        e2e_s=e2e,
        max_in_service=_UNBOUNDED if kv_tokens is None else usage * kv_tokens / resident,
        max_waiting=max(_LEAST_WAITING, thresholds.tau_queue - thresholds.gamma_queue),
        batch=min(limits) if limits else None,
    )


def _promises(slo: Slo, role: Role, output_tokens: int) -> tuple[float, float, float]:
    """(TTFT, ITL, E2E) that a replica of a role answers for, s.

    Of the whole request a prefill replica has what the promised gaps between tokens leave, a decode
    replica what the promised first token leaves.
    """
    ttft, itl, e2e = (_UNBOUNDED if each is None else each for each in (slo.ttft_s, slo.itl_s, slo.e2e_s))
    match role:
        case Role.PREFILL:
            rest = e2e - (0.0 if math.isinf(itl) else (output_tokens - 1) * itl)
            return min(ttft, max(rest, 1e-9)), _UNBOUNDED, _UNBOUNDED
        case Role.DECODE:
            return _UNBOUNDED, itl, max(e2e - (0.0 if math.isinf(ttft) else ttft), 1e-9)
        case Role.BOTH:
            return ttft, itl, e2e


def _rate_all(
    questions: Sequence[RatingQuestion], known: Sequence[tuple[QueueingParameters, str]]
) -> list[Rating | Unrated]:
    if not questions:
        return []
    cases = [
        case_of(question, parameters) for question, (parameters, _) in zip(questions, known, strict=True)
    ]
    answers = _sized(cases)
    surge = _surges(questions, cases, answers)
    return [
        _rating(question, cases[i], answers, i=i, origin=(source, surge.get(i, 0.0)))
        for i, (question, (_, source)) in enumerate(zip(questions, known, strict=True))
    ]


def _sized(cases: Sequence[Case]) -> Answers:
    """The vectorised model's answers; its compiler is loaded when there is something to ask."""
    from planner.performance.queueing.sizing import size_cases

    return size_cases(columns_of(cases))


def _surges(questions: Sequence[RatingQuestion], cases: Sequence[Case], answers: Answers) -> dict[int, float]:
    """Rates inside τ by position, req/s; where no threshold bounds the rated rate it is the same."""
    bounded = [
        i for i, bound in enumerate(answers.bound.tolist()) if bound in (Bound.IN_SERVICE, Bound.WAITING)
    ]
    surging = [_surging(cases[i], questions[i]) for i in bounded]
    return dict(zip(bounded, _sized(surging).rate_rps.tolist(), strict=True))


def _surging(rated: Case, question: RatingQuestion) -> Case:
    """The case inside τ instead of τ - γ."""
    thresholds = question.thresholds
    return replace(
        rated,
        max_in_service=rated.max_in_service * surge_factor(question),
        max_waiting=max(_LEAST_WAITING, thresholds.tau_queue),
    )


def _rating(
    question: RatingQuestion, case: Case, answers: Answers, *, i: int, origin: tuple[str, float]
) -> Rating | Unrated:
    """``origin``: whose parameters, and the rate inside τ (0: the rated one)."""
    source, surge = origin
    bound, rated = int(answers.bound[i]), float(answers.rate_rps[i])
    if case.max_in_service < 1.0:
        return _too_large(question, case)
    if bound < 0 or rated < _LEAST_RPS:
        return _refused(case, answers, i)
    resident, thresholds = resident_tokens(question), question.thresholds
    unlimited = math.isinf(case.max_in_service)
    usable = thresholds.tau_kv - thresholds.gamma_kv
    limits = "; KV capacity unknown, no KV limit" if unlimited else ""
    return Rating(
        rated_rps=rated,
        surge_rps=max(rated, surge),
        ttft_s=float(answers.ttft_s[i]) if case.role is not Role.DECODE else None,
        itl_s=float(answers.itl_s[i]) if case.role is not Role.PREFILL else None,
        kv_capacity_tokens=None if unlimited else case.max_in_service * resident / usable,
        kv_tokens_per_rps=float(answers.in_service[i]) / rated * resident,
        origin=Origin.MODELED,
        source=f"queueing model, {source}; bound by {_bound_name(Bound(bound))}{limits}",
    )


def _bound_name(bound: Bound) -> str:
    return {
        Bound.NONE: "capacity",
        Bound.TTFT: "TTFT",
        Bound.ITL: "ITL",
        Bound.E2E: "E2E",
        Bound.IN_SERVICE: "KV cache",
        Bound.WAITING: "queue",
    }[bound]


def _too_large(question: RatingQuestion, case: Case) -> Unrated:
    needed = resident_tokens(question)
    facts: dict[str, Fact] = {
        "request_tokens": needed,
        "kv_tokens_inside_trigger": case.max_in_service * needed,
    }
    return Unrated(reason=Reason.REQUEST_DOES_NOT_FIT, facts=facts)


def _refused(case: Case, answers: Answers, i: int) -> Unrated:
    """What is promised, with the best that it can be at the lowest rate."""
    found: dict[str, Fact] = {}
    for latency in _LATENCIES.values():
        target, best = getattr(case, latency), float(getattr(answers, latency)[i])
        if not math.isinf(target):
            found |= {f"best_{latency}": best, f"target_{latency}": target}
    return Unrated(reason=Reason.SLO_NOT_MET, facts=found)


def _is_for(row: QueueingProfile, question: RatingQuestion) -> bool:
    variant = question.variant
    return (
        row.precision == question.precision
        and row.parallelism == variant.parallelism
        and row.role is variant.role
        and (variant.engine is None or row.engine in (None, variant.engine))
    )


def _preference(row: QueueingProfile) -> tuple[bool, int, str]:
    return row.fit is None, -(row.fit.points if row.fit else 0), row.canonical_json()


def from_knowledge(knowledge: Knowledge) -> QueueingSource:
    """The source over all that was calibrated."""
    return QueueingSource(knowledge.queueing)
