"""Plug-ins of others: one of each group of the control plane, installed beside the wheel and run through the registries."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.packaging.test_wheel import ROOT, Installation, installation, run, wheel

PLUGINS: Final = ROOT / "examples" / "plugins"
NAMES: Final = {
    "policy": "office-hours",
    "actuation": "journal",
    "metrics-source": "agent",
    "capacity-discovery": "csv",
}
MONDAY_S: Final = 1_764_547_200.0
"""December 1st 2025, 0:00 UTC."""
CYCLE: Final = """
import json, sys
from pathlib import Path
from models.controller import ControllerSettings
from planner.catalog import load_catalog
from planner.clock import FakeClock
from planner.control.actuators import Connections, actuators_from
from planner.control.cluster import Api, MemoryCluster
from planner.control.collectors import open_source
from planner.control.deciding import Decider, DecidingState
from planner.control.discovery import open_discovery
from planner.control.discovery.kubernetes import DiscoveryOptions, KubernetesDiscovery
from planner.control.running.observing import Eyes

folder, hour, dry = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "dry"
meta = {"name": "llama", "namespace": "prod"}
notes = {"llm-d.ai/managed": "true", "llm-d.ai/model-id": "llama-8b"}
engine = {"name": "e", "image": "vllm/vllm-openai:v0.10", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
pods = {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, "containers": [engine]}
owner = {"kind": "StatefulSet", "name": "llama", "controller": True}
cluster = MemoryCluster([
    {"kind": "StatefulSet", "metadata": meta, "spec": {"replicas": 1, "template": {"metadata": {}, "spec": pods}}},
    {"kind": "HorizontalPodAutoscaler", "metadata": {**meta, "annotations": notes},
     "spec": {"scaleTargetRef": {"kind": "StatefulSet", "name": "llama"}, "maxReplicas": 5}},
    {"kind": "Pod", "metadata": {"name": "llama-0", "namespace": "prod", "ownerReferences": [owner]},
     "spec": {**pods, "nodeName": "n"}, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
])
clock = FakeClock()
api = Api(cluster, clock)
options = json.loads((folder / "settings.json").read_text())
settings = ControllerSettings.model_validate(options)
eyes = Eyes(
    fleet=KubernetesDiscovery([api], DiscoveryOptions(), load_catalog()),
    capacity=open_discovery(settings.discovery.name, settings.discovery.options, clock),
    sources={each.name: open_source(each.name, each.options, clock) for each in settings.sources},
)
now_s = 1764547200.0 + 3600 * hour
observation = eyes.look(now_s).observation
decided, _ = Decider(clock=clock).decide(observation, state=DecidingState(), settings=settings, now_s=now_s)
acting = actuators_from([(each.name, each.options) for each in settings.actuators], Connections(clock=clock, apis=(api,)))
outcomes = acting.act(decided.decisions, dry_run=dry)
print(json.dumps({
    "engines": [each.variant for each in observation.engines],
    "pools": {each.id: each.accelerator for each in observation.pools},
    "foreign": sum(node.foreign_gpus for each in observation.pools for node in each.nodes),
    "desired": [each.desired for each in decided.decisions],
    "outcomes": [(each.actuator, str(each.code)) for each in outcomes],
    "findings": [each.problem for each in (*observation.findings, *decided.findings)],
}))
"""

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]
__all__ = ["installation", "wheel"]


@pytest.fixture(scope="module")
def extended(installation: Installation) -> Installation:
    """The wheel, and the four packages installed from their folders, as their users would."""
    folders = sorted(path.parent for path in PLUGINS.glob("*/pyproject.toml"))
    assert len(folders) == len(NAMES)
    pip = (sys.executable, "-m", "pip", "--python", installation.python)
    run(*pip, "install", "--no-deps", "--no-index", "--no-build-isolation", *folders)
    return installation


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Settings that name all four, and the files that they read."""
    reading = {"pod": "llama-0", "namespace": "prod", "model": "llama-8b", "at_s": MONDAY_S + 36_000, "kv": 0.5, "waiting": 0, "running": 3, "kv_tokens": 100000}  # fmt: skip
    (tmp_path / "agent.json").write_text(json.dumps([reading, {"pod": 3}]))
    (tmp_path / "gpus.csv").write_text(
        "pool,accelerator,nodes,gpus_per_node,foreign\neast,H100,2,8,3\nbad,H100,x,8,0\n"
    )
    settings = {
        "rules": {"policy": "office-hours", "stabilize_down_s": 0},
        "policies": {"office-hours": {"inside": 4, "outside": 1}},
        "sources": [{"name": "agent", "options": {"path": str(tmp_path / "agent.json")}}],
        "discovery": {"name": "csv", "options": {"path": str(tmp_path / "gpus.csv")}},
        "actuators": [{"name": "journal", "options": {"path": str(tmp_path / "journal.jsonl")}}],
    }
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    return tmp_path


def cycle(extended: Installation, folder: Path, hour: float, how: str = "act") -> dict[str, object]:
    done = subprocess.run(
        [extended.python, "-I", "-c", CYCLE, folder, str(hour), how],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_they_are_listed_with_where_they_are_from(extended: Installation, tmp_path: Path) -> None:
    done = extended.run("plugins", "--no-color", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for kind, name in NAMES.items():
        assert any(
            kind in line and name in line and "fleetplan-" in line for line in done.stdout.splitlines()
        ), kind


def test_one_cycle_runs_through_all_four(extended: Installation, folder: Path) -> None:
    found = cycle(extended, folder, hour=10)
    assert found["engines"] == ["llama"]
    assert (found["pools"], found["foreign"]) == ({"east": "H100"}, 3)
    assert found["desired"] == [4]
    assert found["outcomes"] == [["journal", "done"]]
    written = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    assert [(each["variant"], each["replicas"]) for each in written] == [("prod/llama", 4)]
    assert sum("ignored" in str(each) or "left out" in str(each) for each in found["findings"]) == 2  # type: ignore[attr-defined]


def test_outside_of_hours_nothing_grows_and_a_dry_run_writes_nothing(
    extended: Installation, folder: Path
) -> None:
    rows = json.loads((folder / "agent.json").read_text())
    rows[0]["at_s"] = MONDAY_S + 20 * 3600
    (folder / "agent.json").write_text(json.dumps(rows))
    assert cycle(extended, folder, hour=20)["desired"] == [1]
    rows[0]["at_s"] = MONDAY_S + 10 * 3600
    (folder / "agent.json").write_text(json.dumps(rows))
    assert cycle(extended, folder, hour=10, how="dry")["outcomes"] == [["journal", "would"]]
    assert not (folder / "journal.jsonl").exists()


def test_wrong_options_are_told_all_at_once(extended: Installation, folder: Path) -> None:
    code = (
        "from planner.clock import FakeClock\n"
        "from planner.control.deciding import open_policy\n"
        "open_policy('office-hours', {'zone': 'Mars/Olympus', 'inside': -1, 'beginn': 8}, FakeClock())"
    )
    done = subprocess.run(
        [extended.python, "-I", "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    for said in ("3 problems", "Mars/Olympus", "inside", "did you mean 'begin'"):
        assert said in done.stderr
