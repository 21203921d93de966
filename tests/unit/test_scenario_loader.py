"""Scenario files in the forms that people write, and what they mean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest

from models.scenario import Mode, ObjectiveLevel, Scenario
from models.variant import Cost, Parallelism
from planner.errors import ConfigurationError
from planner.scenario import KINDS, dump_scenario, load_scenario, parse_scenario, schema

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = re.findall(
    r"```yaml\n(.*?)```", (ROOT / "docs/scenario.md").read_text(encoding="utf-8"), re.DOTALL
)
SHIPPED: Final = sorted((ROOT / "data/scenarios").glob("*.yaml"))


def a_scenario(
    *, service: str = "", variant: str = "", pool: str = "nodes: {gpus: 8}", top: str = ""
) -> Scenario:
    """One service, one variant, one pool, with something more at each place."""
    return parse_scenario(a_text(service=service, variant=variant, pool=pool, top=top))


def a_text(*, service: str = "", variant: str = "", pool: str = "nodes: {gpus: 8}", top: str = "") -> str:
    return (
        "services: {chat: {llm: Llama-3.1-8B, "
        f"{'' if 'traffic' in service else 'traffic: {rate: 1, input: 10, output: 10}, '}"
        f"variants: {{v: {{accelerator: H100, {variant}}}}}, {service}}}}}\n"
        f"pools: {{p: {{accelerator: H100, {pool}}}}}\n{top}\n"
    )


def value_at(scenario: Scenario, path: str) -> Any:
    value: Any = scenario.model_dump(mode="json")
    for step in path.split("."):
        value = value[int(step)] if step.isdecimal() else value[step]
    return value


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_of_the_page_loads_and_survives_its_long_form(text: str) -> None:
    scenario = parse_scenario(text)
    assert parse_scenario(dump_scenario(scenario)) == scenario


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_scenario_survives_its_long_form(path: Path) -> None:
    scenario = load_scenario(path)
    assert parse_scenario(dump_scenario(scenario), name=path.stem) == scenario


def test_the_papers_two_variants_have_their_costs_and_64_gpus() -> None:
    scenario = load_scenario(ROOT / "data/scenarios/01-two-variants.yaml")
    variants = {v.accelerator: v for v in scenario.services[0].variants}
    assert {name: v.cost for name, v in variants.items()} == {
        "A100-80GB": Cost(usd_per_h=1.0),
        "H100": Cost(usd_per_h=2.5),
    }
    assert {v.id: v.parallelism.gpus for v in variants.values()} == {"va-a100": 4, "va-h100": 2}
    assert sum(node.gpus * node.count for pool in scenario.pools for node in pool.nodes) == 64


@pytest.mark.parametrize(
    ("service", "path", "value"),
    [
        ("slo: {ttft: 3 s, tpot: 50 ms, e2e: 1 min, at: p99.9}", "slo", {"ttft_s": 3.0, "itl_s": 0.05, "e2e_s": 60.0, "at": 99.9}),
        ("slo: {ttft_s: 3, at: 95th}", "slo.at", 95.0),
        ("slo: {ttft: 3, at: mean}", "slo.at", "mean"),
        ("headroom: 20 %", "headroom.relative", 0.2),
        ("headroom: 0.3", "headroom.relative", 0.3),
        ("headroom: 180 req/min", "headroom.burst_rps", 3.0),
        ("headroom: 50k tokens", "headroom.kv_tokens", 50000.0),
        ("headroom: {burst: 3 req/s}", "headroom.burst_rps", 3.0),
        ("traffic: {rate: 12 rps, input: 4096 tokens, output: 9}", "buckets", [
            {"id": "all", "arrival_rps": 12.0, "input_tokens": 4096, "output_tokens": 9, "cached_share": 0.0}]),
        ("traffic: {a: {rate: 1, input: 1, output: 2}, b: {rate: 3, input: 1, output: 2}}", "buckets.1.id", "b"),
        ("traffic: [{rate: 1, input: 1, output: 2}]", "buckets.0.id", "all-0"),
        ("min: 1, max: 4", "max_replicas", 4),
        ("places: {allow_accelerators: H100}", "places.allow_accelerators", ["H100"]),
        ("places: {deny_accelerators: [a100]}", "places.deny_accelerators", ["A100-80GB"]),
        ("survive: 80 %", "survive.share", 0.8),
    ],
)  # fmt: skip
def test_short_forms_of_a_service(service: str, path: str, value: object) -> None:
    assert value_at(a_scenario(service=service), f"services.0.{path}") == value


@pytest.mark.parametrize(
    ("variant", "path", "value"),
    [
        ("tp: 4, pp: 2", "parallelism", {"tp": 4, "pp": 2, "dp": 1, "ep": 1}),
        ("parallelism: tp4", "parallelism.tp", 4),
        ("parallelism: 8", "parallelism.tp", 8),
        ('parallelism: "TP4·PP2"', "parallelism", {"tp": 4, "pp": 2, "dp": 1, "ep": 1}),
        ("parallelism: dp8-ep8", "parallelism", {"tp": 1, "pp": 1, "dp": 8, "ep": 8}),
        ("parallelism: {tp: 2}", "parallelism.tp", 2),
        ("quantization: fp8", "quantization", {"weights": "fp8", "kv_cache": "bf16"}),
        ("weights: fp8, kv_cache: fp8", "quantization", {"weights": "fp8", "kv_cache": "fp8"}),
        ("cost: 2.5 $/h", "cost", {"relative": None, "usd_per_h": 2.5}),
        ("cost: {relative: 1.0}", "cost", {"relative": 1.0, "usd_per_h": None}),
        ("capacity: 0.5 req/s", "capacity.rated_rps", 0.5),
        ("capacity: {rated: 1, surge: 2, kv: 8k, power: 1.2 kW}", "capacity.power_w", 1200.0),
        ("startup: 2 min", "startup_s", 120.0),
        ("pools: p", "pools", ["p"]),
        ("object: my-deployment", "object.name", "my-deployment"),
    ],
)  # fmt: skip
def test_short_forms_of_a_variant(variant: str, path: str, value: object) -> None:
    assert value_at(a_scenario(variant=variant), f"services.0.variants.0.{path}") == value


def a_node(**fields: object) -> dict[str, object]:
    return {
        "gpus": 8,
        "count": 1,
        "foreign_gpus": 0,
        "cordoned": False,
        "ready": True,
        "tainted": False,
        "fabric_domain": None,
    } | fields


@pytest.mark.parametrize(
    ("pool", "path", "value"),
    [
        ("nodes: {count: 4, gpus: 8}", "nodes", [a_node(id="p", count=4)]),
        ("nodes: 4", "nodes", [a_node(id="p", gpus=4)]),
        ("nodes: {n1: {gpus: 8, foreign: 3}, n2: {gpus: 8, ready: no}}", "nodes", [
            a_node(id="n1", foreign_gpus=3), a_node(id="n2", ready=False)]),
        ("nodes: [{gpus: 8}, {id: x, gpus: 8, cordoned: yes}]", "nodes", [a_node(id="p-0"), a_node(id="x", cordoned=True)]),
        ("nodes: [8, 8]", "nodes", [a_node(id="p-0"), a_node(id="p-1")]),
        ("price: 2 $/h, market: spot", "offering", {"market": "spot", "usd_per_h": 2.0}),
        ("offering: reserved", "offering.market", "reserved"),
        ("growth: {gpus: 8, max: 3, price: 48 $/day}", "growth", {
            "gpus_per_node": 8, "max_nodes": 3, "usd_per_node_h": 2.0, "overhead_w": 0.0}),
        ("region: no", "region", "no"),
    ],
)  # fmt: skip
def test_short_forms_of_a_pool(pool: str, path: str, value: object) -> None:
    assert value_at(a_scenario(pool=pool), f"pools.0.{path}") == value


@pytest.mark.parametrize(
    ("top", "path", "value"),
    [
        ("current: {chat/v@p: 3}", "fleet.running.0.replicas", 3),
        ("current: [{service: chat, variant: v, pool: p, replicas: 3}]", "fleet.running.0.replicas", 3),
        ("current: {chat/v@p: {replicas: 1, details: [{nodes: p, kv: 70 %}]}}", "fleet.running.0.details.0", {
            "nodes": ["p"], "kv_usage": 0.7, "queue": None}),
        ("limits: {power: 40 kW}", "limits.power", [{"id": "fleet", "cap_w": 40000.0, "pools": ["p"]}]),
        ("limits: {power: {cap: 40 kW}}", "limits.power.0.pools", ["p"]),
        ("limits: {power: {row: {cap: 1 kW, pools: p}}}", "limits.power", [{"id": "row", "cap_w": 1000.0, "pools": ["p"]}]),
        ("limits: {quotas: {q: {gpus: 3, accelerator: H100-SXM}}}", "limits.quotas.0.accelerator", "H100"),
        ("limits: {spend: 120 $/h, max_changes: 3}", "limits.spend_usd_per_h", 120.0),
        ("objective: [cost, power]", "objective.levels", ["cost", "power"]),
        ("objective: {order: [cost], horizon: 2 d}", "objective.horizon_h", 48.0),
        ("name: Friday", "name", "Friday"),
    ],
)  # fmt: skip
def test_short_forms_at_the_top(top: str, path: str, value: object) -> None:
    assert value_at(a_scenario(top=top), path) == value


@pytest.mark.parametrize("word", ["no", "on", "yes", "12:30", "0x10", "2024-01-01", '"1e3"', '"42"', "1.2.3"])
def test_words_that_older_yaml_bends_are_names_here(word: str) -> None:
    text = f"""
