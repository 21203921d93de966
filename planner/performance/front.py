"""The front of performance: given figures, then what cannot work, then each source in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from models.explanation import Fact, Reason
from models.performance import Rating, RatingQuestion, Unrated
from planner.performance.given import rate_given
from planner.performance.memory import kv_capacity_tokens, way_to_fit
from planner.performance.power import expected_draw
from planner.performance.protocol import ManyAtOnce, PerformanceSource
from planner.performance.queueing.source import rate_all_stated
from planner.performance.residence import longest_tokens

__all__ = ["rate", "rate_many"]


def rate(question: RatingQuestion, *sources: PerformanceSource) -> Rating | Unrated:
    """How much of this request shape one replica carries, or why that is unknown or impossible.

    In this order: the rate that the variant states; the context window; weights and one request
    against the memory; the queueing model where the variant states its parameters; then ``sources``, until
    one rates the question or says that it cannot be done. A stated rate is not checked against formulas:
    whoever measured it has seen it run. A rating without a draw gets the modeled one, labeled.

    Returns:
        The rating; its ``source`` tells which sources before it could not tell. Without one the reason
        that is final, else that of the first source.
    """
    return rate_many((question,), sources)[0]


def rate_many(
    questions: Sequence[RatingQuestion], sources: Sequence[PerformanceSource]
) -> list[Rating | Unrated]:
    """As :func:`rate` for each question; sources that answer many at once are asked once."""
    known = [rate_given(question) or _context(question) or _memory(question) for question in questions]
    _fill(known, questions, rate_all_stated)
    _fill(known, questions, lambda asked: _first_to_know(asked, sources))
    return [
        _with_draw(question, answer) if isinstance(answer, Rating) and answer.power_w is None else answer
        for question, answer in zip(questions, known, strict=True)
        if answer is not None
    ]


def _fill(
    known: list[Rating | Unrated | None],
    questions: Sequence[RatingQuestion],
    ask: Callable[[list[RatingQuestion]], Sequence[Rating | Unrated | None]],
) -> None:
    """Ask those questions that have no answer yet."""
    open_ = [i for i, answer in enumerate(known) if answer is None]
    for i, answer in zip(open_, ask([questions[i] for i in open_]), strict=True):
        known[i] = answer


def _with_draw(question: RatingQuestion, rating: Rating) -> Rating:
    draw = expected_draw(question, rating)
    return rating if draw is None else rating.but(power_w=draw.power_w, power_source=draw.source)


def _first_to_know(
    questions: Sequence[RatingQuestion], sources: Sequence[PerformanceSource]
) -> list[Rating | Unrated]:
    """Each question's answer by the first source that can tell."""
    found: list[Rating | Unrated | None] = [None] * len(questions)
    passed: list[list[tuple[str, Unrated]]] = [[] for _ in questions]
    for source in sources:
        open_ = [i for i, answer in enumerate(found) if answer is None]
        for i, answer in zip(open_, _asked(source, [questions[i] for i in open_]), strict=True):
            if isinstance(answer, Rating):
                found[i] = answer.but(source=answer.source + _without(passed[i])) if passed[i] else answer
            elif answer.may_be_known_elsewhere:
                passed[i].append((source.name, answer))
            else:
                found[i] = answer
    return [
        answer or (passed[i][0][1] if passed[i] else _nobody_knows(questions[i]))
        for i, answer in enumerate(found)
    ]


def _asked(source: PerformanceSource, questions: Sequence[RatingQuestion]) -> Sequence[Rating | Unrated]:
    if isinstance(source, ManyAtOnce):
        return source.rate_many(questions)
    return [source.rate(question) for question in questions]


def _nobody_knows(question: RatingQuestion) -> Unrated:
    facts: dict[str, Fact] = {"llm": question.llm.id, "accelerator": question.accelerator.id}
    return Unrated(reason=Reason.NO_MEASUREMENT, facts=facts)


def _without(passed: list[tuple[str, Unrated]]) -> str:
    reasons = ", ".join(f"{name}: {answer.reason.value.replace('_', ' ')}" for name, answer in passed)
    return f" ({reasons})"


def _context(question: RatingQuestion) -> Unrated | None:
    stated = question.variant.engine_arguments.context_tokens
    longest = min(filter(None, (question.llm.max_context_tokens, stated)), default=None)
    needed = question.input_tokens + question.output_tokens
    if longest is None or needed <= longest:
        return None
    return Unrated(
        reason=Reason.CONTEXT_TOO_LONG, facts={"needed_tokens": needed, "max_context_tokens": longest}
    )


def _memory(question: RatingQuestion) -> Unrated | None:
    """Weights that do not fit, or a cache that cannot hold one request; None when both are fine."""
    variant = question.variant
    length = longest_tokens(question)
    capacity: float | None = variant.capacity.kv_tokens
    if capacity is None:
        fit = kv_capacity_tokens(question.llm, question.accelerator, variant, sequence_tokens=length)
        if not fit.fits:
            facts: dict[str, Fact] = {
                "missing_bytes_per_accelerator": fit.missing_bytes,
                "weight_bytes_per_accelerator": fit.weight_bytes,
                "memory_bytes": question.accelerator.memory_bytes,
                "accelerators": variant.parallelism.gpus,
                **_would_fit(question, length),
            }
            return Unrated(reason=Reason.WEIGHTS_DO_NOT_FIT, facts=facts)
        capacity = fit.kv_tokens
    # Each data-parallel rank has a cache of its own, and a request lives on one rank.
    if capacity is None or length <= capacity / variant.parallelism.dp:
        return None
    return Unrated(
        reason=Reason.REQUEST_DOES_NOT_FIT,
        facts={"request_tokens": length, "kv_tokens_per_rank": capacity / variant.parallelism.dp},
    )


def _would_fit(question: RatingQuestion, length: int) -> dict[str, Fact]:
    """The nearest variants that would fit, where there are any."""
    way = way_to_fit(question.llm, question.accelerator, question.variant, sequence_tokens=length)
    facts: dict[str, Fact] = {"fitting_tp": way.tp, "fitting_weights": way.weights}
    return {name: fact for name, fact in facts.items() if fact is not None}
