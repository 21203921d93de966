"""How long the steps of one replica take, for the digital twin: from the source that says what the replica carries.

In this order: queueing parameters that the variant states; a stated capacity; then the sources of the scenario. What each
gives becomes step times like this:

- **queueing parameters** are step times: alpha + beta per computed token + gamma per token read.
- **measured rows** of the nearest shape: a decode step at c requests takes what remains of the inter-token latency when
  the prefills that shared the steps are taken off, c·(input/output)·p. So a closed loop of c requests shows the measured
  latency again. A prefill token's time p, and how steps run between the loads and over the context, are the
  roofline's; where it knows nothing, p is the least of (TTFT - ITL)/input over the rows, and half of a step at the
  smallest load is taken to be there without requests.
- **the roofline**: its iteration over requests and context, its prefill over chunk and context, at the scenario's
  pessimism.
- **a rate alone** (a stated capacity, or a source that is not ours) knows no step. The replica is taken to be just
  inside its promises and trigger at that rate, which is what the rate means (the mean at 0.9 of a promised percentile): so
  many requests are in flight by Little's law, and the roofline's steps are stretched until they carry the rate. Where the LLM's size is unknown, half of a step is
  taken to be fixed, a quarter to follow the decoding requests and a quarter the prefill tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.performance import MeasuredPoint, Origin, Rating, RatingQuestion
from models.queueing import QueueingParameters
from models.twin_timing import Grid, LinearTiming, QueueingTiming, TableTiming, Timing
from models.variant import Role
from planner.errors import ConfigurationError, Finding, InternalError
from planner.performance.given import kv_capacity, rate_given
from planner.performance.interpolated import comparable
from planner.performance.picture import nearest_rows
from planner.performance.protocol import Knowledge, PerformanceSource
from planner.performance.queueing import QueueingSource
from planner.performance.residence import e2e_s, resident_tokens
from planner.performance.roofline.formula import prefill_s, step_s
from planner.performance.roofline.source import Roofline, Setting, latencies
from planner.performance.roofline.work import Work, lacking, setup_of, work_of

__all__ = ["StepTimes", "step_times"]

_MAX_REQUESTS: Final = 256
_MAX_TOKENS: Final = 8192
_MEDIAN: Final = 0.5
_MOST_PREFILL: Final = 0.7
"""Share of the inter-token latency that prefills in the same steps may take."""

Floats = NDArray[np.float64]

_CHUNKS: Final = (1, 64, 256, 1024, 2048, 4096, 8192, 16_384)
_CONTEXTS: Final = (16, 512, 2048, 8192, 32_768, 131_072)
_MEAN_BELOW_PERCENTILE: Final = 0.9
"""Mean over percentile of a latency whose percentile is promised, where nothing but a rate is known."""

_FIXED, _DECODE, _PREFILL = 0.5, 0.25, 0.25


@dataclass(frozen=True, slots=True)
class StepTimes:
    """What the twin must know of a replica's engine.

    Attributes:
        timing: of a step.
        max_requests: in one step.
        max_tokens: in one step.
        kv_tokens: of the whole KV cache.
        origin: whether figures were given, measured or modeled.
        source: where they are from.
        in_flight: requests in flight at the rated rate, where the steps were made from it; None: nobody said.
    """

    timing: Timing
    max_requests: int
    max_tokens: int
    kv_tokens: float
    origin: Origin
    source: str
    in_flight: float | None = None


def step_times(
    question: RatingQuestion, knowledge: Knowledge, sources: Sequence[PerformanceSource]
) -> StepTimes:
    """The step times of a variant.

    Args:
        question: variant, shape, promises and thresholds.
        knowledge: tables and parameters that sources are made from.
        sources: who is asked, in this order.

    Raises:
        ConfigurationError: nothing says how fast the variant is.
    """
    stated = question.variant.queueing
    if stated is not None:
        return _queueing(question, stated, "variant.queueing")
    given = rate_given(question)
    if isinstance(given, Rating):
        return _of_rate(question, given, knowledge)
    for source in sources:
        found = _of_source(question, source, knowledge)
        if found is not None:
            return found
    variant = question.variant
    raise ConfigurationError.from_findings(
        [
            Finding(
                "", None, f"variant {variant.id}",
                f"nothing that says how fast it serves {question.llm.id} on {question.accelerator.id}",
                "a capacity, queueing parameters, a profile, or an LLM and an accelerator whose figures are known",
            )
        ]
    )  # fmt: skip


def _of_source(question: RatingQuestion, source: PerformanceSource, knowledge: Knowledge) -> StepTimes | None:
    """What one source knows; None: nothing of this variant."""
    match source.name:
        case "queueing":
            known = QueueingSource(knowledge.queueing).known(question)
            return None if known is None else _queueing(question, *known)
        case "measured":
            rows = _most_comparable(nearest_rows(question, knowledge))
            return _measured(question, rows, knowledge) if rows else None
        case "roofline":
            return _roofline(question, knowledge) if _is_known(question) else None
        case _:
            rating = source.rate(question)
            return _of_rate(question, rating, knowledge) if isinstance(rating, Rating) else None


def _limits(question: RatingQuestion, parameters: QueueingParameters | None = None) -> tuple[int, int]:
    """Requests and tokens of one step: as the engine is started, else as parameters say, else vLLM's defaults."""
    arguments = question.variant.engine_arguments
    requests = arguments.max_requests or (parameters.max_batch if parameters else _MAX_REQUESTS)
    tokens = arguments.batched_tokens or (parameters.chunk_tokens if parameters else _MAX_TOKENS)
    return requests, max(tokens, requests)