services:
  {word}:
    llm: Llama-3.1-8B
    traffic: {{rate: 010, input: 1e3, output: 10}}
    variants: {{v: {{accelerator: H100}}}}
pools: {{p: {{accelerator: H100, nodes: 8}}}}
"""
    (service,) = parse_scenario(text).services
    assert service.id == word.strip('"')
    assert (service.arrival_rps, service.buckets[0].input_tokens) == (10, 1000)


def test_ids_may_hold_slashes_where_something_runs() -> None:
    text = a_text(top="current: {a/b/v@p: 2}").replace("chat:", "a/b:")
    (running,) = parse_scenario(text).fleet.running
    assert (running.service, running.variant, running.pool) == ("a/b", "v", "p")


def test_anchors_and_merge_keys_work_and_the_nearer_value_wins() -> None:
    text = """
services:
  chat:
    llm: Llama-3.1-8B
    traffic: {rate: 1, input: 10, output: 10}
    variants:
      one: &one {accelerator: H100, tp: 2, startup: 60}
      two: {<<: *one, tp: 4}
pools: {p: {accelerator: H100, nodes: 8}}
"""
    one, two = parse_scenario(text).services[0].variants
    assert (one.parallelism.tp, two.parallelism.tp, two.startup_s) == (2, 4, 60)


def test_defaults_fill_what_is_not_said_and_do_not_mix_units_or_ways() -> None:
    top = """
