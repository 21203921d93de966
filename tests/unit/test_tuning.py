"""The online tuner follows a replica that changes, refuses outliers, and stays finite and bounded whatever it is told."""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as how
from hypothesis import strategies as st

from models.queueing import QueueingParameters
from models.tuning import TunerObservation, TunerSettings, TunerState, TunerVerdict
from planner.calibration import first_guess, restarted, started, tune
from planner.performance.queueing import Case, columns_of
from planner.performance.queueing.sizing import latencies_at

DATA: Final = os.environ.get("FLEETPLAN_TEST_DATA")
START: Final = QueueingParameters(
    alpha_ms=8.0, beta_ms_per_token=0.03, gamma_ms_per_token=4e-5, max_batch=128
)
NAMES: Final = ("alpha_ms", "beta_ms_per_token", "gamma_ms_per_token")


def seen(
    parameters: QueueingParameters,
    rate: float,
    *,
    at_s: float,
    noise: tuple[float, float] = (1, 1),
    **more: float,
) -> TunerObservation:
    shape = {"input_tokens": 1024.0, "output_tokens": 512.0} | more
    answer = latencies_at(columns_of([Case(parameters=parameters, **shape)]), np.array([rate]))  # type: ignore[arg-type]
    return TunerObservation(
        at_s=at_s,
        arrival_rps=rate,
        ttft_s=float(answer.ttft_s[0]) * noise[0],
        itl_s=float(answer.itl_s[0]) * noise[1],
        in_service=float(answer.in_service[0]),
        **shape,
    )


def followed(true: QueueingParameters, *, steps: int, noise: float = 0.02) -> TunerState:
    source = np.random.default_rng(3)
    state = started(START)
    for step in range(steps):
        rate = float(source.uniform(0.2, 4.0))
        factors = np.exp(noise * source.normal(size=2))
        lengths = {
            "input_tokens": float(source.choice([256, 2048])),
            "output_tokens": float(source.choice([128, 1024])),
        }
        state = tune(
            state, seen(true, rate, at_s=30.0 * step, noise=(factors[0], factors[1]), **lengths)
        ).state
    return state


def test_it_finds_a_replica_that_is_another_than_was_believed() -> None:
    true = START.but(alpha_ms=11.0, beta_ms_per_token=0.042, gamma_ms_per_token=5.8e-5)
    found = followed(true, steps=300).parameters
    for name in NAMES:
        assert getattr(found, name) == pytest.approx(getattr(true, name), rel=0.2)


def test_a_replica_that_suddenly_is_much_slower_is_believed_after_a_while() -> None:
    true = START.but(alpha_ms=24.0, beta_ms_per_token=0.09, gamma_ms_per_token=1.2e-4)
    found = followed(true, steps=200).parameters
    assert found.alpha_ms == pytest.approx(24.0, rel=0.2)


def test_an_outlier_changes_nothing_but_the_count() -> None:
    state = followed(START, steps=30)
    step = tune(state, seen(START, 1.0, at_s=9e3, noise=(1, 8)))
    assert step.verdict is TunerVerdict.OUTLIER
    assert step.state == state.but(outliers_in_a_row=state.outliers_in_a_row + 1)
    assert step.surprise is not None
    assert step.gate is not None
    assert step.surprise > step.gate


@pytest.mark.parametrize(
    ("gate", "latencies", "point"),
    [(0.95, 2, 5.991), (0.975, 2, 7.378), (0.95, 1, 3.841)],
    ids=["95", "97.5", "one latency"],
)
def test_the_gate_is_at_the_probability_that_it_says(gate: float, latencies: int, point: float) -> None:
    observation = seen(START, 1.0, at_s=0.0)
    if latencies == 1:
        observation = observation.but(ttft_s=None)
    step = tune(started(START), observation, settings=TunerSettings(gate=gate))
    assert step.gate == pytest.approx(point, abs=1e-3)


