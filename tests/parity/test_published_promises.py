"""The queueing analyzer: what it learns and what it asks for, with a test for each defect of the original."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.queueing import QueueingForm, QueueingParameters
from models.workload import Slo
from planner.performance.queueing import Case, columns_of
from planner.performance.queueing.sizing import latencies_at
from planner.saturation import Analysis, InstanceReading, Traffic, VariantReading
from planner.saturation.learning import Learner, Measured, first_guess
from planner.saturation.promises import (
    LearningMemory,
    PromiseSettings,
    RateFrom,
    analyze_promises,
    wanted_replicas,
)

TRUE = (5.0, 0.05, 5e-5)
TRAFFIC = Traffic(input_tokens=500, output_tokens=100)
SLO = Slo(ttft_s=0.05, itl_s=0.02)


def measured(rps: float, state: tuple[float, float, float] = TRUE) -> Measured:
    """What a replica with these parameters shows."""
    known = QueueingParameters(
        form=QueueingForm.PHASES,
        alpha_ms=state[0],
        beta_ms_per_token=state[1],
        gamma_ms_per_token=state[2],
    )
    case = Case(parameters=known, input_tokens=500, output_tokens=100)
    found = latencies_at(columns_of([case]), np.array([rps]))
    return Measured(rps, 500, 100, float(found.ttft_s[0]), float(found.itl_s[0]))


def instance(rps: float, state: tuple[float, float, float] = TRUE) -> InstanceReading:
    shown = measured(rps, state)
    return InstanceReading(kv_usage=0.5, queue=0, ttft_s=shown.ttft_s, itl_s=shown.itl_s, request_rps=rps)


def analyzed(
    *instances: InstanceReading,
    queued: float = 0.0,
    memory: LearningMemory | None = None,
    settings: PromiseSettings | None = None,
    now_s: float = 0.0,
    **variant: Any,
) -> tuple[Analysis, LearningMemory]:
    return analyze_promises(
        [VariantReading(name="v", instances=instances, **variant)],
        traffic=TRAFFIC,
        queued=queued,
        memory=memory or LearningMemory(),
        now_s=now_s,
        settings=settings or PromiseSettings(slo=SLO),
    )


def knowing(state: tuple[float, float, float] = TRUE) -> LearningMemory:
    return LearningMemory(learners={"v": Learner.from_guess(state)})


def test_capacity_is_that_of_the_replicas_there_are() -> None:
    """The original takes the capacity of the count it wants, so that nothing is ever missing."""
    busy = [instance(20.0)] * 2
    found, _ = analyzed(*busy, memory=knowing(), settings=PromiseSettings(slo=SLO, tuning=False))
    star = found.variants["v"].per_replica
    assert star < 20
    assert found.total.supply == pytest.approx(2 * star)
    assert found.total.required == pytest.approx(40 / 0.85 - 2 * star)
    wanted = wanted_replicas(40, star)
    assert max(0.0, 40 - wanted * star) == 0, "what the original would have required"


def test_a_service_without_figures_is_not_at_zero() -> None:
    """In the original supply and demand are both 0, which reads as a service at rest."""
    found, _ = analyzed(InstanceReading(kv_usage=0.5, queue=0))
    assert found.variants["v"].reason == RateFrom.NO_DATA
    assert not found.informative
    assert (found.total.required, found.total.spare) == (0, 0)


def test_replicas_without_a_rate_permit_nothing() -> None:
    calm, silent = instance(0.5), InstanceReading(kv_usage=0.1, queue=0)
    alone, _ = analyzed(calm, calm, memory=knowing())
    assert alone.total.spare > 0
    beside, _ = analyzed(calm, silent, memory=knowing())
    assert beside.total.spare < alone.total.spare


def test_what_the_router_holds_is_demand() -> None:
    found, _ = analyzed(instance(5.0), queued=60, memory=knowing())
    assert found.total.demand == pytest.approx(5 + 60 / 30)


def test_the_gate_is_the_95_percent_point() -> None:
    """7.378, which the original has under that name, is the 97.5 % point: it takes in what should be refused."""
    learner = Learner.from_guess(TRUE)
    refused_at = next(
        factor for factor in np.arange(1.0, 2.0, 0.001) if learner.learned(scaled(factor)).refused
    )
    closer = learner.learned(scaled(refused_at - 0.001))
    assert closer.accepted == 1
    assert distance(learner, scaled(refused_at)) == pytest.approx(5.991, abs=0.15)


def scaled(factor: float) -> Measured:
    shown = measured(10.0)
    return shown._replace(ttft_s=shown.ttft_s * factor, itl_s=shown.itl_s / factor)


def distance(learner: Learner, shown: Measured) -> float:
    """The squared distance of a measurement, worked out here by itself."""
    x = np.array(learner.state)

    def model(state: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        known = measured(10.0, (state[0], state[1], state[2]))
        return np.array([known.ttft_s, known.itl_s]) * 1e3

    here = model(x)
    slope = np.column_stack([(model(x + step) - here) / step.sum() for step in np.diag(1e-5 * x)])
    p = np.array(learner.covariance) + np.diag((0.05 * x) ** 2)
    z = np.array([shown.ttft_s, shown.itl_s]) * 1e3
    s = slope @ p @ slope.T + np.diag((0.05 / 1.96 * z) ** 2)
    return float((z - here) @ np.linalg.inv(s) @ (z - here))


class TestLearning:
    """The filter finds the latencies of the replica it watches."""

    def test_a_first_guess_shows_what_was_seen_at_rest(self) -> None:
        alpha, beta, gamma = first_guess(measured(0.01))
        assert alpha == pytest.approx(0.9 * measured(0.01).itl_s * 1e3)
        assert min(beta, gamma) > 0

    @pytest.mark.parametrize("itl_s", [0.0, 10.0])
    def test_a_guess_that_cannot_be_is_the_default(self, itl_s: float) -> None:
        assert first_guess(Measured(1.0, 500, 100, 0.05, itl_s)) == TRUE

    def test_it_comes_to_foretell_what_it_sees(self) -> None:
        truth = (6.0, 0.055, 6e-5)
        learner = Learner.from_guess(TRUE)
        for cycle in range(60):
            learner = learner.learned(measured(4.0 + 10.0 * (cycle % 7) / 7, truth))
        seen, told = measured(12.0, truth), measured(12.0, learner.state)
        assert told.ttft_s == pytest.approx(seen.ttft_s, rel=0.02)
        assert told.itl_s == pytest.approx(seen.itl_s, rel=0.02)

    def test_outliers_change_nothing(self) -> None:
        learner = Learner.from_guess(TRUE)
        found = learner.learned(scaled(5.0))
        assert (found.state, found.refused) == (TRUE, 1)

    def test_at_the_fifth_refusal_in_a_row_it_doubts_itself(self) -> None:
        learner = Learner.from_guess(TRUE)
        other = measured(1.0, (10.0, 0.1, 1e-4))
        for refusals in range(1, 5):
            learner = learner.learned(other)
            assert (learner.state, learner.refused) == (TRUE, refusals)
        learner = learner.learned(other)
        assert (learner.refused, learner.accepted) == (0, 1)
        assert abs(measured(1.0, learner.state).itl_s - other.itl_s) < 0.5 * abs(
            measured(1.0).itl_s - other.itl_s
        )

    @pytest.mark.parametrize("rps", [0.5, 8.0, 16.0])
    def test_it_begins_at_what_it_saw_under_load_too(self, rps: float) -> None:
        seen = measured(rps)
        told = measured(rps, Learner.begun(seen).state)
        assert told.itl_s == pytest.approx(seen.itl_s, rel=0.01)

    def test_unusable_measurements_change_nothing(self) -> None:
        learner = Learner.from_guess(TRUE)
        assert learner.learned(measured(1.0)._replace(itl_s=0.0)) is learner

    def test_nothing_is_learned_while_replicas_come_and_go(self) -> None:
        _, memory = analyzed(instance(5.0), now_s=0.0)
        before = memory.learners["v"]
        _, memory = analyzed(instance(5.0), instance(5.0), memory=memory, now_s=60.0)
        assert memory.learners["v"] is before
        _, memory = analyzed(instance(5.0), instance(5.0), memory=memory, now_s=181.0)
        assert memory.learners["v"] is not before


def test_promises_are_inferred_where_none_are_made() -> None:
    settings = PromiseSettings(tuning=False)
    inferred, _ = analyzed(instance(5.0), memory=knowing(), settings=settings)
    # k·α + (β + γ)·I and k·α + β + γ·(I + (O + 1)/2) with k = 3.
    stated, _ = analyzed(
        instance(5.0),
        memory=knowing(),
        settings=replace(settings, slo=Slo(ttft_s=0.040025, itl_s=0.0150775)),
    )
    assert inferred.variants["v"].per_replica == pytest.approx(stated.variants["v"].per_replica, rel=1e-6)


def test_promises_out_of_reach_are_said_to_be() -> None:
    settings = PromiseSettings(slo=Slo(itl_s=0.001))
    found, _ = analyzed(instance(5.0), memory=knowing(), settings=settings)
    assert found.variants["v"].reason == RateFrom.OUT_OF_REACH
    assert found.total.spare == 0


@pytest.mark.parametrize(
    ("rate", "each", "count"),
    [(40.0, 10.0, 4), (40.1, 10.0, 5), (0.0, 10.0, 0), (5.0, 0.0, 0), (0.3, 0.1, 3)],
)
def test_wanted_replicas(rate: float, each: float, count: int) -> None:
    assert wanted_replicas(rate, each) == count
