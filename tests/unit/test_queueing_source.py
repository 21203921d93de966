"""The queueing model as a performance source: whose parameters, which limits, and what it answers."""

from __future__ import annotations

from typing import Any

import pytest

from models.explanation import Reason
from models.hardware import Accelerator
from models.llm import GroupedQueryAttention, Llm, Precision
from models.performance import Origin, PerformanceChoice, Rating, RatingQuestion, Unrated
from models.queueing import FitQuality, QueueingParameters
from models.queueing_profile import QueueingProfile
from models.saturation import SaturationThresholds
from models.variant import Parallelism, Role, Variant
from models.workload import Slo
from planner.performance import chosen_sources, rate
from planner.performance.queueing import QueueingSource, case_of

PARAMETERS = QueueingParameters(alpha_ms=6.5, beta_ms_per_token=0.022, gamma_ms_per_token=5e-5, max_batch=128)
LLM = Llm(
    id="llama-8b",
    parameters=8_030_000_000,
    layers=32,
    attention=GroupedQueryAttention(kv_heads=8, head_dim=128),
    aliases=("llama",),
)
H100 = Accelerator(id="H100", vendor="nvidia", memory_bytes=80 * 2**30, aliases=("h100-sxm",))
SLO = Slo(ttft_s=0.5, itl_s=0.02)


def a_question(variant: dict[str, Any] | None = None, **fields: Any) -> RatingQuestion:
    """Llama 8B on one H100 with the parameters stated; 1,000 input and 200 output tokens."""
    stated = {"id": "v", "accelerator": "H100", "queueing": PARAMETERS}
    return RatingQuestion.model_validate(
        {
            "llm": LLM,
            "accelerator": H100,
            "variant": Variant.model_validate(stated | (variant or {})),
            "input_tokens": 1000,
            "output_tokens": 200,
            "slo": SLO,
            "thresholds": SaturationThresholds(),
        }
        | fields
    )


def a_profile(**fields: Any) -> QueueingProfile:
    base = {"llm": "llama-8b", "accelerator": "H100", "parameters": PARAMETERS, "source": "a report"}
    return QueueingProfile.model_validate(base | fields)


def rated(question: RatingQuestion, *profiles: QueueingProfile) -> Rating:
    answer = QueueingSource(profiles).rate(question)
    assert isinstance(answer, Rating)
    return answer


def refused(question: RatingQuestion, *profiles: QueueingProfile) -> Unrated:
    answer = QueueingSource(profiles).rate(question)
    assert isinstance(answer, Unrated)
    return answer


def test_a_rating_keeps_the_promise_says_its_origin_and_obeys_little() -> None:
    answer = rated(a_question())
    assert answer.origin is Origin.MODELED
    assert "variant.queueing" in answer.source
    assert answer.ttft_s is not None
    assert answer.itl_s == pytest.approx(0.02)
    assert answer.ttft_s < 0.5
    assert answer.kv_tokens_per_rps is not None
    in_service = answer.kv_tokens_per_rps * answer.rated_rps / 1100
    # Hardly a request waits at this rate, so who is there is in service.
    assert in_service == pytest.approx(answer.rated_rps * (answer.ttft_s + 199 * answer.itl_s), rel=1e-3)


def test_stated_parameters_are_used_by_the_front_without_asking_a_source() -> None:
    assert rate(a_question()) == rated(a_question())


def test_a_stated_rate_goes_before_the_model() -> None:
    answer = rate(a_question({"capacity": {"rated_rps": 3.0}}))
    assert isinstance(answer, Rating)
    assert (answer.rated_rps, answer.origin) == (3.0, Origin.GIVEN)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, True),
        ({"llm": "llama"}, True),
        ({"accelerator": "h100-sxm"}, True),
        ({"engine": "vllm"}, True),
        ({"llm": "llama-70b"}, False),
        ({"parallelism": Parallelism(tp=2)}, False),
        ({"precision": Precision.FP8}, False),
        ({"role": Role.DECODE}, False),
    ],
)
def test_a_profile_answers_for_the_same_setup_alone(change: dict[str, Any], found: bool) -> None:
    answer = QueueingSource([a_profile(**change)]).rate(a_question({"queueing": None}))
    assert isinstance(answer, Rating) is found
    if isinstance(answer, Unrated):
        assert answer.may_be_known_elsewhere


def test_another_engine_is_another_setup() -> None:
    question = a_question({"queueing": None, "engine": "sglang"})
    assert refused(question, a_profile(engine="vllm")).reason is Reason.NO_MEASUREMENT


def test_what_was_fitted_on_more_points_goes_first() -> None:
    slow = PARAMETERS.but(alpha_ms=19.0)
    stated, few, many = (
        a_profile(parameters=slow),
        a_profile(parameters=slow, fit=FitQuality(points=3)),
        a_profile(fit=FitQuality(points=30)),
    )
    for order in ((stated, few, many), (many, few, stated)):
        assert rated(a_question({"queueing": None}), *order).rated_rps == rated(a_question()).rated_rps


