"""The policy ``planner`` with a scenario file: capacity as sizing rates it, demand as it arrives and waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from models.hardware import Node
from models.observation import Observation, VariantObservation
from tests.observed_fleets import Cycles, a_pool, a_variant, engines_of, observed, some_traffic

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
CALM, FULL = (0.2, 0.0), (0.79, 0.0)


def scenario(folder: Path, **service: Any) -> Path:
    """A large variant of 8 req/s at cost 15 and a small one of 4 req/s at cost 5."""
    stated = {
        "name": "chat",
        "services": [
            {
                "id": "chat", "llm": "llama-3.1-8b", "namespace": "prod", "slo": {"ttft_s": 2, "itl_s": 0.1},
                "buckets": [{"id": "usual", "arrival_rps": 10, "input_tokens": 100, "output_tokens": 50}],
                "variants": [
                    {"id": "large", "accelerator": "H100", "capacity": {"rated_rps": 8}, "cost": {"relative": 15}},
                    {"id": "small", "accelerator": "L40S", "capacity": {"rated_rps": 4}, "cost": {"relative": 5}},
                ],
            } | service,
        ],
        "pools": [
            {"id": "h", "accelerator": "H100", "nodes": [{"id": "n", "gpus": 8}]},
            {"id": "l", "accelerator": "L40S", "nodes": [{"id": "m", "gpus": 8}]},
        ],
    }  # fmt: skip
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(stated))
    return path


def large(ready: int = 2, **more: Any) -> VariantObservation:
    return a_variant("big-one", ready=ready, model=MODEL, **{"cost": 15.0, **more})


def small(ready: int = 2, **more: Any) -> VariantObservation:
    return a_variant("little-one", ready=ready, model=MODEL, accelerator="L40S", **{"cost": 5.0, **more})


def seen(
    *variants: VariantObservation, rps: float | None, load: tuple[float, float] = CALM, **more: Any
) -> Observation:
    traffic = some_traffic(MODEL, arrival_rps=rps, **more.pop("traffic", {}))
    shown = more.pop("engine", {})
    engines = [engine for one in variants for engine in engines_of(one, load, **shown)]
    pools = more.pop("pools", [a_pool(), a_pool(accelerator="L40S")])
    return observed(variants, engines, traffic=[traffic], pools=pools, **more)


def planning(path: Path, **rules: Any) -> Cycles:
    return Cycles(policy="planner", policies={"planner": {"scenario": str(path)}}, **rules)


def test_what_arrives_and_is_rated_makes_the_plan(tmp_path: Path) -> None:
    counts = planning(scenario(tmp_path))(seen(large(), small(), rps=40.0))
    assert counts == {"big-one": 2, "little-one": 6}


def test_a_service_that_may_shrink_goes_to_the_optimum_make_before_break(tmp_path: Path) -> None:
    cycles = planning(scenario(tmp_path))
    assert cycles(seen(large(), small(), rps=10.0)) == {"big-one": 1, "little-one": 3}
    assert cycles(seen(large(1), small(3), rps=10.0)) == {"big-one": 0, "little-one": 3}


def test_between_the_two_nothing_moves(tmp_path: Path) -> None:
    """Rated for 24 of 20 that arrive, and too full for fewer: neither side of γ is reached."""
    assert planning(scenario(tmp_path))(seen(large(), small(), rps=20.0, load=(0.6, 0.0))) == {
        "big-one": 2,
        "little-one": 2,
    }


def test_where_ratings_promise_too_much_what_is_seen_counts(tmp_path: Path) -> None:
    """Four replicas are rated for more than arrives and are full to τ all the same."""
    assert sum(planning(scenario(tmp_path))(seen(large(), small(), rps=20.0, load=FULL)).values()) > 4


@pytest.mark.parametrize("where", ["router", "engines"])
def test_what_waits_is_demand(tmp_path: Path, where: str) -> None:
    """900 requests, to be served within a minute, are 15 more a second."""
    calm = seen(large(), small(), rps=20.0, load=(0.6, 0.0))
    held = calm.model_copy(update={"traffic": (some_traffic(MODEL, arrival_rps=20.0, queued=900.0),)})
    engines = tuple(one.model_copy(update={"waiting_now": 225.0}) for one in calm.engines)
    waits = calm.model_copy(update={"engines": engines})
    cycles = planning(scenario(tmp_path))
    cycles(held if where == "router" else waits)
    assert cycles.last is not None
    (demand,) = cycles.last.problems["planner"].demands
    assert demand.arrival_rps >= 35.0


def test_objects_name_who_is_who(tmp_path: Path) -> None:
    variants = [
        {"id": "a", "accelerator": "H100", "capacity": {"rated_rps": 8}, "cost": {"relative": 1},
         "object": {"name": "little-one-target"}},
    ]  # fmt: skip
    path = scenario(tmp_path, llm="Llama-3.1-70B", variants=variants)
    cycles = planning(path)
    counts = cycles(seen(small(1), rps=30.0))
    assert counts == {"little-one": 4}
    assert cycles.last is not None
    assert cycles.last.problems["planner"].demands[0].service == "chat"


def test_what_the_scenario_does_not_know_is_told_and_held(tmp_path: Path) -> None:
    other = a_variant("other", ready=2, model=MODEL, accelerator="A100-80GB", cost=1.0)
    cycles = planning(scenario(tmp_path))
    counts = cycles(seen(large(), other, rps=30.0))
    assert counts["other"] == 2
    assert cycles.last is not None
    told = " ".join(one.problem for one in cycles.last.findings)
    assert "other" in told
    assert "small" in told


def test_services_that_it_does_not_know_are_planned_in_tokens(tmp_path: Path) -> None:
    strange = a_variant("strange", ready=4, model="m")
    both = seen(large(), small(), rps=40.0)
    more = both.model_copy(
        update={"variants": (*both.variants, strange), "engines": (*both.engines, *engines_of(strange, FULL))}
    )
    counts = planning(scenario(tmp_path))(more)
    assert counts["little-one"] == 6
    assert counts["strange"] > 4


def test_a_service_that_tells_no_arrivals_is_planned_in_tokens(tmp_path: Path) -> None:
    cycles = planning(scenario(tmp_path))
    cycles(seen(large(), small(), rps=None, load=FULL, engine={"request_rps": None}))
    assert cycles.last is not None
    assert [one.service for one in cycles.last.problems["planner"].demands] != ["chat"]


def test_nodes_of_now_bound_the_plan_and_not_those_that_were_stated(tmp_path: Path) -> None:
    few = [a_pool(), a_pool(accelerator="L40S", gpus=4, nodes=1)]
    counts = planning(scenario(tmp_path))(seen(large(), small(), rps=40.0, pools=few))
    assert counts == {"big-one": 3, "little-one": 4}


def test_a_cordoned_node_leaves_the_plan_and_what_runs_there_counts(tmp_path: Path) -> None:
    gone = a_pool(accelerator="L40S", gpus=8, nodes=1).but(nodes=(Node(id="m", gpus=8, cordoned=True),))
    counts = planning(scenario(tmp_path))(
        seen(large(), small(nodes=("m", "m")), rps=40.0, pools=[a_pool(), gone])
    )
    assert counts["little-one"] == 2
    assert counts["big-one"] > 2


def test_other_lengths_than_stated_are_sized_again_and_equal_ones_are_not(tmp_path: Path) -> None:
    cycles = planning(scenario(tmp_path))
    cycles(seen(large(), small(), rps=40.0, engine={"input_tokens": 900.0, "output_tokens": 300.0}))
    assert cycles.last is not None
    (bucket,) = cycles.last.problems["planner"].demands[0].buckets
    assert (bucket.input_tokens, bucket.output_tokens) == (
        pytest.approx(900, rel=0.06),
        pytest.approx(300, rel=0.06),
    )


@pytest.mark.parametrize("text", ["services: 3", "]["])
def test_a_scenario_that_is_wrong_holds_and_says_where(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    cycles = planning(path)
    assert cycles(seen(large(), small(), rps=40.0)) == {"big-one": 2, "little-one": 2}
    assert cycles.last is not None
    assert "wrong.yaml" in cycles.last.findings[0].problem