def test_one_good_observation_in_twenty_is_refused() -> None:
    source = np.random.default_rng(5)
    settings = TunerSettings(drift=1e-3)
    state, refused = started(START, settings=settings), 0
    for step in range(400):
        factors = np.exp(0.05 / 1.96 * source.normal(size=2))
        found = tune(
            state, seen(START, 1.0, at_s=float(step), noise=(factors[0], factors[1])), settings=settings
        )
        state, refused = found.state, refused + (found.verdict is TunerVerdict.OUTLIER)
    assert 0.01 <= refused / 400 <= 0.1


def test_nothing_is_learned_while_replicas_come_and_go() -> None:
    state = restarted(started(START), at_s=100.0)
    during, after = (tune(state, seen(START, 1.0, at_s=at_s)) for at_s in (219.0, 220.0))
    assert (during.verdict, during.state) == (TunerVerdict.TRANSIENT, state)
    assert after.verdict is TunerVerdict.ACCEPTED


def test_parameters_stay_within_their_bounds() -> None:
    settings = TunerSettings(widest=1.5, gate=0.999, drift=0.5)
    state, verdicts = started(START, settings=settings), set()
    for step in range(60):
        found = tune(state, seen(START.but(alpha_ms=50.0), 0.3, at_s=float(step)), settings=settings)
        state = found.state
        verdicts.add(found.verdict)
    assert state.parameters.alpha_ms <= START.alpha_ms * 1.5 * (1 + 1e-9)
    assert TunerVerdict.BOUNDED in verdicts


@how(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e6), st.floats(1e-6, 1e6), st.floats(1, 1e6), st.one_of(st.none(), st.floats(1e-9, 1e6)),
            st.one_of(st.none(), st.floats(1e-9, 1e6)), st.one_of(st.none(), st.floats(0, 1e5)),
        ),
        max_size=12,
    )
)  # fmt: skip
@example(rows=[(2.2250738585e-313, 1.0, 1.0, 1.0, None, 129.0)])
def test_whatever_is_observed_the_state_is_finite_and_bounded(rows: list[tuple[float, ...]]) -> None:
    state = started(START)
    for step, (rate, inputs, outputs, ttft, itl, batch) in enumerate(rows):
        observation = TunerObservation(
            at_s=float(step), arrival_rps=rate, input_tokens=inputs, output_tokens=outputs, ttft_s=ttft, itl_s=itl, in_service=batch
        )  # fmt: skip
        state = tune(state, observation).state
        assert all(
            math.isfinite(value) and value >= 0 for value in (state.covariance[k][k] for k in range(3))
        )
        for name in NAMES:
            value, start = getattr(state.parameters, name), getattr(START, name)
            assert start / 100.001 <= value <= start * 100.001


def test_a_first_guess_is_near_enough_to_start_from() -> None:
    guess = first_guess(seen(START, 0.05, at_s=0.0), template=START)
    assert guess.alpha_ms == pytest.approx(START.alpha_ms, rel=0.3)
    with pytest.raises(ValueError, match="TTFT, ITL"):
        first_guess(seen(START, 0.05, at_s=0.0).but(ttft_s=None), template=START)


@pytest.mark.skipif(DATA is None, reason="FLEETPLAN_TEST_DATA is not set")
def test_a_recorded_tuning_run_is_followed() -> None:
    """Rows of a published run: rate, mean lengths, batch and ITL of an emulated server; the input length is not stated."""
    assert DATA is not None
    with Path(DATA, "perf/inferno/tuner-exp13.csv").open(encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    start = QueueingParameters(alpha_ms=1.0, beta_ms_per_token=0.005, gamma_ms_per_token=1e-5, max_batch=64)
    state, errors = started(start), []
    for number, row in enumerate(rows):
        observation = TunerObservation(
            at_s=60.0 * number,
            arrival_rps=float(row["RPM"]) / 60,
            input_tokens=128,
            output_tokens=float(row["tokens"]),
            itl_s=float(row["avgITL"]) / 1000,
            in_service=float(row["avgConcurrency"]),
        )
        step = tune(state, observation)
        assert step.modeled_itl_s is not None
        assert observation.itl_s is not None
        errors.append(abs(step.modeled_itl_s / observation.itl_s - 1))
        state = step.state
    assert np.median(errors[20:]) < 0.05
    assert state.accepted > 0.7 * len(rows)