def test_the_cache_bounds_what_is_in_service() -> None:
    small = a_question({"capacity": {"kv_tokens": 20_000}}, slo=Slo())
    answer = rated(small)
    assert "KV cache" in answer.source
    assert answer.kv_tokens_per_rps == pytest.approx(0.7 * 20_000 / answer.rated_rps)
    assert answer.surge_rps > answer.rated_rps


def test_a_cache_below_one_request_holds_none() -> None:
    answer = refused(a_question({"capacity": {"kv_tokens": 1_300}}, slo=Slo()))
    assert answer.reason is Reason.REQUEST_DOES_NOT_FIT
    assert answer.facts["kv_tokens_inside_trigger"] == pytest.approx(910)


def test_the_queue_threshold_bounds_the_rate_where_no_promise_does() -> None:
    answer = rated(a_question(slo=Slo()))
    loose = rated(a_question(slo=Slo(), thresholds=SaturationThresholds(tau_queue=50)))
    assert "queue" in answer.source
    assert answer.rated_rps < loose.rated_rps


def test_a_promise_that_no_rate_keeps_is_named_with_the_best_there_is() -> None:
    answer = refused(a_question(slo=Slo(ttft_s=0.01, itl_s=0.02)))
    assert answer.reason is Reason.SLO_NOT_MET
    best = answer.facts["best_ttft_s"]
    assert isinstance(best, float)
    assert best > 0.01
    assert not answer.may_be_known_elsewhere


def test_percentiles_are_harder_to_keep_than_means() -> None:
    mean, p95, p99 = (rated(a_question(slo=SLO.but(at=at))).rated_rps for at in ("mean", 95.0, 99.0))
    assert p99 < p95 < mean


@pytest.mark.parametrize(
    ("helps", "question"),
    [
        (True, {"cached_share": 0.7}),
        (False, {"arrival_cv": 3.0, "slo": Slo(ttft_s=0.2)}),
    ],
)
def test_traffic_matters(helps: bool, question: dict[str, Any]) -> None:
    plain = a_question(**{key: question[key] for key in ("slo",) if key in question})
    assert (rated(a_question(**question)).rated_rps > rated(plain).rated_rps) is helps


def test_engine_arguments_bound_batch_and_chunk() -> None:
    case = case_of(a_question({"engine_arguments": {"max_requests": 16, "batched_tokens": 512}}), PARAMETERS)
    assert (case.batch, case.parameters.chunk_tokens) == (16, 512)


def test_accepted_drafts_raise_the_rate() -> None:
    drafted = a_question({"speculation": {"draft_tokens": 3, "acceptance": 0.8}})
    assert rated(drafted).rated_rps > rated(a_question()).rated_rps


def test_roles_answer_for_their_own_promises() -> None:
    prefill, decode = (rated(a_question({"role": role})) for role in ("prefill", "decode"))
    assert (prefill.itl_s, decode.ttft_s) == (None, None)
    assert decode.itl_s is not None
    assert 0 < decode.itl_s <= 0.02


def test_of_the_whole_request_a_role_has_what_the_other_leaves() -> None:
    slo = Slo(ttft_s=0.5, itl_s=0.02, e2e_s=4.2)
    prefill, decode = (
        case_of(a_question({"role": role}, slo=slo), PARAMETERS) for role in ("prefill", "decode")
    )
    assert prefill.ttft_s == pytest.approx(4.2 - 199 * 0.02)
    assert decode.e2e_s == pytest.approx(3.7)


def test_an_llm_of_which_only_the_name_is_known_is_not_held_to_a_memory() -> None:
    opaque = Llm.model_validate({"id": "granite_13b", "opaque": True})
    answer = rate(a_question(llm=opaque, accelerator=H100.but(memory_bytes=1)))
    assert isinstance(answer, Rating)
    assert answer.kv_capacity_tokens is None
    assert "KV capacity unknown" in answer.source


def test_the_roofline_says_nothing_of_an_llm_whose_shape_is_not_known() -> None:
    opaque = Llm.model_validate({"id": "granite_13b", "opaque": True})
    (roofline,) = chosen_sources(PerformanceChoice(sources=("roofline",)), {})
    answer = rate(a_question({"queueing": None}, llm=opaque), roofline)
    assert isinstance(answer, Unrated)
    assert answer.facts["roofline_lacks"] == "the shape of the LLM"


def test_many_questions_are_each_answered_as_alone() -> None:
    questions = [a_question(input_tokens=tokens) for tokens in (1, 500, 8000)]
    questions += [a_question({"queueing": None}), a_question(slo=Slo(ttft_s=0.001))]
    source = QueueingSource()
    assert source.rate_many(questions) == [source.rate(question) for question in questions]
