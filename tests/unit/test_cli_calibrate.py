"""``calibrate`` on the command line: files that it writes are read again, and what is missing is said at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from typer.testing import CliRunner, Result

from models.queueing import QueueingParameters
from planner.catalog import load_catalog
from planner.cli import app
from planner.performance.profile import read_profile
from planner.scenario import load_scenario

TRUE: Final = QueueingParameters(alpha_ms=10.0, beta_ms_per_token=0.04, gamma_ms_per_token=6e-5)
SCENARIO: Final = """
include: found.yaml
services:
  chat:
    llm: Llama-3.1-8B
    traffic: {rate: 2 req/s, input: 1024, output: 512}
    variants: {a: {accelerator: H100}}
pools: {p: {accelerator: H100, nodes: {count: 1, gpus: 8}}}
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def bench(inputs: int, outputs: int, batch: int) -> dict[str, Any]:
    """A run as ``vllm bench serve`` writes it, of a replica with the true parameters."""
    per_token = TRUE.beta_ms_per_token
    read = TRUE.gamma_ms_per_token
    work_p = (per_token + read) * inputs
    work_d = outputs * (per_token + read * (inputs + (outputs + 1) / 2))
    delta = (work_p + work_d) / (1 + outputs)
    prefill = TRUE.alpha_ms + (batch - 1) * delta + work_p
    service = (1 + outputs) * (TRUE.alpha_ms + batch * delta)
    itl = (service - prefill) / outputs
    return {
        "backend": "vllm", "model_id": "meta-llama/Llama-3.1-8B-Instruct", "num_prompts": 100, "completed": 100,
        "request_rate": "inf", "max_concurrency": batch, "duration": 60.0, "total_input_tokens": 100 * inputs,
        "total_output_tokens": 100 * outputs, "request_throughput": 1000 * batch / service,
        "mean_ttft_ms": prefill + itl, "mean_tpot_ms": itl,
    }  # fmt: skip


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    folder.mkdir()
    for inputs, outputs in ((1024, 512), (1024, 2048)):
        for batch in (1, 8, 32, 96):
            (folder / f"{inputs}-{outputs}-{batch}.json").write_text(
                json.dumps(bench(inputs, outputs, batch))
            )
    return folder


def test_a_profile_is_written_and_read_again(reports: Path, tmp_path: Path) -> None:
    profile = tmp_path / "p.yaml"
    result = run("calibrate", reports, "--accelerator", "H100", "--max-batch", "128", "-o", profile)
    assert result.exit_code == 0, result.output
    (row,) = load_catalog(extra=[profile]).queueing
    assert (row.llm, row.accelerator, row.engine, row.parameters.max_batch) == (
        "Llama-3.1-8B",
        "H100",
        "vllm",
        128,
    )
    assert row.parameters.alpha_ms == pytest.approx(10.0, rel=1e-4)
    assert row.parameters.gamma_ms_per_token == pytest.approx(6e-5, rel=1e-4)
    assert row.fit is not None
    assert row.fit.points == 8
    # The same command may replace what it wrote, and nothing else.
    assert run("calibrate", reports, "--accelerator", "H100", "-o", profile).exit_code == 0
    profile.write_text("mine: true\n")
    assert run("calibrate", reports, "--accelerator", "H100", "-o", profile).exit_code == 2


def test_measured_rows_are_written_as_a_profile_table(reports: Path, tmp_path: Path) -> None:
    table = tmp_path / "p.csv"
    assert run("calibrate", reports, "--accelerator", "H100", "-o", table).exit_code == 0
    rows = read_profile(table)
    assert len(rows) == 8
    assert {row.at for row in rows} == {"mean"}


def test_thresholds_are_written_for_a_scenario_to_include(reports: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.yaml"
    arguments = (
        "--accelerator",
        "H100",
        "--thresholds",
        "--slo",
        "itl=14ms",
        "--kv-tokens",
        "200000",
        "--service",
        "chat",
    )
    result = run("calibrate", reports, *arguments, "-o", found)
    assert result.exit_code == 0, result.output
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO)
    service = load_scenario(scenario).services[0]
    written = yaml.safe_load(found.read_text())["services"]["chat"]
    assert service.thresholds.tau_kv == written["thresholds"]["tau_kv"] < 0.5
    assert service.headroom.relative == written["headroom"]["relative"] > 0


