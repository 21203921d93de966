"""The roofline: never faster than the hardware, slower with more load, careful where asked, silent where it knows too little."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.explanation import Reason
from models.llm import Llm
from models.performance import Origin, PerformanceChoice, Rating, RatingQuestion, Unrated
from models.variant import Role
from planner.catalog import Catalog
from planner.errors import CatalogError
from planner.performance import Knowledge, chosen_sources, rate
from planner.performance.roofline.fitting import fit_shares, predict
from planner.performance.roofline.formula import Shares, first_token_s, step_s
from planner.performance.roofline.known import known_shares
from planner.performance.roofline.queue import queueing_parameters
from planner.performance.roofline.source import Roofline, Setting, latencies
from planner.performance.roofline.work import lacking, setup_of, stacked, work_of
from planner.planning import known_catalog

CATALOG: Catalog = known_catalog()
PERFECT = Shares(
    **{field.name: 0.0 for field in fields(Shares)}
    | dict.fromkeys(("weights", "experts", "kv", "flops", "expert_flops", "prefill", "expert_prefill"), 1.0)
)
"""Every peak is reached and nothing else takes time."""


def a_question(llm: str | Llm = "Llama-3.1-8B", accelerator: str = "H100", **fields: Any) -> RatingQuestion:
    """1,000 + 200 tokens, no promise."""
    variant = {"id": "v", "accelerator": accelerator} | fields.pop("variant", {})
    base = {
        "llm": CATALOG.llm(llm) if isinstance(llm, str) else llm,
        "accelerator": CATALOG.accelerator(accelerator),
        "variant": variant,
        "input_tokens": 1000,
        "output_tokens": 200,
        "slo": {},
        "thresholds": {},
    }
    return RatingQuestion.model_validate(base | fields)


def at(pessimism: float) -> Roofline:
    return Roofline(Knowledge(PerformanceChoice(pessimism=pessimism)))


def rated(question: RatingQuestion, pessimism: float = 0.5) -> Rating:
    answer = at(pessimism).rate(question)
    assert isinstance(answer, Rating), answer
    return answer


def test_one_sequence_reads_all_weights_and_its_cache_at_peak_bandwidth() -> None:
    work = work_of(setup_of(a_question(variant={"role": "decode"})))
    # 8.03 B parameters without the input table, and 1,100 tokens of 32 x 2 x 8 x 128 numbers, 2 bytes each.
    weights = (CATALOG.llm("Llama-3.1-8B").parameters - 128_256 * 4096) * 2
    cache = 1100 * 32 * 2 * 8 * 128 * 2
    flops = weights / 989e12
    expected = ((weights / 3350e9) ** 2 + flops**2) ** 0.5 + cache / 3350e9
    assert step_s(work, PERFECT, 1.0) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", sorted(CATALOG.llms))
def test_no_engine_is_faster_than_the_hardware(name: str) -> None:
    known = known_shares()
    work = work_of(setup_of(a_question(name, variant={"parallelism": {"tp": 8}})))
    for shares in (known.common, *known.engines.values()):
        for in_flight in (1.0, 10.0, 100.0, 1000.0):
            assert step_s(work, shares, in_flight) > step_s(work, PERFECT, in_flight)


def test_a_second_token_visits_other_experts() -> None:
    work = work_of(
        setup_of(a_question("Qwen3-235B-A22B", variant={"parallelism": {"tp": 8}, "role": "decode"}))
    )
    read = replace(PERFECT, kv=0.0, expert_flops=0.0)
    one, two, many = (step_s(work, read, n) for n in (1.0, 2.0, 1e6))
    experts, attention = work.experts_s, work.weights_s
    assert one == pytest.approx(attention + experts * 8 / 128)
    assert two == pytest.approx(attention + experts * (1 - (1 - 8 / 128) ** 2))
    assert many == pytest.approx(attention + experts)


@given(
    llm=st.sampled_from(sorted(CATALOG.llms)),
    tp=st.sampled_from([1, 2, 4, 8]),
    dp=st.sampled_from([1, 2]),
    load=st.floats(1, 1500),
    more=st.floats(1.01, 4),
    shape=st.tuples(st.integers(1, 30_000), st.integers(2, 4000)),
)
def test_more_load_makes_latencies_longer_and_the_rate_no_smaller(
    llm: str, tp: int, dp: int, load: float, more: float, shape: tuple[int, int]
) -> None:
    variant = {"parallelism": {"tp": tp, "dp": dp}}
    question = a_question(llm, input_tokens=shape[0], output_tokens=shape[1], variant=variant)
    setting = Setting(work_of(setup_of(question)), known_shares().common, Role.BOTH)
    few, many = latencies(setting, load), latencies(setting, load * more)
    assert few.itl_s <= many.itl_s
    assert few.ttft_s <= many.ttft_s


def test_arrays_give_what_single_numbers_give() -> None:
    works = [work_of(setup_of(a_question(name))) for name in ("Llama-3.1-8B", "Qwen3-30B-A3B")]
    shares = known_shares().common
    together = step_s(stacked(works), shares, 7.0)  # type: ignore[type-var]
    assert together.tolist() == pytest.approx([step_s(work, shares, 7.0) for work in works])
    first = first_token_s(stacked(works), shares, 7.0)  # type: ignore[type-var]
    assert first.tolist() == pytest.approx([first_token_s(work, shares, 7.0) for work in works])


def test_a_rating_is_labeled_keeps_its_promises_and_obeys_little() -> None:
    question = a_question(slo={"ttft_s": 1.0, "itl_s": 0.03}, variant={"engine": "vllm"})
    answer = rated(question, 0.9)
    assert answer.origin is Origin.MODELED
    assert answer.source == "roofline, vllm, at the 90% quantile"
    assert answer.ttft_s is not None
    assert answer.itl_s is not None
    assert (answer.ttft_s <= 1.0, answer.itl_s <= 0.03) == (True, True)
    stay = answer.ttft_s + 199 * answer.itl_s
    assert answer.kv_tokens_per_rps == pytest.approx(stay * 1100)


@pytest.mark.parametrize(
    ("role", "slo"),
    [
        *((role, slo) for role in Role for slo in ({}, {"itl_s": 0.03}, {"ttft_s": 1.0})),
        # One phase alone does not tell how long a request takes.
        (Role.BOTH, {"e2e_s": 6.0}),
    ],
)
def test_more_pessimism_rates_lower_and_the_interval_holds_the_median(
    role: Role, slo: dict[str, float]
) -> None:
    question = a_question(slo=slo, variant={"role": role})
    rates = [rated(question, pessimism).rated_rps for pessimism in (0.5, 0.75, 0.9, 0.95)]
    assert rates == sorted(rates, reverse=True)
    interval = rated(question).interval
    assert interval is not None
    assert interval.low_rps <= rates[0] <= interval.high_rps


def test_the_cache_bounds_the_load() -> None:
    small = rated(a_question(variant={"capacity": {"kv_tokens": 11_000}}))
    # 0.7 x 11,000 tokens hold 7 requests of 1,100, and 0.8 of them 8.
    assert small.kv_tokens_per_rps is not None
    assert small.rated_rps * small.kv_tokens_per_rps == pytest.approx(7 * 1100)
    assert small.surge_rps > small.rated_rps


def test_half_the_precision_and_twice_the_accelerators_are_faster() -> None:
    slo = {"itl_s": 0.05}
    plain = rated(a_question("Llama-3.1-70B", slo=slo, variant={"parallelism": {"tp": 4}}))
    narrow = rated(
        a_question(
            "Llama-3.1-70B", slo=slo, variant={"parallelism": {"tp": 4}, "quantization": {"weights": "fp8"}}
        )
    )
    wide = rated(a_question("Llama-3.1-70B", slo=slo, variant={"parallelism": {"tp": 8}}))
    assert plain.rated_rps < narrow.rated_rps
    assert plain.rated_rps < wide.rated_rps


def unrated(question: RatingQuestion) -> Unrated:
    answer = at(0.5).rate(question)
    assert isinstance(answer, Unrated), answer
    return answer


def test_promises_that_the_hardware_cannot_keep_are_final() -> None:
    answer = unrated(a_question(slo={"itl_s": 0.001}))
    assert answer.reason is Reason.SLO_NOT_MET
    assert not answer.may_be_known_elsewhere
    best = answer.facts["best_itl_s"]
    assert isinstance(best, float)
    assert best > 0.001


@pytest.mark.parametrize(
    ("fields", "reason", "fact"),
    [
        (
            {"variant": {"parallelism": {"tp": 16}, "pods_per_replica": 2}},
            Reason.NO_MEASUREMENT,
            "roofline_lacks",
        ),
        ({"variant": {"role": "decode"}, "slo": {"e2e_s": 3.0}}, Reason.NO_MEASUREMENT, "roofline_lacks"),
        ({"accelerator": "A100-40GB"}, Reason.NO_MEASUREMENT, "roofline_lacks"),
    ],
)
def test_what_it_cannot_tell_another_source_may(fields: dict[str, Any], reason: Reason, fact: str) -> None:
    if "accelerator" in fields:
        accelerator = CATALOG.accelerator("H100").but(memory_bandwidth=None)
        question = a_question().but(accelerator=accelerator)
    else:
        question = a_question(**fields)
    answer = unrated(question)
    assert answer.reason is reason
    assert answer.may_be_known_elsewhere
    assert fact in answer.facts


@pytest.mark.parametrize(
    "slo", [{"ttft_s": 1.5}, {"itl_s": 0.04}, {"ttft_s": 1.5, "itl_s": 0.04, "e2e_s": 8.0}]
)
@pytest.mark.parametrize("llm", ["Llama-3.1-8B", "Qwen3-30B-A3B"])
def test_the_stricter_the_percentile_the_less_a_replica_carries(llm: str, slo: dict[str, float]) -> None:
    variant = {"parallelism": {"tp": 2}}
    rates = [
        rated(a_question(llm, slo=slo | {"at": at}, variant=variant)).rated_rps
        for at in (50.0, 90.0, 95.0, 99.0)
    ]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[-1] or "ttft_s" not in slo
    answer = rated(a_question(llm, slo=slo | {"at": 95.0}, variant=variant), 0.9)
    assert answer.source.startswith("roofline, all engines, at the 90% quantile; queueing model")
    assert answer.interval is not None
    assert answer.interval.low_rps <= answer.rated_rps * (1 + 1e-6)


def test_parameters_of_the_queueing_model_agree_with_the_roofline_at_their_load() -> None:
    work, shares = work_of(setup_of(a_question())), known_shares().common
    found = queueing_parameters(work, shares, in_flight=40.0, factor=1.0, max_batch=64)
    iteration = found.alpha_ms + 40 * (found.beta_ms_per_token + found.gamma_ms_per_token * 1100)
    decode = replace(work, prefilled=0.0)
    assert iteration / 1e3 == pytest.approx(step_s(decode, shares, 40.0))


def test_a_promise_below_what_any_first_token_takes() -> None:
    answer = unrated(a_question(slo={"ttft_s": 0.01, "at": 95.0}))
    assert answer.reason is Reason.SLO_NOT_MET


def test_cached_prefixes_are_not_computed_and_stay_in_the_cache() -> None:
    slo = {"ttft_s": 1.0}
    cold, warm = (rated(a_question(slo=slo, cached_share=share)) for share in (0.0, 0.8))
    assert warm.rated_rps > cold.rated_rps
    work = work_of(setup_of(a_question(cached_share=0.8)))
    assert (work.input_tokens, work.held_tokens) == (pytest.approx(200.0), 1100.0)


def test_an_engine_takes_no_more_requests_than_it_was_told_to() -> None:
    few = rated(a_question(variant={"engine_arguments": {"max_requests": 4}}))
    assert few.kv_tokens_per_rps is not None
    assert few.rated_rps * few.kv_tokens_per_rps == pytest.approx(4 * 1100)


def test_figures_that_are_missing_are_named() -> None:
    question = a_question(variant={"parallelism": {"tp": 2}})
    bare = question.accelerator.but(bf16_flops=None, scale_up_bandwidth=None)
    assert lacking(setup_of(question.but(accelerator=bare))) == ("bf16_flops", "scale_up_bandwidth")
    with pytest.raises(ValueError, match="scale_up_bandwidth"):
        work_of(setup_of(question.but(accelerator=bare)))


def test_a_cache_that_holds_no_request_inside_the_trigger() -> None:
    answer = unrated(a_question(variant={"capacity": {"kv_tokens": 1500}}))
    assert answer.reason is Reason.REQUEST_DOES_NOT_FIT


def test_the_chain_asks_it_where_no_row_answers() -> None:
    choice = PerformanceChoice(sources=("measured", "roofline"))
    answer = rate(a_question(), *chosen_sources(choice, {}))
    assert isinstance(answer, Rating)
    assert answer.source.endswith("(measured: no measurement)")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "common: {}",
        "[1]",
        "common: {base_s: 1}\nengines: {}\nin_flight_most: 1\nresiduals: {levels: [0.5], itl: [], ttft: [0]}",
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "roofline.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CatalogError, match="scripts/fit_roofline"):
        known_shares(file)


def test_left_out_llms_are_predicted_within_what_the_report_promises() -> None:
    folder = os.environ.get("FLEETPLAN_TEST_DATA")
    if not folder:
        pytest.skip("FLEETPLAN_TEST_DATA is not set: it names the folder with the measured tables of perf/")
    rows = measured_rows().observations(Path(folder), CATALOG)
    for llm, most in (("Qwen3-32B", 0.20),):
        unseen = [row for row in rows if row.llm == llm]
        fit = fit_shares([row for row in rows if row.llm != llm])
        itl, _ = predict(fit, unseen)
        errors = [abs(modeled / row.itl_s - 1) for modeled, row in zip(itl, unseen, strict=True)]
        assert sum(errors) / len(errors) <= most, llm


def test_the_shipped_shares_are_those_of_the_measured_rows() -> None:
    folder = os.environ.get("FLEETPLAN_TEST_DATA")
    if not folder:
        pytest.skip("FLEETPLAN_TEST_DATA is not set: it names the folder with the measured tables of perf/")
    rows = measured_rows().observations(Path(folder), CATALOG)
    fitted = fit_shares(rows)
    shipped = known_shares()
    work = [row.work for row in rows]
    for engine in ("vllm", "sglang", "trtllm"):
        for one in work[:: len(work) // 20]:
            again = step_s(one, fitted.of(engine), 32.0)
            assert step_s(one, shipped.engines[engine], 32.0) == pytest.approx(again, rel=0.03)


def measured_rows() -> Any:
    """The script that reads the measured tables; it is no part of the package."""
    path = Path(__file__).parents[2] / "scripts" / "measured_rows.py"
    spec = importlib.util.spec_from_file_location("measured_rows", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["measured_rows"] = module
    spec.loader.exec_module(module)
    return module