defaults:
  service: {slo: {ttft_s: 2, itl: 40 ms}, headroom: 20 %}
  variant: {tp: 2, cost: {relative: 3}}
  pool: {nodes: {count: 2, gpus: 8}}
"""
    scenario = a_scenario(service="slo: {ttft: 1 s}, headroom: {burst: 3}", variant="pp: 2", pool="", top=top)
    (service,), (pool,) = scenario.services, scenario.pools
    assert (service.slo.ttft_s, service.slo.itl_s) == (1, 0.04)
    assert (service.headroom.burst_rps, service.headroom.relative) == (3, None)
    assert service.variants[0].parallelism == Parallelism(tp=2, pp=2)
    assert service.variants[0].cost == Cost(relative=3)
    assert [(node.id, node.count) for node in pool.nodes] == [("p", 2)]


def test_the_scenarios_own_entries_go_before_the_catalogs() -> None:
    top = "accelerators: {mine: {vendor: me, memory: 1 GiB, aliases: [H100]}}\nmode: unconstrained\nobjective: cost"
    scenario = a_scenario(top=top)
    assert scenario.pools[0].accelerator == "mine"
    assert (scenario.mode, scenario.objective.levels) == (Mode.UNCONSTRAINED, (ObjectiveLevel.COST,))


def test_a_file_without_a_name_is_called_as_the_file(tmp_path: Path) -> None:
    path = tmp_path / "friday.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + a_text().encode())
    assert load_scenario(path).name == "friday"


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_a_schema_of_every_kind(kind: str) -> None:
    assert schema(kind)["$id"] == f"fleetplan/1/{kind}"
    assert schema(kind)["properties"]


def test_an_unknown_kind_names_the_nearest_one() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'scenario'"):
        schema("scenarios")
