"""What clusters may do to actuators: refuse, conflict, ask for patience, fall silent, lose the target. Nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from planner.clock import FakeClock
from planner.control.actuators import Actuators, actuators_from
from planner.control.cluster import MemoryCluster, Trouble
from planner.control.cluster.reading import at, name_of
from planner.control.cluster.transport import Answer, Call
from planner.control.protocols import Decision, Outcome, OutcomeCode
from planner.errors import ConfigurationError
from tests.control.actuator_builders import a_variant, answers, connected, decided
from tests.kube_objects import a_deployment, a_scaled_object, a_variant_autoscaling, an_hpa

SCALERS = ("hpa", "keda", "scale")


def a_cluster(**more: Any) -> MemoryCluster:
    things = [a_deployment(replicas=2), an_hpa(least=1, most=8), a_scaled_object()]
    if more.pop("alone", False):
        things = things[:1]
    return MemoryCluster(things, **more)


def to_five(scaler: str) -> Decision:
    return decided(a_variant(scaler), 5)


def acting(name: str, *clusters: MemoryCluster, **limits: Any) -> Actuators:
    return actuators_from([(name, {})], connected(*clusters, **limits))


def act(name: str, cluster: MemoryCluster, **limits: Any) -> Outcome:
    return acting(name, cluster, **limits).act([to_five(name)], dry_run=False)[0]


def replicas(cluster: MemoryCluster) -> int:
    return next(at(each, "spec", "replicas") for each in cluster.objects() if each["kind"] == "Deployment")


@pytest.mark.parametrize("name", SCALERS)
class TestOneObject:
    def alone(self, name: str, **more: Any) -> MemoryCluster:
        return a_cluster(alone=name == "scale", **more)

    def test_a_conflict_is_read_again_and_written(self, name: str) -> None:
        cluster = self.alone(name, before=answers(409, 409))
        assert act(name, cluster).code is OutcomeCode.DONE
        assert len(cluster.writes) == 1

    def test_conflicts_without_end_end(self, name: str) -> None:
        cluster = self.alone(name, before=answers(*[409] * 50))
        found = act(name, cluster, conflicts=3)
        assert found.code is OutcomeCode.CONFLICT
        assert not cluster.writes
        assert sum(call.method == "PATCH" for call in cluster.calls) == 4

    def test_busy_servers_are_obeyed(self, name: str) -> None:
        cluster = self.alone(name, before=answers((429, {"retry-after": "3"})))
        fleet = acting(name, cluster)
        clock = fleet._connections.clock
        assert fleet.act([to_five(name)], dry_run=False)[0].code is OutcomeCode.DONE
        assert 3.0 <= clock.monotonic_s() < 4.0
        assert len(cluster.writes) == 1

    def test_a_wait_that_is_longer_than_a_round_is_kept_in_the_next(self, name: str) -> None:
        cluster = self.alone(name, before=answers((429, {"retry-after": "60"})))
        fleet = acting(name, cluster)
        assert fleet.act([to_five(name)], dry_run=False)[0].code is OutcomeCode.BUSY
        calls = len(cluster.calls)
        again = fleet.act([to_five(name)], dry_run=False)[0]
        assert again.code is OutcomeCode.BUSY
        assert "left alone for another 60 s" in again.message
        assert len(cluster.calls) == calls
        fleet._connections.clock.sleep(61)
        assert fleet.act([to_five(name)], dry_run=False)[0].code is OutcomeCode.DONE

    def test_a_denial_names_the_missing_rule(self, name: str) -> None:
        resource = {
            "hpa": "horizontalpodautoscalers", "keda": "scaledobjects", "scale": "deployments/scale",
        }[name]  # fmt: skip
        cluster = self.alone(name, denied=[("patch", resource)])
        found = act(name, cluster)
        assert found.code is OutcomeCode.DENIED
        assert f'resources: ["{resource}"], verbs: ["patch"]' in found.message

    def test_a_target_that_is_gone_is_said(self, name: str) -> None:
        found = acting(name, MemoryCluster()).act([to_five(name)], dry_run=False)[0]
        assert found.code is OutcomeCode.GONE
        assert (found.applied, found.changed) == (False, False)

    @pytest.mark.parametrize("silence", [Trouble.TIMEOUT, Trouble.UNREACHABLE, 500, 502, 504])
    def test_silence_is_no_reason_to_write_again(self, name: str, silence: Any) -> None:
        cluster = self.alone(name, before=answers(silence))
        fleet = acting(name, cluster)
        found = fleet.act([to_five(name)], dry_run=False)[0]
        assert found.code is OutcomeCode.UNKNOWN
        assert "unknown, will be read again" in found.message
        assert sum(call.method == "PATCH" for call in cluster.calls) == 1
        seen = len(cluster.calls)
        assert fleet.act([to_five(name)], dry_run=False)[0].code is OutcomeCode.DONE
        assert cluster.calls[seen].method == "GET"

    def test_what_was_written_in_silence_is_not_written_again(self, name: str) -> None:
        """The server did it, and its answer was lost."""
        cluster = self.alone(name)
        lost = iter([True])

        def before(call: Call) -> Answer | None:
            if call.method == "PATCH" and next(lost, False):
                cluster._answered(call)
                return Answer(504, {}, b"")
            return None

        cluster.before = before
        fleet = acting(name, cluster)
        assert fleet.act([to_five(name)], dry_run=False)[0].code is OutcomeCode.UNKNOWN
        assert fleet.act([to_five(name)], dry_run=False)[0].code is OutcomeCode.SAME
        assert len(cluster.writes) == 1

    def test_reading_may_be_repeated(self, name: str) -> None:
        cluster = self.alone(name, before=answers(503, Trouble.TIMEOUT, method="GET"))
        assert act(name, cluster).code is OutcomeCode.DONE

    def test_a_dry_run_asks_the_server_and_keeps_nothing(self, name: str) -> None:
        cluster = self.alone(name)
        found = acting(name, cluster).act([to_five(name)], dry_run=True)[0]
        assert found.code is OutcomeCode.WOULD
        assert found.differences
        assert [call.query.get("dryRun") for call in cluster.calls if call.method == "PATCH"] == ["All"]
        assert not cluster.writes

    def test_writes_are_counted_and_dry_runs_are_not(self, name: str) -> None:
        fleet = acting(name, self.alone(name))
        fleet.act([to_five(name)], dry_run=True)
        assert fleet.writes == {}
        fleet.act([to_five(name)], dry_run=False)
        fleet.act([to_five(name)], dry_run=False)
        assert list(fleet.writes.values()) == [1]

    def test_fields_are_written_as_ours(self, name: str) -> None:
        cluster = self.alone(name)
        act(name, cluster)
        assert cluster.writes[0].query["fieldManager"] == "fleetplan"


def many(cluster: str | None, count: int, scaler: str = "keda") -> Sequence[Decision]:
    return [
        decided(a_variant(scaler, name=f"v{number}", target=f"d{number}", cluster=cluster), 5)
        for number in range(count)
    ]


def objects(count: int) -> list[Any]:
    return [a_scaled_object(f"v{number}", f"d{number}") for number in range(count)]


class TestSeveralObjects:
    def test_one_that_fails_does_not_stop_the_others(self) -> None:
        cluster = MemoryCluster(objects(3))

        def before(call: Call) -> Answer | None:
            return Answer(422, {}, b"{}") if call.method == "PATCH" and "/v1" in call.path[-3:] else None

        cluster.before = before
        found = acting("keda", cluster).act(many(None, 3), dry_run=False)
        assert [each.code for each in found] == [OutcomeCode.DONE, OutcomeCode.FAILED, OutcomeCode.DONE]

    def test_each_is_written_in_its_own_cluster_and_one_out_of_reach_stops_no_other(self) -> None:
        east, west = MemoryCluster(objects(2)), MemoryCluster(objects(2))
        east.before = lambda call: answers(Trouble.UNREACHABLE, method=call.method)(call)
        found = acting("keda", east, west).act(many("east", 2) + many("west", 2), dry_run=False)
        assert [each.code for each in found] == [OutcomeCode.AWAY] * 2 + [OutcomeCode.DONE] * 2
        assert "not tried" in found[1].message
        assert not east.writes
        assert len(west.writes) == 2
        assert found[2].differences[0].object == "west: ScaledObject prod/v0"

    def test_a_cluster_that_nobody_connected_is_said(self) -> None:
        found = acting("keda", MemoryCluster(), MemoryCluster()).act(many("mars", 1), dry_run=False)
        assert found[0].code is OutcomeCode.AWAY
        assert "cluster mars is none of those that are connected" in found[0].message

    def test_a_round_has_an_end_and_the_next_goes_on_there(self) -> None:
        clock = FakeClock(1e9)
        cluster = MemoryCluster(objects(6))

        def slow(call: Call) -> Answer | None:
            clock.advance(2.0)
            return None

        cluster.before = slow
        fleet = actuators_from([("keda", {})], connected(cluster, clock=clock))
        first = fleet.act(many(None, 6), dry_run=False)
        assert [each.code for each in first] == [OutcomeCode.DONE] * 4 + [OutcomeCode.BUSY] * 2
        second = fleet.act(many(None, 6), dry_run=False)
        assert [each.code for each in second[4:]] == [OutcomeCode.DONE] * 2
        assert len(cluster.writes) == 6

    def test_one_object_that_is_slow_keeps_no_other_from_its_turn_for_ever(self) -> None:
        cluster = MemoryCluster(objects(3))

        def before(call: Call) -> Answer | None:
            if call.path.endswith("/v0") and call.method == "PATCH":
                return answers(Trouble.TIMEOUT)(call)
            return None

        cluster.before = before
        fleet = acting("keda", cluster)
        first = fleet.act(many(None, 3), dry_run=False)
        assert [each.code for each in first] == [OutcomeCode.UNKNOWN, OutcomeCode.AWAY, OutcomeCode.AWAY]
        second = fleet.act(many(None, 3), dry_run=False)
        assert [each.code for each in second] == [OutcomeCode.UNKNOWN, OutcomeCode.DONE, OutcomeCode.DONE]


class TestScale:
    def test_a_count_that_somebody_changed_since_is_left_alone(self) -> None:
        cluster = MemoryCluster([a_deployment(replicas=4)])
        found = acting("scale", cluster).act([to_five("scale")], dry_run=False)[0]
        assert found.code is OutcomeCode.CONFLICT
        assert "has 4 replicas, not the 2 that were seen" in found.message
        assert replicas(cluster) == 4

    @pytest.mark.parametrize("owner", [an_hpa(annotations={}), a_scaled_object(annotations={})], ids=str)
    def test_a_count_that_a_scaler_owns_is_left_to_it(self, owner: Any) -> None:
        cluster = MemoryCluster([a_deployment(replicas=2), a_variant_autoscaling(), owner])
        decision = decided(a_variant("variantautoscaling"), 5)
        found = acting("scale", cluster).act([decision], dry_run=False)[0]
        assert found.code is OutcomeCode.LEFT
        assert f"{owner['kind']} prod/{name_of(owner)} owns the count" in found.message
        assert not cluster.writes

    @pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
    def test_a_variant_without_a_scaler_is_scaled(self, kind: str) -> None:
        cluster = MemoryCluster([a_deployment(replicas=2, kind=kind)])
        decision = decided(a_variant("variantautoscaling", kind=kind), 5)
        found = acting("scale", cluster).act([decision], dry_run=False)[0]
        assert str(found.differences[0]) == f"{kind} prod/llama: spec.replicas: 2 → 5"

    def test_a_target_of_an_hpa_is_woken_where_that_is_asked_for(self) -> None:
        cluster = MemoryCluster([a_deployment(replicas=0), an_hpa()])
        decision = decided(a_variant("hpa", wanted=0), 1)
        assert not acting("scale", cluster).act([decision], dry_run=False)
        waking = actuators_from([("scale", {"wake_scalers": True})], connected(cluster))
        assert waking.act([decision], dry_run=False)[0].code is OutcomeCode.DONE
        assert replicas(cluster) == 1


class TestOptions:
    def test_every_problem_of_every_actuator_is_told_at_once(self) -> None:
        wanted = [("hpa", {"forse": True}), ("scale", {"wake_scalers": "perhaps"}), ("hpa", {}), ("hpo", {})]
        with pytest.raises(ConfigurationError) as raised:
            actuators_from(wanted, connected(MemoryCluster()))
        text = str(raised.value)
        for part in ("did you mean 'force'", "scale.wake_scalers", "did you mean 'hpa'"):
            assert part in text