def test_json_is_one_object_on_standard_output(reports: Path) -> None:
    result = run("calibrate", reports, "--accelerator", "H100", "--json")
    (found,) = json.loads(result.stdout)["calibrations"]
    assert found["profile"]["parameters"]["alpha_ms"] == pytest.approx(10.0, rel=1e-4)
    assert len(found["points"]) == 8


def test_fits_are_drawn(reports: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="the extra 'plots' is not installed")
    plots = tmp_path / "plots"
    assert run("calibrate", reports, "--accelerator", "H100", "--plots", plots).exit_code == 2
    plots.mkdir()
    assert run("calibrate", reports, "--accelerator", "H100", "--plots", plots).exit_code == 0
    (picture,) = plots.iterdir()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--accelerator NAME"),
        (("--accelerator", "two words"), "--accelerator: found 'two words'"),
        (("--accelerator", "H100", "--thresholds", "--slo", "ttlf=1s"), "did you mean 'ttft'"),
        (("--accelerator", "H100", "-o", "x.txt"), "ends in .yaml"),
        (("--accelerator", "H100", "--json", "-o", "-"), "not both"),
        (("--accelerator", "H100", "--thresholds", "--slo", "itl=1us"), "outside the SLO"),
    ],
    ids=["accelerator", "name", "promise", "suffix", "two outputs", "SLO"],
)
def test_wrong_options_are_said(arguments: tuple[str, ...], words: str, reports: Path) -> None:
    result = run("calibrate", reports, *arguments)
    assert (result.exit_code, words in result.output) == (2, True), result.output


def test_data_that_cannot_tell_a_parameter_end_with_what_would(reports: Path) -> None:
    one = [path for path in sorted(reports.iterdir()) if path.name.startswith("1024-512-8")]
    result = run("calibrate", *one, "--accelerator", "H100")
    assert result.exit_code == 2
    assert "a run with about" in result.output


def test_a_plan_rests_on_what_was_calibrated(reports: Path, tmp_path: Path) -> None:
    assert run("calibrate", reports, "--accelerator", "H100", "-o", tmp_path / "lab.yaml").exit_code == 0
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        SCENARIO.replace(
            "include: found.yaml", "profiles: [lab.yaml]\nperformance: {sources: [queueing]}"
        ).replace("traffic: {rate: 2 req/s", "slo: {itl: 20 ms}\n    traffic: {rate: 20 req/s")
    )
    answer = json.loads(run("plan", scenario, "--json").stdout)
    assert answer["status"] == "OPTIMAL"
    assert answer["allocations"][0]["replicas"] >= 2


def test_how_a_replica_is_spread_may_be_said(reports: Path, tmp_path: Path) -> None:
    profile = tmp_path / "p.yaml"
    spread = ("--tp", "4", "--dp", "2", "--ep", "8", "--precision", "fp8")
    assert run("calibrate", reports, "--accelerator", "H100", *spread, "-o", profile).exit_code == 0
    (row,) = load_catalog(extra=[profile]).queueing
    assert (row.parallelism.label, str(row.precision)) == ("TP4·DP2·EP8", "fp8")


@pytest.mark.parametrize(
    ("arguments", "phrases"),
    [
        (
            ["--slo", "ttft=1s", "--cv", "2", "--startup", "9", "--growth", "0.1", "--replicas", "3", "--kv-tokens",
             "5", "--service", "chat", "-o", "none/p.yaml"],
            ["--slo: found 'ttft=1s' without --thresholds", "--cv: found '2.0' without", "--startup: found '9.0'",
             "--growth: found '0.1'", "--replicas: found '3'", "--kv-tokens: found '5.0'", "--service: found 'chat'",
             "none/p.yaml: found no folder"],
        ),
        (
            ["--thresholds", "--slo", "tft=1s", "--max-batch", "3", "--chunk-tokens", "4", "--form", "phases",
             "--seed", "1"],
            ["--slo: found 'tft=1s'", "--max-batch: found '3' with --thresholds", "--chunk-tokens: found '4'",
             "--form: found 'phases'", "--seed: found '1'"],
        ),
        (["-o", "rows.csv", "--seed", "1"], ["--seed: found '1' for a file of measured rows"]),
    ],
)  # fmt: skip
def test_options_that_would_say_nothing_are_refused_at_once(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], phrases: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("calibrate", reports, "--accelerator", "H100", *arguments)
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert [phrase for phrase in phrases if said.count(phrase) != 1] == [], done.output
    assert not Path("rows.csv").exists()
