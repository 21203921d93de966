"""Latency over load: every source in its own way, on one axis, at the promised statistic."""

from __future__ import annotations

from typing import Any

import pytest

from models.performance import MeasuredPoint, Origin, PerformanceChoice, RatingQuestion
from models.queueing_profile import QueueingProfile
from models.saturation import SaturationThresholds
from models.variant import Role, Variant
from models.workload import Slo
from planner.performance import Knowledge, chosen_sources
from planner.performance.curves import load_curves
from planner.planning import known_catalog

QWEN = {"llm": "Qwen2.5-14B", "accelerator": "H100", "engine": "vllm", "precision": "bf16", "source": "lab"}
FIT = {
    "points": 12,
    "alpha_ms": {"low": 9.0, "high": 12.0},
    "beta_ms_per_token": {"low": 0.03, "high": 0.05},
}
PARAMETERS = {"alpha_ms": 10.6, "beta_ms_per_token": 0.042, "gamma_ms_per_token": 5.8e-5}


def a_question(**fields: Any) -> RatingQuestion:
    catalog = known_catalog()
    role = fields.pop("role", Role.BOTH)
    given = {
        "llm": catalog.llm("Qwen2.5-14B"),
        "accelerator": catalog.accelerator("H100"),
        "variant": Variant.model_validate({"id": "v", "accelerator": "H100", "role": role}),
        "input_tokens": 1024,
        "output_tokens": 512,
        "slo": Slo(itl_s=0.03),
        "thresholds": SaturationThresholds(),
    }
    return RatingQuestion.model_validate(given | fields)


def a_row(concurrency: int, rps: float, *, tokens: tuple[int, int] = (1024, 512)) -> MeasuredPoint:
    row = {
        "concurrency": concurrency,
        "rps": rps,
        "ttft_s": 0.02 * concurrency,
        "itl_s": 0.01 + 1e-4 * concurrency,
    }
    return MeasuredPoint.model_validate(QWEN | row | {"input_tokens": tokens[0], "output_tokens": tokens[1]})


def curves_of(question: RatingQuestion, *names: str, **known: Any) -> Any:
    choice = PerformanceChoice(sources=names)
    knowledge = Knowledge(choice, **known)
    sources = chosen_sources(choice, knowledge.profiles, queueing=knowledge.queueing)
    return load_curves(question, knowledge, sources)


def a_profile(**fields: Any) -> QueueingProfile:
    known = {"llm": "Qwen2.5-14B", "accelerator": "H100", "parameters": PARAMETERS, "source": "lab"}
    return QueueingProfile.model_validate(known | fields)


def test_measured_rows_are_points_and_what_lies_between_them_is_a_curve() -> None:
    rows = (a_row(1, 0.15), a_row(8, 1.0), a_row(32, 3.1))
    points, between = curves_of(a_question(), "measured", profiles={"lab": rows})
    assert [point.rps for point in points.points] == [0.15, 1.0, 3.1]
    assert (points.joined, between.joined) == (False, True)
    assert {points.origin, between.origin} == {Origin.MEASURED}
    assert not points.low
    assert between.points[0].rps == pytest.approx(0.15)
    assert between.points[-1].rps == pytest.approx(3.1)


def test_outside_the_hull_only_rows_of_the_nearest_shape_are_shown() -> None:
    rows = (a_row(1, 0.15), a_row(8, 1.0), a_row(8, 9.0, tokens=(64, 64)))
    (points,) = curves_of(a_question(input_tokens=4096), "measured", profiles={"lab": rows})
    assert [point.rps for point in points.points] == [0.15, 1.0]
    assert "1024 × 512" in points.source


def test_a_percentile_lies_above_the_mean_and_the_fit_gives_a_band() -> None:
    profile = a_profile(fit=FIT)
    (mean,) = curves_of(a_question(), "queueing", queueing=(profile,))
    (late,) = curves_of(a_question(slo=Slo(itl_s=0.03, at=99)), "queueing", queueing=(profile,))
    assert (mean.at, late.at) == ("mean", 99)
    assert all(a.ttft_s < b.ttft_s for a, b in zip(mean.points, late.points, strict=True))
    low, high = mean.low[0], mean.high[0]
    assert low.itl_s < mean.points[0].itl_s < high.itl_s
    assert mean.points[-1].waiting > mean.points[0].waiting


def test_stated_parameters_have_no_band() -> None:
    (curve,) = curves_of(a_question(), "queueing", queueing=(a_profile(),))
    assert (curve.low, curve.high, curve.band) == ((), (), "")


@pytest.mark.parametrize("at", ["mean", 95])
def test_the_roofline_has_a_band_around_what_half_of_the_runs_show(at: Any) -> None:
    (curve,) = curves_of(a_question(slo=Slo(itl_s=0.03, at=at)), "roofline")
    low, high = curve.low[0], curve.high[0]
    assert low.itl_s < high.itl_s
    assert low.itl_s <= curve.points[0].itl_s <= high.itl_s
    assert curve.band == "80% of measured runs"


@pytest.mark.parametrize(("role", "missing"), [(Role.PREFILL, "itl_s"), (Role.DECODE, "ttft_s")])
def test_one_phase_shows_its_own_latency_alone(role: Role, missing: str) -> None:
    (curve,) = curves_of(a_question(role=role), "roofline")
    first = curve.points[0]
    assert getattr(first, missing) is None
    assert first.e2e_s is None
    assert [point.rps for point in curve.points] == sorted(point.rps for point in curve.points)


def test_usage_of_the_cache_grows_with_the_load() -> None:
    (curve,) = curves_of(a_question(), "roofline")
    shares = [point.kv_share for point in curve.points]
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] <= 0.71


def test_who_is_not_asked_is_not_drawn() -> None:
    assert curves_of(a_question(), "measured", profiles={}, queueing=(a_profile(),)) == ()
