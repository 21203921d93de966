"""All that is known of a variant of a scenario: as planning uses it, in each pool, and what refuses it."""

from __future__ import annotations

from typing import Any

import pytest

from models.explanation import Reason
from models.performance import Origin, Rating
from models.scenario import Scenario
from planner.errors import ConfigurationError
from planner.picturing import picture_candidate, service_alone
from planner.planning import sized
from planner.ui.examples import example, examples
from tests.scenarios import a_pool_entry, a_running, a_scenario, a_service, a_shape, a_variant


def a_qwen_scenario(**fields: Any) -> Scenario:
    """Qwen3-32B on one H100, and too large for it in bf16 where others use a fifth of the memory."""
    service = a_service(
        "chat",
        llm="Qwen3-32B",
        variants=(
            a_variant("fp8", quantization={"weights": "fp8"}),
            a_variant("bf16", memory_utilization=0.8),
        ),
    )
    return a_scenario(services=(service, a_service("mail", llm="Qwen3-32B")), **fields)


@pytest.mark.parametrize("name", sorted(examples()))
def test_every_variant_of_every_example_reads_as_in_the_problem(name: str) -> None:
    scenario = example(name)
    problem = sized(scenario)
    for service in scenario.services[:2]:
        for variant in service.variants[-1:]:
            found = picture_candidate(scenario, service.id, variant.id)
            here = [each for place in found.places for each in place.candidates]
            mine = [c for c in problem.candidates if (c.service, c.variant) == (service.id, variant.id)]
            assert [each.id for each in here] == [each.id for each in mine]
            assert [(each.rated_rps, each.cost, each.power_w) for each in here] == [
                (each.rated_rps, each.cost, each.power_w) for each in mine
            ]


def test_what_does_not_fit_says_by_how_much_and_what_would() -> None:
    found = picture_candidate(a_qwen_scenario(), "chat", "bf16")
    memory = found.picture.memory
    assert memory is not None
    assert memory.missing_bytes > 0
    assert found.curves == ()
    (place,) = found.places
    (refusal,) = place.rejections
    assert refusal.reason is Reason.WEIGHTS_DO_NOT_FIT
    assert refusal.facts["fitting_tp"] == 2
    assert place.cost == 2.0


def test_price_and_power_say_where_they_are_from() -> None:
    found = picture_candidate(a_qwen_scenario(), "chat", "fp8")
    (place,) = found.places
    assert (place.cost_source, place.power_source) == ("price of the pool", "TDP")
    assert found.codes["llm.parameters"]


def test_an_accelerator_that_no_pool_has_is_nowhere() -> None:
    service = a_service("chat", llm="Qwen3-32B", variants=(a_variant("l4", accelerator="L4"), a_variant("h")))
    found = picture_candidate(a_scenario(services=(service,)), "chat", "l4")
    assert [each.reason for each in found.nowhere] == [Reason.NO_POOL_WITH_ACCELERATOR]
    assert found.places == ()


def test_a_service_alone_keeps_its_host_and_what_runs_of_both() -> None:
    host, guest = a_service("host"), a_service("guest", kind="batch", shares_replicas_of="host", variants=())
    running = tuple(a_running(service=name) for name in ("host", "other"))
    scenario = a_scenario(services=(host, a_service("other"), guest), fleet={"running": running})
    alone = service_alone(scenario, "guest")
    assert [each.id for each in alone.services] == ["host", "guest"]
    assert [row.service for row in alone.fleet.running] == ["host"]


def test_another_shape_and_the_share_in_the_prefix_cache_are_asked_as_planning_asks() -> None:
    shape = a_shape(cached_share=0.5, input_tokens=4096)
    found = picture_candidate(a_qwen_scenario(), "chat", "fp8", bucket=shape)
    question = found.picture.question
    assert (question.input_tokens, question.cached_share) == (4096, 0.5)


def test_sources_that_the_scenario_does_not_ask_are_told_apart() -> None:
    scenario = a_qwen_scenario(performance={"sources": ("roofline",)})
    found = picture_candidate(scenario, "chat", "fp8")
    assert isinstance(found.picture.answer, Rating)
    assert found.picture.answer.origin is Origin.MODELED
    assert [each.source for each in found.picture.answers] == ["roofline"]
    assert [each.source for each in found.unasked] == ["measured", "queueing"]


@pytest.mark.parametrize(("service", "variant"), [("caht", "fp8"), ("chat", "fp")])
def test_a_name_that_nobody_has_suggests_the_nearest(service: str, variant: str) -> None:
    with pytest.raises(ConfigurationError, match="did you mean"):
        picture_candidate(a_qwen_scenario(pools=(a_pool_entry(),)), service, variant)
