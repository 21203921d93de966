"""``fleetplan observe --kubernetes``: options, clusters out of reach, and tables of what clusters said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from models.observation import Observation
from planner.cli.app import app
from planner.control.protocols import ClusterReading
from tests.kube_objects import a_deployment, a_node, a_pod, a_quota, an_hpa, reading


def run(*arguments: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["observe", *map(str, arguments)])


def a_kubeconfig(folder: Path, url: str = "https://127.0.0.1:1") -> Path:
    path = folder / "kubeconfig"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "hunter2"}}],
        "contexts": [{"name": "away", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "away",
    }
    path.write_text(json.dumps(config))
    return path


def recorded(folder: Path, seen: ClusterReading) -> Path:
    path = folder / "seen.json"
    observation = Observation(
        at_s=1.8e9,
        variants=seen.variants,
        pools=seen.inventory.pools,
        quotas=seen.inventory.quotas,
        findings=seen.findings,
    )
    path.write_text(observation.canonical_json())
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("--context", "a", "--metrics", "x"),
        ("--kubeconfig", "a", "--metrics", "x"),
        ("--kubernetes", "--metrics", "x", "--prometheus", "http://127.0.0.1:1"),
        ("--kubernetes", "more"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: tuple[str, ...]) -> None:
    assert run(*words).exit_code == 2


def test_a_context_that_is_not_there_is_refused(tmp_path: Path) -> None:
    refused = run("--kubernetes", "--kubeconfig", a_kubeconfig(tmp_path), "--context", "nowhere")
    assert refused.exit_code == 2
    assert "nowhere" in refused.stderr


def test_a_cluster_that_is_away_is_told_and_nothing_else(tmp_path: Path) -> None:
    # Not an address that answers: the port is taken by nobody.
    away = run("--kubernetes", "--kubeconfig", a_kubeconfig(tmp_path), "--json")
    seen = json.loads(away.stdout)
    assert away.exit_code == 4
    assert not seen["complete"]
    assert "cannot be reached" in seen["findings"][0]["problem"]
    assert "hunter2" not in away.stdout + away.stderr


def test_variants_pools_and_quotas_are_tables(tmp_path: Path) -> None:
    quota = a_quota({"requests.nvidia.com/gpu": "16"}, {"requests.nvidia.com/gpu": "5"})
    pods = (
        a_pod("p", ("ReplicaSet", "llama-5d"), labels={"pod-template-hash": "5d"}),
        a_pod("other", gpus=3),
    )
    others = (an_hpa("gone-hpa", "gone"), an_hpa("bad\x1b[31m", "third"))
    path = recorded(
        tmp_path,
        reading(a_node(), a_node("n2", unschedulable=True), a_deployment(), an_hpa(), *others, quota, *pods),
    )
    shown = run("--metrics", path)
    assert shown.exit_code == 0, shown.stderr
    assert "2 variants, 1 pool, 0 engines" in shown.stdout
    line = next(line for line in shown.stdout.splitlines() if line.startswith("llama-hpa"))
    assert line.split()[:5] == ["llama-hpa", "prod", "llama-8b", "H100", "both"]
    pool = next(line for line in shown.stdout.splitlines() if line.startswith("H100"))
    assert pool.split()[1:] == ["H100", "2", "16", "8", "3"]
    assert "TargetNotFound" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert "requests.nvidia.com/gpu" in shown.stdout
    again = json.loads(run("--metrics", path, "--json").stdout)
    assert again["variants"] == json.loads(path.read_text())["variants"]
