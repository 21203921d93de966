"""The command ``controller check``: one table, one JSON object, and an exit code that scripts can rely on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from planner.cli.app import app
from tests.page_servers import an_engine_page

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No kubeconfig, no pod, no variables."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def run(*words: str) -> Any:
    return RUNNER.invoke(app, ["controller", "check", *words], env={"COLUMNS": "200", "NO_COLOR": "1"})


def test_everything_is_told_in_one_table_with_what_to_do() -> None:
    done = run("--set", "rules.policy=wva-v3", "--set", "actuators=[{name: gauge}, {name: epp}]")
    assert done.exit_code == 3
    for said in (
        "did you mean 'wva-v2'",
        "epp.services",
        "a kubeconfig with that context",
        "set sources",
        "4 problems",
    ):
        assert said in done.stdout


def test_the_same_as_json() -> None:
    done = run("--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["good"]) == (3, False)
    assert {"area", "verdict", "subject", "said", "remedy"} == found["checks"][0].keys()
    assert found["checks"][0]["area"] == "cluster"


def test_settings_that_cannot_be_read_are_an_input_to_change() -> None:
    done = run("--set", "rules.tau_kv=7", "--config", "absent.yaml")
    assert done.exit_code == 2
    assert "tau_kv" in done.stderr
    assert "absent.yaml" in done.stderr


def test_with_no_problem_the_exit_code_is_0(tmp_path: Path) -> None:
    page = tmp_path / "llama-0.prom"
    page.write_text(an_engine_page())
    inventory = tmp_path / "gpus.yaml"
    inventory.write_text("pools: []\n")
    sources = json.dumps([{"name": "files", "options": {"paths": [str(page)]}}])
    discovery = json.dumps({"name": "file", "options": {"path": str(inventory)}})
    done = run("--set", f"sources={sources}", "--set", f"discovery={discovery}", "--all")
    assert done.exit_code == 0, done.output
    assert "sees 1 engine" in done.stdout
