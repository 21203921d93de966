"""Mélange's input and AIBrix's profiles become scenarios; what they cannot say or cannot be is named at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.scenario import Mode, Scenario
from models.workload import Routing, Slo
from planner.catalog import Catalog, load_catalog
from planner.errors import ConfigurationError
from planner.importers.aibrix import import_aibrix
from planner.importers.melange import INPUTS, OUTPUTS, import_melange
from planner.importers.rate_grids import Named, Traffic

NAMED = Named("Llama-3.1-8B", {"big": "A100-80GB"})


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def write(path: Path, data: Any) -> Path:
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def a_melange(**changes: Any) -> dict[str, Any]:
    """Two inputs, two outputs; nothing carries the longest."""
    gpus = {
        "A10G": {"cost": 1.01, "tputs": [[2, 1], [0.5, 0]]},
        "big": {"cost": 3.67, "tputs": [[10, 5], [2, 0]]},
    }
    shares = [[0.25, 0.5], [0.25, 0.0]]
    return {
        "gpu_info": gpus,
        "workload_distribution": shares,
        "total_request_rate": 8,
        "slice_factor": 4,
    } | changes


def melange(folder: Path, catalog: Catalog, **changes: Any) -> Scenario:
    path = write(folder / "demand.json", a_melange(**changes))
    return import_melange(path, catalog, named=NAMED, inputs=(100, 1000), outputs=(50, 500))


def an_aibrix(gpu: str = "big", **changes: Any) -> dict[str, Any]:
    """Three outputs, two inputs: rows are outputs."""
    table = [[10.0, 8.0], [5.0, 4.0], [1.0, 0.0]]
    profile = {"gpu": gpu, "cost": 2.5, "tputs": table, "indexes": [[4, 8, 16], [128, 256]]}
    return profile | {"slos": {"percentile": 99, "e2e": 5.0}, "created": 1.7e9} | changes


def test_shares_become_rates_and_grids_become_variants(tmp_path: Path, catalog: Catalog) -> None:
    scenario = melange(tmp_path, catalog)
    (service,) = scenario.services
    assert (scenario.mode, service.routing) == (Mode.UNCONSTRAINED, Routing.BY_LENGTH)
    rates = {(b.input_tokens, b.output_tokens): b.arrival_rps for b in service.buckets}
    assert rates == {(100, 50): 2.0, (100, 500): 4.0, (1000, 50): 2.0}
    assert [(v.id, v.accelerator, v.cost and v.cost.usd_per_h) for v in service.variants] == [
        ("A10G", "A10G", 1.01),
        ("big", "A100-80GB", 3.67),
    ]
    shapes = {(r.input_tokens, r.output_tokens): r.rated_rps for r in service.variants[0].capacity.by_shape}
    assert shapes == {(100, 50): 2, (100, 500): 1, (1000, 50): 0.5, (1000, 500): 0}
    assert {pool.accelerator for pool in scenario.pools} == {"A10G", "A100-80GB"}


def test_the_published_lengths_are_used_where_the_table_has_their_size(
    tmp_path: Path, catalog: Catalog
) -> None:
    table = [[1.0] * len(OUTPUTS) for _ in INPUTS]
    shares = [[1 / 60] * len(OUTPUTS) for _ in INPUTS]
    path = write(
        tmp_path / "m.json",
        a_melange(gpu_info={"A10G": {"cost": 1, "tputs": table}}, workload_distribution=shares),
    )
    (service,) = import_melange(path, catalog, named=NAMED).services
    assert len(service.buckets) == 60
    small = write(tmp_path / "n.json", a_melange())
    with pytest.raises(ConfigurationError, match=r"a table of 2 x 2 cells.*--inputs and --outputs"):
        import_melange(small, catalog, named=NAMED)


@pytest.mark.parametrize(
    ("changes", "phrases"),
    [
        ({"total_request_rate": -1}, ["total_request_rate: found -1"]),
        ({"total_request_rate": float("nan")}, ["total_request_rate: found nan"]),
        ({"total_request_rate": True}, ["total_request_rate: found True"]),
        ({"total_request_rate": 0}, ["no traffic"]),
        ({"workload_distribution": [[0.5, 0.1], [0.1, 0.1]]}, ["shares that add up to 0.8"]),
        ({"workload_distribution": [[1.0, 0], [0]]}, ["workload_distribution[1]", "2 rates"]),
        ({"workload_distribution": 3}, ["workload_distribution: found 3", "2 rows"]),
        ({"gpu_info": []}, ["gpu_info", "an object"]),
        ({"gpu_info": {"A10G": 4}}, ["gpu_info.A10G: found 4"]),
        (
            {"gpu_info": {"A10G": {"cost": "1", "tputs": [[1, -1], [1, float("inf")]]}}},
            ["gpu_info.A10G.cost", "tputs[0][1]: found -1", "tputs[1][1]: found inf"],
        ),
        (
            {"gpu_info": {"A11G": {"cost": 1, "tputs": [[1, 1], [1, 1]]}}},
            ["A11G", "--accelerator A11G=NAME", "did you mean 'A10G'"],
        ),
        ({"surprise": 1}, ["the unknown key 'surprise'"]),
    ],
)
def test_what_cannot_be_is_named(
    tmp_path: Path, catalog: Catalog, changes: dict[str, Any], phrases: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        melange(tmp_path, catalog, **changes)
    assert all(phrase in str(caught.value) for phrase in phrases), str(caught.value)


def test_all_problems_of_a_file_come_at_once(tmp_path: Path, catalog: Catalog) -> None:
    path = write(
        tmp_path / "m.json",
        a_melange(total_request_rate="x", gpu_info={"Z": {"cost": -1, "tputs": [[1, 1], [1, "y"]]}}),
    )
    with pytest.raises(ConfigurationError) as caught:
        import_melange(path, catalog, named=Named("nobody", {}), inputs=(1, 2), outputs=(1, 2))
    places = {finding.path for finding in caught.value.findings}
    assert {
        "total_request_rate",
        "gpu_info.Z.cost",
        "gpu_info.Z.tputs[1][1]",
        "--llm",
        "Z",
    } <= places


def test_a_missing_field_is_named(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(ConfigurationError, match="total_request_rate: found nothing"):
        import_melange(write(tmp_path / "m.json", {"gpu_info": {}}), catalog, named=NAMED)


def test_a_profile_has_outputs_in_rows(tmp_path: Path, catalog: Catalog) -> None:
    path = write(tmp_path / "p.json", an_aibrix())
    scenario, notes = import_aibrix([path], catalog, named=NAMED, traffic=[Traffic(256, 8, 3.0)])
    (service,) = scenario.services
    shapes = {(r.input_tokens, r.output_tokens): r.rated_rps for r in service.variants[0].capacity.by_shape}
    assert shapes[128, 16] == 1.0
    assert shapes[256, 4] == 8.0
    assert shapes[256, 16] == 0.0
    assert service.slo == Slo(e2e_s=5.0, at=99.0)
    assert notes == ()


def test_promises_without_a_counterpart_are_told(tmp_path: Path, catalog: Catalog) -> None:
    said = {"percentile": 0, "ttft": 1.0, "tpot": 0.05, "tpat": 0.01}
    path = write(tmp_path / "p.json", an_aibrix(slos=said))
    scenario, notes = import_aibrix([path], catalog, named=NAMED, traffic=[Traffic(1, 1, 1.0)])
    assert scenario.services[0].slo == Slo(ttft_s=1.0, itl_s=0.05, at="mean")
    assert len(notes) == 1
    assert "tpat" in notes[0]


@pytest.mark.parametrize(
    ("profiles", "phrases"),
    [
        ([an_aibrix(), an_aibrix()], ["big in several files"]),
        ([an_aibrix(), an_aibrix("A10G", slos={"e2e": 1})], ["other promises"]),
        ([an_aibrix(indexes=[[4, 8, 16]])], ["indexes", "two lists"]),
        ([an_aibrix(indexes=[[8, 4, 16], [128, 256]])], ["indexes[0]", "rising"]),
        ([an_aibrix(tputs=[[1, 2]])], ["tputs", "3 rows"]),
        ([an_aibrix(gpu=7)], ["gpu: found 7"]),
        ([an_aibrix(slos=[1])], ["slos"]),
        ([an_aibrix("unknown-gpu")], ["--accelerator unknown-gpu=NAME"]),
        ([{"gpu": "big"}, {"cost": 1}], ["cost: found nothing", "gpu: found nothing"]),
    ],
)
def test_what_a_profile_cannot_be_is_named(
    tmp_path: Path, catalog: Catalog, profiles: list[Any], phrases: list[str]
) -> None:
    paths = [write(tmp_path / f"{index}.json", profile) for index, profile in enumerate(profiles)]
    with pytest.raises(ConfigurationError) as caught:
        import_aibrix(paths, catalog, named=NAMED, traffic=[Traffic(1, 1, 1.0)])
    assert all(phrase in str(caught.value) for phrase in phrases), str(caught.value)
