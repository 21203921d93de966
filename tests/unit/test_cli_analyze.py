"""``fleetplan analyze``: a recorded observation judged, and what policies would decide on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from models.hardware import Pool
from models.observation import Observation
from planner.cli.app import app
from tests.observed_fleets import a_variant, engines_of, some_traffic


def run(*arguments: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["analyze", *map(str, arguments)])


def a_pool(name: str, accelerator: str) -> Pool:
    return Pool.model_validate(
        {"id": name, "accelerator": accelerator, "nodes": [{"id": f"{name}-0", "gpus": 8}]}
    )


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """Two variants of one service, of whose five replicas two are saturated; each has room on its nodes."""
    fast = a_variant("fast", ready=3, cost=20.0)
    slow = a_variant("slow", ready=2, cost=8.0, accelerator="A100-80GB")
    seen = Observation(
        at_s=1.8e9,
        variants=(fast, slow),
        engines=engines_of(fast, (0.7, 3), (0.9, 9)) + engines_of(slow, (0.75, 2)),
        traffic=(some_traffic(),),
        pools=(a_pool("h", "H100"), a_pool("a", "A100-80GB")),
    )
    path = tmp_path / "seen.json"
    path.write_text(seen.canonical_json(), encoding="utf-8")
    return path


def test_saturation_demand_capacity_and_decisions_are_on_one_screen(full: Path) -> None:
    done = run("--metrics", full)
    assert done.exit_code == 0, done.output
    for words in (
        "Saturation by τ and γ",
        "one more",
        "106 %",
        "wva and wva-v2 and planner judges",
        "ScaledUp",
    ):
        assert words in done.stdout


def test_json_has_every_policy_that_was_asked_for_with_its_reasons(full: Path) -> None:
    found = json.loads(run("--metrics", full, "--json", "--policy", "wva", "--policy", "planner").stdout)
    assert list(found["policies"]) == ["wva", "planner"]
    (row,) = found["saturation"]
    assert (row["saturated"], row["non_saturated"], row["scale_up"], row["scale_in_safe"]) == (
        2,
        3,
        True,
        False,
    )
    for policy in found["policies"].values():
        (verdict,) = policy["verdicts"]
        assert (verdict["may"], verdict["unit"]) == ("up", "token")
        assert verdict["required"] > 0
        desired = {each["variant"]: each["desired"] for each in policy["decisions"]}
        assert desired["fast"] == 3
        assert desired["slow"] > 2
        assert all(each["reason"] for each in policy["decisions"])


def test_settings_of_a_controller_are_heeded(full: Path, tmp_path: Path) -> None:
    settings = tmp_path / "controller.yaml"
    settings.write_text(
        "rules: {policy: wva, step_up: 1}\noverrides: [{model: llm, paused: true}]\n", encoding="utf-8"
    )
    found = json.loads(run("--metrics", full, "--json", "--settings", settings).stdout)
    assert list(found["policies"]) == ["settings"]
    assert {each["policy"] for each in found["policies"]["settings"]["verdicts"]} == {"wva"}


def test_what_was_not_seen_in_full_is_not_scaled_in_and_ends_with_4(full: Path) -> None:
    seen = Observation.model_validate_json(full.read_bytes())
    idle = tuple(each.but(kv_usage=0.0, kv_now=0.0, waiting=0.0, waiting_now=0.0) for each in seen.engines)
    full.write_text(seen.but(engines=idle, complete=False).canonical_json(), encoding="utf-8")
    done = run("--metrics", full, "--json", "--policy", "wva-v2")
    assert done.exit_code == 4
    decisions = json.loads(done.stdout)["policies"]["wva-v2"]["decisions"]
    assert all(each["desired"] >= each["wanted"] for each in decisions)


def test_an_unknown_policy_and_wrong_settings_are_refused(full: Path, tmp_path: Path) -> None:
    refused = run("--metrics", full, "--policy", "wva-v3")
    assert refused.exit_code == 2
    assert "did you mean 'wva-v1'?" in refused.output or "did you mean 'wva-v2'?" in refused.output
    wrong = tmp_path / "controller.yaml"
    wrong.write_text("rules: {tau_kv: 7}\n", encoding="utf-8")
    assert run("--metrics", full, "--settings", wrong).exit_code == 2


def test_nothing_that_is_served_is_no_fault(tmp_path: Path) -> None:
    empty = tmp_path / "seen.json"
    empty.write_text(Observation(at_s=1.0).canonical_json(), encoding="utf-8")
    done = run("--metrics", empty)
    assert done.exit_code == 0, done.output
    assert "There is no variant to decide on." in done.stdout
