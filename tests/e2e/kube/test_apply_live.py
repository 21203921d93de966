"""``fleetplan apply`` against a real API server, scheduler and HPA controller: there, stopped, on, and back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from planner.control.cluster.kinds import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, NODES
from tests.e2e.kube.control_plane import ControlPlane, kube_test, wait_until
from tests.e2e.kube.kubelet import Kubelets
from tests.kube_objects import H100, a_container

pytestmark = kube_test()

_FLEETPLAN = str(Path(sys.executable).with_name("fleetplan"))
_SCENARIO = """
name: moving over
services:
  chat:
    llm: Llama-3.1-8B
    namespace: {namespace}
    traffic: {{rate: 3 req/s, input: 500, output: 100}}
    variants:
      old: {{accelerator: H100, cost: 2 $/h, capacity: {{rated: 1 req/s}}, min_replicas: 1, startup_s: 5, object: chat-old}}
      new:
        accelerator: H100
        cost: 1 $/h
        capacity: {{rated: 1 req/s}}
        startup_s: 5
        object: {object}
pools:
  h100: {{accelerator: H100, nodes: {{count: 1, gpus: 8}}}}
current:
  chat/old@h100: 3
  chat/new@h100: 1
"""


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """One node with more H100 than all tests together hold, and kubelets that take a second to start a pod."""
    control_plane.add_node("h100-apply", labels=H100, **{"nvidia.com/gpu": 64})
    with Kubelets(control_plane.admin, ready_after_s=1.0):
        yield control_plane
    control_plane.admin.delete(NODES, "", "h100-apply")


def a_workload(name: str, replicas: int) -> dict[str, Any]:
    container = a_container(1)
    container["resources"]["requests"] = container["resources"]["limits"]
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


@dataclass
class Fleet:
    """Two Deployments, one behind an HPA, and the plan that moves replicas from one to the other."""

    plane: ControlPlane
    namespace: str
    folder: Path
    hpa: bool = False

    def set_up(self) -> Fleet:
        admin = self.plane.admin
        admin.create(DEPLOYMENTS, self.namespace, a_workload("chat-old", 3))
        admin.create(DEPLOYMENTS, self.namespace, a_workload("chat-new", 1))
        if self.hpa:
            reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat-new"}
            spec = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 1}
            admin.create(
                HORIZONTAL_POD_AUTOSCALERS, self.namespace, {"metadata": {"name": "chat-new"}, "spec": spec}
            )
        wait_until(lambda: self.ready() == {"chat-old": 3, "chat-new": 1}, what="four ready replicas")
        named = "{name: chat-new, scaler: hpa}" if self.hpa else "chat-new"
        scenario = self.folder / "scenario.yaml"
        scenario.write_text(_SCENARIO.format(namespace=self.namespace, object=named), encoding="utf-8")
        done = self.run([_FLEETPLAN, "plan", str(scenario), "-o", str(self.folder / "plan.json")])
        assert done.returncode == 0, done.stderr
        return self

    def ready(self) -> dict[str, int]:
        found = self.plane.admin.list(DEPLOYMENTS, self.namespace).items
        return {each["metadata"]["name"]: each["status"].get("readyReplicas", 0) for each in found}

    def counts(self) -> dict[str, int]:
        found = self.plane.admin.list(DEPLOYMENTS, self.namespace).items
        return {each["metadata"]["name"]: each["spec"]["replicas"] for each in found}

    def bounds(self) -> tuple[int, int]:
        spec = self.plane.admin.get(HORIZONTAL_POD_AUTOSCALERS, self.namespace, "chat-new")["spec"]
        return spec["minReplicas"], spec["maxReplicas"]

    def command(self, *arguments: str, user: str = "admin", plan: Path | None = None) -> list[str]:
        """Of ``apply``, with its arguments."""
        kubeconfig = str(self.plane.kubeconfig(user))
        file = str(plan or self.folder / "plan.json")
        return [_FLEETPLAN, "apply", file, "--kubeconfig", kubeconfig, *arguments]

    def environment(self) -> dict[str, str]:
        return os.environ | {"XDG_STATE_HOME": str(self.folder / "state")}

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env=self.environment(), timeout=120
        )

    def apply(self, *arguments: str, plan: Path | None = None) -> subprocess.CompletedProcess[str]:
        return self.run(self.command(*arguments, plan=plan))

    def records(self) -> list[dict[str, Any]]:
        """All lines of the last record."""
        path = sorted((self.folder / "state" / "fleetplan" / "applied").glob("*.jsonl"))[-1]
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def fleet(cluster: ControlPlane, namespace: str, tmp_path: Path) -> Fleet:
    return Fleet(cluster, namespace, tmp_path).set_up()


def test_a_plan_is_shown_carried_out_watched_and_undone(
    cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    fleet = Fleet(cluster, namespace, tmp_path, hpa=True).set_up()
    dry = fleet.apply()
    assert dry.returncode == 0, dry.stderr
    assert "spec.maxReplicas" in dry.stdout
    assert "nothing was changed" in dry.stderr
    assert fleet.counts() == {"chat-old": 3, "chat-new": 1}

    gauge = fleet.folder / "plan.prom"
    done = fleet.apply("--yes", "--reason", "cheaper", "--watch", "--watch-for", "0", "--gauge", str(gauge))
    assert done.returncode == 0, done.stderr
    assert fleet.counts() == fleet.ready() == {"chat-old": 1, "chat-new": 2}
    assert fleet.bounds() == (2, 2)
    lines = fleet.records()
    assert [line["kind"] for line in lines][0 :: len(lines) - 1] == ["begun", "done"]
    assert lines[0]["message"] == "cheaper"
    written = [(each["before"], each["after"]) for each in lines if each["field"] == "spec.replicas"]
    assert (written[0][0], written[-1][1]) == ("3", "1")
    text = gauge.read_text(encoding="utf-8")
    assert text.count("fleetplan_plan_drift_seconds{") == 2
    assert all(line.endswith(" 0") for line in text.splitlines() if line.startswith("fleetplan_plan_drift"))

    again = fleet.apply("--yes")
    assert (again.returncode, "The cluster has what the plan says." in again.stdout) == (0, True)

    undo = next((fleet.folder / "state" / "fleetplan" / "applied").glob("*.undo.json"))
    back = fleet.apply("--yes", plan=undo)
    assert back.returncode == 0, back.stderr
    assert fleet.counts() == {"chat-old": 3, "chat-new": 1}
    assert fleet.bounds() == (1, 1)


def test_a_count_that_somebody_changed_is_refused_and_recorded(fleet: Fleet) -> None:
    fleet.plane.admin.scale(DEPLOYMENTS, fleet.namespace, "chat-old", 2)
    refused = fleet.apply("--yes")
    assert refused.returncode == 5
    assert "asks for 2 replicas, where the plan starts from 3" in " ".join(refused.stdout.split())
    assert fleet.counts() == {"chat-old": 2, "chat-new": 1}
    assert [line["kind"] for line in fleet.records()] == ["begun", "refused"]


def test_a_watched_cluster_that_drifts_is_an_alarm(fleet: Fleet) -> None:
    command = fleet.command("--yes", "--watch", "--watch-every", "1", "--drift-after", "1")
    watching = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=fleet.environment()
    )
    wait_until(lambda: fleet.ready() == {"chat-old": 1, "chat-new": 2}, what="the end of the plan")
    wait_until(lambda: fleet.records()[-1]["kind"] == "done", what="the end of the record")
    fleet.plane.admin.scale(DEPLOYMENTS, fleet.namespace, "chat-old", 2)
    said, complained = watching.communicate(timeout=60)
    assert watching.returncode == 3, complained
    assert "chat-old: planned 1, asks for 2" in " ".join(said.split())


def test_ctrl_c_stops_before_the_next_write_and_the_same_command_goes_on(fleet: Fleet) -> None:
    running = subprocess.Popen(
        fleet.command("--yes"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=fleet.environment(),
    )
    wait_until(lambda: fleet.counts()["chat-new"] == 2, what="the first write")
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 4, said
    assert fleet.counts()["chat-old"] > 1
    assert fleet.apply("--yes").returncode == 0
    assert fleet.counts() == {"chat-old": 1, "chat-new": 2}


def test_somebody_who_may_nothing_is_told_what_he_lacks(fleet: Fleet) -> None:
    refused = fleet.run(fleet.command("--yes", user="planner"))
    assert refused.returncode == 5, refused.stderr
    assert 'resources: ["deployments"], verbs: ["get"]' in " ".join(refused.stdout.split())
