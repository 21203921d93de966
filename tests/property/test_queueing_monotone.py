"""What must hold of the queueing model whatever the parameters: more load is slower, tighter promises carry less."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from models.queueing import QueueingForm, QueueingParameters
from models.variant import Role
from planner.performance.queueing import Answers, Case, columns_of
from planner.performance.queueing.sizing import latencies_at, size_cases
from planner.performance.queueing.times import rate_range

_SLACK: Final = 1e-6


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """The first call compiles, which would look like a slow example."""
    case = Case(
        parameters=QueueingParameters(alpha_ms=1, beta_ms_per_token=0.1, gamma_ms_per_token=0),
        input_tokens=1.0,
        output_tokens=1.0,
    )
    at(case, float(sized(case).arrival_rps[0]))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Replicas from tiny to huge, requests from one token to a long context."""
    parameters = QueueingParameters(
        form=draw(st.sampled_from(QueueingForm)),
        alpha_ms=draw(st.floats(0.5, 200)),
        beta_ms_per_token=draw(st.floats(1e-4, 1)),
        gamma_ms_per_token=draw(st.floats(0, 1e-3)),
        max_batch=draw(st.integers(1, 300)),
        max_queue=draw(st.integers(0, 300)),
        chunk_tokens=draw(st.sampled_from([512, 2048, 8192])),
    )
    return Case(
        parameters=parameters,
        input_tokens=float(draw(st.integers(1, 20_000))),
        output_tokens=float(draw(st.integers(1, 4_000))),
        role=draw(st.sampled_from(Role)),
        cached_share=draw(st.floats(0, 1)),
        arrival_cv=draw(st.sampled_from([1.0, 1.0, 0.5, 2.5])),
        level=draw(st.sampled_from([0.0, 0.5, 0.95, 0.99])),
    )


def at(case: Case, rps: float) -> Answers:
    return latencies_at(columns_of([case]), np.array([rps]))


def sized(case: Case) -> Answers:
    return size_cases(columns_of([case]))


def promised(case: Case, share: float) -> Case:
    """The case with promises that its latencies break somewhere inside the range of rates."""
    low, high = (at(case, rate) for rate in rate_range(case))
    between = {
        name: float(getattr(low, name)[0] + share * (getattr(high, name)[0] - getattr(low, name)[0]))
        or np.inf
        for name in ("ttft_s", "itl_s", "e2e_s")
    }
    return replace(case, **between)


@given(cases(), st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_higher_rate_is_never_faster(case: Case, one: float, other: float) -> None:
    top = rate_range(case)[1]
    slow, fast = (at(case, share * top) for share in sorted((one, other)))
    # The published mean ITL is a difference of means and may turn near saturation (docs/performance.md).
    names = ["ttft_s", "e2e_s", "in_service", "waiting", "rate_rps", *(["itl_s"] if case.level else [])]
    for name in names:
        before, after = getattr(slow, name)[0], getattr(fast, name)[0]
        assert after >= before * (1 - _SLACK) - 1e-12, name


@given(cases(), st.floats(0.05, 1), st.floats(0.5, 1))
def test_a_tighter_promise_never_carries_more(case: Case, share: float, tighter: float) -> None:
    loose = promised(case, share)
    tight = replace(
        loose, ttft_s=loose.ttft_s * tighter, itl_s=loose.itl_s * tighter, e2e_s=loose.e2e_s * tighter
    )
    assert sized(tight).rate_rps[0] <= sized(loose).rate_rps[0] * (1 + _SLACK)


@given(cases(), st.floats(0.05, 1))
def test_more_percent_of_the_requests_never_carry_more(case: Case, share: float) -> None:
    asked = promised(case, share)
    half, most = (sized(replace(asked, level=level)).rate_rps[0] for level in (0.5, 0.99))
    assert most <= half * (1 + _SLACK)


@given(cases(), st.floats(0.05, 1), st.sampled_from([(0.3, 1.0), (1.0, 1.5), (1.0, 4.0)]))
def test_burstier_arrivals_never_carry_more(case: Case, share: float, cv: tuple[float, float]) -> None:
    assume(case.level != 0.5)  # the median may fall when both ends are fuller
    asked = promised(case, share)
    calm, bursty = (sized(replace(asked, arrival_cv=value)).rate_rps[0] for value in cv)
    assert bursty <= calm * (1 + _SLACK)


@given(cases(), st.floats(0.05, 1))
def test_what_is_sized_keeps_its_promises(case: Case, share: float) -> None:
    asked = promised(case, share)
    found = sized(asked)
    assume(found.bound[0] >= 0)
    for name in ("ttft_s", "itl_s", "e2e_s"):
        assert getattr(found, name)[0] <= getattr(asked, name) * (1 + _SLACK) + 1e-9, name
