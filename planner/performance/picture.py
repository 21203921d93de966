"""All that is known of one variant at one request shape: what its memory holds, what each source says, latency over load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from models.explanation import Reason
from models.performance import MeasuredPoint, Origin, Rating, RatingQuestion, Unrated
from models.picture import LoadRow, MemoryPicture, SourceAnswer, VariantPicture
from models.queueing import QueueingParameters
from models.variant import Role
from models.workload import Slo
from planner.performance.front import rate
from planner.performance.given import kv_capacity, without_rates
from planner.performance.measured import same_setup
from planner.performance.memory import kv_capacity_tokens, usable_bytes
from planner.performance.protocol import Knowledge, PerformanceSource
from planner.performance.queueing import QueueingSource, case_of, columns_of
from planner.performance.queueing.sizing import latencies_at
from planner.performance.queueing.times import rate_range
from planner.performance.residence import longest_tokens, resident_tokens
from planner.performance.roofline.source import Roofline, latencies
from planner.performance.roofline.work import lacking, setup_of

__all__ = ["look", "measured_rows", "memory_picture", "nearest_rows", "takes_shape"]

_SHARES: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 0.97)
_IN_FLIGHT: Final = (1, 4, 16, 64, 256)
_HOLDS_NONE: Final = {
    Reason.WEIGHTS_DO_NOT_FIT,
    Reason.REQUEST_DOES_NOT_FIT,
    Reason.CONTEXT_TOO_LONG,
}


def look(
    question: RatingQuestion, knowledge: Knowledge, sources: Sequence[PerformanceSource]
) -> VariantPicture:
    """The picture of a variant.

    Args:
        question: variant, shape, promises and thresholds.
        knowledge: tables and parameters that sources are made from.
        sources: who is asked, in this order.
    """
    memory, answer = memory_picture(question), rate(question, *sources)
    loads: list[LoadRow] = []
    if takes_shape(answer):
        loads += _measured(question, knowledge)
    if takes_shape(answer) and (memory is None or not memory.missing_bytes):
        most = None if memory is None else memory.requests
        loads += _queueing(question, knowledge)
        loads += _roofline(question, knowledge, sources, most=most)
    # What a variant states goes before every source, so it is left out where each is asked alone.
    alone = question.but(variant=without_rates(question.variant))
    return VariantPicture(
        question=question,
        memory=memory,
        answer=answer,
        answers=tuple(SourceAnswer(source=source.name, answer=rate(alone, source)) for source in sources),
        loads=tuple(loads),
    )


def takes_shape(answer: Rating | Unrated) -> bool:
    """Whether a replica can hold a request of the shape at all: else there is no load to speak of."""
    return isinstance(answer, Rating) or answer.reason not in _HOLDS_NONE


def memory_picture(question: RatingQuestion) -> MemoryPicture | None:
    """How weights, KV cache and the rest share the memory; None where nothing is known of the LLM's size."""
    llm, variant, accelerator = question.llm, question.variant, question.accelerator
    if llm.opaque:
        return None
    fit = kv_capacity_tokens(llm, accelerator, variant, sequence_tokens=longest_tokens(question))
    tokens = kv_capacity(question)
    return MemoryPicture(
        memory_bytes=accelerator.memory_bytes,
        weight_bytes=fit.weight_bytes,
        reserve_bytes=fit.reserve_bytes,
        kv_bytes=fit.kv_bytes,
        unused_bytes=accelerator.memory_bytes - usable_bytes(accelerator, variant),
        missing_bytes=fit.missing_bytes,
        kv_tokens=tokens,
        requests=None if tokens is None else int(tokens // resident_tokens(question)),
    )


def _measured(question: RatingQuestion, knowledge: Knowledge) -> Iterator[LoadRow]:
    """Rows of the nearest measured shape, as they are."""
    for row in nearest_rows(question, knowledge):
        yield LoadRow(
            in_flight=row.concurrency,
            rps=row.rps,
            ttft_s=row.ttft_s,
            itl_s=row.itl_s,
            keeps=_keeps(question, row.ttft_s, row.itl_s),
            origin=Origin.MEASURED,
            source=f"{row.source} at {row.input_tokens}/{row.output_tokens}, {_statistic(row)}",
        )


def measured_rows(question: RatingQuestion, knowledge: Knowledge) -> tuple[MeasuredPoint, ...]:
    """Every row of this LLM, accelerator, precision, parallelism, role and engine, whatever its shape."""
    return tuple(row for row in _rows_of(question, knowledge) if same_setup(row, question))


def nearest_rows(question: RatingQuestion, knowledge: Knowledge) -> tuple[MeasuredPoint, ...]:
    """Of these the rows of the shape that is nearest to the asked one, by requests in flight."""
    rows = measured_rows(question, knowledge)
    nearest = min(
        {(row.input_tokens, row.output_tokens) for row in rows},
        key=lambda shape: _far(shape, question),
        default=None,
    )
    return tuple(
        sorted(
            (row for row in rows if (row.input_tokens, row.output_tokens) == nearest),
            key=lambda each: each.concurrency,
        )
    )


def _statistic(row: MeasuredPoint) -> str:
    if row.at is None:
        return "statistic not said"
    return "means" if row.at == "mean" else f"p{row.at:g}"


def _rows_of(question: RatingQuestion, knowledge: Knowledge) -> Iterator[MeasuredPoint]:
    llms = {question.llm.id, *question.llm.aliases}
    accelerators = {question.accelerator.id, *question.accelerator.aliases}
    for name in sorted(knowledge.profiles):
        if question.variant.profile in (None, name):
            for row in knowledge.profiles[name]:
                if row.llm in llms and row.accelerator in accelerators:
                    yield row


def _far(shape: tuple[int, int], question: RatingQuestion) -> tuple[float, tuple[int, int]]:
    asked = np.log([question.input_tokens, question.output_tokens])
    return float(np.abs(np.log(shape) - asked).sum()), shape


def _queueing(question: RatingQuestion, knowledge: Knowledge) -> Iterator[LoadRow]:
    """Rates up to what a full batch carries."""
    found = QueueingSource(knowledge.queueing).known(question)
    if found is None:
        return
    parameters, source = found
    rates = np.array(_SHARES) * _most_rps(question, parameters)
    answers = latencies_at(columns_of([case_of(question, parameters)] * len(rates)), rates)
    for index in range(len(rates)):
        ttft = float(answers.ttft_s[index]) if question.variant.role is not Role.DECODE else None
        itl = float(answers.itl_s[index]) if question.variant.role is not Role.PREFILL else None
        yield LoadRow(
            in_flight=float(answers.in_service[index] + answers.waiting[index]),
            rps=float(answers.rate_rps[index]),
            ttft_s=ttft,
            itl_s=itl,
            keeps=_keeps(question, ttft, itl),
            origin=Origin.MODELED,
            source=f"queueing model, {source}",
        )


def _most_rps(question: RatingQuestion, parameters: QueueingParameters) -> float:
    return rate_range(case_of(question, parameters))[1]


def _roofline(
    question: RatingQuestion,
    knowledge: Knowledge,
    sources: Sequence[PerformanceSource],
    *,
    most: int | None,
) -> Iterator[LoadRow]:
    """Latencies of the roofline at the pessimism that was asked for, with no more in flight than the memory holds."""
    if all(source.name != "roofline" for source in sources) or question.llm.opaque:
        return
    if lacking(setup_of(question)):
        return
    setting, role = Roofline(knowledge).setting(question, knowledge.choice.pessimism), question.variant.role
    held = _IN_FLIGHT[-1] if most is None else min(most, _IN_FLIGHT[-1])
    for in_flight in sorted({*(each for each in _IN_FLIGHT if each < held), max(1, held)}):
        at = latencies(setting, in_flight)
        ttft = at.ttft_s if role is not Role.DECODE else None
        itl = at.itl_s if role is not Role.PREFILL else None
        yield LoadRow(
            in_flight=in_flight,
            rps=at.rps,
            ttft_s=ttft,
            itl_s=itl,
            keeps=_keeps(question, ttft, itl),
            origin=Origin.MODELED,
            source="roofline",
        )


def _keeps(question: RatingQuestion, ttft_s: float | None, itl_s: float | None) -> bool:
    """Whether latencies keep the promises that they can break; a whole request is the first token and the others."""
    slo: Slo = question.slo
    whole = None
    if ttft_s is not None and itl_s is not None:
        whole = ttft_s + (question.output_tokens - 1) * itl_s
    pairs = ((ttft_s, slo.ttft_s), (itl_s, slo.itl_s), (whole, slo.e2e_s))
    return all(seen is None or target is None or seen <= target for seen, target in pairs)
