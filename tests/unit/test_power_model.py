"""Modeled draw: between idle and TDP, rising with the load, labeled where it is scaled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.performance import Origin, Rating, RatingQuestion
from planner.errors import CatalogError
from planner.performance import rate
from planner.performance.power import KnownDraw, expected_draw, known_draw
from planner.performance.power.fitting import PowerRun, fit_draw, left_out_draws
from planner.planning import known_catalog

CATALOG = known_catalog()
KNOWN = KnownDraw(floor=0.5, load=4.0, spread=0.1, idle_share=0.1, error=0.08, measured_on="H100")


def a_question(accelerator: str = "H100", **variant: Any) -> RatingQuestion:
    return RatingQuestion.model_validate(
        {
            "llm": CATALOG.llm("Llama-3.1-8B"),
            "accelerator": CATALOG.accelerator(accelerator),
            "variant": {"id": "v", "accelerator": accelerator} | variant,
            "input_tokens": 1000,
            "output_tokens": 200,
            "slo": {},
            "thresholds": {},
        }
    )


def a_rating(rps: float) -> Rating:
    return Rating(rated_rps=rps, surge_rps=rps, origin=Origin.MEASURED, source="row")


@given(used=st.floats(0, 1), more=st.floats(0, 1), idle=st.floats(0, 100), above=st.floats(1, 1000))
def test_draw_lies_between_idle_and_tdp_and_rises_with_use(
    used: float, more: float, idle: float, above: float
) -> None:
    low, high = sorted((used, more))
    draws = [KNOWN.power_w(idle + above, idle, share) for share in (low, high)]
    assert idle <= draws[0] <= draws[1] <= idle + above


def test_a_replica_draws_what_all_its_accelerators_draw() -> None:
    one = expected_draw(a_question(), a_rating(5.0), KNOWN)
    two = expected_draw(a_question(parallelism={"tp": 2}), a_rating(10.0), KNOWN)
    assert one is not None
    assert two is not None
    # Two that wait for one another draw less than two that do not.
    assert one.power_w < two.power_w < 2 * one.power_w
    assert two.idle_w == pytest.approx(2 * 67.2)


def test_by_hand() -> None:
    # 5 req/s x 1,200 tokens x 2 x 8.03e9 FLOP of 989e12.
    used = 5 * 1200 * 2 * 8.03e9 / 989e12
    draw = expected_draw(a_question(), a_rating(5.0), KNOWN)
    assert draw is not None
    assert draw.power_w == pytest.approx(KNOWN.power_w(700.0, 67.2, used))
    assert draw.source == "modeled at the rated rate (±8%)"


@pytest.mark.parametrize(("role", "tokens"), [("prefill", 1000), ("decode", 200)])
def test_a_phase_computes_its_own_tokens(role: str, tokens: int) -> None:
    draw = expected_draw(a_question(role=role), a_rating(5.0), KNOWN)
    assert draw is not None
    assert draw.power_w == pytest.approx(KNOWN.power_w(700.0, 67.2, 5 * tokens * 2 * 8.03e9 / 989e12))


def test_other_accelerators_are_scaled_and_say_so() -> None:
    draw = expected_draw(a_question("A100-80GB"), a_rating(2.0), KNOWN)
    assert draw is not None
    assert draw.source.endswith("scaled from H100 by TDP")
    assert 40 < draw.power_w < 400
    assert draw.idle_w == pytest.approx(40.0)


def test_a_rating_without_a_draw_gets_the_modeled_one_labeled() -> None:
    answer = rate(a_question(capacity={"rated_rps": 5.0}))
    assert isinstance(answer, Rating)
    draw = expected_draw(a_question(), answer)
    assert draw is not None
    assert (answer.power_w, answer.power_source) == (draw.power_w, draw.source)
    stated = rate(a_question(capacity={"rated_rps": 5.0, "power_w": 321.0}))
    assert isinstance(stated, Rating)
    assert (stated.power_w, stated.power_source) == (321.0, None)


def test_without_tdp_nothing_is_known() -> None:
    question = a_question()
    bare = question.but(accelerator=question.accelerator.but(tdp_w=None))
    assert expected_draw(bare, a_rating(1.0), KNOWN) is None


def test_the_fit_finds_what_made_the_runs() -> None:
    runs = [
        PowerRun(
            f"llm-{i % 4}", used, 1 + i // 4, KNOWN.power_w(700.0, 67.0, used, gpus=1 + i // 4), 67.0, 700.0
        )
        for i, used in enumerate((0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4))
    ]
    assert fit_draw(runs) == pytest.approx((0.5, 4.0, 0.1), rel=1e-3)
    assert [modeled for _, modeled in left_out_draws(runs)] == pytest.approx(
        [run.power_w for llm in range(4) for run in runs if run.llm == f"llm-{llm}"], rel=1e-3
    )
    with pytest.raises(ValueError, match="no run"):
        fit_draw([])


def test_the_shipped_figures_are_read_and_others_refused(tmp_path: Path) -> None:
    assert known_draw().error < 0.10
    file = tmp_path / "power.yaml"
    file.write_text("floor: -1", encoding="utf-8")
    with pytest.raises(CatalogError, match="fit_power"):
        known_draw(file)
