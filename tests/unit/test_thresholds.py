"""Thresholds from load sweeps: the knee, the distance to it while a replica starts, and what is said when it was not seen."""

from __future__ import annotations

from typing import Final

import pytest

from models.calibration import LimitedBy, ThresholdProposal
from models.load import Arrivals, LatencySpread, LoadOrigin, LoadPoint
from models.workload import Slo
from planner.calibration import SweepOptions, propose_thresholds
from planner.errors import ConfigurationError

LOADS: Final = (4, 8, 16, 32, 64, 96, 128, 192)


def level(load: float, **changes: object) -> LoadPoint:
    """A replica that answers 0.25 req/s per request in flight up to 64 in flight, then no more."""
    served = min(load, 64.0)
    fields: dict[str, object] = {
        "arrivals": Arrivals.CLOSED,
        "concurrency": load,
        "running": served,
        "waiting": load - served,
        "kv_usage": served / 80,
        "achieved_rps": served / 4,
        "input_tokens": 512,
        "output_tokens": 128,
        "itl": LatencySpread(mean_s=0.01 + load / 6400, p95_s=0.02 + load / 3200),
        "ttft": LatencySpread(mean_s=0.1),
        "e2e": LatencySpread(mean_s=load / (served / 4)),
        "requests": 100,
        "origin": LoadOrigin(format="test", file="test", replicas=1),
    }
    return LoadPoint.model_validate(fields | changes)


def sweep(loads: tuple[float, ...] = LOADS, **changes: object) -> list[LoadPoint]:
    return [level(load, **changes) for load in loads]


def proposal(points: list[LoadPoint] | None = None, **options: object) -> ThresholdProposal:
    return propose_thresholds(sweep() if points is None else points, "a", options=SweepOptions(**options))  # type: ignore[arg-type]


def test_throughput_stops_growing_at_the_knee() -> None:
    found = proposal()
    assert (found.limited_by, found.knee_rps) == (LimitedBy.THROUGHPUT, 16.0)
    assert found.thresholds.tau_kv == pytest.approx(0.8)
    # Nothing waits at the knee; a threshold of less than one waiting request would always be passed.
    assert found.thresholds.tau_queue == 1.0


@pytest.mark.parametrize(
    ("slo", "load"),
    [
        (Slo(itl_s=0.015), 32.0),
        (Slo(itl_s=0.0175), 48.0),
        (Slo(itl_s=0.03, at=95.0), 32.0),
        (Slo(itl_s=0.015, ttft_s=0.2), 32.0),
    ],
)
def test_the_slo_ends_it_between_two_levels(slo: Slo, load: float) -> None:
    found = proposal(slo=slo)
    assert found.limited_by is LimitedBy.SLO
    assert found.thresholds.tau_kv == pytest.approx(load / 80, rel=1e-3)
    assert found.knee_rps == pytest.approx(load / 4, rel=1e-3)


def test_failures_end_it_too() -> None:
    points = [*sweep(LOADS[:3]), *sweep(LOADS[3:], errors=50)]
    assert proposal(points).limited_by is LimitedBy.ERRORS
    assert proposal(points).last_good == 2


def test_gamma_is_the_way_back_to_the_load_before_the_burst() -> None:
    found = proposal()
    before = 64 / (1 + found.burst) / 80
    assert found.thresholds.gamma_kv == pytest.approx(0.8 - before, rel=1e-2)
    assert found.headroom.relative == pytest.approx(found.burst, abs=1e-3)


@pytest.mark.parametrize(
    ("more", "grows"),
    [
        ({"startup_s": 600.0}, True),
        ({"arrival_cv": 2.0}, True),
        ({"confidence": 0.99}, True),
        ({"growth_per_s": 0.001}, True),
        ({"replicas": 10}, False),
    ],
)
def test_slower_starts_and_burstier_arrivals_ask_for_more_room(more: dict[str, float], grows: bool) -> None:
    usual, other = proposal(), proposal(**more)
    assert (other.burst > usual.burst) is grows
    assert (other.thresholds.gamma_kv > usual.thresholds.gamma_kv) is grows


def test_one_run_that_is_off_does_not_decide() -> None:
    points = sweep()
    points[2] = level(16, achieved_rps=2.1, itl=LatencySpread(mean_s=0.2))
    assert proposal(points).thresholds.tau_kv == pytest.approx(0.8)
    assert proposal(points, slo=Slo(itl_s=0.0175)).thresholds.tau_kv == pytest.approx(0.6)


def test_a_sweep_without_a_knee_says_that_tau_is_a_lower_bound() -> None:
    found = proposal(sweep(LOADS[:4]))
    assert found.limited_by is LimitedBy.NOTHING_SEEN
    assert found.thresholds.tau_kv == pytest.approx(0.4)
    assert "measure at higher load" in found.notes[-1]


def test_usage_comes_from_the_capacity_where_no_report_states_it() -> None:
    points = sweep(kv_usage=None)
    assert "--kv-tokens" in proposal(points).notes[0]
    assert proposal(points).thresholds.tau_kv == 0.8
    assert proposal(points, kv_tokens=64 * 576 * 2.0).thresholds.tau_kv == pytest.approx(0.5)


def test_the_queue_at_the_knee_is_tau_q() -> None:
    points = [level(load, waiting=load / 8) for load in LOADS]
    found = proposal(points)
    assert found.thresholds.tau_queue == pytest.approx(8.0)
    assert 0 < found.thresholds.gamma_queue < 8.0


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (sweep(LOADS[:2]), "2 load levels"),
        ([*sweep(), level(16, input_tokens=4096)], "a sweep of one request shape"),
        (sweep(itl=LatencySpread(mean_s=9.0)), "outside the SLO"),
    ],
    ids=["too few", "two shapes", "never inside"],
)
def test_sweeps_that_say_nothing_are_refused(points: list[LoadPoint], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        proposal(points, slo=Slo(itl_s=0.05))
