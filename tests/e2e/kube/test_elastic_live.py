"""Resizes on a real API server: groups and pods first, one call, whole groups alone, one controller, by exactly these rights."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest
import yaml

from models.elastic import ElasticEngine, LoadBalancing
from models.resize_operation import OperationLimits, OperationPhase, ResizeOperation
from planner.clock import SystemClock
from planner.control.cluster import Api, ClusterFault, ClusterOptions, Kind, Trouble, connect
from planner.control.cluster.kinds import (
    LEADER_WORKER_SETS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)
from planner.control.cluster.reading import labels_of, name_of
from planner.control.cluster.resize_records import record_of
from planner.control.collectors.access import Credentials
from planner.control.collectors.transport import Connections
from planner.control.discovery.snapshot import snapshot
from planner.control.resizing import World, drive, order
from planner.control.resizing.grounds import PodGround
from planner.control.resizing.http_engine import HttpEngine
from planner.control.resizing.routes import LABEL, EngineRoutes, PodRoutes
from planner.control.resizing.stores import LeaseStore
from planner.errors import SafetyGateError
from tests.e2e.kube.aggregated import install_crd
from tests.e2e.kube.control_plane import ControlPlane, kube_test, wait_until
from tests.e2e.kube.groups import GROUP, WORKER, GroupController, a_group_set
from tests.e2e.kube.kubelet import Kubelets
from tests.elastic_standins import StandIn, serving

pytestmark = kube_test()

WAY: Final = Path(__file__).parents[3] / "deploy" / "ways" / "resizing" / "rbac.yaml"
HOME: Final = "fleetplan-system"
ENDPOINTS: Final = Kind("Endpoints", "endpoints")
CLOCK: Final = SystemClock()
P = OperationPhase
QUICK: Final = OperationLimits(reserve_s=20, drain_s=5, total_s=5, ready_s=5, verify_s=10)
ENGINES: Final = {
    "internal": ElasticEngine(),
    "external": ElasticEngine(load_balancing=LoadBalancing.EXTERNAL, data_parallel_backend="mp"),
}
SIZE, GPUS, RANKS = 2, 4, 8
"""Pods of a group, GPUs of a pod, ranks of a group."""


@dataclass(frozen=True)
class Rig:
    """A cluster with the kind LeaderWorkerSet and with the account that resizes."""

    plane: ControlPlane
    kubeconfig: Path

    @property
    def admin(self) -> Api:
        return self.plane.admin

    @property
    def api(self) -> Api:
        """The API as the account, that counts its calls anew."""
        return connect(ClusterOptions(kubeconfig=self.kubeconfig, timeout_s=10, within_s=20), CLOCK)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A control plane of its own: its nodes are all the GPUs that there are."""
    binaries = Path(os.environ["KUBEBUILDER_ASSETS"])
    with ControlPlane(tmp_path_factory.mktemp("elastic"), binaries, scheduler=True) as plane:
        install_crd(plane, LEADER_WORKER_SETS)
        plane.admin.create(NAMESPACES, "", {"metadata": {"name": HOME}})
        plane.install(yaml.safe_load_all(WAY.read_text()), home=HOME)
        for number in range(2):
            plane.add_node(f"gpu-{number}", **{"nvidia.com/gpu": 12})
        with Kubelets(plane.admin), GroupController(plane.admin):
            yield Rig(plane, plane.account(HOME, "fleetplan-resizer"))


