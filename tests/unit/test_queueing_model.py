"""The queueing model against published cases, closed forms, and the meaning of its options."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from models.queueing import QueueingForm, QueueingParameters, Speculation
from models.variant import Role
from planner.performance.queueing import Answers, Bound, Case, batch_limit, columns_of
from planner.performance.queueing.iterations import chunks
from planner.performance.queueing.sizing import latencies_at, size_cases
from planner.performance.queueing.times import inferred_slo, rate_range, times_at

PUBLISHED = QueueingParameters(
    form=QueueingForm.PHASES,
    alpha_ms=5,
    beta_ms_per_token=0.05,
    gamma_ms_per_token=5e-5,
    max_batch=64,
    max_queue=100,
)
"""Case QM-3 of llm-d's autoscaler."""

H100_14B = QueueingParameters(
    alpha_ms=10.645377, beta_ms_per_token=0.041760195, gamma_ms_per_token=0.000057705090, max_batch=128
)
"""Qwen2.5-14B on H100 (llm-inferno/control-loop @5451d7fe)."""


def a_case(parameters: QueueingParameters = PUBLISHED, **fields: Any) -> Case:
    """500 input and 100 output tokens."""
    return Case(**({"parameters": parameters, "input_tokens": 500.0, "output_tokens": 100.0} | fields))


def sized(case: Case) -> Answers:
    return size_cases(columns_of([case]))


def seen(case: Case, rps: float) -> Answers:
    return latencies_at(columns_of([case]), np.array([rps]))


@pytest.mark.parametrize(
    ("tokens", "in_service", "prefill_ms"), [(1000, 1, 32), (2000, 8, 208), (500, 2.5, 29.25), (0, 3, 0)]
)
def test_prefill_takes_the_published_time(tokens: float, in_service: float, prefill_ms: float) -> None:
    parameters = PUBLISHED.but(alpha_ms=10, beta_ms_per_token=0.01, gamma_ms_per_token=0.001)
    case = a_case(parameters, input_tokens=float(tokens), output_tokens=1.0, role=Role.PREFILL)
    assert times_at(case, in_service).prefill_s == pytest.approx(prefill_ms * 1e-3)


@pytest.mark.parametrize(
    ("in_service", "prefill_ms", "decode_ms"), [(1, 30.34953, 5.40203), (64, 50.7949, 25.8474)]
)
def test_phases_take_the_published_times(in_service: float, prefill_ms: float, decode_ms: float) -> None:
    times = times_at(a_case(), in_service)
    assert (times.prefill_s * 1e3, times.itl_s * 1e3) == pytest.approx((prefill_ms, decode_ms), rel=1e-5)


def test_rates_range_as_published() -> None:
    assert rate_range(a_case()) == pytest.approx((0.00175269, 24.2592), rel=1e-5)


@pytest.mark.parametrize(
    ("rps", "ttft_ms", "itl_ms", "in_service", "wait_ms"),
    [
        (1, 35.813, 5.597, 0.590, 0),
        (5, 37.645, 6.513, 3.412, 0),
        (10, 40.939, 8.160, 8.488, 0),
        (15, 46.358, 10.869, 16.836, 0),
        (20, 58.012, 16.152, 33.120, 1.087),
    ],
)
def test_latencies_at_a_rate_are_the_published_ones(
    rps: float, ttft_ms: float, itl_ms: float, in_service: float, wait_ms: float
) -> None:
    found = seen(a_case(), rps)
    assert found.ttft_s[0] * 1e3 == pytest.approx(ttft_ms, abs=6e-4)
    assert found.itl_s[0] * 1e3 == pytest.approx(itl_ms, abs=6e-4)
    assert found.in_service[0] == pytest.approx(in_service, abs=6e-4)
    assert found.waiting[0] / found.rate_rps[0] * 1e3 == pytest.approx(wait_ms, abs=6e-3)


def test_promises_are_inferred_as_published() -> None:
    slo = inferred_slo(PUBLISHED, input_tokens=500, output_tokens=100, multiplier=3)
    assert (slo.ttft_s, slo.itl_s) == pytest.approx((40.025e-3, 15.0775e-3), rel=1e-5)
    with pytest.raises(ValueError, match="above 1"):
        inferred_slo(PUBLISHED, input_tokens=500, output_tokens=100, multiplier=1)