def _kv(question: RatingQuestion, in_flight: float) -> float:
    """The KV capacity; where nobody knows it, one that stands at its trigger with so many requests."""
    known = kv_capacity(question)
    if known is not None:
        return known
    thresholds = question.thresholds
    return in_flight * resident_tokens(question) / (thresholds.tau_kv - thresholds.gamma_kv)


def _queueing(question: RatingQuestion, parameters: QueueingParameters, source: str) -> StepTimes:
    requests, tokens = _limits(question, parameters)
    timing = QueueingTiming(
        alpha_ms=parameters.alpha_ms,
        beta_ms_per_token=parameters.beta_ms_per_token,
        gamma_ms_per_token=parameters.gamma_ms_per_token,
    )
    return StepTimes(
        timing, requests, tokens, _kv(question, requests), Origin.MODELED, f"queueing model, {source}"
    )


def _most_comparable(rows: Sequence[MeasuredPoint]) -> list[MeasuredPoint]:
    """The rows that can be compared and are most, then first by name; one for each load."""
    best: list[MeasuredPoint] = max(comparable(rows), key=len, default=[])
    by_load = {row.concurrency: row for row in reversed(best)}
    return [by_load[load] for load in sorted(by_load)]


def _measured(question: RatingQuestion, rows: Sequence[MeasuredPoint], knowledge: Knowledge) -> StepTimes:
    first, role = rows[0], question.variant.role
    loads = np.array([float(row.concurrency) for row in rows])
    latency = np.array([row.itl_s for row in rows])
    shape = question.but(input_tokens=first.input_tokens, output_tokens=first.output_tokens)
    setting = Roofline(knowledge).setting(shape, _MEDIAN) if _is_known(question) else None
    token_s = _prefill_token_s(rows, role, setting)
    # A prefill that shares every step cannot take more of it than there is.
    mixed = loads * first.input_tokens / first.output_tokens if role is Role.BOTH else np.zeros(len(rows))
    token_s = min([token_s, *((_MOST_PREFILL * latency / mixed).tolist() if role is Role.BOTH else [])])
    decode = latency - mixed * token_s
    requests, tokens = _limits(question)
    most = max(requests, int(loads[-1]))
    if setting is None or role is Role.PREFILL:
        timing = _between_rows(
            loads, decode, context=first.input_tokens + first.output_tokens / 2, token_s=token_s
        )
    else:
        timing = _along_roofline(shape, setting, most, loads=loads, decode=decode, token_s=token_s)
    source = f"{first.source}: {len(rows)} rows at {first.input_tokens} × {first.output_tokens} tokens"
    return StepTimes(
        timing, most, max(tokens, most), _kv(question, float(loads[-1])), Origin.MEASURED, source
    )


def _prefill_token_s(rows: Sequence[MeasuredPoint], role: Role, setting: Setting | None) -> float:
    """Of one token of a prompt, s: the roofline's, else what the first tokens leave room for; a prefill row says it itself."""
    prompt = rows[0].input_tokens
    match role:
        case Role.DECODE:
            return 0.0
        case Role.PREFILL:
            # Requests of a closed loop are computed one after another, so each takes a share of the first token's time.
            return min(row.ttft_s / row.concurrency for row in rows) / prompt
        case Role.BOTH:
            if setting is not None:
                return prefill_s(setting.work, setting.shares) * setting.factors[0] / prompt
            return max(0.0, min(row.ttft_s - row.itl_s for row in rows)) / prompt


