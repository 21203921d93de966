"""``fleetplan import FORMAT``: files are written, what is left out is said, and what was read can be planned with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planner.catalog import load_catalog
from planner.cli.app import app
from tests.hf_configs import CONFIGS, write_config


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_config_becomes_a_catalog_file(tmp_path: Path) -> None:
    source = write_config(tmp_path / "mine", CONFIGS["gpt-oss-20b"])
    other = write_config(tmp_path / "other", CONFIGS["DeepSeek-V3"])
    target = tmp_path / "llms.yaml"
    done = run("import", "huggingface", source, other.parent, "-o", target)
    assert done.exit_code == 0, done.output
    assert "heads of multi-token prediction are not counted" in done.output
    catalog = load_catalog(extra=[target])
    assert catalog.llm("mine").parameters == 20_914_757_184
    assert catalog.llm("other").attention.kind == "mla"


def test_problems_of_all_files_come_at_once(tmp_path: Path) -> None:
    one = write_config(tmp_path / "one", {"model_type": "x"})
    done = run("import", "huggingface", one, tmp_path / "none.json", "-o", tmp_path / "o.yaml")
    assert done.exit_code == 2
    assert "none.json" in done.output
    assert "model_type" in done.output
    assert not (tmp_path / "o.yaml").exists()


def test_a_file_that_is_not_ours_is_kept(tmp_path: Path) -> None:
    source = write_config(tmp_path / "mine", CONFIGS["Qwen3-8B"])
    target = tmp_path / "notes.txt"
    target.write_text("keep me", encoding="utf-8")
    assert run("import", "huggingface", source, "-o", target).exit_code == 2
    assert target.read_text(encoding="utf-8") == "keep me"
    assert run("import", "huggingface", source, "-o", target, "--force").exit_code == 0
    assert run("import", "huggingface", source, "-o", target).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["--accelerator", "A10G"], "GPU=NAME"),
        (["--inputs", "1,x"], "whole numbers"),
        (["--inputs", "5,5"], "rising"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, arguments: list[str], phrase: str) -> None:
    path = tmp_path / "m.json"
    path.write_text("{}", encoding="utf-8")
    full = ["import", "melange", path, "-o", tmp_path / "s.yaml", "--llm", "Llama-3.1-8B", *arguments]
    path.write_text(
        json.dumps(
            {
                "gpu_info": {"A10G": {"cost": 1, "tputs": [[1]]}},
                "workload_distribution": [[1]],
                "total_request_rate": 1,
            }
        ),
        encoding="utf-8",
    )
    done = run(*full)
    assert done.exit_code == 2
    assert phrase in done.output


@pytest.mark.parametrize("text", ["512", "512x=1", "0x1=1", "1x1=-1", "1x1=nan", "1x1=inf", "axb=c"])
def test_traffic_that_cannot_be(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.json"
    path.write_text("{}", encoding="utf-8")
    done = run("import", "aibrix", path, "-o", tmp_path / "s.yaml", "--llm", "x", "--traffic", text)
    assert done.exit_code == 2
    assert "--traffic" in done.output


def plan(path: Path) -> tuple[int, Any]:
    done = CliRunner().invoke(app, ["plan", str(path), "--json"])
    return done.exit_code, json.loads(done.stdout)


def test_profiles_are_imported_and_planned(tmp_path: Path) -> None:
    profile = {
        "gpu": "small",
        "cost": 1.0,
        "tputs": [[4.0, 2.0], [1.0, 0.5]],
        "indexes": [[8, 64], [128, 1024]],
    }
    small, big = tmp_path / "small.json", tmp_path / "big.json"
    small.write_text(json.dumps(profile), encoding="utf-8")
    big.write_text(
        json.dumps(profile | {"gpu": "big", "cost": 2.5, "tputs": [[20.0, 10.0], [5.0, 0.0]]}),
        encoding="utf-8",
    )
    target = tmp_path / "s.yaml"
    done = run(
        "import", "aibrix", small, big, "-o", target, "--llm", "Llama-3.1-8B", "--accelerator", "small=A10G",
        "--accelerator", "big=H100", "--traffic", "128x8=20", "--traffic", "1024x64=1",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    code, answer = plan(target)
    assert code == 0
    # One big replica for the short requests, two small ones for the long ones that big carries none of.
    assert answer["objective"]["cost_usd_per_h"] == pytest.approx(4.5)


def test_a_command_line_becomes_a_scenario(tmp_path: Path) -> None:
    path, target = tmp_path / "start.sh", tmp_path / "s.yaml"
    path.write_text("vllm serve Qwen/Qwen3-32B -tp 2 --quantization fp8\n", encoding="utf-8")
    done = run("import", "vllm", path, "--accelerator", "H100", "--traffic", "1000x450=2", "-o", target)
    assert done.exit_code == 0, done.output
    code, answer = plan(target)
    assert code in {0, 3}
    assert "Qwen3-32B" in json.dumps(answer)
    part = run("import", "vllm", path, "--accelerator", "H100", "-o", tmp_path / "part.yaml")
    assert part.exit_code == 0
    assert "traffic and pools are left to you" in part.output


@pytest.mark.parametrize(
    ("arguments", "phrases"),
    [
        (
            ["melange", "m.json", "n.json", "-o", "none/s.yaml", "--llm", "nobody", "--accelerator", "x",
             "--accelerator", "A10G=A11G", "--inputs", "1,x", "--outputs", "y"],
            ["PATH: found 2 files", "none/s.yaml: found", "--llm: found nobody", "--accelerator: found 'x'",
             "--accelerator: found A10G=A11G", "did you mean 'A10G'", "--inputs: found '1,x'",
             "--outputs: found 'y'", "m.json: gpu_info.A10G.cost: found x", "n.json: found No such file"],
        ),
        (
            ["aibrix", "p.json", "q.json", "-o", "none/s.yaml", "--llm", "nobody", "--accelerator", "x",
             "--traffic", "1", "--traffic", "1x1=nan"],
            ["none/s.yaml: found", "--llm: found nobody", "--accelerator: found 'x'", "--traffic: found '1'",
             "--traffic: found '1x1=nan'", "p.json: cost: found dear", "q.json: found No such file"],
        ),
        (
            ["vllm", "none.sh", "-o", "none/s.yaml", "--traffic", "1"],
            ["none/s.yaml: found", "--traffic: found '1'", "none.sh: found"],
        ),
        (
            ["huggingface", "none.json", "p.json", "-o", "none/s.yaml", "--name", "both"],
            ["none/s.yaml: found", "--name: found both", "none.json: found", "p.json: model_type"],
        ),
        (["inferno", "none.json", "-o", "none/s.yaml"], ["none/s.yaml: found", "none.json: found"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_options_and_files_comes_at_once_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], phrases: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    system = {"gpu_info": {"A10G": {"cost": "x", "tputs": [[1]]}}, "workload_distribution": [[1]]}
    Path("m.json").write_text(json.dumps(system | {"total_request_rate": 1}), encoding="utf-8")
    profile = {"gpu": "A10G", "cost": "dear", "tputs": [[1]], "indexes": [[1], [1]]}
    Path("p.json").write_text(json.dumps(profile), encoding="utf-8")
    done = run("import", *arguments)
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert [phrase for phrase in phrases if said.count(phrase) != 1] == [], done.output
    assert not Path("s.yaml").exists()
