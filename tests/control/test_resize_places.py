"""Records, accelerators and routes of a resize in a cluster, and records in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from models.elastic import ElasticEngine
from models.resize_operation import OperationPhase, ResizeOperation
from planner.clock import FakeClock
from planner.control.cluster import Api, MemoryCluster
from planner.control.cluster.kinds import LEADER_WORKER_SETS, LEASES, PODS, STATEFUL_SETS, Kind
from planner.control.resizing.grounds import PodGround
from planner.control.resizing.routes import LABEL, PodRoutes, pods_of_ranks
from planner.control.resizing.stores import ANNOTATION, FileStore, LeaseStore
from planner.errors import SafetyGateError, TemporaryError

P = OperationPhase


def a_resize(name: str = "a", **fields: Any) -> ResizeOperation:
    return ResizeOperation(
        id=name,
        deployment="prod/moe",
        engine=ElasticEngine(),
        urls=("http://127.0.0.1:1",),
        from_ranks=4,
        to_ranks=6,
        started_s=1e9,
        since_s=1e9,
        **fields,
    )


def api_of(cluster: MemoryCluster) -> Api:
    return Api(cluster, FakeClock())


def stores(tmp_path: Path) -> list[Any]:
    return [LeaseStore(api_of(MemoryCluster()), "prod", "Moe_A"), FileStore(tmp_path / "deep" / "moe.json")]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    for store in stores(tmp_path):
        assert store.load() is None
        for phase in (P.PLANNED, P.CALLING, P.DONE):
            store.save(a_resize(phase=phase))
            assert store.load() == a_resize(phase=phase)


def test_an_operation_that_is_not_over_is_not_written_over(tmp_path: Path) -> None:
    for store in stores(tmp_path):
        store.save(a_resize(phase=P.CALLING))
        with pytest.raises(SafetyGateError, match="is calling"):
            store.save(a_resize("b"))
        store.save(a_resize(phase=P.DONE))
        store.save(a_resize("b"))
        assert store.load().id == "b"


def test_a_record_that_cannot_be_read_stops_everything(tmp_path: Path) -> None:
    broken = tmp_path / "moe.json"
    broken.write_text('{"id": 1')
    with pytest.raises(SafetyGateError, match="cannot be read"):
        FileStore(broken).save(a_resize())
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "fleetplan-resize-moe", "namespace": "prod", "annotations": {ANNOTATION: "no"}},
    }
    with pytest.raises(SafetyGateError, match="Lease prod/fleetplan-resize-moe"):
        LeaseStore(api_of(MemoryCluster([lease])), "prod", "moe").load()


def test_of_two_writers_one_is_refused(tmp_path: Path) -> None:
    cluster = MemoryCluster()
    first = LeaseStore(api_of(cluster), "prod", "moe")
    first.save(a_resize())

    class Late(LeaseStore):
        def load(self) -> ResizeOperation | None:
            found = super().load()
            first.save(a_resize(phase=P.RESERVING))
            return found

    with pytest.raises(SafetyGateError, match="somebody else writes"):
        Late(api_of(cluster), "prod", "moe").save(a_resize(phase=P.CALLING))
    path = tmp_path / "moe.json"
    holds = FileStore(path)
    holds.save(a_resize())
    with pytest.raises(SafetyGateError, match="another process"):
        FileStore(path).save(a_resize())
    holds.close()
    FileStore(path).save(a_resize(phase=P.DONE))


def test_denials_name_the_rule(tmp_path: Path) -> None:
    cluster = MemoryCluster(denied=[("create", "leases")])
    with pytest.raises(TemporaryError, match=r'resources: \["leases"\]'):
        LeaseStore(api_of(cluster), "prod", "moe").save(a_resize())
    folder = tmp_path / "file"
    folder.write_text("no folder")
    with pytest.raises(TemporaryError, match="cannot be"):
        FileStore(folder / "moe.json").save(a_resize())


def workload(kind: Kind, replicas: int) -> dict[str, Any]:
    return {
        "apiVersion": kind.api_version(),
        "kind": kind.name,
        "metadata": {"name": "moe", "namespace": "prod"},
        "spec": {"replicas": replicas},
    }


def pod(name: str, owner: tuple[str, str], *, node: str = "n1", labels: dict[str, str] | None = None, **meta: Any) -> dict[str, Any]:  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "prod",
            "labels": labels or {},
            "ownerReferences": [{"kind": owner[0], "name": owner[1]}],
            **meta,
        },
        "spec": {"nodeName": node} if node else {},
    }


def replicas(cluster: MemoryCluster, kind: Kind) -> int:
    return int(api_of(cluster).get(kind, "prod", "moe")["spec"]["replicas"])


def test_pods_of_a_stateful_set_are_ranks_in_their_order() -> None:
    pods = [pod(f"moe-{i}", ("StatefulSet", "moe")) for i in (0, 1, 3)]
    cluster = MemoryCluster([workload(STATEFUL_SETS, 4), *pods, pod("other-0", ("StatefulSet", "other"))])
    ground = PodGround(api_of(cluster), STATEFUL_SETS, "prod", "moe", ranks_per_replica=2)
    assert ground.there() == 4
    assert ground.reserve(9) is None
    assert replicas(cluster, STATEFUL_SETS) == 5
    assert ground.reserve(4) is None
    assert replicas(cluster, STATEFUL_SETS) == 5
    assert ground.release(4) is None
    assert replicas(cluster, STATEFUL_SETS) == 2
    assert ground.release(8) is None
    assert replicas(cluster, STATEFUL_SETS) == 2


def test_groups_of_a_leader_worker_set_count_whole() -> None:
    def of_group(group: int, worker: int, **more: Any) -> dict[str, Any]:
        name = f"moe-{group}" if worker == 0 else f"moe-{group}-{worker}"
        owner = ("StatefulSet", "moe" if worker == 0 else f"moe-{group}")
        return pod(name, owner, labels={"leaderworkerset.sigs.k8s.io/group-index": str(group)}, **more)

    pods = [of_group(0, 0), of_group(0, 1), of_group(1, 0), of_group(1, 1, node="")]
    cluster = MemoryCluster([workload(LEADER_WORKER_SETS, 2), *pods])
    ground = PodGround(
        api_of(cluster), LEADER_WORKER_SETS, "prod", "moe", ranks_per_replica=8, pods_per_replica=2
    )
    assert ground.there() == 8
    assert ground.reserve(24) is None
    assert replicas(cluster, LEADER_WORKER_SETS) == 3


def test_pods_that_end_hold_nothing() -> None:
    pods = [pod("moe-0", ("StatefulSet", "moe"), deletionTimestamp="2026-01-01T00:00:00Z")]
    ground = PodGround(
        api_of(MemoryCluster([workload(STATEFUL_SETS, 1), *pods])), STATEFUL_SETS, "prod", "moe"
    )
    assert ground.there() == 0


def test_what_is_forbidden_is_a_reason_and_no_exception() -> None:
    cluster = MemoryCluster(
        [workload(STATEFUL_SETS, 1)], denied=[("patch", "statefulsets/scale"), ("list", "pods")]
    )
    ground = PodGround(api_of(cluster), STATEFUL_SETS, "prod", "moe")
    assert "statefulsets/scale" in (ground.reserve(3) or "")
    assert ground.there() is None


@pytest.mark.parametrize(
    ("per_group", "names"),
    [
        (1, ["moe-0", "moe-1", "moe-2", "moe-3", "moe-4"]),
        (2, ["moe-0", "moe-0-1", "moe-1", "moe-1-1", "moe-2"]),
    ],
)
def test_each_rank_has_its_pod_also_in_groups(per_group: int, names: list[str]) -> None:
    pods = [pod(name, ("StatefulSet", name)) for name in names]
    cluster = MemoryCluster(pods)
    routes = PodRoutes(api_of(cluster), "prod", pods_of_ranks("moe", per_group), lambda: 5, lambda _: 0.0)
    assert routes.route(3) is None
    labels = [api_of(cluster).get(PODS, "prod", name)["metadata"]["labels"][LABEL] for name in names]
    assert labels == ["yes", "yes", "yes", "draining", "draining"]


def test_labels_say_which_ranks_get_traffic_and_are_written_on_change_alone() -> None:
    pods = [pod(f"moe-{i}", ("StatefulSet", "moe")) for i in range(4)]
    cluster = MemoryCluster(pods)
    routes = PodRoutes(api_of(cluster), "prod", lambda rank: f"moe-{rank}", lambda: 4, lambda _: 0.0)
    assert routes.route(3) is None
    labels = [
        api_of(cluster).get(PODS, "prod", f"moe-{i}")["metadata"]["labels"].get(LABEL) for i in range(4)
    ]
    assert labels == ["yes", "yes", "yes", "draining"]
    writes = len(cluster.writes)
    assert routes.route(3) is None
    assert len(cluster.writes) == writes
    assert routes.route(4) is None
    assert len(cluster.writes) == writes + 1


def test_the_lock_is_seen_in_the_lease() -> None:
    cluster = MemoryCluster()
    store = LeaseStore(api_of(cluster), "prod", "moe")
    store.save(a_resize())
    lease = api_of(cluster).get(LEASES, "prod", "fleetplan-resize-moe")
    assert lease["spec"]["holderIdentity"] == "a"
    store.save(a_resize(phase=P.ABANDONED))
    assert "holderIdentity" not in api_of(cluster).get(LEASES, "prod", "fleetplan-resize-moe")["spec"]