def _between_rows(loads: Floats, decode: Floats, *, context: float, token_s: float) -> TableTiming:
    """Straight between the loads, and from half of the smallest one's step below it."""
    if loads[0] > 1:
        loads, decode = np.insert(loads, 0, 1.0), np.insert(decode, 0, decode[0] * (0.5 + 0.5 / loads[0]))
    steps = np.maximum.accumulate(decode)
    return TableTiming(
        decode=Grid(
            rows=tuple(loads.tolist()), columns=(context,), seconds=tuple((step,) for step in steps.tolist())
        ),
        prefill=Grid(rows=(0.0, 1000.0), columns=(0.0,), seconds=((0.0,), (1000.0 * token_s,))),
    )


def _along_roofline(
    shape: RatingQuestion,
    setting: Setting,
    most: int,
    *,
    loads: Floats,
    decode: Floats,
    token_s: float,
) -> TableTiming:
    """The roofline's course over requests and context, stretched at each load to what was measured there."""
    plain = _roofline_timing(shape, setting, most)
    grid = plain.decode
    if grid is None:  # pragma: no cover - the roofline has one
        raise InternalError("a roofline without decode steps")
    context = shape.input_tokens + shape.output_tokens / 2
    course = plain.overhead_s + np.array(grid.seconds)
    rows, columns = np.array(grid.rows), np.array(grid.columns)
    at_context = np.array([np.interp(context, columns, row) for row in course])
    ratios = decode / np.interp(loads, rows, at_context)
    stretch = np.interp(np.log(rows), np.log(loads), ratios)
    steps = np.maximum.accumulate(course * stretch[:, None], axis=0)
    prefill = plain.prefill
    if prefill is not None:
        modeled = prefill_s(setting.work, setting.shares) * setting.factors[0] / shape.input_tokens
        share = token_s / modeled if modeled > 0 else 1.0
        prefill = prefill.but(seconds=tuple(tuple(each * share for each in row) for row in prefill.seconds))
    return TableTiming(decode=grid.but(seconds=tuple(map(tuple, steps.tolist()))), prefill=prefill)


def _is_known(question: RatingQuestion) -> bool:
    return (
        not question.llm.opaque and question.variant.pods_per_replica == 1 and not lacking(setup_of(question))
    )


def _roofline(question: RatingQuestion, knowledge: Knowledge) -> StepTimes:
    level = knowledge.choice.pessimism
    setting = Roofline(knowledge).setting(question, level)
    requests, tokens = _limits(question)
    return StepTimes(
        _roofline_timing(question, setting, requests),
        requests,
        tokens,
        _kv(question, requests),
        Origin.MODELED,
        f"roofline at the {level:.0%} quantile",
    )


def _roofline_timing(
    question: RatingQuestion, setting: Setting, requests: int, stretch: float = 1.0
) -> TableTiming:
    """Iterations over requests and context, prefill over chunk and context; the fixed part of a step apart."""
    shares, factor = setting.shares, setting.factors[0] * stretch
    setup = setup_of(question)

    def work(context: float) -> Work[float]:
        # One output token: the context is what a request holds.
        return replace(
            work_of(replace(setup, input_tokens=context, output_tokens=1, cached_share=0.0)), prefilled=0.0
        )

    works = [work(float(context)) for context in _CONTEXTS]
    one = works[0]
    fixed = (
        shares.base_s
        + shares.layer_s * one.layers
        + shares.expert_layer_s * one.expert_layers
        + shares.hop_s * one.hops
    )
    loads = _doubling(requests)
    decode = tuple(
        tuple(max(0.0, step_s(each, shares, load) - fixed) * factor for each in works) for load in loads
    )

    def prompt(tokens: float) -> float:
        return prefill_s(work(tokens), shares) if tokens else 0.0

    contexts = (0.0, *(float(each) for each in _CONTEXTS[1:]))
    prefill = tuple(
        tuple((prompt(context + chunk) - prompt(context)) * factor for context in contexts)
        for chunk in _CHUNKS
    )
    return TableTiming(
        overhead_s=fixed * factor,
        decode=Grid(rows=loads, columns=tuple(float(each) for each in _CONTEXTS), seconds=decode),
        prefill=Grid(rows=tuple(float(chunk) for chunk in _CHUNKS), columns=contexts, seconds=prefill),
    )


