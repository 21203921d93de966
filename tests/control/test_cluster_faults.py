"""The layer over a Kubernetes API and servers that are busy, slow, broken or hostile; by a transport that is handed in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.clock import FakeClock
from planner.control.cluster import (
    Api,
    Change,
    ChangeKind,
    ClusterFault,
    ClusterOptions,
    Limits,
    Trouble,
    connect_all,
    follow,
)
from planner.control.cluster.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NODES,
    PODS,
    SCALED_OBJECTS,
)
from planner.control.cluster.quantities import quantity, whole
from planner.control.cluster.transport import Answer, Call
from planner.control.discovery.snapshot import snapshot
from tests.kube_objects import _KINDS, a_deployment, a_node, a_pod, an_hpa, reading


class Scripted:
    """A transport that answers as it was told, and remembers what it was asked."""

    def __init__(self, *answers: Any, streams: Sequence[Any] = ()) -> None:
        self.answers = list(answers)
        self.streams = list(streams)
        self.calls: list[Call] = []

    def call(self, call: Call) -> Answer:
        self.calls.append(call)
        said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(said, Exception):
            raise said
        if callable(said):
            said = said(call)
        status, body, *headers = said
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Answer(status, headers[0] if headers else {}, text)

    def stream(self, call: Call) -> Iterator[bytes]:
        self.calls.append(call)
        for each in self.streams.pop(0):
            if isinstance(each, Exception):
                raise each
            yield each if isinstance(each, bytes) else json.dumps(each).encode()


def an_api(transport: Any, **limits: Any) -> Api:
    return Api(transport, FakeClock(), limits=Limits(**limits))


def fault_of(call: Callable[[], object]) -> ClusterFault:
    with pytest.raises(ClusterFault) as raised:
        call()
    return raised.value


GOOD = (200, {"kind": "PodList", "items": [], "metadata": {"resourceVersion": "7"}})
AWAY = ClusterFault(Trouble.UNREACHABLE, "away")


class TestRepeating:
    @pytest.mark.parametrize("passing", [(429, {}), (500, {}), (503, b"busy"), (504, {}), AWAY])
    def test_what_may_pass_is_tried_again(self, passing: Any) -> None:
        transport = Scripted(passing, passing, GOOD)
        assert an_api(transport).list(PODS).version == "7"
        assert len(transport.calls) == 3

    def test_waits_double_and_the_server_may_ask_for_more(self) -> None:
        api = an_api(Scripted((429, {}, {"retry-after": "7"}), (429, {}), GOOD), first_s=1.0, within_s=60)
        api.list(PODS)
        assert 9.0 <= api.clock.monotonic_s() <= 9.5

    def test_no_call_takes_longer_than_its_limit(self) -> None:
        api = an_api(Scripted((429, {}, {"retry-after": "9999999"})), within_s=20)
        assert fault_of(lambda: api.list(PODS)).trouble is Trouble.BUSY
        assert api.clock.monotonic_s() < 20

    def test_it_ends_after_so_many_tries(self) -> None:
        transport = Scripted((500, {}))
        fault_of(lambda: an_api(transport, tries=3).list(PODS))
        assert len(transport.calls) == 3

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 415, 422, 301])
    def test_what_will_not_pass_is_not_repeated(self, status: int) -> None:
        transport = Scripted((status, {"message": "no"}))
        assert fault_of(lambda: an_api(transport).get(PODS, "a", "b")).status == status
        assert len(transport.calls) == 1

    def test_an_object_is_not_made_twice_when_nobody_knows(self) -> None:
        transport = Scripted(AWAY, GOOD)
        assert fault_of(lambda: an_api(transport).create(CONFIG_MAPS, "a", {})).trouble is Trouble.UNREACHABLE
        assert len(transport.calls) == 1
        busy = Scripted((429, {}), GOOD)
        an_api(busy).create(CONFIG_MAPS, "a", {})
        assert len(busy.calls) == 2

    @pytest.mark.parametrize(
        "body", [b"", b"<html>", b"[]", b"7", b"null", b'{"a":', b"[" * 100_000, b"\xff\xfe"]
    )
    def test_what_is_no_object_is_told(self, body: bytes) -> None:
        assert fault_of(lambda: an_api(Scripted((200, body))).get(PODS, "a", "b")).trouble is Trouble.GARBLED

    def test_words_of_a_server_cannot_steer_a_terminal(self) -> None:
        fault = fault_of(lambda: an_api(Scripted((400, {"message": "a\x1b[31m\nb" + "x" * 9000}))).list(PODS))
        assert fault.message.isprintable()
        assert len(fault.message) < 500

    def test_a_full_quota_is_no_missing_rule(self) -> None:
        refused = (403, {"message": 'pods "x" is forbidden: exceeded quota: gpus', "reason": "Forbidden"})
        fault = fault_of(lambda: an_api(Scripted(refused)).create(PODS, "a", {}))
        assert fault.rule is None
        assert "exceeded quota" in fault.message


class TestPages:
    def test_a_page_that_expired_begins_again(self) -> None:
        first = (200, {"items": [{"n": 1}], "metadata": {"continue": "c", "resourceVersion": "1"}})
        expired = (410, {"message": "too old"})
        last = (200, {"items": [{"n": 2}], "metadata": {"resourceVersion": "2"}})
        transport = Scripted(first, expired, first, last)
        assert [each["n"] for each in an_api(transport).list(PODS).items] == [1, 2]
        stubborn = Scripted(first, expired, first, expired, (200, {"items": [{"n": 3}], "metadata": {}}))
        assert [each["n"] for each in an_api(stubborn).list(PODS).items] == [3]
        assert "limit" not in stubborn.calls[-1].query

    def test_pages_without_an_end_are_cut_off(self) -> None:
        endless = (200, {"items": [{}] * 10, "metadata": {"continue": "more"}})
        assert fault_of(lambda: an_api(Scripted(endless), most=100).list(PODS)).trouble is Trouble.GARBLED

    @pytest.mark.parametrize("items", [None, 7, "x", {}, [1, None, "a"]])
    def test_items_that_are_none_are_left_out(self, items: Any) -> None:
        assert an_api(Scripted((200, {"items": items}))).list(PODS).items == ()


class TestVersions:
    @pytest.mark.parametrize(
        ("served", "version"),
        [(["v1", "v2"], "v2"), (["v2beta2", "v1"], "v2beta2"), (["v1"], "v1"), (["v3"], None)],
    )
    def test_the_best_version_is_taken(self, served: list[str], version: str | None) -> None:
        group = (200, {"versions": [{"version": each} for each in served]})
        assert an_api(Scripted(group)).version_of(HORIZONTAL_POD_AUTOSCALERS) == version

    def test_what_is_served_is_not_asked_every_time(self) -> None:
        transport = Scripted((200, {"versions": [{"version": "v2"}]}))
        api = an_api(transport)
        for _ in range(3):
            api.version_of(HORIZONTAL_POD_AUTOSCALERS)
        assert len(transport.calls) == 1
        api.clock.sleep(400)
        api.version_of(HORIZONTAL_POD_AUTOSCALERS)
        assert len(transport.calls) == 2


class TestConflicts:
    def test_a_scale_is_worked_out_again_from_fresh_state(self) -> None:
        def scale(replicas: int, version: str) -> Any:
            return 200, {"spec": {"replicas": replicas}, "metadata": {"resourceVersion": version}}

        transport = Scripted(scale(1, "1"), (409, {"reason": "Conflict"}), scale(2, "2"), scale(5, "3"))
        done = an_api(transport).scale(DEPLOYMENTS, "prod", "llama", 5)
        assert (done.before, done.after, done.changed) == (2, 5, True)
        assert json.loads(transport.calls[-1].body or b"")["metadata"] == {"resourceVersion": "2"}

    def test_conflicts_without_an_end_are_given_up(self) -> None:
        def answer(call: Call) -> Any:
            return (200, {"spec": {"replicas": 1}}) if call.method == "GET" else (409, {"reason": "Conflict"})

        transport = Scripted(answer)
        fault = fault_of(lambda: an_api(transport, conflicts=3).scale(DEPLOYMENTS, "prod", "llama", 5))
        assert fault.trouble is Trouble.CONFLICT
        assert len(transport.calls) == 8

    def test_a_dry_run_says_so_to_the_server(self) -> None:
        transport = Scripted((200, {"spec": {"replicas": 1}}))
        an_api(transport).scale(DEPLOYMENTS, "prod", "llama", 5, dry_run=True)
        assert transport.calls[-1].query["dryRun"] == "All"
        assert transport.calls[-1].query["fieldManager"] == "fleetplan"


def an_event(kind: str, name: str, version: str) -> Any:
    return {"type": kind, "object": {"metadata": {"name": name, "resourceVersion": version}}}


class TestWatch:
    def followed(
        self, transport: Scripted, count: int, faults: list[ClusterFault] | None = None
    ) -> list[Change]:
        stop = Event()
        found: list[Change] = []
        kept: list[ClusterFault] = [] if faults is None else faults
        for change in follow(an_api(transport), CONFIG_MAPS, stop, on_fault=kept.append):
            found.append(change)
            if len(found) == count:
                stop.set()
        return found

    def test_a_watch_that_ends_goes_on_where_it_was(self) -> None:
        streams = [
            [an_event("ADDED", "a", "8")],
            [an_event("BOOKMARK", "", "9")],
            [an_event("DELETED", "a", "10")],
        ]
        transport = Scripted(GOOD, streams=streams)
        kinds = [change.kind for change in self.followed(transport, 3)]
        assert kinds == [ChangeKind.ALL, ChangeKind.ADDED, ChangeKind.DELETED]
        asked = [call.query["resourceVersion"] for call in transport.calls if "watch" in call.query]
        assert asked == ["7", "8", "9"]

    def test_what_is_too_old_is_read_again(self) -> None:
        gone = {
            "type": "ERROR",
            "object": {"kind": "Status", "code": 410, "message": "too old resource version"},
        }
        transport = Scripted(GOOD, streams=[[gone], [an_event("ADDED", "a", "8")]])
        faults: list[ClusterFault] = []
        kinds = [change.kind for change in self.followed(transport, 3, faults)]
        assert kinds == [ChangeKind.ALL, ChangeKind.ALL, ChangeKind.ADDED]
        assert not faults

    @pytest.mark.parametrize(
        ("broken", "changes"),
        [([AWAY], 2), ([b"{not json"], 3), ([b"[]"], 3), ([an_event("ERROR", "x", "1")], 2)],
    )
    def test_a_watch_that_breaks_is_taken_up_again(self, broken: list[Any], changes: int) -> None:
        """From where it was, or from all of it where what came was no event."""
        transport = Scripted(GOOD, streams=[broken, [an_event("ADDED", "a", "8")]])
        faults: list[ClusterFault] = []
        assert self.followed(transport, changes, faults)[-1].kind is ChangeKind.ADDED
        assert len(faults) == 1

    def test_a_server_that_is_away_is_not_asked_without_a_pause(self) -> None:
        transport = Scripted(*[AWAY] * 40, GOOD)
        api = an_api(transport, tries=1)
        stop = Event()
        for _ in follow(api, CONFIG_MAPS, stop):
            stop.set()
        assert api.clock.monotonic_s() > 300


class TestSnapshots:
    def test_a_server_that_is_away_is_waited_for_once(self) -> None:
        transport = Scripted(AWAY)
        seen = snapshot(an_api(transport, tries=1))
        assert len(transport.calls) == 1
        assert len(seen.findings) == 1
        assert NODES in seen.lacking
        assert SCALED_OBJECTS in seen.lacking

    def test_only_the_nodes_that_count_are_asked_for(self) -> None:
        transport = Scripted((200, {"items": []}))
        snapshot(an_api(transport), node_selector="pool=serving")
        assert {
            call.path for call in transport.calls if call.query.get("labelSelector") == "pool=serving"
        } == {"/api/v1/nodes"}

    def test_kinds_that_are_not_installed_are_empty(self) -> None:
        def answer(call: Call) -> Any:
            known = call.path.startswith("/api/v1") or call.path.startswith("/apis/apps")
            return (
                (200, {"items": []})
                if known
                else (404, {"message": "the server could not find the requested resource"})
            )

        seen = snapshot(an_api(Scripted(answer)))
        assert not seen.findings
        assert not seen.lacking


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def _spoiled(thing: Any, path: Sequence[int], value: Any) -> Any:
    """The same object with something else at a place that the path leads to."""
    if not path or not isinstance(thing, dict | list) or not thing:
        return value
    keys = list(thing) if isinstance(thing, dict) else list(range(len(thing)))
    key = keys[path[0] % len(keys)]
    changed = _spoiled(thing[key], path[1:], value)
    if isinstance(thing, dict):
        return {**thing, key: changed}
    return [*thing[:key], changed, *thing[key + 1 :]]


@given(
    which=st.integers(0, 4), path=st.lists(st.integers(0, 9), max_size=7), value=_JSON
)  # fmt: skip
def test_objects_with_anything_anywhere_are_read_without_a_crash(
    which: int, path: list[int], value: Any
) -> None:
    things = [
        a_node(taints=[{"key": "a", "effect": "NoSchedule"}]), a_deployment(),
        a_pod("p", ("Deployment", "llama")), an_hpa(), an_hpa("second", "other"),
    ]  # fmt: skip
    kind = things[which]["kind"]
    spoiled = _spoiled(things[which], path, value)
    things[which] = {**spoiled, "kind": kind} if isinstance(spoiled, dict) else {"kind": kind}
    assert kind in _KINDS
    seen = reading(*things)
    assert len(seen.variants) <= 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8), (8, 8), ("500m", 1), ("0", 0), ("1k", 1000), ("2Ki", 2048), ("1e2", 100), ("1.5", 2), (" 8", None),
        ("-1", None), ("1e9999", None), ("", None), ("x", None), (None, None), (True, None), ("9" * 200, None), ("1Gi1", None),
        ("1E", None),
    ],
)  # fmt: skip
def test_quantities_are_read_as_kubernetes_writes_them(text: Any, value: int | None) -> None:
    assert whole(text) == value


@given(st.text(max_size=30))
def test_no_text_is_a_quantity_by_accident(text: str) -> None:
    found = quantity(text)
    assert found is None or found.is_finite()


def test_clusters_without_a_name_are_called_after_their_contexts(tmp_path: Path) -> None:
    called = {
        "arn:aws:eks:eu-west-1:1:cluster/a": "arn:aws:eks:eu-west-1:1:cluster/a",
        "admin@b": "admin@b",
        "münchen (ost)": "m-nchen-ost-",
        "東京": "cluster",
    }
    file = tmp_path / "config"
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in called]
    clusters = [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}]
    file.write_text(
        json.dumps({"contexts": contexts, "clusters": clusters, "users": [{"name": "u", "user": {}}]})
    )
    apis = connect_all([ClusterOptions(kubeconfig=file, context=name) for name in called], FakeClock())
    assert [api.name for api in apis] == list(called.values())
