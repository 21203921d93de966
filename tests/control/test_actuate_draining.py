"""Scaling in without cutting a request, on a cluster in memory whose ReplicaSet ends pods as the real one ranks them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from models.observation import EngineObservation, Observation, VariantObservation
from planner.clock import FakeClock
from planner.control.actuators import Actuators, actuators_from
from planner.control.cluster import Api, MemoryCluster
from planner.control.cluster.kinds import DEPLOYMENTS, PODS, STATEFUL_SETS
from planner.control.cluster.reading import annotations_of, at, is_ready, labels_of, name_of
from planner.control.cluster.transport import Answer, Call
from planner.control.protocols import Outcome, OutcomeCode
from tests.control.actuator_builders import a_variant, answers, connected, decided, written

APP, SERVING = "app", "fleetplan.dev/serving"
COST = "controller.kubernetes.io/pod-deletion-cost"
LABELS = {APP: "llama", SERVING: "true"}
Load = float | None


def a_service(name: str = "llama", selector: Mapping[str, str] | None = None, **spec: Any) -> Any:
    chosen = LABELS if selector is None else selector
    return {
        "kind": "Service", "metadata": {"name": name, "namespace": "prod"}, "spec": {"selector": dict(chosen), **spec},
    }  # fmt: skip


def a_pool(group: str, selector: Any) -> Any:
    return {
        "kind": "InferencePool", "apiVersion": group, "metadata": {"name": "pool", "namespace": "prod"},
        "spec": {"selector": selector},
    }  # fmt: skip


def a_replica(name: str, *, ready: bool = True, labels: Mapping[str, str] | None = None, **spec: Any) -> Any:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "prod", "labels": dict(LABELS if labels is None else labels)},
        "spec": spec,
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


GATE = {"readinessGates": [{"conditionType": SERVING}]}


class Town:
    """A cluster with one workload of some replicas, its ReplicaSet, its kubelets, its engines, and our actuators."""

    def __init__(
        self,
        loads: Mapping[str, Load],
        *more: Any,
        kind: str = "Deployment",
        pods: Sequence[Any] | None = None,
        options: Mapping[str, object] | None = None,
        **cluster: Any,
    ) -> None:
        self.clock = FakeClock(1_790_000_000)
        self.loads = dict(loads)
        self.kind = kind
        made = [a_replica(name) for name in loads] if pods is None else list(pods)
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": []}}
        workload = {
            "kind": kind, "metadata": {"name": "llama", "namespace": "prod"},
            "spec": {"replicas": len(loads), "selector": {"matchLabels": {APP: "llama"}}, "template": template},
        }  # fmt: skip
        services = more or (a_service(),)
        self.cluster = MemoryCluster([workload, *made, *services], **cluster)
        self.api = Api(self.cluster, self.clock)
        self.options = dict(options or {})
        self.fleet = self.restarted()

    def restarted(self) -> Actuators:
        """A controller that has just started and knows nothing."""
        connections = connected(self.cluster, clock=self.clock)
        self.fleet = actuators_from([("draining", self.options), ("scale", {})], connections)
        return self.fleet

    @property
    def wanted(self) -> int:
        kind = DEPLOYMENTS if self.kind == "Deployment" else STATEFUL_SETS
        return int(self.api.get(kind, "prod", "llama")["spec"]["replicas"])

    @property
    def pods(self) -> dict[str, Any]:
        return {name_of(each): each for each in self.api.list(PODS, "prod").items}

    @property
    def routed(self) -> list[str]:
        """Pods that the first Service sends requests to."""
        service = next(each for each in self.cluster.objects() if each["kind"] == "Service")
        chosen = service["spec"]["selector"].items()
        return [name for name, pod in self.pods.items() if chosen <= labels_of(pod).items() and is_ready(pod)]

    def variant(self, **more: Any) -> VariantObservation:
        ready = [name for name, pod in self.pods.items() if is_ready(pod)]
        return a_variant(
            "variantautoscaling", self.wanted, kind=self.kind, ready=len(ready), pods=tuple(ready),
            pending=max(0, self.wanted - len(ready)), **more,
        )  # fmt: skip

    def observed(self, **more: Any) -> Observation:
        engines = [
            EngineObservation(
                instance=f"{name}:8000", namespace="prod", pod=name, variant="llama-va",
                running=load, waiting=None if load is None else 0, age_s=None if load is None else 1,
            )
            for name, load in self.loads.items() if name in self.pods
        ]  # fmt: skip
        return Observation(at_s=self.clock.unix_s(), engines=tuple(engines), variants=(self.variant(**more),))

    def cycle(self, desired: int | None, *, dry_run: bool = False, **more: Any) -> tuple[Outcome, ...]:
        """One cycle of the controller, then 15 s in which the cluster does its part; None: nothing was decided."""
        self.fleet.saw(self.observed(**more))
        decisions = [] if desired is None else [decided(self.variant(**more), desired)]
        found = self.fleet.act(decisions, dry_run=dry_run)
        self.kubelets()
        self.replica_set()
        self.clock.advance(15)
        return found

    def kubelets(self) -> None:
        """Pods with our gate are ready while it is open."""
        for name, pod in self.pods.items():
            conditions = {each["type"]: each["status"] for each in pod["status"]["conditions"]}
            if pod["spec"].get("readinessGates") and SERVING in conditions:
                others = [each for each in pod["status"]["conditions"] if each["type"] != "Ready"]
                ready = {"type": "Ready", "status": conditions[SERVING]}
                self.api.patch(PODS, "prod", name, {"status": {"conditions": [*others, ready]}})

    def replica_set(self) -> None:
        """Ends pods beyond the count: not ready ones first, then by cost, then by name."""

        def rank(item: tuple[str, Any]) -> Any:
            name, pod = item
            if self.kind == "StatefulSet":
                return -int(name.rpartition("-")[2])
            return is_ready(pod), int(annotations_of(pod).get(COST, "0")), name

        owned = {name: pod for name, pod in self.pods.items() if labels_of(pod).get(APP) == "llama"}
        for name, _ in sorted(owned.items(), key=rank)[: max(0, len(owned) - self.wanted)]:
            assert not self.loads.get(name), f"{name} was ended with {self.loads[name]} requests"
            self.api.delete(PODS, "prod", name)


def messages(found: Sequence[Outcome]) -> str:
    return " | ".join(each.message for each in found)


class TestOneByOne:
    def test_the_emptiest_leaves_finishes_and_goes_and_no_request_is_cut(self) -> None:
        town = Town({"a": 5, "b": 2, "c": 9})
        first = town.cycle(2)
        assert first[0].code is OutcomeCode.WAITING
        assert "b out of routing; waiting for b (2 requests, 0 s)" in first[0].message
        assert (town.wanted, town.routed) == (3, ["a", "c"])
        town.loads["b"] = 0
        assert town.cycle(2)[0].code is OutcomeCode.DONE
        assert (town.wanted, list(town.pods)) == (2, ["a", "c"])

    def test_what_a_pod_was_like_stands_on_it(self) -> None:
        town = Town({"a": 5, "b": 2})
        town.cycle(1)
        pod = town.pods["b"]
        assert labels_of(pod) == {APP: "llama", SERVING: "draining", "fleetplan.dev/draining": "true"}
        kept = json.loads(annotations_of(pod)["fleetplan.dev/drain"])
        assert kept == {
            "since": 1_790_000_000.0, "phase": "draining", "variant": "prod/llama-va", "labels": {SERVING: "true"},
            "cost": None,
        }  # fmt: skip

    def test_it_comes_back_as_it_was_when_load_returns(self) -> None:
        town = Town({"a": 5, "b": 2})
        before = {name: (labels_of(pod), annotations_of(pod)) for name, pod in town.pods.items()}
        town.cycle(1)
        found = town.cycle(2)
        assert "b back in routing" in found[0].message
        assert {name: (labels_of(pod), annotations_of(pod)) for name, pod in town.pods.items()} == before
        assert (town.wanted, town.routed) == (2, ["a", "b"])

    def test_a_cost_and_a_label_of_people_come_back_too(self) -> None:
        pods = [a_replica("a"), a_replica("b", labels=LABELS | {SERVING: "blue"})]
        pods[1]["metadata"]["annotations"] = {COST: "17"}
        town = Town({"a": 5, "b": 2}, a_service(selector={APP: "llama", SERVING: "blue"}), pods=pods)
        town.cycle(1)
        assert annotations_of(town.pods["b"])[COST] == "-2147483646"
        town.cycle(2)
        assert annotations_of(town.pods["b"]) == {COST: "17"}
        assert labels_of(town.pods["b"])[SERVING] == "blue"

    def test_a_restart_in_the_middle_goes_on_where_it_was(self) -> None:
        town = Town({"a": 5, "b": 2, "c": 9})
        town.cycle(2)
        writes = len(town.cluster.writes)
        town.restarted()
        town.cycle(2)
        assert len(town.cluster.writes) == writes
        assert town.routed == ["a", "c"]
        town.loads["b"] = 0
        town.restarted()
        town.cycle(2)
        assert list(town.pods) == ["a", "c"]

    def test_a_restart_after_which_nothing_is_decided_brings_it_back(self) -> None:
        town = Town({"a": 5, "b": 2})
        town.cycle(1)
        town.restarted()
        assert "b back in routing" in messages(town.cycle(None))
        assert town.routed == ["a", "b"]

    def test_what_is_decided_between_two_cycles_brings_nobody_else_back(self) -> None:
        town = Town({"a": 5, "b": 2})
        town.cycle(1)
        woken = decided(a_variant("variantautoscaling", 0, name="other", target="other"), 1)
        town.fleet.act([woken], dry_run=False)
        assert town.routed == ["a"]

    def test_missing_metrics_are_not_zero(self) -> None:
        town = Town({"a": 5, "b": 2})
        town.cycle(1)
        town.loads["b"] = None
        for _ in range(10):
            found = town.cycle(1)
        assert town.wanted == 2
        assert "b (says nothing" in found[0].message
        assert "use a PodMonitor" in found[0].message

    def test_when_time_is_over_it_goes(self) -> None:
        town = Town({"a": 5, "b": 2}, options={"limit_s": 60})
        for _ in range(4):
            assert town.cycle(1)[0].code is OutcomeCode.WAITING
        town.fleet.saw(town.observed())
        found = town.fleet.act([decided(town.variant(), 1)], dry_run=False)
        assert "time is over for b, whose requests have its grace period left" in found[0].message
        assert town.wanted == 1

    def test_or_comes_back_and_another_is_tried(self) -> None:
        town = Town({"a": 5, "b": 2, "c": 9}, options={"limit_s": 60, "overdue": "give-back"})
        for _ in range(5):
            town.cycle(2)
        assert town.routed == ["a", "b", "c"]
        town.cycle(2)
        assert town.routed == ["b", "c"]
        assert town.wanted == 3

    def test_a_whole_descent_cuts_nothing(self) -> None:
        town = Town({name: float(place) for place, name in enumerate("abcdef")})
        for _ in range(12):
            town.cycle(1)
            for name, load in town.loads.items():
                if name not in town.routed:
                    town.loads[name] = max(0.0, (load or 0.0) - 2)
        assert list(town.pods) == ["f"]

    def test_the_ordinals_of_a_stateful_set_go_from_the_top(self) -> None:
        town = Town({"s-0": 0, "s-1": 0, "s-2": 6}, kind="StatefulSet")
        town.cycle(1)
        assert town.routed == ["s-0"]
        town.cycle(1)
        assert town.wanted == 3
        town.loads["s-2"] = 0
        town.cycle(1)
        assert list(town.pods) == ["s-0"]

    def test_a_pod_that_starts_goes_in_place_of_a_drained_one_which_comes_back(self) -> None:
        town = Town({"a": 5, "b": 0})
        town.cycle(1)
        town.api.create(PODS, "prod", a_replica("n", ready=False))
        town.api.patch(DEPLOYMENTS, "prod", "llama", {"spec": {"replicas": 3}})
        found = town.cycle(2)
        assert town.wanted == 2
        assert list(town.pods) == ["a", "b"]
        assert "b back in routing" in messages([*found, *town.cycle(2)])
        assert town.routed == ["a", "b"]


def test_a_workload_that_tells_its_pods_by_expressions_alone_is_drained_too() -> None:
    town = Town({"a": 5, "b": 2})
    told = {
        "matchLabels": None,
        "matchExpressions": [{"key": APP, "operator": "In", "values": ["llama", "chat"]}],
    }
    town.api.patch(DEPLOYMENTS, "prod", "llama", {"spec": {"selector": told}})
    town.cycle(1)
    assert (town.wanted, town.routed) == (2, ["a"])


def test_pods_of_another_workload_with_the_same_labels_are_not_touched() -> None:
    def owned(name: str, of: str) -> Any:
        pod = a_replica(name, labels=LABELS | {"pod-template-hash": "5d"})
        pod["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": f"{of}-5d", "controller": True}]
        return pod

    pods = [owned("a", "llama"), owned("b", "llama"), owned("other", "llama-canary")]
    town = Town({"a": 5, "b": 2}, pods=pods)
    town.loads["other"] = 3
    town.fleet.saw(town.observed())
    found = town.fleet.act([decided(town.variant(), 1)], dry_run=False)
    assert "b out of routing" in found[0].message
    assert town.routed == ["a", "other"]


class TestTheWayOut:
    def test_a_pool_of_the_gateway_counts_as_a_service_does(self) -> None:
        selector = {"matchLabels": {APP: "llama", "llm-d.ai/inferenceServing": "true"}}
        for pool in (
            a_pool("inference.networking.k8s.io/v1", selector),
            a_pool("inference.networking.x-k8s.io/v1alpha2", selector["matchLabels"]),
        ):
            pods = [a_replica(name, labels=LABELS | {"llm-d.ai/inferenceServing": "true"}) for name in "ab"]
            town = Town({"a": 5, "b": 2}, pool, pods=pods)
            assert town.cycle(1)[0].code is OutcomeCode.WAITING
            assert labels_of(town.pods["b"])["llm-d.ai/inferenceServing"] == "draining"
            assert labels_of(town.pods["b"])[APP] == "llama"

    def test_a_service_without_an_address_is_for_peers(self) -> None:
        peers = a_service("peers", {APP: "llama"}, clusterIP="None")
        assert Town({"a": 5, "b": 2}, a_service(), peers).cycle(1)[0].code is OutcomeCode.WAITING

    @pytest.mark.parametrize(
        ("services", "why"),
        [
            ([a_service(selector={APP: "llama"})], "Service llama selects by labels alone"),
            ([a_service(selector={APP: "other"})], "no Service and no InferencePool selects its pods"),
        ],
        ids=["no label of its own", "nobody routes"],
    )
    def test_a_label_of_the_workload_is_never_touched(self, services: Sequence[Any], why: str) -> None:
        town = Town({"a": 5, "b": 0}, *services)
        town.loads = {}
        found = town.cycle(1)
        assert f"scaled in without draining: {why}" in found[0].message
        assert town.wanted == 1

    def test_or_nothing_goes_where_that_is_asked_for(self) -> None:
        town = Town({"a": 5, "b": 2}, a_service(selector={APP: "llama"}), options={"impossible": "hold"})
        assert "held, since it cannot be drained" in town.cycle(1)[0].message
        assert town.wanted == 2

    def test_before_kubernetes_1_22_the_pod_is_made_not_ready_first(self) -> None:
        pods = [a_replica(name, **GATE) for name in "ab"]
        town = Town({"a": 5, "b": 2}, pods=pods, version="1.20+")
        town.cycle(1)
        assert not is_ready(town.pods["b"])
        town.loads["b"] = 0
        town.cycle(1)
        assert list(town.pods) == ["a"]

    def test_its_count_stays_until_it_is_not_ready(self, monkeypatch: pytest.MonkeyPatch) -> None:
        town = Town({"a": 5, "b": 0}, pods=[a_replica(name, **GATE) for name in "ab"], version="1.20")
        monkeypatch.setattr(town, "kubelets", lambda: None)
        for _ in range(3):
            town.cycle(1)
        assert town.wanted == 2
        monkeypatch.undo()
        town.kubelets()
        town.cycle(1)
        assert list(town.pods) == ["a"]

    def test_it_is_ready_again_when_it_comes_back(self) -> None:
        town = Town({"a": 5, "b": 2}, pods=[a_replica(name, **GATE) for name in "ab"], version="1.20")
        town.cycle(1)
        town.cycle(2)
        assert town.routed == ["a", "b"]

    def test_without_a_gate_nobody_can_say_there_who_goes(self) -> None:
        town = Town({"a": 5, "b": 2}, version="1.20")
        town.loads = {}
        assert "add the readiness gate fleetplan.dev/serving" in town.cycle(1)[0].message

    def test_a_gate_alone_is_enough(self) -> None:
        pods = [a_replica(name, **GATE) for name in "ab"]
        town = Town({"a": 5, "b": 2}, a_service(selector={APP: "llama"}), pods=pods)
        assert town.cycle(1)[0].code is OutcomeCode.WAITING
        assert town.routed == ["a"]

    def test_gates_of_new_pods_are_opened_where_that_is_asked_for(self) -> None:
        labels = LABELS | {"fleetplan.dev/gated": "true"}
        pods = [a_replica(name, labels=labels, ready=False, **GATE) for name in "ab"]
        town = Town({"a": 0, "b": 0}, pods=pods, options={"gates": True}, version="1.20")
        town.cycle(2)
        assert town.routed == ["a", "b"]
        writes = len(town.cluster.writes)
        town.fleet.saw(town.observed())
        town.fleet.act([], dry_run=False)
        assert len(town.cluster.writes) == writes


class TestCare:
    def test_a_dry_run_tells_and_touches_nothing(self) -> None:
        town = Town({"a": 5, "b": 2})
        found = town.cycle(1, dry_run=True)
        assert "b out of routing" in found[0].message
        assert any(each.field.endswith("[fleetplan.dev/serving]") for each in found[0].differences)
        assert not town.cluster.writes
        assert found[1].code is OutcomeCode.WOULD

    def test_what_people_paused_stays_as_it_is(self) -> None:
        town = Town({"a": 5, "b": 2})
        town.cycle(1)
        writes = len(town.cluster.writes)
        town.cycle(2, paused=True)
        assert len(town.cluster.writes) == writes

    def test_cycles_without_a_scale_in_cost_one_listing(self) -> None:
        town = Town({"a": 5, "b": 2})
        town.fleet.saw(town.observed())
        decision = decided(town.variant(), 2)
        seen = len(town.cluster.calls)
        town.fleet.act([decision], dry_run=False)
        assert [call.query.get("labelSelector") for call in town.cluster.calls[seen:]] == [
            "fleetplan.dev/draining=true"
        ]

    def test_what_routes_in_a_namespace_is_read_once_for_all_that_falls_there(self) -> None:
        town = Town({"a": 5, "b": 2})
        town.fleet.saw(town.observed())
        falling = [decided(town.variant(), 1)] * 3
        seen = len(town.cluster.calls)
        town.fleet.act(falling, dry_run=True)
        paths = [call.path for call in town.cluster.calls[seen:]]
        assert sum(path.endswith("/services") for path in paths) == 1
        assert sum(path.endswith("/inferencepools") for path in paths) == 2

    def test_a_pod_that_changed_meanwhile_is_read_again(self) -> None:
        town = Town({"a": 5, "b": 2}, before=answers(409))
        assert town.cycle(1)[0].code is OutcomeCode.WAITING
        assert town.routed == ["a"]

    def test_a_pod_that_went_meanwhile_is_done_with(self) -> None:
        town = Town({"a": 5, "b": 2}, before=answers(404))
        assert town.cycle(1)[0].code is OutcomeCode.WAITING

    @pytest.mark.parametrize(
        ("verb", "resource"),
        [("list", "services"), ("list", "pods"), ("patch", "pods"), ("get", "deployments")],
    )
    def test_a_missing_rule_holds_what_falls_and_is_named(self, verb: str, resource: str) -> None:
        town = Town({"a": 5, "b": 2}, denied=[])
        town.cluster.denied.add((verb, resource))
        town.fleet.saw(Observation(at_s=town.clock.unix_s()))
        variant = a_variant("variantautoscaling", 2)
        found = town.fleet.act([decided(variant, 1)], dry_run=False)
        assert found[0].code is OutcomeCode.DENIED
        assert f'resources: ["{resource}"], verbs: ["{verb}"]' in found[0].message
        assert [each.decision.desired for each in found if each.actuator == "scale"] == [2]
        town.cluster.denied.clear()
        assert town.wanted == 2

    def test_a_cluster_that_is_away_holds_what_falls_and_lets_rise_what_rises(self) -> None:
        town = Town({"a": 5, "b": 2})
        falling, rising = a_variant("variantautoscaling", 2), a_variant("variantautoscaling", 2, name="other")

        def before(call: Call) -> Answer | None:
            return Answer(503, {}, b"{}") if "labelSelector" in call.query else None

        town.cluster.before = before
        found = town.fleet.act([decided(falling, 1), decided(rising, 4)], dry_run=False)
        assert found[0].code is OutcomeCode.BUSY
        assert [each.decision.desired for each in found if each.actuator == "scale"] == [2, 4]

    def test_each_cluster_drains_its_own_and_one_that_is_away_stops_no_other(self) -> None:
        east, west = Town({"a": 5, "b": 2}), Town({"a": 5, "b": 2})
        connections = connected(east.cluster, west.cluster, clock=west.clock)
        fleet = actuators_from([("draining", {}), ("scale", {})], connections)
        east.cluster.before = lambda call: answers(503, method=call.method)(call)
        decisions = [
            decided(a_variant("variantautoscaling", 2, cluster=name), 1) for name in ("east", "west")
        ]
        west.loads = {"b": 2.0, "a": 5.0}
        engines = tuple(each.but(cluster="west") for each in west.observed().engines)
        fleet.saw(Observation(at_s=west.clock.unix_s(), engines=engines))
        found = fleet.act(decisions, dry_run=False)
        assert [each.code for each in found[:2]] == [OutcomeCode.BUSY, OutcomeCode.WAITING]
        assert (west.routed, west.wanted) == (["a"], 2)
        east.cluster.before = lambda _: None
        assert (east.routed, east.wanted) == (["a", "b"], 2)

    def test_namespaces_are_read_one_by_one_where_rules_allow_no_more(self) -> None:
        def before(call: Call) -> Answer | None:
            denied = json.dumps({"message": "pods is forbidden"}).encode()
            return Answer(403, {}, denied) if call.path == "/api/v1/pods" else None

        town = Town({"a": 5, "b": 2}, before=before)
        town.cycle(1)
        assert town.routed == ["a"]
        town.cycle(2)
        assert town.routed == ["a", "b"]

    def test_a_mark_that_nobody_looks_after_is_taken_away_in_the_end(self) -> None:
        town = Town({"a": 5, "b": 2})
        town.cycle(1)
        town.fleet.saw(Observation(at_s=town.clock.unix_s()))
        other = decided(a_variant("variantautoscaling", 1, name="other"), 1)
        town.fleet.act([other], dry_run=False)
        assert town.routed == ["a"], "it may belong to another controller"
        town.clock.advance(2 * 3600)
        town.fleet.act([other], dry_run=False)
        assert town.routed == ["a", "b"]

    def test_everything_is_given_back_on_request(self) -> None:
        town = Town({"a": 5, "b": 2})
        town.cycle(1)
        found = town.fleet.release([town.variant()], dry_run=False)
        assert "b back in routing" in messages(found)
        assert town.routed == ["a", "b"]

    @pytest.mark.parametrize(
        "record",
        [
            "",
            "{",
            "[]",
            "7",
            '{"since": NaN}',
            '{"since": true}',
            '{"since": 1e999}',
            '{"labels": 3}',
            "[" * 5000,
            "x" * 9000,
        ],
    )
    def test_a_record_that_somebody_spoiled_keeps_no_pod_out(self, record: str) -> None:
        town = Town({"a": 5, "b": 2})
        town.cycle(1)
        town.api.patch(PODS, "prod", "b", {"metadata": {"annotations": {"fleetplan.dev/drain": record}}})
        town.cycle(2)
        assert labels_of(town.pods["b"]) == LABELS

    @pytest.mark.parametrize(
        "record",
        [
            '{"since": 0, "variant": "prod/llama-va", "labels": {"app": "x"}}',
            '{"since": 0, "variant": "prod/llama-va", "labels": {"app": null}}',
            '{"since": 0, "variant": "elsewhere/x", "labels": {"app": null}}',
            '{"since": 0, "labels": {"app": "x"}}',
        ],
    )
    def test_a_record_cannot_make_us_touch_other_labels(self, record: str) -> None:
        town = Town({"a": 5, "b": 2})
        town.cycle(1)
        town.api.patch(PODS, "prod", "b", {"metadata": {"annotations": {"fleetplan.dev/drain": record}}})
        town.cycle(2)
        assert labels_of(town.pods["b"]) == LABELS

    def test_only_pods_are_written(self) -> None:
        town = Town({"a": 5, "b": 2})
        town.cycle(1)
        assert {at(body, "spec") for body in written(town.cluster)} == {None}


GROUPS = "leaderworkerset.sigs.k8s.io/"


def a_group(index: int, size: int = 2) -> list[Any]:
    """A leader, which requests are routed to, and its workers."""
    pods = []
    for worker in range(size):
        name = f"deep-{index}" if worker == 0 else f"deep-{index}-{worker}"
        labels = {
            f"{GROUPS}name": "deep",
            f"{GROUPS}group-index": str(index),
            f"{GROUPS}worker-index": str(worker),
        }
        pods.append(a_replica(name, labels=labels | ({SERVING: "true"} if worker == 0 else {})))
    return pods


class TestGroups:
    """A LeaderWorkerSet ends its highest group, all pods of it."""

    def town(self) -> tuple[MemoryCluster, Any]:
        spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"metadata": {}}}}
        workload = {
            "kind": "LeaderWorkerSet",
            "metadata": {"name": "deep", "namespace": "prod"},
            "spec": spec,
        }
        service = a_service(selector={f"{GROUPS}name": "deep", SERVING: "true"})
        cluster = MemoryCluster([workload, service, *a_group(0), *a_group(1)])
        clock = FakeClock(1_790_000_000)
        fleet = actuators_from([("draining", {}), ("scale", {})], connected(cluster, clock=clock))
        variant = a_variant(
            "variantautoscaling", 2, kind="LeaderWorkerSet", target="deep", pods_per_replica=2
        )

        def cycle(**loads: Load) -> tuple[Outcome, ...]:
            engines = tuple(
                EngineObservation(
                    instance=f"{pod}:{rank}", namespace="prod", pod=pod.replace("_", "-"), running=load,
                    waiting=None if load is None else 0, age_s=None if load is None else 0,
                )
                for pod, load in loads.items() for rank in range(2)
            )  # fmt: skip
            fleet.saw(Observation(at_s=clock.unix_s(), engines=engines, variants=(variant,)))
            found = fleet.act([decided(variant, 1)], dry_run=False)
            clock.advance(15)
            return found

        return cluster, cycle

    def labels(self, cluster: MemoryCluster, name: str) -> Mapping[str, str]:
        return labels_of(next(each for each in cluster.objects() if name_of(each) == name))

    def test_the_highest_group_leaves_by_its_leader(self) -> None:
        cluster, cycle = self.town()
        found = cycle(deep_0=0.0, deep_1=4.0)
        assert "deep-1 out of routing; waiting for deep-1 (8 requests, 0 s)" in found[0].message
        assert self.labels(cluster, "deep-1")[SERVING] == "draining"
        assert self.labels(cluster, "deep-1")[f"{GROUPS}name"] == "deep"
        assert self.labels(cluster, "deep-0")[SERVING] == "true"

    def test_it_goes_when_all_of_its_engines_are_idle(self) -> None:
        cluster, cycle = self.town()
        cycle(deep_0=3.0, deep_1=4.0, deep_1_1=0.0)
        assert cycle(deep_0=3.0, deep_1=0.0, deep_1_1=1.0)[0].code is OutcomeCode.WAITING
        assert cycle(deep_0=3.0, deep_1=0.0, deep_1_1=None)[0].code is OutcomeCode.WAITING
        assert cycle(deep_0=3.0, deep_1=0.0, deep_1_1=0.0)[0].code is OutcomeCode.DONE
        workload = next(each for each in cluster.objects() if each["kind"] == "LeaderWorkerSet")
        assert workload["spec"]["replicas"] == 1