@pytest.mark.parametrize(
    ("promise", "seconds", "bound"),
    [("ttft_s", 0.050, Bound.TTFT), ("itl_s", 0.010, Bound.ITL), ("e2e_s", 1.5, Bound.E2E)],
)
@pytest.mark.parametrize("level", [0.0, 0.9])
def test_a_sized_rate_meets_its_promise_exactly(
    promise: str, seconds: float, bound: Bound, level: float
) -> None:
    case = a_case(**{promise: seconds}, level=level)
    found = sized(case)
    assert found.bound[0] == bound
    there = seen(case, found.arrival_rps[0])
    # A percentile steps where the number in service is whole, so the promise may lie in a step.
    assert getattr(there, promise)[0] <= seconds * (1 + 1e-7)
    assert getattr(seen(case, found.arrival_rps[0] * 1.001), promise)[0] > seconds


def test_a_target_above_the_range_gives_the_upper_end_and_one_below_it_no_rate() -> None:
    roomy, hopeless = sized(a_case(ttft_s=1e3)), sized(a_case(ttft_s=0.01))
    assert roomy.bound[0] == Bound.NONE
    assert roomy.arrival_rps[0] == pytest.approx(rate_range(a_case())[1])
    assert (hopeless.rate_rps[0], hopeless.bound[0]) == (0.0, -Bound.TTFT)
    assert hopeless.ttft_s[0] > 0.01, "it says what the best is"


def test_bounds_on_the_cache_and_the_queue_hold() -> None:
    full, queued = sized(a_case(max_in_service=10.0)), sized(a_case(max_waiting=2.0))
    assert (full.bound[0], queued.bound[0]) == (Bound.IN_SERVICE, Bound.WAITING)
    assert full.in_service[0] == pytest.approx(10)
    assert queued.waiting[0] == pytest.approx(2)


def test_one_request_at_a_time_is_the_queue_with_one_server() -> None:
    """M/M/1: mean wait ρ/(μ - λ), share that waits longer than t: ρ·exp(-(μ - λ)t) (Kleinrock, Queueing Systems I, 3.2)."""
    single = a_case(PUBLISHED.but(max_batch=1, max_queue=5000))
    mu = 1 / times_at(single, 1).service_s
    rate = 0.8 * mu
    found = seen(single, rate)
    assert found.waiting[0] / found.rate_rps[0] == pytest.approx(0.8 / (mu - rate), rel=1e-6)
    start = times_at(single, 1).prefill_s + times_at(single, 1).itl_s
    for level in (0.5, 0.9, 0.99):
        wait = max(0.0, math.log(0.8 / (1 - level)) / (mu - rate))
        assert seen(a_case(single.parameters, level=level), rate).ttft_s[0] == pytest.approx(
            start + wait, rel=1e-5
        )


def test_bursts_lengthen_the_wait_as_heavy_traffic_says() -> None:
    """Kingman's bound is tight near saturation: the wait grows by (CV² + 1)/2."""
    parameters = PUBLISHED.but(max_batch=1, max_queue=20_000)
    mu = 1 / times_at(a_case(parameters), 1).service_s

    def wait(cv: float) -> float:
        found = seen(a_case(parameters, arrival_cv=cv), 0.99 * mu)
        return float(found.waiting[0] / found.rate_rps[0])

    assert wait(2.0) / wait(1.0) == pytest.approx(2.5, rel=0.02)
    assert wait(0.5) / wait(1.0) == pytest.approx(0.625, rel=0.02)


@pytest.mark.parametrize("states", [10, 1_000, 20_000])
def test_thousands_of_states_stay_finite_and_balanced(states: int) -> None:
    """Little's law in the waiting room and conservation of requests, far beyond what plain powers can hold."""
    case = a_case(PUBLISHED.but(max_batch=states, max_queue=states), arrival_cv=1.0)
    low, high = rate_range(case)
    for rate in (low, 0.5 * high, high, 3 * high):
        found = seen(case, rate)
        assert all(np.isfinite(column).all() for column in found)
        service = found.e2e_s[0] - found.waiting[0] / found.rate_rps[0]
        assert found.in_service[0] == pytest.approx(found.rate_rps[0] * service)
        assert found.rate_rps[0] <= min(rate, high / 0.999) * (1 + 1e-9)


def test_chunks_are_the_smallest_count_that_holds_the_batch() -> None:
    generator = np.random.default_rng(7)
    for _ in range(300):
        n, computed = int(generator.integers(1, 600)), float(generator.integers(0, 30_000))
        steps, chunk = float(generator.integers(1, 3_000)), float(generator.choice([512, 2048, 8192]))

        def holds(count: int) -> bool:
            return math.floor((count + steps) * (chunk - computed / count) / (computed + steps)) >= n  # noqa: B023

        smallest = next(count for count in range(1, 100_000) if holds(count))
        assert chunks(float(n), computed, steps, 1.0, chunk) == smallest


