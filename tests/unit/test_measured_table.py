"""Rates from given figures and from measured rows, and the first reason where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from models.explanation import Reason
from models.performance import MeasuredPoint, Origin, Rating, RatingQuestion, Unrated
from planner.performance import MeasuredTable, rate


def a_point(**fields: Any) -> MeasuredPoint:
    """10 requests in flight for 1 s + 100 x 0.09 s: 1 req/s."""
    base = {
        "llm": "one", "accelerator": "acc", "engine": "vllm", "precision": "bf16", "input_tokens": 1000,
        "output_tokens": 101, "concurrency": 10, "ttft_s": 1.0, "itl_s": 0.09, "rps": 1.0, "source": "P1", "row": "a",
    }  # fmt: skip
    return MeasuredPoint.model_validate(base | fields)


def a_question(**fields: Any) -> RatingQuestion:
    """1,000 + 101 tokens on one accelerator with a cache of 100,000 tokens, thresholds 0.8 - 0.1."""
    variant = {"id": "v", "accelerator": "acc", "capacity": {"kv_tokens": 100_000}} | fields.pop(
        "variant", {}
    )
    llm = {
        "id": "one", "parameters": 10**9, "layers": 10, "aliases": ["org/one"], "max_context_tokens": 32_000,
        "attention": {"kind": "gqa", "kv_heads": 4, "head_dim": 100},
    } | fields.pop("llm", {})  # fmt: skip
    accelerator = {"id": "acc", "vendor": "Acme", "memory_bytes": 10**10, "aliases": ["acme-acc"]}
    base = {
        "llm": llm, "accelerator": accelerator, "variant": variant, "input_tokens": 1000, "output_tokens": 101,
        "slo": {}, "thresholds": {},
    }  # fmt: skip
    return RatingQuestion.model_validate(base | fields)


def rated(question: RatingQuestion, *points: MeasuredPoint) -> Rating:
    answer = rate(question, MeasuredTable(points))
    assert isinstance(answer, Rating), answer
    return answer


def unrated(question: RatingQuestion, *points: MeasuredPoint) -> Unrated:
    answer = rate(question, MeasuredTable(points))
    assert isinstance(answer, Unrated), answer
    return answer


LADDER = (
    a_point(row="c1", concurrency=1, ttft_s=0.1, itl_s=0.009, rps=1.0),
    a_point(row="c10", concurrency=10, ttft_s=0.5, itl_s=0.02, rps=4.0),
    a_point(row="c50", concurrency=50, ttft_s=2.0, itl_s=0.06, rps=6.25),
)


@pytest.mark.parametrize(
    ("slo", "rps"),
    [
        ({}, 6.25),
        ({"ttft_s": 2.0}, 6.25),
        ({"ttft_s": 1.9}, 4.0),
        ({"itl_s": 0.02}, 4.0),
        ({"itl_s": 0.01}, 1.0),
        # 2 + 100 x 0.06 = 8 s and 0.5 + 100 x 0.02 = 2.5 s.
        ({"e2e_s": 8.0}, 6.25),
        ({"e2e_s": 7.9}, 4.0),
        ({"ttft_s": 3.0, "itl_s": 0.05, "e2e_s": 1.1}, 1.0),
    ],
)
def test_the_highest_row_that_keeps_every_promise(slo: dict[str, float], rps: float) -> None:
    answer = rated(a_question(slo=slo), *LADDER)
    assert answer.rated_rps == rps
    assert answer.origin is Origin.MEASURED


def test_a_rating_says_which_row_it_is_from_and_what_it_showed() -> None:
    answer = rated(a_question(slo={"ttft_s": 1.0}), *LADDER)
    assert (answer.source, answer.ttft_s, answer.itl_s) == ("P1: c10", 0.5, 0.02)
    # Little: 2.5 s x (1000 + 101 / 2) tokens.
    assert answer.kv_tokens_per_rps == pytest.approx(2.5 * 1050.5)
    assert answer.kv_capacity_tokens == 100_000


def test_order_of_rows_changes_nothing() -> None:
    twins = (a_point(row="x"), a_point(row="y"), *LADDER[:1])
    assert rated(a_question(), *twins) == rated(a_question(), *reversed(twins))


@pytest.mark.parametrize(
    ("asked", "row"),
    [
        ((1000, 100), "1000x100"),
        ((999, 100), "1000x100"),
        ((1, 1), "1000x100"),
        ((1001, 100), "2000x100"),
        ((1000, 101), "1000x500"),
        ((2000, 101), "4000x500"),
    ],
)
def test_the_smallest_shape_that_is_at_least_the_asked_one(asked: tuple[int, int], row: str) -> None:
    shapes = [(4000, 500), (2000, 100), (1000, 500), (1000, 100)]
    points = [
        a_point(row=f"{i}x{o}", input_tokens=i, output_tokens=o, rps=1.0 + index / 10)
        for index, (i, o) in enumerate(reversed(shapes))
    ]
    assert rated(a_question(input_tokens=asked[0], output_tokens=asked[1]), *points).source == f"P1: {row}"


def test_a_larger_shape_serves_when_the_smallest_keeps_no_promise() -> None:
    slow = a_point(row="slow", ttft_s=5.0)
    fast = a_point(row="fast", input_tokens=2000, ttft_s=0.5, rps=0.5)
    assert rated(a_question(slo={"ttft_s": 1.0}), slow, fast).source == "P1: fast"


def test_never_a_smaller_shape() -> None:
    answer = unrated(a_question(input_tokens=1001), *LADDER, a_point(input_tokens=4000, output_tokens=100))
    assert answer.reason is Reason.NO_MEASUREMENT
    assert answer.facts == {"asked_shape": "1001x101", "nearest_shapes": "1000x101, 4000x100"}


@pytest.mark.parametrize(
    "field",
    [
        {"llm": "two"},
        {"accelerator": "other"},
        {"precision": "fp8"},
        {"parallelism": {"tp": 2}},
        {"role": "decode"},
    ],
)
def test_rows_of_another_setup_do_not_count(field: dict[str, Any]) -> None:
    answer = unrated(a_question(), a_point(**field))
    assert answer.reason is Reason.NO_MEASUREMENT
    assert answer.facts["asked"] == "bf16 TP1 both"


def test_a_row_of_another_engine_counts_unless_an_engine_is_asked_for() -> None:
    assert rated(a_question(), a_point(engine="sglang")).rated_rps == 1.0
    answer = unrated(a_question(variant={"engine": "vllm"}), a_point(engine="sglang"))
    assert answer.facts["asked"] == "bf16 TP1 both vllm"
    assert answer.facts["measured"] == "bf16 TP1 both"


def test_aliases_of_the_llm_and_of_the_accelerator_count() -> None:
    assert rated(a_question(), a_point(llm="org/one", accelerator="acme-acc")).rated_rps == 1.0


def test_asked_weights_go_before_published_ones() -> None:
    question = a_question(variant={"quantization": {"weights": "fp8"}})
    assert rated(question, a_point(precision="fp8")).rated_rps == 1.0


# KV: a request holds 1050.5 tokens on average.


@pytest.mark.parametrize(
    ("kv_tokens", "rated_rps", "surge_rps"),
    [
        # 50 requests hold 52,525 tokens: inside 0.7 of 100,000.
        (100_000, 6.25, 6.25),
        # 0.7 x 70,000 = 49,000 hold 46.6 requests, 0.8 x 70,000 = 56,000 all fifty.
        (70_000, 6.25 * 49_000 / 52_525, 6.25),
        # 0.7 x 20,000 = 14,000: 13.3 requests; the row at ten, 4 req/s, is better than 0.27 of 6.25.
        (20_000, 4.0, 4.0),
        # 0.7 x 5,000 = 3,500: a third of ten requests.
        (5_000, 4.0 * 3_500 / 10_505, 4.0 * 4_000 / 10_505),
    ],
)
def test_the_cache_limits_the_rate_in_proportion(kv_tokens: int, rated_rps: float, surge_rps: float) -> None:
    answer = rated(a_question(variant={"capacity": {"kv_tokens": kv_tokens}}), *LADDER)
    assert answer.rated_rps == pytest.approx(rated_rps)
    assert answer.surge_rps == pytest.approx(surge_rps)


def test_the_cache_is_by_formula_when_none_is_given() -> None:
    variant = {"capacity": {}, "memory_utilization": 1.0, "activation_reserve_bytes": 0}
    assert rated(a_question(variant=variant), *LADDER).kv_capacity_tokens == 500_000


def test_without_a_cache_there_is_no_limit_and_the_answer_says_so() -> None:
    answer = rated(a_question(variant={"capacity": {}}, llm={"stateless_layers": 10}), *LADDER)
    assert answer.kv_capacity_tokens is None
    assert answer.source == "P1: c50; KV capacity unknown, no KV limit"


def test_one_request_must_fit_the_cache_of_a_rank() -> None:
    answer = unrated(a_question(variant={"capacity": {"kv_tokens": 1_100}}), *LADDER)
    assert answer.reason is Reason.REQUEST_DOES_NOT_FIT
    assert answer.facts == {"request_tokens": 1101, "kv_tokens_per_rank": 1100.0}
    ranks = {"capacity": {"kv_tokens": 2_000}, "parallelism": {"dp": 2}}
    assert unrated(a_question(variant=ranks), *LADDER).reason is Reason.REQUEST_DOES_NOT_FIT


def test_one_request_must_fit_inside_the_trigger() -> None:
    answer = unrated(a_question(variant={"capacity": {"kv_tokens": 1_200}}), *LADDER)
    assert answer.reason is Reason.REQUEST_DOES_NOT_FIT
    assert answer.facts["kv_tokens_inside_trigger"] == pytest.approx(840)


def test_weights_that_do_not_fit_say_by_how_much() -> None:
    answer = unrated(a_question(variant={"capacity": {}}, llm={"parameters": 10**10}), *LADDER)
    assert answer.reason is Reason.WEIGHTS_DO_NOT_FIT
    reserve, block = 3 * 2**30, 16_000 * 16
    assert answer.facts["missing_bytes_per_accelerator"] == 20 * 10**9 + reserve + block - 9 * 10**9


def test_a_context_that_is_too_long() -> None:
    answer = unrated(a_question(input_tokens=32_000), a_point(input_tokens=64_000))
    assert answer.reason is Reason.CONTEXT_TOO_LONG
    assert answer.facts == {"needed_tokens": 32_101, "max_context_tokens": 32_000}
    assert unrated(a_question(input_tokens=31_899), *LADDER).reason is Reason.NO_MEASUREMENT


def test_a_promise_that_no_row_keeps_shows_the_best_seen() -> None:
    answer = unrated(a_question(slo={"ttft_s": 0.05, "itl_s": 0.02}), *LADDER)
    assert answer.reason is Reason.SLO_NOT_MET
    assert answer.facts == {
        "best_ttft_s": 0.1,
        "target_ttft_s": 0.05,
        "best_itl_s": 0.009,
        "target_itl_s": 0.02,
    }


@pytest.mark.parametrize(
    ("measured_at", "promised_at", "answered"),
    [
        (None, "mean", True),
        ("mean", "mean", True),
        (50, "mean", False),
        (95, "mean", True),
        (None, 95, False),
        ("mean", 95, False),
        (90, 95, False),
        (95, 95, True),
        (99, 95, True),
    ],
)
def test_a_percentile_needs_a_row_measured_at_it(
    measured_at: object, promised_at: object, answered: bool
) -> None:
    question = a_question(slo={"ttft_s": 3.0, "at": promised_at})
    answer = rate(question, MeasuredTable([a_point(at=measured_at)]))
    if answered:
        assert isinstance(answer, Rating)
    else:
        assert isinstance(answer, Unrated)
        assert answer.reason is Reason.PERCENTILE_NOT_MEASURED
        assert answer.facts["asked"] == ("the mean" if question.slo.at == "mean" else f"p{question.slo.at}")


def test_no_promise_needs_no_statistic() -> None:
    assert rated(a_question(slo={"at": 99}), a_point()).rated_rps == 1.0


# Roles: prefill answers for the first token, decode for the others.


@pytest.mark.parametrize(
    ("role", "slo", "kept"),
    [
        ("prefill", {"itl_s": 0.01}, True),
        ("prefill", {"ttft_s": 0.9}, False),
        ("decode", {"ttft_s": 0.9}, True),
        ("decode", {"itl_s": 0.01}, False),
        ("prefill", {"e2e_s": 9.9}, False),
        ("decode", {"e2e_s": 10.0}, True),
    ],
)
def test_each_role_keeps_its_own_promises(role: str, slo: dict[str, float], kept: bool) -> None:
    answer = rate(a_question(slo=slo, variant={"role": role}), MeasuredTable([a_point(role=role)]))
    assert isinstance(answer, Rating if kept else Unrated)


def test_each_role_holds_its_own_tokens() -> None:
    prefill = rated(a_question(variant={"role": "prefill"}), a_point(role="prefill"))
    decode = rated(a_question(variant={"role": "decode"}), a_point(role="decode"))
    assert prefill.kv_tokens_per_rps == pytest.approx(1.0 * 1000)
    assert decode.kv_tokens_per_rps == pytest.approx(100 * 0.09 * 1050.5)


# Given figures go first.


def test_a_given_rate_goes_before_rows_and_formulas() -> None:
    question = a_question(
        variant={"capacity": {"rated_rps": 7.0}}, llm={"parameters": 10**12}, input_tokens=10**6
    )
    answer = rated(question, *LADDER)
    assert (answer.rated_rps, answer.origin, answer.source) == (7.0, Origin.GIVEN, "variant.capacity")
    assert answer.kv_capacity_tokens is None
    assert answer.surge_rps == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("capacity", "surge"),
    [
        ({}, 8.0),
        ({"surge_rps": 7.5}, 7.5),
        ({"surge_rps": 7.0}, 7.0),
        # 0.8 x 100,000 / (10 s x 1050.5) = 7.6 req/s.
        ({"kv_tokens": 100_000, "residence_s": 10.0}, 80_000 / 10_505),
        ({"kv_tokens": 10_000, "residence_s": 10.0}, 7.0),
        ({"kv_tokens": 10_000_000, "residence_s": 10.0}, 8.0),
    ],
)
def test_surge_of_a_given_rate(capacity: dict[str, float], surge: float) -> None:
    answer = rated(a_question(variant={"capacity": {"rated_rps": 7.0} | capacity}))
    assert answer.surge_rps == pytest.approx(surge)


def test_given_figures_are_passed_on() -> None:
    capacity = {"rated_rps": 7.0, "kv_tokens": 50_000, "residence_s": 2.0, "power_w": 900.0}
    answer = rated(a_question(variant={"capacity": capacity}))
    assert (answer.kv_capacity_tokens, answer.power_w) == (50_000, 900.0)
    assert answer.kv_tokens_per_rps == pytest.approx(2.0 * 1050.5)
