"""Actuators against a real API server: who owns which field, what a deleted object comes to, and which pods go first."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from models.observation import EngineObservation, Observation, VariantObservation
from models.variant import KubernetesObject
from planner.clock import SystemClock
from planner.control.actuators import Actuators, Connections, actuators_from
from planner.control.cluster import Api, ClusterFault, Kind, Trouble
from planner.control.cluster.kinds import (
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    NODES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    VARIANT_AUTOSCALINGS,
)
from planner.control.cluster.reading import (
    annotations_of,
    at,
    is_ending,
    is_ready,
    items_of,
    labels_of,
    name_of,
)
from planner.control.protocols import Decision, Outcome, OutcomeCode
from tests.e2e.kube.aggregated import install_crd
from tests.e2e.kube.control_plane import ControlPlane, kube_test, wait_until
from tests.e2e.kube.kubelet import Kubelets

pytestmark = kube_test()

SERVING = "fleetplan.dev/serving"
ENDPOINTS = Kind("Endpoints", "endpoints")


def a_workload(name: str, replicas: int, **pod: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels | {SERVING: "true"}},
        "spec": {"containers": [{"name": "engine", "image": "vllm/vllm-openai"}], **pod},
    }
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def an_hpa(name: str, target: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "minReplicas": 1, "maxReplicas": 8,
            "metrics": [
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": "wva_desired_replicas"},
                        "target": {"type": "AverageValue", "averageValue": "1"},
                    },
                }
            ],
        },
    }  # fmt: skip


def a_variant(namespace: str, name: str, scaler: str, wanted: int, **more: Any) -> VariantObservation:
    target = KubernetesObject(
        namespace=namespace, kind=more.pop("kind", "Deployment"), name=more.pop("target", name), scaler=scaler,
        scaler_name=name,
    )  # fmt: skip
    return VariantObservation(
        name=name,
        namespace=namespace,
        model="llama",
        target=target,
        accelerator="H100",
        wanted=wanted,
        **more,
    )


def fleet_of(api: Api, *names: str, **options: Any) -> Actuators:
    connections = Connections(clock=SystemClock(), apis=(api,))
    fleet = actuators_from([(name, options.get(name, {})) for name in names], connections)
    fleet.lead(leading=True)
    return fleet


def act(fleet: Actuators, variant: VariantObservation, desired: int, *, dry_run: bool = False) -> Outcome:
    decision = Decision(variant=variant, desired=desired, reason="Load")
    return fleet.act([decision], dry_run=dry_run)[-1]


def owners(thing: Any, *path: str) -> set[str]:
    """Managers that own a field."""
    return {
        each["manager"]
        for each in items_of(at(thing, "metadata", "managedFields"))
        if at(each, "fieldsV1", *path) is not None
    }


def replicas(api: Api, kind: Kind, namespace: str, name: str) -> int:
    return int(api.get(kind, namespace, name)["spec"]["replicas"])


class TestHpa:
    def test_bounds_become_ours_and_are_given_back(self, control_plane: ControlPlane, namespace: str) -> None:
        admin = control_plane.admin
        admin.create(DEPLOYMENTS, namespace, a_workload("llama", 2))
        admin.create(HORIZONTAL_POD_AUTOSCALERS, namespace, an_hpa("llama-hpa", "llama"))
        fleet = fleet_of(admin, "hpa")
        variant = a_variant(namespace, "llama-hpa", "hpa", 2, target="llama")

        def found() -> Any:
            return admin.get(HORIZONTAL_POD_AUTOSCALERS, namespace, "llama-hpa")

        assert act(fleet, variant, 3, dry_run=True).code is OutcomeCode.WOULD
        assert found()["spec"]["maxReplicas"] == 8
        done = act(fleet, variant, 3)
        assert done.code is OutcomeCode.DONE, done.message
        assert (found()["spec"]["minReplicas"], found()["spec"]["maxReplicas"]) == (3, 3)
        assert "fleetplan" in owners(found(), "f:spec", "f:maxReplicas")
        assert act(fleet, variant, 3).code is OutcomeCode.SAME
        wait_until(
            lambda: replicas(admin, DEPLOYMENTS, namespace, "llama") == 3, what="the HPA to follow its bounds"
        )
        assert fleet.release([variant], dry_run=False)[0].code is OutcomeCode.DONE
        assert (found()["spec"]["minReplicas"], found()["spec"]["maxReplicas"]) == (1, 8)
        assert (
            annotations_of(found()).keys().isdisjoint({"fleetplan.dev/pinned", "fleetplan.dev/former-bounds"})
        )

    def test_the_command_gives_back_what_is_held(self, control_plane: ControlPlane, namespace: str) -> None:
        admin = control_plane.admin
        admin.create(DEPLOYMENTS, namespace, a_workload("llama", 2))
        body = an_hpa("llama-hpa", "llama")
        body["metadata"]["annotations"] = {"llm-d.ai/managed": "true", "llm-d.ai/model-id": "llama"}
        admin.create(HORIZONTAL_POD_AUTOSCALERS, namespace, body)
        act(fleet_of(admin, "hpa"), a_variant(namespace, "llama-hpa", "hpa", 2, target="llama"), 4)
        words = [
            "controller",
            "release",
            "--kubeconfig",
            str(control_plane.kubeconfig()),
            "-n",
            namespace,
            "--json",
        ]

        def said(*more: str) -> Any:
            command = [str(Path(sys.executable).with_name("fleetplan")), *words, *more]
            ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
            assert ended.returncode == 0, ended.stderr
            return [(each["actuator"], each["code"]) for each in json.loads(ended.stdout)["outcomes"]]

        assert said() == [("hpa", "would")]
        assert said("--yes") == [("hpa", "done")]
        assert said("--yes") == []
        assert admin.get(HORIZONTAL_POD_AUTOSCALERS, namespace, "llama-hpa")["spec"]["maxReplicas"] == 8

    def test_without_force_bounds_of_others_are_a_conflict_that_names_them(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        admin = control_plane.admin
        helm = Api(admin.transport, SystemClock(), manager="helm")
        helm.create(HORIZONTAL_POD_AUTOSCALERS, namespace, an_hpa("llama-hpa", "llama"))
        fleet = fleet_of(admin, "hpa", hpa={"force": False})
        found = act(fleet, a_variant(namespace, "llama-hpa", "hpa", 2, target="llama"), 3)
        assert found.code is OutcomeCode.CONFLICT
        assert "helm" in found.message

    def test_one_that_was_deleted_is_not_made_again(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        admin = control_plane.admin
        admin.create(HORIZONTAL_POD_AUTOSCALERS, namespace, an_hpa("llama-hpa", "llama"))
        variant = a_variant(namespace, "llama-hpa", "hpa", 2, target="llama")
        stale = admin.get(HORIZONTAL_POD_AUTOSCALERS, namespace, "llama-hpa")
        admin.delete(HORIZONTAL_POD_AUTOSCALERS, namespace, "llama-hpa")
        assert act(fleet_of(admin, "hpa"), variant, 3).code is OutcomeCode.GONE
        # It went between reading and writing.
        identity = {key: stale["metadata"][key] for key in ("name", "resourceVersion", "uid")}
        with pytest.raises(ClusterFault) as raised:
            admin.apply(
                HORIZONTAL_POD_AUTOSCALERS, namespace,
                {"metadata": identity, "spec": {"minReplicas": 3, "maxReplicas": 3}}, force=True,
            )  # fmt: skip
        assert raised.value.trouble in {Trouble.CONFLICT, Trouble.NOT_FOUND, Trouble.INVALID}, (
            raised.value.message
        )
        assert admin.find(HORIZONTAL_POD_AUTOSCALERS, namespace, "llama-hpa") is None


class TestScale:
    @pytest.mark.parametrize("kind", [DEPLOYMENTS, STATEFUL_SETS], ids=lambda each: each.name)
    def test_counts_are_written_and_counted_once(
        self, control_plane: ControlPlane, namespace: str, kind: Kind
    ) -> None:
        admin = control_plane.admin
        admin.create(kind, namespace, a_workload("llama", 2))
        fleet = fleet_of(admin, "scale")
        before = dict(fleet.writes)
        variant = a_variant(namespace, "llama", "scale", 2, kind=kind.name)
        assert act(fleet, variant, 4, dry_run=True).code is OutcomeCode.WOULD
        assert act(fleet, variant, 4).code is OutcomeCode.DONE
        assert act(fleet, variant, 4).code is OutcomeCode.SAME
        assert replicas(admin, kind, namespace, "llama") == 4
        name = f"patch {kind.plural}/scale"
        assert fleet.writes[name] - before.get(name, 0) == 1
        assert act(fleet, variant, 1).code is OutcomeCode.CONFLICT

    def test_groups_too(self, control_plane: ControlPlane, namespace: str) -> None:
        admin = control_plane.admin
        install_crd(control_plane, LEADER_WORKER_SETS)
        admin.create(LEADER_WORKER_SETS, namespace, {"metadata": {"name": "deep"}, "spec": {"replicas": 1}})
        fleet = fleet_of(admin, "scale")
        variant = a_variant(namespace, "deep", "scale", 1, kind="LeaderWorkerSet")
        assert act(fleet, variant, 3).code is OutcomeCode.DONE
        assert replicas(admin, LEADER_WORKER_SETS, namespace, "deep") == 3

    def test_a_denial_names_the_rule_that_is_missing(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        control_plane.admin.create(DEPLOYMENTS, namespace, a_workload("llama", 2))
        viewer = control_plane.connect("viewer")
        found = act(fleet_of(viewer, "scale"), a_variant(namespace, "llama", "scale", 2), 4)
        assert found.code is OutcomeCode.DENIED
        assert "missing rule" in found.message


class TestStatus:
    def test_it_is_written_once_and_taken_from_no_other_autoscaler(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        admin = control_plane.admin
        install_crd(control_plane, VARIANT_AUTOSCALINGS)
        body = {
            "metadata": {"name": "llama-va"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "llama"}, "modelID": "llama"},
        }
        admin.create(VARIANT_AUTOSCALINGS, namespace, body)
        fleet = fleet_of(admin, "variantautoscaling")
        variant = a_variant(namespace, "llama-va", "variantautoscaling", 2, target="llama")
        assert act(fleet, variant, 3).code is OutcomeCode.DONE
        assert act(fleet, variant, 3).code is OutcomeCode.SAME
        found = admin.get(VARIANT_AUTOSCALINGS, namespace, "llama-va")
        assert found["status"]["desiredOptimizedAlloc"]["numReplicas"] == 3
        other = Api(admin.transport, SystemClock(), manager="manager")
        alloc = {"desiredOptimizedAlloc": {"numReplicas": 9}}
        other.patch(VARIANT_AUTOSCALINGS, namespace, "llama-va", {"status": alloc}, subresource="status")
        refused = act(fleet, variant, 4)
        assert refused.code is OutcomeCode.CONFLICT
        assert "manager" in refused.message


@pytest.fixture
def kubelets(control_plane: ControlPlane) -> Iterator[Kubelets]:
    # A Service sends nothing to pods that are on no node.
    if control_plane.admin.find(NODES, "", "drain-node") is None:
        control_plane.add_node("drain-node")
    with Kubelets(control_plane.admin) as running:
        yield running


class Engines:
    """What engines of a workload would say, and what the cluster made of its pods."""

    def __init__(self, api: Api, namespace: str, kind: Kind) -> None:
        self.api, self.namespace, self.kind = api, namespace, kind
        self.loads: dict[str, float] = {}

    @property
    def pods(self) -> dict[str, Any]:
        return {
            name_of(each): each
            for each in self.api.list(PODS, self.namespace, labels="app=llama").items if not is_ending(each)
        }  # fmt: skip

    @property
    def routed(self) -> set[str]:
        """Pods that the Service really sends requests to."""
        found = self.api.get(ENDPOINTS, self.namespace, "llama")
        return {
            address["targetRef"]["name"]
            for subset in items_of(found.get("subsets")) for address in items_of(subset.get("addresses"))
        }  # fmt: skip

    def variant(self) -> VariantObservation:
        wanted = replicas(self.api, self.kind, self.namespace, "llama")
        return a_variant(self.namespace, "llama", "scale", wanted, kind=self.kind.name)

    def cycle(self, fleet: Actuators, desired: int) -> tuple[Outcome, ...]:
        engines = tuple(
            EngineObservation(
                instance=f"{name}:8000", namespace=self.namespace, pod=name, running=load, waiting=0, age_s=0
            )
            for name, load in self.loads.items()
        )
        variant = self.variant()
        fleet.saw(Observation(at_s=SystemClock().unix_s(), engines=engines, variants=(variant,)))
        return fleet.act([Decision(variant=variant, desired=desired, reason="Load")], dry_run=False)


def started(control_plane: ControlPlane, namespace: str, kind: Kind, **pod: Any) -> Engines:
    admin = control_plane.admin
    admin.create(kind, namespace, a_workload("llama", 3, **pod))
    ports = [{"name": "http", "port": 8000}]
    selector = {"app": "llama", SERVING: "true"}
    admin.create(
        SERVICES, namespace, {"metadata": {"name": "llama"}, "spec": {"selector": selector, "ports": ports}}
    )
    engines = Engines(admin, namespace, kind)
    wait_until(lambda: len(engines.pods) == 3, what="three pods")
    return engines


SOON = {"draining": {"settle_s": 0, "gates": True}}


class TestDraining:
    def test_the_emptiest_leaves_the_endpoints_and_is_the_one_that_goes(
        self, control_plane: ControlPlane, namespace: str, kubelets: Kubelets
    ) -> None:
        """This API server does not know costs, so the pod is not ready before it goes: its gate is shut."""
        gates = {"readinessGates": [{"conditionType": SERVING}]}
        engines = started(control_plane, namespace, DEPLOYMENTS, **gates)
        admin = control_plane.admin
        for pod in engines.pods.values():
            admin.patch(
                PODS, namespace, name_of(pod), {"metadata": {"labels": {"fleetplan.dev/gated": "true"}}}
            )
        fleet = fleet_of(admin, "draining", "scale", **SOON)

        def opened() -> bool:
            engines.cycle(fleet, 3)
            return engines.routed == set(engines.pods)

        wait_until(opened, what="readiness gates to be opened")
        engines.loads = {name: 5.0 + place for place, name in enumerate(sorted(engines.pods))}
        victim = sorted(engines.pods)[1]
        engines.loads[victim] = 1.0
        found = engines.cycle(fleet, 2)
        assert found[0].code is OutcomeCode.WAITING, found[0].message
        wait_until(lambda: engines.routed == set(engines.pods) - {victim}, what="the Service to let go of it")
        wait_until(lambda: not is_ready(engines.pods[victim]), what="it to be not ready")
        assert engines.cycle(fleet, 2)[0].code is OutcomeCode.WAITING
        assert replicas(admin, DEPLOYMENTS, namespace, "llama") == 3
        engines.loads[victim] = 0.0
        assert engines.cycle(fleet, 2)[0].code is OutcomeCode.DONE
        wait_until(lambda: len(engines.pods) == 2, what="a pod to go")
        assert victim not in engines.pods

    def test_it_comes_back_and_its_workload_never_missed_it(
        self, control_plane: ControlPlane, namespace: str, kubelets: Kubelets
    ) -> None:
        engines = started(control_plane, namespace, STATEFUL_SETS)
        wait_until(lambda: engines.routed == set(engines.pods), what="all pods to be routed to")
        fleet = fleet_of(control_plane.admin, "draining", "scale", **SOON)
        before = {name: (labels_of(pod), annotations_of(pod)) for name, pod in engines.pods.items()}
        engines.loads = dict.fromkeys(engines.pods, 4.0)
        engines.cycle(fleet, 2)
        wait_until(lambda: engines.routed == {"llama-0", "llama-1"}, what="the highest ordinal to leave")
        uids = {name: pod["metadata"]["uid"] for name, pod in engines.pods.items()}
        fresh = fleet_of(control_plane.admin, "draining", "scale", **SOON)
        engines.cycle(fresh, 3)
        wait_until(lambda: len(engines.routed) == 3, what="it to come back")
        assert {name: pod["metadata"]["uid"] for name, pod in engines.pods.items()} == uids
        assert {name: (labels_of(pod), annotations_of(pod)) for name, pod in engines.pods.items()} == before

    def test_the_highest_ordinal_goes(
        self, control_plane: ControlPlane, namespace: str, kubelets: Kubelets
    ) -> None:
        engines = started(control_plane, namespace, STATEFUL_SETS)
        fleet = fleet_of(control_plane.admin, "draining", "scale", **SOON)
        engines.loads = {"llama-0": 0.0, "llama-1": 5.0, "llama-2": 3.0}
        engines.cycle(fleet, 2)
        engines.loads["llama-2"] = 0.0
        assert engines.cycle(fleet, 2)[0].code is OutcomeCode.DONE
        wait_until(lambda: set(engines.pods) == {"llama-0", "llama-1"}, what="llama-2 to go")

    def test_a_deployment_without_gates_is_said_to_go_undrained_here(
        self, control_plane: ControlPlane, namespace: str, kubelets: Kubelets
    ) -> None:
        if control_plane.admin.server_version() >= (1, 22):
            pytest.skip("this API server ranks pods by cost")
        engines = started(control_plane, namespace, DEPLOYMENTS)
        wait_until(lambda: engines.routed == set(engines.pods), what="all pods to be routed to")
        engines.loads = dict.fromkeys(engines.pods, 4.0)
        found = engines.cycle(fleet_of(control_plane.admin, "draining", "scale", **SOON), 2)
        assert f"add the readiness gate {SERVING}" in found[0].message
