"""Scalers, workloads and pods as objects -> variants; and findings for what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from models.observation import VariantObservation
from models.variant import Role
from planner.control.cluster.kinds import DEPLOYMENTS, PODS, VARIANT_AUTOSCALINGS
from tests.kube_objects import (
    H100,
    L4,
    a_container,
    a_deployment,
    a_group,
    a_namespace,
    a_node,
    a_pod,
    a_replica_set,
    a_scaled_object,
    a_template,
    a_variant_autoscaling,
    an_hpa,
    notes,
    reading,
)


def variants(*things: Any, **more: Any) -> dict[str, VariantObservation]:
    return {each.name: each for each in reading(*things, **more).variants}


def problems(*things: Any, **more: Any) -> str:
    return "\n".join(f"{each.subject}: {each.problem}" for each in reading(*things, **more).findings)


class TestScalers:
    def test_an_annotated_hpa_is_a_variant_of_its_own_name(self) -> None:
        found = variants(a_deployment(), an_hpa(annotations=notes(cost="4.5"), least=2, most=8))["llama-hpa"]
        assert (found.model, found.cost, found.min_replicas, found.max_replicas) == ("llama-8b", 4.5, 2, 8)
        assert (found.target.kind, found.target.name, found.target.scaler) == ("Deployment", "llama", "hpa")
        assert found.target.scaler_name == "llama-hpa"

    def test_what_is_not_stated_is_as_the_apis_have_it(self) -> None:
        found = variants(a_deployment(replicas=None), an_hpa())["llama-hpa"]
        assert (found.min_replicas, found.cost, found.wanted) == (1, 10.0, 1)
        keda = variants(a_deployment(), a_scaled_object())["llama-so"]
        assert (keda.min_replicas, keda.max_replicas, keda.target.scaler) == (0, 100, "keda")

    def test_an_hpa_without_the_annotation_is_not_ours(self) -> None:
        assert not variants(a_deployment(), an_hpa(annotations={}))

    def test_the_scaled_object_wins_over_an_hpa_of_the_same_workload(self) -> None:
        things = (a_deployment(), an_hpa(), a_scaled_object(minReplicaCount=3))
        assert variants(*things)["llama-so"].min_replicas == 3
        assert len(variants(*things)) == 1
        assert "ScaledObject prod/llama-so scales Deployment llama already" in problems(*things)

    def test_the_hpa_that_keda_makes_is_no_second_variant(self) -> None:
        theirs = an_hpa(
            "keda-hpa-llama-so", owners=[{"kind": "ScaledObject", "name": "llama-so", "controller": True}]
        )
        things = (a_deployment(), theirs, a_scaled_object(), a_node())
        assert set(variants(*things)) == {"llama-so"}
        assert "already" not in problems(*things)

    def test_a_variant_autoscaling_is_read(self) -> None:
        thing = a_variant_autoscaling(minReplicas=0, maxReplicas=5, variantCost="2.5")
        found = variants(a_deployment(), thing)["llama-va"]
        assert (found.cost, found.min_replicas, found.max_replicas) == (2.5, 0, 5)
        assert found.target.scaler == "variantautoscaling"

    def test_an_early_variant_autoscaling_has_the_bounds_of_its_hpa(self) -> None:
        plain = an_hpa(annotations={}, least=3, most=7)
        found = variants(a_deployment(), a_variant_autoscaling(), plain)["llama-va"]
        assert (found.min_replicas, found.max_replicas) == (3, 7)

    @pytest.mark.parametrize("cost", ["-1", "cheap", "nan", "inf", "1e400", ""])
    def test_a_bad_cost_is_a_finding_and_no_variant(self, cost: str) -> None:
        things = (a_deployment(), an_hpa(annotations=notes(cost=cost)))
        assert not variants(*things)
        assert "cost" in problems(*things)

    @pytest.mark.parametrize("model", ["", "   ", "x" * 300, "a\x1bb"])
    def test_a_missing_model_is_a_finding_and_no_variant(self, model: str) -> None:
        things = (a_deployment(), an_hpa(annotations=notes(model)))
        assert not variants(*things)
        assert "names no model" in problems(*things)

    def test_a_target_that_cannot_be_scaled_is_a_finding(self) -> None:
        assert "scaleTargetRef" in problems(an_hpa(kind="DaemonSet"))

    def test_bounds_that_cross_are_a_finding(self) -> None:
        thing = a_scaled_object(minReplicaCount=5, maxReplicaCount=2)
        found = variants(a_deployment(), thing)["llama-so"]
        assert (found.min_replicas, found.max_replicas) == (5, 5)
        assert "at most 2" in problems(a_deployment(), thing)

    def test_only_scalers_of_our_instance_are_ours(self) -> None:
        label = {"wva.llmd.ai/controller-instance": "blue"}
        things = (a_deployment(), a_deployment("other"), an_hpa(labels=label), an_hpa("other-hpa", "other"))
        assert set(variants(*things, controller_instance="blue")) == {"llama-hpa"}
        assert set(variants(*things)) == {"llama-hpa", "other-hpa"}

    def test_excluded_namespaces_are_not_ours(self) -> None:
        things = (a_deployment(), an_hpa(), a_node(), a_pod("p", ("Deployment", "llama")))
        excluded = a_namespace(**{"wva.llmd.ai/exclude": "true"})
        assert not variants(*things, excluded)
        assert not variants(*things, exclude=("prod",))
        assert not variants(*things, namespaces=("elsewhere",))
        assert set(variants(*things, a_namespace(), namespaces=("prod",))) == {"llama-hpa"}

    @pytest.mark.parametrize("where", ["scaler", "workload", "namespace", "keda"])
    def test_people_can_pause_it(self, where: str) -> None:
        pause = {"fleetplan.dev/paused": "true"}
        keda = {"autoscaling.keda.sh/paused": "true"}
        marks = notes(**(pause if where == "scaler" else keda if where == "keda" else {}))
        more: dict[str, Any] = {"annotations": pause} if where == "workload" else {}
        namespace = a_namespace(**(pause if where == "namespace" else {}))
        (found,) = variants(a_deployment(**more), a_scaled_object(annotations=marks), namespace).values()
        assert found.paused

    def test_nothing_is_paused_unless_somebody_says_so(self) -> None:
        assert not variants(a_deployment(), an_hpa(), a_namespace())["llama-hpa"].paused


class TestWorkloads:
    def test_replicas_are_counted_by_their_pods(self) -> None:
        found = variants(
            a_deployment(replicas=4),
            a_replica_set(),
            an_hpa(),
            a_node(),
            a_pod("llama-5d-b", ("ReplicaSet", "llama-5d")),
            a_pod("llama-5d-a", ("ReplicaSet", "llama-5d"), node="n2"),
            a_pod("llama-5d-c", ("ReplicaSet", "llama-5d"), ready=False),
            a_pod("llama-5d-d", ("ReplicaSet", "llama-5d"), ending=True),
            a_pod("stranger", ("ReplicaSet", "other-5d")),
        )["llama-hpa"]
        assert (found.wanted, found.ready, found.pending) == (4, 2, 2)
        assert found.pods == ("llama-5d-a", "llama-5d-b")
        assert found.nodes == ("n2", "n1")

    def test_a_replica_that_finishes_what_it_has_counts(self) -> None:
        """Its readiness gate took it out of routing; the fleet is as large as before until it ends."""
        out = a_pod(
            "llama-5d-a", ("ReplicaSet", "llama-5d"), ready=False, labels={"fleetplan.dev/draining": "true"}
        )
        out["status"]["conditions"].append({"type": "ContainersReady", "status": "True"})
        starts = a_pod("llama-5d-b", ("ReplicaSet", "llama-5d"), ready=False)
        starts["status"]["conditions"].append({"type": "ContainersReady", "status": "True"})
        found = variants(a_deployment(replicas=2), a_replica_set(), an_hpa(), a_node(), out, starts)
        assert (found["llama-hpa"].ready, found["llama-hpa"].pending) == (1, 1)
        assert found["llama-hpa"].pods == ("llama-5d-a",)

    def test_pods_find_their_deployment_without_replica_sets(self) -> None:
        labels = {"pod-template-hash": "5d"}
        pod = a_pod("llama-5d-a", ("ReplicaSet", "llama-5d"), labels=labels)
        assert variants(a_deployment(), an_hpa(), pod)["llama-hpa"].ready == 1

    def test_where_pods_cannot_be_read_the_controller_is_believed(self) -> None:
        deployment = a_deployment(replicas=3)
        deployment["status"] = {"readyReplicas": 2}
        found = variants(deployment, an_hpa(), lacking=[PODS])["llama-hpa"]
        assert (found.ready, found.pending, found.pods) == (2, 1, ())

    def test_a_group_is_ready_when_all_its_pods_are(self) -> None:
        def pod(group: int, worker: int, *, ready: bool = True) -> Any:
            name = f"deep-{group}" if not worker else f"deep-{group}-{worker}"
            labels = {
                "leaderworkerset.sigs.k8s.io/name": "deep",
                "leaderworkerset.sigs.k8s.io/group-index": str(group),
                "leaderworkerset.sigs.k8s.io/worker-index": str(worker),
            }
            owner = "deep" if not worker else f"deep-{group}"
            return a_pod(
                name, ("StatefulSet", owner), labels=labels, gpus=8, node=f"n{group}{worker}", ready=ready
            )

        things = (
            a_group(replicas=3, size=2, gpus=8, leader=a_template(4)),
            an_hpa(target="deep", kind="LeaderWorkerSet"),
            pod(0, 0), pod(0, 1), pod(1, 0), pod(1, 1, ready=False),
        )  # fmt: skip
        found = variants(*things)["llama-hpa"]
        assert (found.gpus, found.pods_per_replica) == (12, 2)
        assert (found.wanted, found.ready, found.pending) == (3, 1, 2)
        assert (found.pods, found.nodes) == (("deep-0",), ("n00",))

    def test_a_stateful_set_is_a_workload(self) -> None:
        things = (
            a_deployment("db", 2, kind="StatefulSet"),
            an_hpa(target="db", kind="StatefulSet"),
            a_pod("db-0", ("StatefulSet", "db")),
        )
        found = variants(*things)["llama-hpa"]
        assert (found.wanted, found.ready, found.target.kind) == (2, 1, "StatefulSet")

    def test_a_target_that_is_gone_is_a_condition(self) -> None:
        found = variants(an_hpa())["llama-hpa"]
        assert found.wanted is None
        assert [(each.type, each.status, each.reason) for each in found.conditions] == [
            ("TargetResolved", False, "TargetNotFound")
        ]
        assert variants(a_deployment(), an_hpa())["llama-hpa"].conditions[0].status

    def test_a_target_that_could_not_be_looked_for_is_not_gone(self) -> None:
        seen = reading(an_hpa(), lacking=[DEPLOYMENTS])
        assert seen.variants[0].conditions[0].reason == "TargetUnknown"
        assert not seen.complete

    def test_scalers_that_could_not_be_read_make_it_incomplete(self) -> None:
        assert not reading(a_deployment(), an_hpa(), lacking=[VARIANT_AUTOSCALINGS]).complete
        assert reading(a_deployment(), an_hpa()).complete

    @pytest.mark.parametrize(
        ("label", "role"),
        [("prefill", Role.PREFILL), ("decode", Role.DECODE), ("odd", Role.BOTH), (None, Role.BOTH)],
    )
    def test_the_label_of_the_pods_says_their_role(self, label: str | None, role: Role) -> None:
        labels = {} if label is None else {"llm-d.ai/role": label}
        assert variants(a_deployment(template=a_template(labels=labels)), an_hpa())["llama-hpa"].role is role


class TestAccelerators:
    NODES = (a_node("n1"), a_node("n2", 1, labels=L4))

    def named(self, deployment: Any, *more: Any, label: str | None = None) -> str:
        labels = {} if label is None else {"inference.optimization/acceleratorName": label}
        return variants(deployment, a_replica_set(), an_hpa(labels=labels), *self.NODES, *more)[
            "llama-hpa"
        ].accelerator

    def test_the_node_selector_names_it(self) -> None:
        assert self.named(a_deployment(template=a_template(nodeSelector=L4)), label="H100") == "L4"

    def test_an_affinity_with_one_value_names_it(self) -> None:
        row = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-L4"]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [row]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        assert self.named(a_deployment(template=a_template(affinity=affinity))) == "L4"

    def test_running_pods_show_it(self) -> None:
        pod = a_pod("llama-5d-a", ("ReplicaSet", "llama-5d"), node="n2")
        assert self.named(a_deployment(), pod, label="H100") == "L4"

    def test_the_label_names_it_else(self) -> None:
        assert self.named(a_deployment(), label="NVIDIA-H100-80GB-HBM3") == "H100"

    def test_the_only_nodes_that_can_hold_it_show_it(self) -> None:
        selector = {"kubernetes.io/hostname": "n2"}
        nodes = (a_node("n1"), a_node("n2", 1, labels=L4 | selector))
        deployment = a_deployment(template=a_template(nodeSelector=selector))
        assert variants(deployment, an_hpa(), *nodes)["llama-hpa"].accelerator == "L4"

    def test_what_nobody_names_is_a_finding(self) -> None:
        assert self.named(a_deployment()) == ""
        assert "its accelerator is not known" in problems(a_deployment(), an_hpa(), *self.NODES)

    def test_a_selected_product_that_nodes_share_is_the_shared_type(self) -> None:
        shared = a_node("n3", labels=L4 | {"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"})
        deployment = a_deployment(template=a_template(nodeSelector=L4))
        assert variants(deployment, an_hpa(), shared)["llama-hpa"].accelerator == "L4-shared"
        assert variants(deployment, an_hpa(), self.NODES[1], a_node())["llama-hpa"].accelerator == "L4"

    def test_a_slice_needs_no_nodes_to_be_named(self) -> None:
        template = a_template(nodeSelector=H100)
        template["spec"]["containers"] = [a_container(1, resource="nvidia.com/mig-1g.10gb")]
        assert (
            variants(a_deployment(template=template), an_hpa())["llama-hpa"].accelerator == "H100-MIG-1g.10gb"
        )

    def test_a_slice_is_named_after_the_nodes_that_have_it(self) -> None:
        node = a_node(labels=H100)
        node["status"]["allocatable"] = {"nvidia.com/mig-1g.10gb": "7"}
        template = a_template(nodeSelector=H100)
        template["spec"]["containers"] = [a_container(1, resource="nvidia.com/mig-1g.10gb")]
        assert (
            variants(a_deployment(template=template), an_hpa(), node)["llama-hpa"].accelerator
            == "H100-MIG-1g.10gb"
        )


class TestEngines:
    @pytest.mark.parametrize(
        "more",
        [
            {"args": ["--model", "m", "--max-num-seqs", "64", "--max-model-len=8192"]},
            {"command": ["vllm", "serve", "m"], "args": ["--max-num-seqs=64", "--max-model-len", "8192"]},
            {
                "command": [
                    "sh",
                    "-c",
                    "export X=1 && exec vllm serve m --max-num-seqs 64 \\\n --max-model-len 8192 || true",
                ]
            },
            {
                "command": ["/bin/bash", "-ec"],
                "args": ["vllm serve $MODEL --max-num-seqs $(SEQS) --max-model-len ${LEN:-8192}"],
                "env": [{"name": "MODEL", "value": "m"}, {"name": "SEQS", "value": "64"}],
            },
        ],
    )
    def test_arguments_of_vllm_are_read(self, more: dict[str, Any]) -> None:
        template = a_template()
        template["spec"]["containers"] = [a_container(1, **more)]
        found = variants(a_deployment(template=template), an_hpa())["llama-hpa"]
        assert found.engine == "vllm"
        assert found.engine_arguments.max_requests == 64
        assert found.engine_arguments.context_tokens == 8192

    def test_arguments_of_sglang_are_read(self) -> None:
        script = "python -m sglang.launch_server --model m --max-running-requests 32 --chunked-prefill-size=4096 --disable-cuda-graph"
        template = a_template()
        template["spec"]["containers"] = [
            a_container(1, image="lmsysorg/sglang", command=["sh", "-c", script])
        ]
        found = variants(a_deployment(template=template), an_hpa())["llama-hpa"]
        arguments = found.engine_arguments
        assert found.engine == "sglang"
        assert (arguments.max_requests, arguments.batched_tokens, arguments.block_tokens) == (32, 4096, 1)
        assert not arguments.graphs

    @pytest.mark.parametrize(
        "args",
        [
            ["--max-num-seqs", "many"],
            ["--max-model-len"],
            ["serve", "'"],
            ["--block-size", "-4"],
            [{}, None, 7],
        ],
    )
    def test_arguments_that_cannot_be_are_no_crash(self, args: list[Any]) -> None:
        template = a_template()
        template["spec"]["containers"] = [a_container(1, args=args)]
        found = variants(a_deployment(template=template), an_hpa())["llama-hpa"]
        assert found.engine_arguments.max_requests is None

    def test_pods_without_accelerators_are_a_finding(self) -> None:
        things = (a_deployment(template=a_template(0)), an_hpa())
        assert variants(*things)["llama-hpa"].gpus == 1
        assert "ask for none" in problems(*things)


class TestWhoSetTheReplicas:
    def test_the_newest_manager_of_the_count_is_told(self) -> None:
        thing = a_deployment()
        owns = {"f:spec": {"f:replicas": {}}}
        thing["metadata"]["managedFields"] = [
            {"manager": "kubectl-scale", "time": "2026-05-01T10:00:00Z", "fieldsV1": owns},
            {"manager": "fleetplan", "time": "2026-04-01T10:00:00Z", "fieldsV1": owns},
            {"manager": "helm", "time": "2026-06-01T10:00:00Z", "fieldsV1": {"f:spec": {"f:template": {}}}},
        ]
        found = variants(thing, an_hpa())["llama-hpa"]
        assert (found.written_by, found.written_at) == ("kubectl-scale", "2026-05-01T10:00:00Z")

    @pytest.mark.parametrize("spoiled", [None, 7, [None, {"fieldsV1": 3}], [{"manager": 4}]], ids=str)
    def test_nobody_is_told_where_the_api_does_not_say(self, spoiled: Any) -> None:
        thing = a_deployment()
        thing["metadata"]["managedFields"] = spoiled
        assert variants(thing, an_hpa())["llama-hpa"].written_by == ""

    def test_our_note_of_a_change_by_hand_is_read(self) -> None:
        thing = a_deployment()
        thing["metadata"]["annotations"] = {"fleetplan.dev/held": "3 replicas by kubectl-scale"}
        assert variants(thing, an_hpa())["llama-hpa"].held == "3 replicas by kubectl-scale"
