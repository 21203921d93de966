"""An observation as a scenario: what was seen is in it, what nobody saw is said, and it can be planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from models.engine import EngineArguments
from models.hardware import Node, Pool
from models.ids import NodeId
from models.observation import (
    EngineObservation,
    Finding,
    Observation,
    QuotaObservation,
    TrafficObservation,
    VariantObservation,
)
from models.scenario import Scenario
from models.solution import Status
from models.variant import KubernetesObject
from planner import plan
from planner.catalog import load_catalog
from planner.cli.app import app
from planner.drafting import Draft, draft_scenario
from planner.errors import ConfigurationError
from planner.scenario import dump_scenario, load_scenario

CATALOG = load_catalog()
MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def a_variant(name: str = "small", ready: int = 2, **more: Any) -> VariantObservation:
    fields: dict[str, Any] = {
        "name": name, "namespace": "prod", "model": MODEL, "accelerator": "H100", "gpus": 1, "cost": 4.0,
        "target": KubernetesObject(namespace="prod", name=f"{name}-d", scaler="hpa", scaler_name=name),
        "wanted": ready, "ready": ready, "max_replicas": 6,
        "pods": tuple(f"{name}-{number}" for number in range(ready)),
        "nodes": tuple("n0" for _ in range(ready)),
        "engine_arguments": EngineArguments(max_requests=64),
    }  # fmt: skip
    return VariantObservation.model_validate(fields | more)


def an_engine(pod: str = "small-0", **more: Any) -> EngineObservation:
    fields: dict[str, Any] = {
        "instance": f"{pod}:8000", "namespace": "prod", "pod": pod, "variant": pod.rpartition("-")[0], "model": MODEL,
        "age_s": 1.0, "running": 8, "waiting": 0, "kv_usage": 0.4, "kv_tokens": 400_000, "input_tokens": 900.0,
        "output_tokens": 150.0, "request_rps": 2.0,
    }  # fmt: skip
    return EngineObservation.model_validate(fields | more)


def a_pool(name: str = "h100", accelerator: str = "H100", gpus: int = 8, **node: Any) -> Pool:
    return Pool.model_validate(
        {"id": name, "accelerator": accelerator, "nodes": [{"id": "n0", "gpus": gpus} | node]}
    )


def seen(**more: Any) -> Observation:
    fields: dict[str, Any] = {
        "at_s": 1.8e9,
        "variants": (a_variant(),),
        "engines": (an_engine("small-0"), an_engine("small-1")),
        "pools": (a_pool(),),
    }
    return Observation.model_validate(fields | more)


def draft(observation: Observation | None = None, **more: Any) -> Draft:
    return draft_scenario(observation or seen(), CATALOG, **more)


def said(found: Draft) -> str:
    return "\n".join(found.assumptions)


def test_what_was_seen_is_in_the_scenario() -> None:
    scenario = draft().scenario
    (service,) = scenario.services
    (variant,) = service.variants
    (bucket,) = service.buckets
    assert (service.id, service.llm, service.namespace) == (
        "prod-Llama-3.1-8B-Instruct",
        "Llama-3.1-8B",
        "prod",
    )
    assert (bucket.arrival_rps, bucket.input_tokens, bucket.output_tokens) == (4.0, 900, 150)
    assert (variant.accelerator, variant.min_replicas, variant.max_replicas) == ("H100", 1, 6)
    assert variant.object == KubernetesObject(
        namespace="prod", name="small-d", scaler="hpa", scaler_name="small"
    )
    assert variant.engine_arguments.max_requests == 64
    (row,) = scenario.fleet.running
    assert (row.pool, row.replicas, [detail.nodes for detail in row.details]) == (
        "h100",
        2,
        [("n0",), ("n0",)],
    )
    assert row.details[0].kv_usage == 0.4


def test_capacity_is_a_straight_line_through_what_is_served_now() -> None:
    (variant,) = draft().scenario.services[0].variants
    # 2 req/s at 40 % of the cache: 4 req/s at tau = 80 %, 3.5 at the trigger 70 %.
    assert (variant.capacity.surge_rps, variant.capacity.rated_rps) == (4.0, 3.5)
    assert variant.capacity.kv_tokens == 400_000
    assert "as a straight line up to τ: prod-Llama-3.1-8B-Instruct/small" in said(draft())


def test_a_router_knows_better_what_arrives() -> None:
    traffic = TrafficObservation(model=MODEL, namespace="prod", arrival_rps=7.0)
    found = draft(seen(traffic=(traffic,)))
    assert found.scenario.services[0].buckets[0].arrival_rps == 7.0
    assert "no router tells" not in said(found)


def test_a_draft_can_be_planned_and_its_plan_serves_what_arrives() -> None:
    traffic = TrafficObservation(model=MODEL, namespace="prod", arrival_rps=9.0)
    report = plan(draft(seen(traffic=(traffic,))).scenario)
    assert report.answer.solution.status is Status.OPTIMAL
    # 9 req/s over 3.5 req/s for each replica.
    assert sum(report.answer.solution.counts.values()) == 3


def test_a_variant_at_zero_is_a_candidate_with_the_capacity_of_one_like_it() -> None:
    idle = a_variant("spare", 0, cost=1.0)
    (busy, spare) = draft(seen(variants=(a_variant(), idle))).scenario.services[0].variants
    assert spare.capacity.rated_rps == busy.capacity.rated_rps
    assert spare.cost is not None
    assert spare.cost.relative == 1.0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"engines": ()}, "traffic is not known: none is assumed"),
        ({"engines": (an_engine(input_tokens=None),)}, "lengths are not known: 1000 tokens in and 200 out"),
        ({"engines": (an_engine(waiting=5.0),)}, "requests wait, so more arrive than engines finish"),
        ({"engines": (an_engine(kv_usage=0.01),)}, "capacity from profiles and formulas of the catalog"),
        ({"complete": False}, "a source did not answer in full"),
        ({"pools": ()}, "no accelerators were seen: nodes for what runs"),
        ({"variants": (a_variant(nodes=()),)}, "in the first pool of its accelerator"),
        ({"variants": (a_variant(paused=True),)}, "paused: it keeps the replicas that it has"),
        ({"variants": (a_variant(model="acme/new"),)}, "not in the catalog, so that only what was measured"),
        ({"variants": (a_variant(max_replicas=1),)}, "more replicas run than its scaler allows"),
        ({"pools": (a_pool(), a_pool("odd", "X9"))}, "left out, since the catalog does not know its accelerator: pool odd"),
        (
            {"quotas": (QuotaObservation(namespace="prod", resource="requests.nvidia.com/gpu", hard=8, used=5),)},
            "less than the quota, by what pods of others hold of it",
        ),
    ],
)  # fmt: skip
def test_what_was_not_seen_is_said(change: dict[str, Any], sentence: str) -> None:
    found = draft(seen(**change))
    assert sentence in said(found)
    assert sentence in found.scenario.description


def test_what_others_hold_stays_theirs() -> None:
    quota = QuotaObservation(namespace="prod", resource="requests.nvidia.com/gpu", hard=8, used=5)
    other = a_variant("other", 3, accelerator="X9", gpus=2, nodes=("n0", "n0", "n0"))
    found = draft(seen(variants=(a_variant(), other), quotas=(quota,))).scenario
    # Two of the five are ours, three are foreign; and what is left out of the draft holds its GPUs all the same.
    assert found.limits.quotas[0].gpus == 5
    assert found.pools[0].nodes[0].foreign_gpus == 6


def test_engines_alone_need_the_name_of_an_accelerator() -> None:
    engines = (an_engine("a-0", variant=""), an_engine("a-1", variant=""))
    alone = seen(variants=(), pools=(), engines=engines)
    with pytest.raises(ConfigurationError, match="engines alone"):
        draft(alone)
    found = draft(alone, accelerator="H100-SXM")
    assert found.scenario.fleet.running[0].replicas == 2
    assert found.scenario.services[0].variants[0].capacity.rated_rps == 3.5
    assert "one GPU each" in said(found)


def test_variants_without_a_workload_or_an_accelerator_are_left_out() -> None:
    lost, odd = a_variant("lost", 0, wanted=None), a_variant("odd", 0, accelerator="")
    found = draft(seen(variants=(a_variant(), lost, odd)))
    assert [each.id for each in found.scenario.services[0].variants] == ["small"]
    assert "its workload was not found: prod/lost" in said(found)
    assert "nobody names its accelerator: prod/odd" in said(found)
    with pytest.raises(ConfigurationError, match="nothing that is served"):
        draft(seen(variants=(), engines=()))
    away = (Finding(subject="cluster", problem="nobody answers"),)
    with pytest.raises(ConfigurationError, match=r"did not answer \(cluster: nobody answers\)"):
        draft(seen(variants=(), engines=(), findings=away, complete=False))


def test_clusters_keep_apart_what_is_theirs() -> None:
    variants = tuple(a_variant("v", cluster=name) for name in ("east", "west"))
    pools = tuple(a_pool(name).but(cluster=name) for name in ("east", "west"))
    scenario = draft(seen(variants=variants, pools=pools, engines=())).scenario
    assert {(row.variant, row.pool) for row in scenario.fleet.running} == {("v", "east"), ("v-2", "west")}
    assert [each.pools for each in scenario.services[0].variants] == [("east",), ("west",)]


def test_a_recorded_observation_becomes_a_file(tmp_path: Path) -> None:
    recorded, output = tmp_path / "seen.json", tmp_path / "scenario.yaml"
    recorded.write_text(seen().canonical_json(), encoding="utf-8")
    done = CliRunner().invoke(
        app, ["import", "observation", str(recorded), "-o", str(output), "--name", "now"]
    )
    assert done.exit_code == 0, done.output
    assert "assumed: no promises on latency are known" in done.output
    found: Scenario = load_scenario(output)
    assert found == draft(name="now").scenario


def test_what_is_no_observation_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}", encoding="utf-8")
    assert (
        CliRunner().invoke(app, ["import", "observation", str(bad), "-o", str(tmp_path / "x.yaml")]).exit_code
        == 2
    )


def test_absurd_figures_are_bounded() -> None:
    huge = an_engine(request_rps=1e7, kv_usage=0.05, input_tokens=1e15, output_tokens=1e15, kv_tokens=1e15)
    scenario = draft(seen(engines=(huge, huge))).scenario
    assert scenario.services[0].buckets[0].input_tokens == 10**8
    assert scenario.services[0].variants[0].capacity.rated_rps == 1e7


def test_a_node_that_is_alike_many_is_not_taken_for_one() -> None:
    pool = Pool.model_validate(
        {"id": "h100", "accelerator": "H100", "nodes": [Node(id=NodeId("n"), gpus=8, count=2)]}
    )
    found = draft(seen(pools=(pool,)))
    assert found.scenario.fleet.running[0].replicas == 2


def test_a_model_that_the_catalog_does_not_know_is_written_and_read_again(tmp_path: Path) -> None:
    scenario = draft(seen(variants=(a_variant(model="acme/new"),))).scenario
    path = tmp_path / "scenario.yaml"
    path.write_text(dump_scenario(scenario), encoding="utf-8")
    assert load_scenario(path) == scenario
