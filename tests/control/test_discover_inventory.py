"""Nodes and pods as objects -> pools, foreign use, quotas."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.hardware import Market, Node
from planner.control.cluster.kinds import NODES, PODS
from planner.control.discovery.naming import Names, is_device
from planner.control.discovery.scheduling import requests_of
from tests.kube_objects import (
    CATALOG,
    H100,
    L4,
    a_container,
    a_deployment,
    a_node,
    a_pod,
    a_quota,
    a_replica_set,
    a_template,
    an_hpa,
    reading,
)

NAMES = Names(CATALOG)


class TestNames:
    @pytest.mark.parametrize(
        ("resource", "labels", "expected"),
        [
            ("nvidia.com/gpu", {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, "H100"),
            ("nvidia.com/gpu", {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, "H100"),
            ("nvidia.com/gpu", {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}, "A100-40GB"),
            ("nvidia.com/gpu", {"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}, "A100-40GB"),
            (
                "nvidia.com/gpu",
                {
                    "karpenter.k8s.aws/instance-gpu-name": "a100",
                    "karpenter.k8s.aws/instance-gpu-memory": "40960",
                },
                "A100-40GB",
            ),
            (
                "nvidia.com/gpu",
                {
                    "karpenter.k8s.aws/instance-gpu-name": "a100",
                    "karpenter.k8s.aws/instance-gpu-memory": "81920",
                },
                "A100-80GB",
            ),
            (
                "nvidia.com/gpu",
                {"nvidia.com/gpu.product": "A100-SXM4-40GB-MIG-1g.5gb"},
                "A100-40GB-MIG-1g.5gb",
            ),
            (
                "nvidia.com/mig-1g.5gb",
                {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"},
                "A100-40GB-MIG-1g.5gb",
            ),
            (
                "nvidia.com/mig-1g.5gb",
                {"nvidia.com/mig-1g.5gb.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"},
                "A100-40GB-MIG-1g.5gb",
            ),
            (
                "nvidia.com/gpu",
                {
                    "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
                    "cloud.google.com/gke-gpu-partition-size": "1g.5gb",
                },
                "A100-40GB-MIG-1g.5gb",
            ),
            ("nvidia.com/gpu", {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED"}, "L4-shared"),
            (
                "nvidia.com/gpu",
                {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.replicas": "4"},
                "L4-shared",
            ),
            ("nvidia.com/gpu", {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.replicas": "1"}, "L4"),
            ("nvidia.com/gpu.shared", {"nvidia.com/gpu.product": "NVIDIA-L4"}, "L4-shared"),
            ("amd.com/gpu", {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, "MI300X"),
            ("amd.com/gpu", {"amd.com/gpu.product": "AMD-MI300X-192G"}, "MI300X"),
            ("amd.com/gpu", {"beta.amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM": "8"}, "MI300X"),
            ("amd.com/gpu", {"beta.amd.com/gpu.device-id.74b5": "4"}, "MI300X"),
            ("amd.com/gpu", {"amd.com/gpu.device-id": "74a5"}, "MI325X"),
            ("amd.com/cpx_nps4", {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, "MI300X-cpx_nps4"),
            ("google.com/tpu", {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice"}, "TPU-v6e"),
            ("nvidia.com/gpu", {}, None),
            ("habana.ai/gaudi", {"intel.feature.node.kubernetes.io/gaudi": "true"}, None),
        ],
    )
    def test_labels_of_a_node_name_its_accelerator(
        self, resource: str, labels: dict[str, str], expected: str | None
    ) -> None:
        known = {each.casefold(): each for each in CATALOG.accelerators}
        wanted = known.get(expected.casefold(), expected) if expected else None
        assert NAMES.of(resource, labels) == wanted

    @pytest.mark.parametrize("name", ["Tesla-T4", "nvidia-tesla-t4", "T4", "NVIDIA T4", "t4"])
    def test_both_sides_agree_on_a_type_that_the_catalog_lacks(self, name: str) -> None:
        assert NAMES.normal(name) == "T4"

    def test_the_options_name_what_labels_do_not(self) -> None:
        named = Names(CATALOG, ("example.com/card",), {"habana.ai/gaudi": "gaudi2"})
        assert named.of("habana.ai/gaudi", {}) == NAMES.normal("gaudi2")
        assert named.of("nvidia.com/gpu", {"example.com/card": "L40S", **H100}) == "L40S"

    @pytest.mark.parametrize(
        "resource",
        ["cpu", "nvidia.com/gpu.memory", "nvidia.com/mig-weird", "example.com/gpu", "gpu", "rdma/hca"],
    )
    def test_other_resources_are_no_accelerators(self, resource: str) -> None:
        assert not is_device(resource)

    @pytest.mark.parametrize("name", ["", "  ", "-", "\x00\x1b[31m", "x" * 10_000, "-MIG-", "😀"])
    def test_names_that_are_none_stay_harmless(self, name: str) -> None:
        assert 0 < len(NAMES.normal(name)) <= 200


class TestRequests:
    @pytest.mark.parametrize(
        ("containers", "before", "expected"),
        [
            ([2, 1], [], 3),
            ([1], [4], 4),
            ([4], [1, 2], 4),
            ([1], [(1, "Always")], 2),
            ([1], [(1, "Always"), 3], 4),
            ([1], [3, (1, "Always")], 3),
        ],
    )
    def test_init_containers_run_before_and_sidecars_beside(
        self, containers: list[int], before: list[Any], expected: int
    ) -> None:
        first = [
            a_container(each[0], restartPolicy=each[1]) if isinstance(each, tuple) else a_container(each)
            for each in before
        ]
        spec = {"containers": [a_container(each) for each in containers], "initContainers": first}
        assert requests_of(spec) == {"nvidia.com/gpu": expected}

    @pytest.mark.parametrize("amount", ["-1", "many", None, {}, [], 1e400, "9" * 100, True])
    def test_absurd_amounts_count_for_nothing(self, amount: Any) -> None:
        assert requests_of({"containers": [{"resources": {"limits": {"nvidia.com/gpu": amount}}}]}) == {}


def nodes(*things: Any, **more: Any) -> dict[str, Node]:
    return {node.id: node for pool in reading(*things, **more).inventory.pools for node in pool.nodes}


class TestPools:
    def test_a_pool_is_one_type_in_one_zone_on_one_market(self) -> None:
        zone = {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "eu"}
        seen = reading(
            a_node("n1", labels=H100 | zone),
            a_node("n2", labels=H100 | zone),
            a_node("n3", labels=H100 | zone | {"topology.kubernetes.io/zone": "b"}),
            a_node("n4", labels=H100 | zone | {"karpenter.sh/capacity-type": "spot"}),
            a_node("n5", 1, labels=L4),
            cluster="west",
        ).inventory
        assert {pool.id: [node.id for node in pool.nodes] for pool in seen.pools} == {
            "west/H100/a": ["n1", "n2"],
            "west/H100/b": ["n3"],
            "west/H100/a/spot": ["n4"],
            "west/L4": ["n5"],
        }
        spot = next(pool for pool in seen.pools if pool.id.endswith("spot"))
        assert spot.offering.market is Market.SPOT
        assert (spot.region, spot.cluster, spot.failure_domain) == ("eu", "west", "west/a")

    def test_pods_of_others_are_foreign_and_ours_are_not(self) -> None:
        found = nodes(
            a_node("n1"),
            a_node("n2"),
            a_deployment(),
            a_replica_set(),
            an_hpa(),
            a_pod("llama-5d-1", ("ReplicaSet", "llama-5d"), gpus=2),
            a_pod("training", gpus=3, namespace="research"),
            a_pod("done", gpus=4, phase="Succeeded"),
            a_pod("failed", gpus=4, phase="Failed"),
            a_pod("leaving", gpus=1, node="n2", ending=True),
            a_pod("waits", gpus=8, node=""),
        )
        assert {name: node.foreign_gpus for name, node in found.items()} == {"n1": 3, "n2": 1}

    def test_more_foreign_use_than_there_is_fills_the_node(self) -> None:
        assert nodes(a_node(gpus=2), a_pod("big", gpus=5))["n1"].foreign_gpus == 2

    def test_cordoned_lost_and_leaving_nodes_are_told_apart(self) -> None:
        lost = a_node("lost")
        lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
        silent = a_node("silent", taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}])
        leaving = a_node("leaving")
        leaving["metadata"]["deletionTimestamp"] = "2026-11-30T10:00:00Z"
        found = nodes(lost, silent, leaving, a_node("cordoned", unschedulable=True), a_node("fine"))
        state = {name: (node.ready, node.cordoned, node.tainted) for name, node in found.items()}
        assert state == {
            "lost": (False, False, False),
            "silent": (False, False, False),
            "leaving": (True, True, False),
            "cordoned": (True, True, False),
            "fine": (True, False, False),
        }

    @pytest.mark.parametrize(
        ("taint", "tolerations", "tainted"),
        [
            ({"key": "team", "value": "a", "effect": "NoSchedule"}, [], True),
            ({"key": "team", "value": "a", "effect": "PreferNoSchedule"}, [], False),
            ({"key": "team", "value": "a", "effect": "NoSchedule"}, [{"key": "team", "value": "a"}], False),
            ({"key": "team", "value": "a", "effect": "NoSchedule"}, [{"key": "team", "value": "b"}], True),
            (
                {"key": "team", "value": "a", "effect": "NoExecute"},
                [{"key": "team", "operator": "Exists"}],
                False,
            ),
            ({"key": "team", "value": "a", "effect": "NoExecute"}, [{"operator": "Exists"}], False),
            (
                {"key": "team", "effect": "NoExecute"},
                [{"key": "team", "operator": "Exists", "effect": "NoSchedule"}],
                True,
            ),
        ],
    )
    def test_a_taint_bars_a_node_unless_our_pods_tolerate_it(
        self, taint: Any, tolerations: list[Any], tainted: bool
    ) -> None:
        deployment = a_deployment(template=a_template(tolerations=tolerations, nodeSelector=H100))
        assert nodes(a_node(taints=[taint]), deployment, an_hpa())["n1"].tainted is tainted

    def test_tolerations_that_pods_get_later_count(self) -> None:
        tainted = a_node(taints=[{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}])
        things = (tainted, a_deployment(), an_hpa())
        assert nodes(*things)["n1"].tainted
        given = ({"key": "nvidia.com/gpu", "operator": "Exists"},)
        assert not nodes(*things, tolerations=given)["n1"].tainted

    def test_devices_that_cannot_be_allocated_do_not_count(self) -> None:
        node = a_node()
        node["status"]["capacity"] = {"nvidia.com/gpu": "8"}
        node["status"]["allocatable"]["nvidia.com/gpu"] = "7"
        assert nodes(node)["n1"].gpus == 7

    def test_slices_are_a_pool_of_their_own(self) -> None:
        node = a_node(
            labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/mig.strategy": "mixed"}
        )
        node["status"]["allocatable"] = {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "3"}
        pools = reading(
            node, a_pod("p", spec={"containers": [a_container(2, resource="nvidia.com/mig-1g.5gb")]})
        ).inventory.pools
        assert {pool.accelerator: (pool.nodes[0].gpus, pool.nodes[0].foreign_gpus) for pool in pools} == {
            "A100-40GB": (1, 0),
            "A100-40GB-MIG-1g.5gb": (3, 2),
        }

    def test_nodes_that_nobody_names_are_a_finding(self) -> None:
        seen = reading(a_node("n1", labels={}), a_node("n2", labels={})).inventory
        assert not seen.pools
        assert "2 of them have (n1, n2)" in seen.findings[0].problem

    def test_nodes_that_could_not_be_read_make_it_incomplete(self) -> None:
        assert reading(a_node()).inventory.complete
        assert not reading(lacking=[NODES]).inventory.complete
        assert not reading(a_node(), lacking=[PODS]).inventory.complete


class TestQuotas:
    def test_a_quota_on_accelerators_is_seen_with_its_use(self) -> None:
        hard = {"requests.nvidia.com/gpu": "16", "requests.cpu": "100", "pods": "10"}
        (quota,) = reading(a_quota(hard, {"requests.nvidia.com/gpu": "5"})).inventory.quotas
        assert (quota.namespace, quota.resource, quota.hard, quota.used) == (
            "prod",
            "requests.nvidia.com/gpu",
            16,
            5,
        )

    def test_a_quota_that_does_not_say_its_use_is_counted(self) -> None:
        quotas = reading(
            a_quota({"requests.nvidia.com/gpu": "4"}), a_pod("p", gpus=3), a_node()
        ).inventory.quotas
        assert quotas[0].used == 3

    def test_a_quota_of_a_scope_is_told_of(self) -> None:
        seen = reading(a_quota({"requests.nvidia.com/gpu": "4"}, scopes=["BestEffort"])).inventory
        assert not seen.quotas
        assert "scope" in seen.findings[0].problem


@pytest.fixture(scope="module")
def recorded() -> Path:
    folder = os.environ.get("FLEETPLAN_TEST_DATA")
    if not folder:
        pytest.skip("FLEETPLAN_TEST_DATA is unset: it names a folder with recorded objects (k8s/)")
    return Path(folder) / "k8s"


class TestRecorded:
    def test_a_recorded_node_is_read(self, recorded: Path) -> None:
        for path in sorted(recorded.glob("node_*.yaml")):
            node = yaml.safe_load(path.read_text())
            (pool,) = reading(node).inventory.pools
            held = int(node["status"]["allocatable"]["nvidia.com/gpu"])
            assert [each.gpus for each in pool.nodes] == [held]
            product = node["metadata"]["labels"]["nvidia.com/gpu.product"]
            assert NAMES.normal(product) in pool.accelerator

    def test_products_that_vendors_write_are_known(self, recorded: Path) -> None:
        rows: list[Mapping[str, str]] = list(
            csv.DictReader((recorded / "node_label_keys.csv").read_text().splitlines())
        )
        products = {
            row["sample_value"]
            for row in rows
            if row["kind"] == "label"
            and row["key"].startswith(("nvidia.com/gpu.product", "amd.com/gpu.product"))
        }
        named = {each: NAMES.normal(each) for each in products if not each.startswith("<")}
        known = CATALOG.accelerators
        lacking = {each for each, name in named.items() if name.partition("-MIG")[0] not in known}
        assert lacking <= {"Tesla-T4"}

    def test_a_profile_of_a_cloud_node_becomes_a_pool(self, recorded: Path) -> None:
        profile = yaml.safe_load((recorded / "aicr_p5-h100.yaml").read_text())["spec"]["gpu"]
        node = a_node("p5", profile["count"], labels={"nvidia.com/gpu.product": profile["product"]})
        (pool,) = reading(node).inventory.pools
        assert (pool.accelerator, pool.nodes[0].gpus) == ("H100", 8)