@pytest.mark.parametrize(
    ("at_tokens", "output", "expected"),
    [(None, 1024, 102), (512, 1024, 51), (512, 100_000, 1), (512, 256, 204)],
)
def test_a_batch_limit_shrinks_with_longer_outputs(
    at_tokens: int | None, output: float, expected: int
) -> None:
    assert batch_limit(PUBLISHED.but(max_batch=102, at_tokens=at_tokens), output) == expected


@pytest.mark.parametrize("form", list(QueueingForm))
def test_options_that_change_nothing_change_nothing(form: QueueingForm) -> None:
    parameters = H100_14B.but(form=form)
    plain = sized(a_case(parameters, ttft_s=0.2, itl_s=0.03))
    for same in (
        {"cached_share": 0.0, "arrival_cv": 1.0},
        {"batch": 10**6},
    ):
        found = sized(a_case(parameters, ttft_s=0.2, itl_s=0.03, **same))
        assert found.rate_rps[0] == plain.rate_rps[0]


@pytest.mark.parametrize("form", list(QueueingForm))
@pytest.mark.parametrize(
    "better",
    [
        {"cached_share": 0.8},
        {"speculation": Speculation(draft_tokens=3, acceptance=0.8)},
        {"arrival_cv": 0.5, "batch": 24},
    ],
)
def test_cache_hits_accepted_drafts_and_calm_arrivals_help(
    form: QueueingForm, better: dict[str, Any]
) -> None:
    parameters = H100_14B.but(form=form)
    fields = {"input_tokens": 2000.0, "ttft_s": 0.3, "itl_s": 0.03}
    base = {key: better[key] for key in ("batch",) if key in better}
    assert (
        sized(a_case(parameters, **fields, **better)).rate_rps[0]
        > sized(a_case(parameters, **fields, **base)).rate_rps[0]
    )


def test_a_costly_draft_that_is_refused_hurts() -> None:
    draft = Speculation(draft_tokens=5, acceptance=0.1, draft_cost=0.2)
    fields = {"itl_s": 0.03}
    assert (
        sized(a_case(H100_14B, speculation=draft, **fields)).rate_rps[0]
        < sized(a_case(H100_14B, **fields)).rate_rps[0]
    )


def test_smaller_chunks_make_prefill_longer_and_the_first_token_later() -> None:
    def first(chunk: int) -> float:
        case = a_case(H100_14B.but(chunk_tokens=chunk), input_tokens=8000.0)
        return float(seen(case, 1.0).ttft_s[0])

    assert first(8192) < first(2048) < first(512)


@pytest.mark.parametrize("form", list(QueueingForm))
def test_roles_split_the_work(form: QueueingForm) -> None:
    parameters = H100_14B.but(form=form)
    both, prefill, decode = (
        rate_range(a_case(parameters, input_tokens=3000.0, role=role))[1]
        for role in (Role.BOTH, Role.PREFILL, Role.DECODE)
    )
    assert both < min(prefill, decode)
    assert sized(a_case(parameters, role=Role.PREFILL)).itl_s[0] == 0
    assert sized(a_case(parameters, role=Role.DECODE, itl_s=0.012)).bound[0] == Bound.ITL


def test_many_cases_at_once_are_each_alone() -> None:
    cases = [
        a_case(H100_14B, input_tokens=float(i), ttft_s=0.2, level=level)
        for i in (1, 700, 9000)
        for level in (0, 0.95)
    ]
    together = size_cases(columns_of(cases))
    for i, case in enumerate(cases):
        assert [column[i] for column in together] == [column[0] for column in sized(case)]


def test_no_cases_are_no_answers() -> None:
    assert size_cases(columns_of([])).rate_rps.size == 0
    assert latencies_at(columns_of([]), np.array([])).rate_rps.size == 0


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"alpha_ms": 0, "beta_ms_per_token": 0, "gamma_ms_per_token": 0}, "at least one above 0"),
        ({"alpha_ms": -1}, "greater than or equal to 0"),
        ({"alpha_ms": math.nan}, "finite"),
        ({"max_batch": 0}, "greater than or equal to 1"),
        ({"max_batch": 10**9}, "less than or equal to 100000"),
    ],
)
def test_parameters_that_cannot_be_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        QueueingParameters.model_validate(PUBLISHED.model_dump() | fields)
