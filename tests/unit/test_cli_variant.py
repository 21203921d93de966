"""``catalog show VARIANT --at`` and ``catalog list`` of a scenario: figures with their origin, and errors that help."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner, Result

from planner.cli import app

ROOT: Final = Path(__file__).parents[2]
SCENARIO: Final = ROOT / "data" / "scenarios" / "01-two-variants.yaml"
QUEUEING: Final = """
queueing:
- {llm: Qwen2.5-14B, accelerator: H100, parameters: {alpha_ms: 10.6, beta_ms_per_token: 0.042, gamma_ms_per_token: 5.8e-5}, source: lab}
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def shown(*arguments: str | Path) -> str:
    result = run("catalog", "show", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_measured_and_modeled_figures_stand_apart_each_with_its_origin() -> None:
    text = shown("Qwen3-32B@H100:tp2,fp8", "--at", "1024,512,ttft=1s,itl=30ms")
    assert "Qwen3-32B on H100 TP2 fp8" in text
    assert "planning uses  measured" in text
    assert "measured: P1 at 1024/512" in text
    assert "modeled: roofline" in text
    assert "--- SLO: TTFT ≤ 1 s, ITL ≤ 30 ms on average ---" in text
    assert "KV cache of the replica:" in text


def test_json_holds_the_same_with_the_question() -> None:
    found = json.loads(shown("Qwen3-32B@H100:tp2,fp8", "--at", "1k,512,itl=30ms,at=p95", "--json"))
    question = found["question"]
    assert (question["input_tokens"], question["slo"]["itl_s"], question["slo"]["at"]) == (1000, 0.03, 95.0)
    memory = found["memory"]
    parts = sum(memory[name] for name in ("weight_bytes", "kv_bytes", "reserve_bytes", "unused_bytes"))
    assert parts == pytest.approx(memory["memory_bytes"], abs=2)
    assert {row["origin"] for row in found["loads"]} == {"measured", "modeled"}
    for source in ("measured", "queueing", "roofline"):
        rows = [row for row in found["loads"] if row["source"].startswith(source)]
        assert [row["in_flight"] for row in rows] == sorted(row["in_flight"] for row in rows)


def test_a_calibrated_profile_is_asked(tmp_path: Path) -> None:
    profile = tmp_path / "lab.yaml"
    profile.write_text(QUEUEING)
    arguments = ("Qwen2.5-14B@H100", "--at", "1024,512,itl=20ms,at=p95", "--profile", profile)
    found = json.loads(shown(*arguments, "--sources", "queueing", "--json"))
    assert found["answer"]["origin"] == "modeled"
    assert "lab" in found["answer"]["source"]
    rows = [row for row in found["loads"] if row["source"].startswith("queueing model")]
    assert [row["keeps"] for row in rows] == sorted((row["keeps"] for row in rows), reverse=True)
    assert {row["keeps"] for row in rows} == {True, False}


def test_what_does_not_fit_says_by_how_much_and_is_rated_by_nobody() -> None:
    found = json.loads(shown("Llama-3.1-70B@H100", "--at", "1024,512", "--json"))
    assert found["memory"]["missing_bytes"] > 60e9
    assert all("reason" in answer["answer"] for answer in found["answers"])
    assert [row for row in found["loads"] if row["origin"] == "modeled"] == []
    assert "are missing" in shown("Llama-3.1-70B@H100", "--at", "1024,512")


def test_a_shape_that_is_refused_has_no_curve() -> None:
    at = ("Llama-3.1-70B@H100:tp4", "--at", "500000,1024")
    found = json.loads(shown(*at, "--json"))
    assert found["answer"]["reason"] == "context_too_long"
    assert found["loads"] == []
    assert "Latency over load" not in shown(*at)


def test_no_more_is_in_flight_than_the_memory_holds() -> None:
    found = json.loads(shown("Llama-3.1-70B@H100:tp4", "--at", "100000,1024", "--json"))
    assert found["memory"]["requests"] == 4
    assert [row["in_flight"] for row in found["loads"] if row["source"] == "roofline"] == [1, 4]


@pytest.mark.parametrize("name", ["va-h100", "chat/va-h100"])
def test_a_variant_of_a_scenario_is_asked_about_its_own_traffic(name: str) -> None:
    found = json.loads(shown(name, "--scenario", SCENARIO, "--json"))
    assert found["question"]["variant"]["id"] == "va-h100"
    assert found["question"]["slo"]["ttft_s"] is not None


def test_variants_of_a_scenario_are_listed() -> None:
    result = run("catalog", "list", "variants", "--scenario", SCENARIO)
    assert "chat/va-a100" in result.stdout
    everything = json.loads(run("catalog", "list", "--scenario", SCENARIO, "--json").stdout)
    assert {each["id"] for each in everything["variants"]} == {"va-a100", "va-h100"}
    assert len(everything["llms"]) > 10
    assert json.loads(run("catalog", "show", "H100", "--json").stdout)["id"] == "H100"


WRONG: Final = {
    "no such LLM": (("Qwen3-32C@H100", "--at", "10,10"), "did you mean 'Qwen3-32B'"),
    "no such accelerator": (("Qwen3-32B@H10", "--at", "10,10"), "did you mean 'H100'"),
    "a word": (("Qwen3-32B@H100:fp9", "--at", "10,10"), "did you mean 'fp8'"),
    "no shape": (("Qwen3-32B@H100",), "--at 4096,1024"),
    "half a shape": (("Qwen3-32B@H100", "--at", "10"), "INPUT,OUTPUT"),
    "a promise": (("Qwen3-32B@H100", "--at", "10,10,itl=fast"), "itl=fast"),
    "a negative promise": (
        ("Qwen3-32B@H100", "--at", "10,10,ttft=-1s"),
        "found ttft=-1s; allowed: at least 0",
    ),
    "no number": (
        ("Qwen3-32B@H100", "--at", "10,10,itl=nan"),
        "found itl=nan; allowed: a plain number or one with",
    ),
    "a percentile": (("Qwen3-32B@H100", "--at", "10,10,at=p100"), "p50, p95, p99 or mean"),
    "a source": (("Qwen3-32B@H100", "--at", "10,10", "--sources", "measurd"), "did you mean 'measured'"),
    "a source twice": (("Qwen3-32B@H100", "--at", "10,10", "--sources", "measured,measured"), "each once"),
    "no variant": (("va-h10", "--scenario", str(SCENARIO)), "did you mean 'va-h100'"),
    "no accelerator": (("Qwen3-32B@", "--at", "10,10"), "LLM@ACCELERATOR"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_say_what_would_do(name: str) -> None:
    arguments, words = WRONG[name]
    result = run("catalog", "show", *arguments)
    assert (result.exit_code, words in result.output) == (2, True), result.output


def test_variants_need_a_scenario() -> None:
    result = run("catalog", "list", "variants")
    assert (result.exit_code, "--scenario FILE" in result.output) == (2, True)
