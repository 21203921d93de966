"""The layer over a Kubernetes API against a real one: pages, versions, conflicts, denials, watches, loss and return."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import Any

import pytest

from planner.clock import SystemClock
from planner.control.cluster import (
    Api,
    Change,
    ChangeKind,
    ClusterFault,
    ClusterOptions,
    Limits,
    Rule,
    Trouble,
    connect,
    connect_all,
    follow,
    of_each,
)
from planner.control.cluster.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    PODS,
    Kind,
)
from planner.control.cluster.reading import Object, name_of
from planner.errors import ConfigurationError
from tests.e2e.kube.control_plane import ControlPlane, kube_test, wait_until

pytestmark = kube_test()


def a_deployment(name: str, replicas: int = 1) -> Object:
    container = {"name": "engine", "image": "vllm/vllm-openai"}
    labels = {"app": name}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def fault_of(call: Any) -> ClusterFault:
    with pytest.raises(ClusterFault) as raised:
        call()
    return raised.value


class TestReading:
    def test_a_listing_is_read_in_pages(self, control_plane: ControlPlane, namespace: str) -> None:
        admin = control_plane.admin
        for number in range(5):
            admin.create(
                CONFIG_MAPS, namespace, {"metadata": {"name": f"c{number}", "labels": {"of": "five"}}}
            )
        pages = Api(admin.transport, SystemClock(), limits=Limits(page=2))
        found = pages.list(CONFIG_MAPS, namespace, labels="of=five")
        assert [name_of(each) for each in found.items] == ["c0", "c1", "c2", "c3", "c4"]
        assert found.version

    def test_metadata_alone_can_be_read(self, control_plane: ControlPlane, namespace: str) -> None:
        control_plane.admin.create(DEPLOYMENTS, namespace, a_deployment("slim"))
        found = control_plane.admin.list(DEPLOYMENTS, namespace, metadata=True)
        assert [name_of(each) for each in found.items] == ["slim"]
        assert "spec" not in found.items[0]

    def test_the_version_that_is_served_is_found(self, control_plane: ControlPlane) -> None:
        found = control_plane.admin.version_of(HORIZONTAL_POD_AUTOSCALERS)
        groups = control_plane.admin.list_if_served(HORIZONTAL_POD_AUTOSCALERS, "default")
        assert found in {"v2", "v2beta2"}
        assert groups is not None

    def test_a_kind_that_is_not_installed_is_no_fault(self, control_plane: ControlPlane) -> None:
        # Others install kinds on this control plane, in whichever order they run.
        assert control_plane.admin.list_if_served(Kind("Absent", "absents", "absent.example")) is None

    def test_what_is_not_there_is_not_found(self, control_plane: ControlPlane, namespace: str) -> None:
        assert control_plane.admin.find(PODS, namespace, "nobody") is None
        assert (
            fault_of(lambda: control_plane.admin.get(PODS, namespace, "nobody")).trouble is Trouble.NOT_FOUND
        )


class TestWriting:
    def test_the_scale_is_set_once(self, control_plane: ControlPlane, namespace: str) -> None:
        admin = control_plane.admin
        admin.create(DEPLOYMENTS, namespace, a_deployment("llama", 2))
        tried = admin.scale(DEPLOYMENTS, namespace, "llama", 5, dry_run=True)
        assert (tried.before, tried.after, tried.changed) == (2, 5, True)
        assert admin.get(DEPLOYMENTS, namespace, "llama")["spec"]["replicas"] == 2
        assert admin.scale(DEPLOYMENTS, namespace, "llama", 5, seen=2).changed
        assert not admin.scale(DEPLOYMENTS, namespace, "llama", 5).changed
        assert admin.get(DEPLOYMENTS, namespace, "llama")["spec"]["replicas"] == 5

    def test_a_count_that_people_changed_is_left_alone(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        admin = control_plane.admin
        admin.create(DEPLOYMENTS, namespace, a_deployment("llama", 4))
        fault = fault_of(lambda: admin.scale(DEPLOYMENTS, namespace, "llama", 3, seen=2))
        assert fault.trouble is Trouble.CONFLICT
        assert "has 4 replicas, not the 2 that were seen" in fault.message

    def test_a_negative_count_is_refused_by_the_server(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        control_plane.admin.create(DEPLOYMENTS, namespace, a_deployment("llama"))
        fault = fault_of(lambda: control_plane.admin.scale(DEPLOYMENTS, namespace, "llama", -1))
        assert fault.trouble is Trouble.INVALID

    def test_writers_at_the_same_time_all_get_through(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        admin = control_plane.admin
        admin.create(CONFIG_MAPS, namespace, {"metadata": {"name": "count"}, "data": {}})
        apis = [Api(admin.transport, SystemClock(), str(n), Limits(conflicts=50)) for n in range(4)]

        def add(api: Api) -> Object:
            def with_mine(found: Object) -> Object:
                return {**found, "data": {**(found.get("data") or {}), f"key-{api.name}": "here"}}

            return api.update(CONFIG_MAPS, namespace, "count", with_mine)

        _, faults = of_each(apis, add)
        assert not faults
        assert len(admin.get(CONFIG_MAPS, namespace, "count")["data"]) == 4

    def test_fields_of_others_are_not_taken(self, control_plane: ControlPlane, namespace: str) -> None:
        admin = control_plane.admin
        other = Api(admin.transport, SystemClock(), manager="somebody")
        other.apply(CONFIG_MAPS, namespace, {"metadata": {"name": "owned"}, "data": {"a": "theirs"}})
        ours = {"metadata": {"name": "owned"}, "data": {"a": "ours"}}
        fault = fault_of(lambda: admin.apply(CONFIG_MAPS, namespace, ours))
        assert fault.trouble is Trouble.CONFLICT
        assert "somebody" in fault.message
        admin.apply(CONFIG_MAPS, namespace, ours, force=True)
        assert admin.get(CONFIG_MAPS, namespace, "owned")["data"] == {"a": "ours"}

    def test_what_is_there_is_not_made_again(self, control_plane: ControlPlane, namespace: str) -> None:
        thing = {"metadata": {"name": "once"}}
        control_plane.admin.create(CONFIG_MAPS, namespace, thing)
        fault = fault_of(lambda: control_plane.admin.create(CONFIG_MAPS, namespace, thing))
        assert fault.trouble is Trouble.EXISTS

    def test_deleting_what_is_gone_is_no_fault(self, control_plane: ControlPlane, namespace: str) -> None:
        control_plane.admin.delete(CONFIG_MAPS, namespace, "nobody")


class TestRights:
    def test_a_denial_names_the_rule_that_is_missing(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        control_plane.admin.create(DEPLOYMENTS, namespace, a_deployment("llama"))
        planner = control_plane.connect("planner")
        fault = fault_of(lambda: planner.scale(DEPLOYMENTS, namespace, "llama", 2))
        assert fault.trouble is Trouble.DENIED
        assert fault.rule == Rule(DEPLOYMENTS, "get", namespace, "scale")
        assert 'apiGroups: ["apps"], resources: ["deployments/scale"], verbs: ["get"]' in fault.message
        assert f"namespace {namespace}" in fault.message
        assert "token-of" not in fault.message

    def test_the_rule_that_was_named_is_the_one_that_helps(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        control_plane.admin.create(DEPLOYMENTS, namespace, a_deployment("llama"))
        planner = control_plane.connect("planner")
        for needed in range(2):
            rule = fault_of(lambda: planner.scale(DEPLOYMENTS, namespace, "llama", 3)).rule
            assert rule is not None
            assert not planner.may(rule)
            control_plane.allow("planner", f"rule-{needed}", [dict(rule.as_object())], namespace=namespace)
            wait_until(lambda rule=rule: planner.may(rule), what="the new rule")
        assert planner.scale(DEPLOYMENTS, namespace, "llama", 3).changed

    def test_an_unknown_token_is_not_a_missing_rule(self, control_plane: ControlPlane) -> None:
        path = control_plane.kubeconfig("viewer")
        wrong = path.with_name("kubeconfig-wrong")
        wrong.write_text(path.read_text().replace("token-of-viewer", "nonsense"))
        api = connect(ClusterOptions(kubeconfig=wrong), SystemClock())
        fault = fault_of(lambda: api.list(PODS))
        assert fault.trouble is Trouble.UNAUTHENTICATED
        assert "nonsense" not in str(fault)


@pytest.fixture
def changes(control_plane: ControlPlane, namespace: str) -> Iterator[Queue[Change]]:
    """Changes of the config maps of the namespace."""
    queue: Queue[Change] = Queue()
    with following(control_plane.admin, namespace, queue):
        yield queue


class following:  # noqa: N801 - reads as a verb
    def __init__(
        self, api: Api, namespace: str, queue: Queue[Change], faults: list[ClusterFault] | None = None
    ) -> None:
        self.stop = Event()
        kept: list[ClusterFault] = [] if faults is None else faults

        def run() -> None:
            for change in follow(
                api, CONFIG_MAPS, self.stop, namespace=namespace, labels="watched=yes", on_fault=kept.append
            ):
                queue.put(change)

        self.thread = Thread(target=run, daemon=True)

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.stop.set()


def watched(name: str) -> Object:
    return {"metadata": {"name": name, "labels": {"watched": "yes"}}}


def test_a_watch_tells_all_and_then_each_change(
    control_plane: ControlPlane, namespace: str, changes: Queue[Change]
) -> None:
    assert changes.get(timeout=20) == Change(ChangeKind.ALL, ())
    control_plane.admin.create(CONFIG_MAPS, namespace, watched("a"))
    control_plane.admin.patch(CONFIG_MAPS, namespace, "a", {"data": {"k": "v"}})
    control_plane.admin.delete(CONFIG_MAPS, namespace, "a")
    seen = [changes.get(timeout=20) for _ in range(3)]
    assert [each.kind for each in seen] == [ChangeKind.ADDED, ChangeKind.MODIFIED, ChangeKind.DELETED]
    assert {name_of(each.objects[0]) for each in seen} == {"a"}


@pytest.fixture(scope="module")
def plane_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    # It is stopped; versions that are forgotten soon make the watch meet 410.
    more = {"apiserver": ["--etcd-compaction-interval=1s", "--watch-cache=false"]}
    folder = tmp_path_factory.mktemp("lost")
    with ControlPlane(folder, Path(os.environ["KUBEBUILDER_ASSETS"]), more=more) as plane:
        yield plane


class TestLoss:
    def test_what_changes_while_a_server_is_away_is_seen_after(self, plane_of_its_own: ControlPlane) -> None:
        queue: Queue[Change] = Queue()
        faults: list[ClusterFault] = []
        quick = plane_of_its_own.connect("admin", timeout_s=2, within_s=2)
        with following(quick, "default", queue, faults):
            assert queue.get(timeout=20).kind is ChangeKind.ALL
            plane_of_its_own.admin.create(CONFIG_MAPS, "default", watched("before"))
            assert queue.get(timeout=20).kind is ChangeKind.ADDED
            plane_of_its_own.stop("apiserver")
            wait_until(lambda: faults, what="a fault")
            assert faults[0].trouble in {Trouble.UNREACHABLE, Trouble.BUSY, Trouble.TIMEOUT}
            plane_of_its_own.start("apiserver")
            plane_of_its_own.wait_ready()
            plane_of_its_own.admin.create(CONFIG_MAPS, "default", watched("after"))
            found: set[str] = set()
            while "after" not in found:
                found |= {name_of(each) for each in queue.get(timeout=60).objects}

    def test_one_cluster_out_of_reach_does_not_stop_the_others(
        self, plane_of_its_own: ControlPlane, tmp_path: Path
    ) -> None:
        away = tmp_path / "away"
        away.write_text(
            plane_of_its_own.kubeconfig().read_text().replace(plane_of_its_own.url, "https://127.0.0.1:1")
        )
        options = [
            ClusterOptions(name="here", kubeconfig=plane_of_its_own.kubeconfig()),
            ClusterOptions(name="away", kubeconfig=away, timeout_s=1, within_s=1),
        ]
        answers, faults = of_each(
            connect_all(options, SystemClock()), lambda api: len(api.list(CONFIG_MAPS).items)
        )
        assert set(answers) == {"here"}
        assert faults["away"].trouble is Trouble.UNREACHABLE


def test_a_context_that_is_not_there_is_told_before_anything_else(control_plane: ControlPlane) -> None:
    options = [
        ClusterOptions(kubeconfig=control_plane.kubeconfig(), context="nowhere"),
        ClusterOptions(kubeconfig=Path("/nonexistent/kubeconfig"), context="other"),
    ]
    with pytest.raises(ConfigurationError) as raised:
        connect_all(options, SystemClock())
    assert len(raised.value.findings) == 2
    assert "nowhere" in str(raised.value)