@pytest.fixture
def space(rig: Rig, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace, whose pods are gone before the next test counts GPUs."""
    name = f"elastic-{abs(hash(request.node.name)) % 10**8}"
    rig.admin.create(NAMESPACES, "", {"metadata": {"name": name}})
    yield name
    for kind in (LEADER_WORKER_SETS, STATEFUL_SETS):
        for each in rig.admin.list(kind, name).items:
            rig.admin.delete(kind, name, each["metadata"]["name"])
    wait_until(lambda: not rig.admin.list(PODS, name).items, what="that all pods are gone")
    rig.admin.delete(NAMESPACES, "", name)


@dataclass
class Watched(StandIn):
    """An engine that looks at its cluster whenever a resize is ordered."""

    look: Any = None
    seen: list[Any] = field(default_factory=list)

    def resize(self, rank: int, wanted: int) -> Any:
        self.seen.append(self.look())
        return super().resize(rank, wanted)

    def forget(self) -> None:
        """Before the next resize: nothing was ordered, and the last one is long over."""
        self.seen.clear()
        self.orders.clear()
        self.phase = "idle"


@dataclass
class Guarded:
    """Accelerators, with a look at the engine before any are given back."""

    ground: PodGround
    engine: StandIn

    def reserve(self, ranks: int) -> str | None:
        return self.ground.reserve(ranks)

    def there(self) -> int | None:
        return self.ground.there()

    def release(self, ranks: int) -> str | None:
        assert ranks >= self.engine.size, "accelerators under live ranks"
        return self.ground.release(ranks)


@dataclass
class Site:
    """A LeaderWorkerSet ``moe`` of groups of eight ranks, with its engine."""

    rig: Rig
    space: str
    engine: StandIn
    api: Api

    @property
    def ground(self) -> PodGround:
        return PodGround(self.api, LEADER_WORKER_SETS, self.space, "moe", RANKS, SIZE)

    def world(self) -> World:
        store = LeaseStore(self.api, self.space, "moe")
        http = HttpEngine(ENGINES[self.engine.dialect], self.engine.urls, Connections(Credentials(), most=64), operation=store.load())  # fmt: skip
        ground = Guarded(self.ground, self.engine)
        return World(engine=http, ground=ground, router=EngineRoutes(), store=store)

    def resized(self, to: int, *, limits: OperationLimits = QUICK) -> ResizeOperation:
        operation, world = an_operation(self.engine, to, limits=limits), self.world()
        return drive(order(operation, world), world, CLOCK, poll_s=0.1)

    def groups(self) -> dict[str, list[str]]:
        """Pods by group."""
        found: dict[str, list[str]] = {}
        for pod in self.rig.admin.list(PODS, self.space).items:
            labels = labels_of(pod)
            found.setdefault(labels.get(GROUP, "?"), []).append(labels.get(WORKER, "?"))
        return {group: sorted(workers) for group, workers in sorted(found.items())}

    def ids(self, group: int) -> set[str]:
        pods = self.rig.admin.list(PODS, self.space, labels=f"{GROUP}={group}").items
        return {pod["metadata"]["uid"] for pod in pods}

    def replicas(self) -> int:
        return int(self.rig.admin.get(LEADER_WORKER_SETS, self.space, "moe")["spec"]["replicas"])


def an_operation(
    engine: StandIn, to: int, *, name: str = "", limits: OperationLimits = QUICK
) -> ResizeOperation:
    now_s = CLOCK.unix_s()
    return ResizeOperation(
        id=name or f"{engine.size}-{to}-{now_s:.3f}",
        deployment="moe",
        engine=ENGINES[engine.dialect],
        urls=tuple(engine.urls),
        from_ranks=engine.size,
        to_ranks=to,
        limits=limits,
        started_s=now_s,
        since_s=now_s,
    )


@pytest.fixture
def made(rig: Rig, space: str) -> Any:
    """Makes the site: one group runs, and the engine has its eight ranks."""

    def make(engine: StandIn) -> Site:
        site = Site(rig, space, engine, rig.api)
        rig.admin.create(LEADER_WORKER_SETS, space, a_group_set("moe", replicas=1, size=SIZE, gpus=GPUS))
        wait_until(lambda: site.ground.there() == RANKS, what="the first group")
        return site

    return make


def phases(operation: ResizeOperation) -> list[OperationPhase]:
    return [entry.phase for entry in operation.history]


@pytest.mark.parametrize("dialect", ["internal", "external"])
def test_groups_come_before_the_call_and_the_highest_go_after_it(made: Any, dialect: str) -> None:
    engine = Watched(dialect, size=8, most=32)
    with serving(engine, most=16):
        site: Site = made(engine)
        engine.look = site.ground.there
        first = site.ids(0)
        grown = site.resized(16)
        assert (grown.phase, engine.size, site.replicas()) == (P.DONE, 16, 2), grown.history
        assert set(engine.seen) == {16}, "groups of the joiners were not there before the call"
        assert site.groups() == {"0": ["0", "1"], "1": ["0", "1"]}
        assert len(set(engine.orders)) == len(engine.orders) == (1 if dialect == "internal" else 8)

        engine.forget()
        shrunk = site.resized(8)
        assert (shrunk.phase, engine.size, site.replicas()) == (P.DONE, 8, 1), shrunk.history
        assert set(engine.seen) == {16}, "groups were ended under ranks that lived"
        wait_until(lambda: site.groups() == {"0": ["0", "1"]}, what="that the highest group is gone")
        assert len(set(engine.orders)) == len(engine.orders) == (1 if dialect == "internal" else 16)
        assert site.ids(0) == first, "pods that stay were made anew"
        spec = site.rig.admin.get(LEADER_WORKER_SETS, site.space, "moe")["spec"]
        assert spec["leaderWorkerTemplate"]["size"] == SIZE


def test_a_group_is_never_cut(made: Any) -> None:
    """Twelve ranks take two groups of eight, and the second one stays until no rank lives in it."""
    with serving(StandIn("internal", size=8)) as engine:
        site: Site = made(engine)
        for to, groups in ((12, 2), (9, 2), (8, 1)):
            assert site.resized(to).phase is P.DONE
            assert site.replicas() == groups, to
        wait_until(lambda: site.groups() == {"0": ["0", "1"]}, what="that the second group is gone")


def test_without_room_nothing_is_called_and_groups_that_came_go_again(made: Any) -> None:
    """24 GPUs hold three groups; of a fourth one no pod finds a node, and of half a group none counts."""
    with serving(StandIn("internal", size=8)) as engine:
        site: Site = made(engine)
        ended = site.resized(32, limits=QUICK.but(reserve_s=3))
        assert (ended.phase, engine.orders, site.replicas()) == (P.ABANDONED, [], 1), ended.history
        assert any(
            re.search(r"accelerators for (8|16|24) ranks are there", entry.text) for entry in ended.history
        )
        wait_until(lambda: site.groups() == {"0": ["0", "1"]}, what="that groups that came are gone")


def test_of_two_controllers_one_resizes(made: Any) -> None:
    with serving(StandIn("internal", size=8, prepare_s=3)) as engine:
        site: Site = made(engine)
        ended: list[ResizeOperation] = []
        first = Thread(target=lambda: ended.append(site.resized(16)))
        first.start()
        wait_until(lambda: engine.orders, what="the call of the first one")
        records = {
            name_of(each): record_of(each) for each in snapshot(site.rig.admin, [site.space]).of(LEASES)
        }
        assert [(name, each and each.phase) for name, each in records.items()] == [
            ("fleetplan-resize-moe", P.CALLING)
        ], "a controller does not see it, or other Leases too"
        other = Site(site.rig, site.space, engine, site.rig.api)
        with pytest.raises(SafetyGateError, match="from 8 to 16 ranks is calling"):
            order(an_operation(engine, 24, name="another"), other.world())
        first.join(60)
        assert [each.phase for each in ended] == [P.DONE]
        assert [wanted for _, wanted in engine.orders] == [16]


def test_of_two_that_write_at_once_one_is_refused_by_the_api_server(made: Any) -> None:
    with serving(StandIn("internal", size=8)) as engine:
        site: Site = made(engine)
        first, operation = LeaseStore(site.api, site.space, "moe"), an_operation(engine, 16, name="same")
        first.save(operation)

        class Late(LeaseStore):
            def load(self) -> ResizeOperation | None:
                found = super().load()
                first.save(operation.but(phase=P.RESERVING))
                return found

        with pytest.raises(SafetyGateError, match="somebody else writes"):
            Late(site.api, site.space, "moe").save(operation.but(phase=P.CALLING))


SCENARIO: Final = """
name: elastic
services:
  chat:
    llm: DeepSeek-V3
    traffic: {rate: 11 req/s, input: 2048, output: 512}
    variants:
      moe: {accelerator: GB200, dp: 8, ep: 8, elastic: {max_ranks: 32, rank_group: 8}}
pools: {rack: {accelerator: GB200, nodes: {count: 6, gpus: 4}}}
current: {chat/moe@rack: {replicas: 1}}
"""


def test_the_command_goes_on_where_a_killed_one_stopped(made: Any, tmp_path: Path) -> None:
    """Killed while its call is on the way: the next one sends no second call, and ends what was begun."""
    scenario = tmp_path / "elastic.yaml"
    scenario.write_text(SCENARIO)
    with serving(StandIn("internal", size=8, prepare_s=4)) as engine:
        site: Site = made(engine)
        place = ("--kubernetes", f"{site.space}/moe", "--kubeconfig", site.rig.kubeconfig)
        shape = ("--kind", "LeaderWorkerSet", "--ranks-per-replica", RANKS, "--pods-per-replica", SIZE)
        words = ("resize", scenario, "--to", 16, "--url", engine.urls[0], *place, *shape, "--yes")
        with subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as killed:
            wait_until(lambda: engine.orders, within_s=60, what="the call")
            killed.send_signal(signal.SIGKILL)
            killed.communicate()
        told = subprocess.run(
            command("status", *place, "--json"), capture_output=True, text=True, check=False
        )
        assert json.loads(told.stdout)["phase"] == "calling", told.stderr
        again = subprocess.run(command(*words), capture_output=True, text=True, check=False, timeout=90)
        assert again.returncode == 0, again.stderr
        assert "its answer is not known" in again.stderr
        assert ([wanted for _, wanted in engine.orders], engine.size) == ([16], 16)
        assert site.groups() == {"0": ["0", "1"], "1": ["0", "1"]}


def command(*words: object) -> list[str]:
    return [str(Path(sys.executable).with_name("fleetplan")), "elastic", *map(str, words), "--no-color"]


@dataclass
class Pods:
    """A StatefulSet ``moe`` with a pod for each rank, behind a Service that selects those that serve."""

    rig: Rig
    space: str
    engine: StandIn
    api: Api

    def world(self) -> World:
        http = HttpEngine(ENGINES["external"], self.engine.urls, Connections(Credentials(), most=64))
        ground = PodGround(self.api, STATEFUL_SETS, self.space, "moe")
        routes = PodRoutes(self.api, self.space, lambda rank: f"moe-{rank}", ground.there, http.in_flight)
        store = LeaseStore(self.api, self.space, "moe")
        return World(engine=http, ground=Guarded(ground, self.engine), router=routes, store=store)

    def resized(self, to: int) -> ResizeOperation:
        world = self.world()
        return drive(order(an_operation(self.engine, to), world), world, CLOCK, poll_s=0.1)

    def serving(self) -> list[str]:
        """Pods that are marked as serving, as their labels say."""
        found = self.rig.admin.list(PODS, self.space, labels=f"{LABEL}=yes").items
        return sorted(pod["metadata"]["name"] for pod in found)

    def behind(self) -> list[str]:
        """Pods that the Service sends requests to."""
        found = self.rig.admin.get(ENDPOINTS, self.space, "moe").get("subsets") or []
        return sorted(each["targetRef"]["name"] for subset in found for each in subset.get("addresses") or [])

    def made(self, replicas: int) -> None:
        container = {"name": "e", "image": "vllm/vllm-openai:v0.33.0", "resources": {"limits": {"nvidia.com/gpu": "1"}}}  # fmt: skip
        spec = {
            "replicas": replicas,
            "serviceName": "moe",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "moe"}},
            "template": {"metadata": {"labels": {"app": "moe"}}, "spec": {"containers": [container]}},
        }
        admin = self.rig.admin
        admin.create(STATEFUL_SETS, self.space, {"metadata": {"name": "moe"}, "spec": spec})
        service = {"selector": {"app": "moe", LABEL: "yes"}, "ports": [{"port": 80}]}
        admin.create(SERVICES, self.space, {"metadata": {"name": "moe"}, "spec": service})
        wait_until(lambda: len(admin.list(PODS, self.space).items) == replicas, what="the pods")
        for rank in range(replicas):
            admin.patch(PODS, self.space, f"moe-{rank}", {"metadata": {"labels": {LABEL: "yes"}}})
        wait_until(lambda: self.behind() == names(replicas), what="endpoints of the Service")


def names(ranks: int) -> list[str]:
    return [f"moe-{rank}" for rank in range(ranks)]


def test_ranks_behind_a_service_get_traffic_last_and_lose_it_first(rig: Rig, space: str) -> None:
    engine = Watched("external", size=4)
    with serving(engine):
        pods = Pods(rig, space, engine, rig.api)
        pods.made(4)
        engine.look = pods.serving
        assert pods.resized(6).phase is P.DONE
        assert all(seen == names(4) for seen in engine.seen), "joiners got traffic before they had joined"
        wait_until(lambda: pods.behind() == names(6), what="traffic for joiners")

        engine.forget()
        assert pods.resized(3).phase is P.DONE
        assert engine.seen
        assert all(seen == names(3) for seen in engine.seen), "ranks that leave got traffic until the call"
        wait_until(lambda: pods.behind() == names(3), what="that the others are out of the Service")
        wait_until(lambda: len(rig.admin.list(PODS, space).items) == 3, what="that their pods are gone")


def test_the_rights_of_the_way_are_enough_and_each_is_used(rig: Rig, space: str) -> None:
    used: set[tuple[str, str]] = set()
    engine = Watched("external", size=2, look=bool)
    with serving(engine):
        pods = Pods(rig, space, engine, rig.api)
        pods.made(2)
        for to in (3, 2):
            assert pods.resized(to).phase is P.DONE
            engine.forget()
        used |= {(verb, resource) for verb, resource, _ in pods.api.tally.calls}
        rig.admin.delete(STATEFUL_SETS, space, "moe")
    api = rig.api
    rig.admin.create(LEADER_WORKER_SETS, space, a_group_set("groups", replicas=1, size=SIZE, gpus=GPUS))
    ground = PodGround(api, LEADER_WORKER_SETS, space, "groups", RANKS, SIZE)
    assert [ground.reserve(16), ground.release(8)] == [None, None]
    used |= {(verb, resource) for verb, resource, _ in api.tally.calls}
    role = next(each for each in yaml.safe_load_all(WAY.read_text()) if each["kind"] == "ClusterRole")
    given = {pair for rule in role["rules"] for pair in itertools.product(rule["verbs"], rule["resources"])}
    assert used == given


def test_it_may_nothing_else(rig: Rig, space: str) -> None:
    api, admin = rig.api, rig.admin
    admin.create(LEADER_WORKER_SETS, space, a_group_set("moe", replicas=1, size=SIZE, gpus=GPUS))
    larger = {"spec": {"leaderWorkerTemplate": {"size": SIZE + 1}}}
    attempts = {
        "change the size of groups": lambda: api.patch(LEADER_WORKER_SETS, space, "moe", larger),
        "delete a pod": lambda: api.delete(PODS, space, "moe-0"),
        "delete a workload": lambda: api.delete(LEADER_WORKER_SETS, space, "moe"),
        "read nodes": lambda: api.list(NODES),
        "read secrets": lambda: api.list(Kind("Secret", "secrets"), space),
    }
    for what, attempt in attempts.items():
        with pytest.raises(ClusterFault) as raised:
            attempt()
        assert raised.value.trouble is Trouble.DENIED, what