def _doubling(most: int) -> tuple[float, ...]:
    loads = [1.0]
    while loads[-1] * 2 < most:
        loads.append(loads[-1] * 2)
    return (*loads, float(most)) if most > 1 else (*loads, 2.0)


def _of_rate(question: RatingQuestion, rating: Rating, knowledge: Knowledge) -> StepTimes:
    """Steps that carry a rate, where nothing but the rate is known."""
    requests, tokens = _limits(question)
    known = _is_known(question)
    setting = Roofline(knowledge).setting(question, knowledge.choice.pessimism) if known else None
    stay_s = _stay_s(question, rating)
    if stay_s is None and setting is None:
        raise ConfigurationError.from_findings([_no_stay(question)])
    if stay_s is None and setting is not None:
        stay_s = _stay_by_roofline(setting, rating.rated_rps, requests)
    in_flight = max(1.0, rating.rated_rps * (stay_s or 0.0))
    requests = max(requests, int(np.ceil(2 * in_flight)))
    tokens = max(tokens, requests)
    how = f"{rating.source} at {rating.rated_rps:.4g} req/s and {in_flight:.3g} in flight"
    if setting is not None:
        stretch = latencies(setting, in_flight).rps / rating.rated_rps
        timing: Timing = _roofline_timing(question, setting, requests, stretch)
        how += f", steps of the roofline × {stretch:.3g}"
    else:
        timing = _split(question, in_flight / rating.rated_rps, in_flight)
        how += ", steps half fixed"
    return StepTimes(timing, requests, tokens, _kv(question, in_flight), rating.origin, how, in_flight)


def _stay_s(question: RatingQuestion, rating: Rating) -> float | None:
    """How long a request stays at the rated rate: as stated, else by what binds there, promises or KV cache."""
    stated = question.variant.capacity.residence_s
    if stated is not None:
        return stated
    if rating.itl_s is not None and rating.ttft_s is not None:
        return e2e_s(ttft_s=rating.ttft_s, itl_s=rating.itl_s, output_tokens=question.output_tokens)
    slo, thresholds = question.slo, question.thresholds
    bounds = []
    below = 1.0 if slo.at == "mean" else _MEAN_BELOW_PERCENTILE
    if slo.itl_s is not None:
        # First tokens are awaited in queues, where nothing is held.
        bounds.append(below * e2e_s(ttft_s=0.0, itl_s=slo.itl_s, output_tokens=question.output_tokens))
    if slo.e2e_s is not None:
        bounds.append(below * slo.e2e_s)
    kv_tokens = kv_capacity(question)
    if kv_tokens is not None:
        held = (thresholds.tau_kv - thresholds.gamma_kv) * kv_tokens / resident_tokens(question)
        bounds.append(held / rating.rated_rps)
    return min(bounds, default=None)


def _stay_by_roofline(setting: Setting, rps: float, most: int) -> float:
    """As the roofline has it where it carries the rate, else with a full batch."""
    low, high = 1.0, float(most)
    if latencies(setting, high).rps <= rps:
        return high / rps
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if latencies(setting, middle).rps < rps else (low, middle)
    return high / rps


def _split(question: RatingQuestion, stay_s: float, in_flight: float) -> LinearTiming:
    """Steps of which half is fixed, a quarter follows decoding requests and a quarter prefill tokens."""
    role, answer = question.variant.role, question.output_tokens
    if role is Role.PREFILL:
        return LinearTiming(base_s=0.0, per_prefill_token_s=stay_s / in_flight / question.input_tokens)
    step = stay_s / (answer if role is Role.BOTH else max(1, answer - 1))
    prefill = _PREFILL * step / in_flight * answer / question.input_tokens if role is Role.BOTH else 0.0
    decode = _DECODE if role is Role.BOTH else _DECODE + _PREFILL
    return LinearTiming(
        base_s=_FIXED * step, per_request_s=decode * step / in_flight, per_prefill_token_s=prefill
    )


def _no_stay(question: RatingQuestion) -> Finding:
    return Finding(
        "",
        None,
        f"variant {question.variant.id}",
        "a rate, and nothing that says how long a request stays",
        "capacity.residence_s, capacity.kv_tokens, or promises of the service",
    )
