"""Inferno's system description as a scenario: what becomes what, and what is wrong with files told at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from models.scenario import Mode, Scenario
from planner.catalog import load_catalog
from planner.errors import ConfigurationError
from planner.importers.inferno import import_inferno
from planner.scenario import dump_scenario, load_scenario
from planner.sizing import size

ACCELERATORS: Final = [
    {"name": "A100", "type": "A100", "multiplicity": 1, "memSize": 80, "memBW": 2000,
     "power": {"idle": 150, "full": 400}, "cost": 40.0},
    {"name": "2xA100", "type": "A100", "multiplicity": 2, "memSize": 160, "memBW": 4000,
     "power": {"idle": 300, "full": 800}, "cost": 80.0},
    {"name": "L4", "type": "L4", "memSize": 24, "cost": 6},
]  # fmt: skip
MODELS: Final = [
    {"name": "llama_7b", "acc": "A100", "accCount": 1, "maxBatchSize": 128, "atTokens": 512,
     "perfParms": {"alpha": 11.69, "beta": 0.063, "gamma": 0.00196875}},
    {"name": "llama_7b", "acc": "2xA100", "accCount": 3, "maxBatchSize": 300, "atTokens": 512,
     "perfParms": {"alpha": 6.0, "beta": 0.03, "gamma": 0.001}},
    {"name": "llama_7b", "acc": "L4", "accCount": 1, "maxBatchSize": 38, "atTokens": 512,
     "perfParms": {"alpha": 77.93, "beta": 0.42, "gamma": 0.013125}},
]  # fmt: skip
CLASSES: Final = [
    {"name": "Premium", "priority": 1,
     "modelTargets": [{"model": "llama_7b", "slo-itl": 40, "slo-ttft": 1000, "slo-tps": 0}]},
    {"name": "Free", "priority": 10, "modelTargets": [{"model": "llama_7b"}]},
]  # fmt: skip
LOAD: Final = {"arrivalRate": 120, "AvgInTokens": 128, "avgOutTokens": 1024}


def a_server(name: str = "Premium-llama", **fields: Any) -> dict[str, Any]:
    return {"name": name, "class": "Premium", "model": "llama_7b", "currentAlloc": {"load": LOAD}} | fields


def documents(**changes: Any) -> dict[str, Any]:
    return {
        "accelerators": ACCELERATORS,
        "count": [{"type": "A100", "count": 16}, {"type": "L4", "count": 0}],
        "models": MODELS,
        "serviceClasses": CLASSES,
        "servers": [a_server()],
        "optimizer": {"unlimited": False, "heterogeneous": False},
    } | changes


def files(folder: Path, **changes: Any) -> list[Path]:
    """One file per key; a value of None leaves the file out."""
    paths = []
    for key, value in documents(**changes).items():
        if value is not None:
            path = folder / f"x_{key}.json"
            path.write_text(value if isinstance(value, str) else json.dumps({key: value}), encoding="utf-8")
            paths.append(path)
    return paths


@pytest.fixture
def imported(tmp_path: Path) -> Callable[..., Scenario]:
    return lambda **changes: import_inferno(files(tmp_path, **changes), name="small")


def test_a_server_becomes_a_service(imported: Callable[..., Scenario]) -> None:
    scenario = imported()
    (service,) = scenario.services
    (bucket,) = service.buckets
    assert (service.id, service.llm, service.priority) == ("Premium-llama", "llama_7b", 100)
    assert (bucket.arrival_rps, bucket.input_tokens, bucket.output_tokens) == (2.0, 128, 1024)
    assert (service.slo.ttft_s, service.slo.itl_s, service.slo.at) == (1.0, 0.04, "mean")
    assert service.max_variants == 1
    assert scenario.mode is Mode.CONSTRAINED


def test_a_model_on_an_accelerator_becomes_a_variant(imported: Callable[..., Scenario]) -> None:
    variants = {variant.id: variant for variant in imported().services[0].variants}
    six = variants["2xA100"]
    assert (six.accelerator, six.parallelism.gpus, six.gpus_per_pod) == ("A100", 6, 1)
    assert six.cost is not None
    assert six.cost.usd_per_h == pytest.approx(2.4)
    assert six.queueing is not None
    assert (six.queueing.max_batch, six.queueing.at_tokens, six.queueing.max_queue) == (300, 512, 0)


def test_units_of_a_type_are_one_pool(imported: Callable[..., Scenario]) -> None:
    scenario = imported()
    assert {pool.id: sum(node.gpus for node in pool.nodes) for pool in scenario.pools} == {
        "A100": 16,
        "L4": 0,
    }
    a100 = next(each for each in scenario.accelerators if each.id == "A100")
    assert (a100.memory_bytes, a100.memory_bandwidth, a100.tdp_w, a100.idle_w) == (80e9, 2e12, 400, 150)
    assert a100.usd_per_h == pytest.approx(0.4)


def test_priorities_turn_round(imported: Callable[..., Scenario]) -> None:
    servers = [a_server(), a_server("Free-llama", **{"class": "Free"})]
    premium, free = imported(servers=servers).services
    assert premium.priority > free.priority
    assert free.slo.ttft_s is None


@pytest.mark.parametrize(
    ("tuning", "mode", "most"),
    [
        ({"unlimited": True, "heterogeneous": False}, Mode.UNCONSTRAINED, 1),
        ({"unlimited": False, "heterogeneous": True}, Mode.CONSTRAINED, None),
        (None, Mode.CONSTRAINED, None),
    ],
)
def test_flags_of_the_optimizer(
    tuning: dict[str, bool] | None, mode: Mode, most: int | None, imported: Callable[..., Scenario]
) -> None:
    scenario = imported(optimizer=tuning)
    assert (scenario.mode, scenario.services[0].max_variants) == (mode, most)


def test_what_runs_is_the_fleet_and_may_be_kept(imported: Callable[..., Scenario]) -> None:
    now = {"accelerator": "2xA100", "numReplicas": 2, "load": LOAD}
    moving = imported(servers=[a_server(currentAlloc=now)])
    (running,) = moving.fleet.running
    assert (running.service, running.variant, running.pool, running.replicas) == (
        "Premium-llama", "2xA100", "A100", 2,
    )  # fmt: skip
    kept = imported(servers=[a_server(currentAlloc=now, keepAccelerator=True, minNumReplicas=1)])
    assert [variant.id for variant in kept.services[0].variants] == ["2xA100"]
    assert kept.services[0].min_replicas == 1


def test_limits_of_a_server_go_before_those_of_its_model(imported: Callable[..., Scenario]) -> None:
    queueing = imported(servers=[a_server(maxBatchSize=17, maxQueueSize=40)]).services[0].variants[0].queueing
    assert queueing is not None
    assert (queueing.max_batch, queueing.at_tokens, queueing.max_queue) == (17, None, 40)


def test_tokens_per_second_are_a_demand(imported: Callable[..., Scenario]) -> None:
    classes = [{"name": "Premium", "modelTargets": [{"model": "llama_7b", "slo-tps": 4096}]}]
    assert imported(serviceClasses=classes).services[0].buckets[0].arrival_rps == 4.0


def test_case_of_keys_does_not_count_and_answers_are_passed_over(tmp_path: Path) -> None:
    folded = {key.upper(): value for key, value in documents().items()}
    one, answer = tmp_path / "system.json", tmp_path / "solution.json"
    one.write_text(json.dumps(folded))
    answer.write_text(json.dumps({"allocations": {}}))
    assert import_inferno([one, answer]).services[0].id == "Premium-llama"


def test_the_scenario_loads_again_and_can_be_sized(imported: Callable[..., Scenario], tmp_path: Path) -> None:
    scenario = imported()
    path = tmp_path / "scenario.yaml"
    path.write_text(dump_scenario(scenario), encoding="utf-8")
    assert load_scenario(path) == scenario
    problem = size(scenario, load_catalog())
    assert {candidate.variant for candidate in problem.candidates} == {"A100", "2xA100"}
    assert {rejected.variant for rejected in problem.rejected} == {"L4"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"servers": None}, ["found no file with 'servers'"]),
        ({"servers": "{"}, ["x_servers.json:1"]),
        ({"servers": "[]"}, ["found no object"]),
        ({"servers": '{"severs": []}'}, ["the key 'severs'", "did you mean 'servers'?"]),
        ({"servers": {"a": 1}}, ["servers: found no list"]),
        ({"servers": [a_server(model="llama_8b")]}, ["servers[0].model: found 'llama_8b'", "did you mean 'llama_7b'?"]),
        ({"servers": [a_server(**{"class": "Premum"})]}, ["servers[0].class: found 'Premum'"]),
        ({"servers": [a_server(), a_server()]}, ["'Premium-llama' more than once"]),
        ({"servers": [a_server(currentAlloc={"load": {"arrivalRate": -1, "avgInTokens": 1}})]},
         ["arrivalrate: found -1", "avgouttokens: found nothing"]),
        ({"models": [MODELS[0] | {"acc": "A10"}]}, ["models[0].acc: found 'A10'"]),
        ({"models": [MODELS[0] | {"perfParms": {"alpha": -1, "beta": "x"}}]},
         ["alpha: found -1", "beta: found 'x'", "gamma: found nothing"]),
        ({"models": [MODELS[0] | {"maxBatchSize": 0}]}, ["maxbatchsize: found 0"]),
        ({"accelerators": [ACCELERATORS[0] | {"cost": float("nan")}]}, ["accelerators[0].cost: found nan"]),
        ({"accelerators": [ACCELERATORS[0] | {"multiplicity": 10**9}]}, ["multiplicity: found 1000000000"]),
        ({"serviceClasses": [CLASSES[0] | {"modelTargets": []}]}, ["has no targets"]),
        ({"count": [{"type": "A100", "count": 1.5}]}, ["count[0].count: found 1.5"]),
        ({"servers": [a_server("!!")]}, ["services.0.id: found '!!'"]),
        ({"servers": [a_server(currentAlloc={"accelerator": "H100", "numReplicas": 1, "load": LOAD})]},
         ["currentAlloc.accelerator: found 'H100'"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(
    changes: dict[str, Any], says: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        import_inferno(files(tmp_path, **changes))
    for part in says:
        assert part in str(caught.value)


def test_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    paths = files(tmp_path, servers=[{"name": "x"}], models=[{"name": "y"}])
    with pytest.raises(ConfigurationError) as caught:
        import_inferno([*paths, tmp_path / "missing.json"])
    text = str(caught.value)
    assert all(part in text for part in ("x_servers.json", "x_models.json", "missing.json"))


def test_the_same_list_in_two_files_is_refused(tmp_path: Path) -> None:
    paths = files(tmp_path)
    again = tmp_path / "again.json"
    again.write_text(json.dumps({"servers": [a_server("other")]}))
    with pytest.raises(ConfigurationError, match=r"which .* has too"):
        import_inferno([*paths, again])
