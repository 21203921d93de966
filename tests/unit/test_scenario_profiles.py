"""Profiles that a scenario names, from the file to the plan: where they are looked for, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner, Result

from planner.cli import app
from planner.scenario import parse_scenario

SCENARIO: Final = """\
services:
  chat:
    llm: Llama-3.1-8B
    traffic: {rate: 3 req/s, input: 777, output: 333}
    slo: {ttft: 3 s, itl: 50 ms}
    variants: {one: {accelerator: L4, profile: own, cost: 1 $/h}}
pools:
  l4: {accelerator: L4, nodes: {count: 2, gpus: 4}}
"""
PROFILE: Final = """\
llm,accelerator,engine,precision,input_tokens,output_tokens,concurrency,ttft_s,itl_s,rps,source
Llama-3.1-8B,L4,vllm,bf16,777,333,4,0.2,0.01,1.13,own
Llama-3.1-8B,L4,vllm,bf16,777,333,8,0.3,0.015,1.5,own
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A scenario that names a profile beside it, in a folder that is not the working one."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "own.csv").write_text(PROFILE)
    (tmp_path / "s.yaml").write_text(f"profiles: tables/own.csv\n{SCENARIO}")
    return tmp_path


def planned(scenario: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["plan", str(scenario), *arguments])


def test_a_profile_is_looked_for_beside_the_scenario(folder: Path) -> None:
    done = planned(folder / "s.yaml")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "one @ l4" in done.stdout


def test_a_profile_is_looked_for_beside_the_include_that_names_it(folder: Path) -> None:
    (folder / "tables" / "base.yaml").write_text("profiles: [own.csv]\n")
    (folder / "s.yaml").write_text(f"include: tables/base.yaml\n{SCENARIO}")
    assert planned(folder / "s.yaml").exit_code == 0


def test_an_override_names_a_profile_as_the_scenario_does(folder: Path) -> None:
    (folder / "s.yaml").write_text(SCENARIO)
    assert planned(folder / "s.yaml").exit_code == 2
    assert planned(folder / "s.yaml", "--set", "profiles=tables/own.csv").exit_code == 0


def test_a_profile_of_a_text_is_looked_for_in_its_base_folder(folder: Path) -> None:
    scenario = parse_scenario((folder / "s.yaml").read_text(), base_folder=folder)
    assert [Path(profile) for profile in scenario.profiles] == [folder.resolve() / "tables" / "own.csv"]


def test_a_missing_profile_has_its_line_and_the_nearest_name(folder: Path) -> None:
    (folder / "s.yaml").write_text(f"name: x\nprofiles: tables/own.cvs\n{SCENARIO}")
    done = planned(folder / "s.yaml")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "s.yaml:2: profiles: found 'tables/own.cvs': no such file; did you mean 'own.csv'?" in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (PROFILE.replace("0.3,0.015", "fast,-1"), ["own.csv:3: ttft_s: found 'fast'", "own.csv:3: itl_s: found '-1'"]),
        (PROFILE.replace("concurrency", "users"), ["own.csv:1: ", "users"]),
        ("", ["own.csv"]),
    ],
    ids=["figures", "columns", "empty"],
)  # fmt: skip
def test_what_is_wrong_in_a_profile_is_said_with_its_line(
    folder: Path, content: str, said: list[str]
) -> None:
    (folder / "tables" / "own.csv").write_text(content)
    done = planned(folder / "s.yaml")
    assert (done.exit_code, done.stdout) == (2, "")
    assert [words for words in said if words not in done.stderr] == []
