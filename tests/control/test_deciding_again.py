"""Looking again before acting, waking from zero, room node by node, and what is remembered over a restart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from models.observation import Observation, QuotaObservation, VariantObservation
from models.variant import Role
from planner.control.deciding import Decided, DecidingState
from planner.control.deciding.reconciling import revalidated
from planner.control.deciding.room import Room, speaks_of
from planner.control.deciding.waking import asleep, wake
from planner.control.protocols import ClusterReading, Decision, Inventory
from tests.observed_fleets import Cycles, a_pool, a_variant, engines_of, observed, settings, some_traffic


def decided(variant: VariantObservation, desired: int) -> Decided:
    reason = "ScaledUp" if desired > (variant.wanted or 0) else "ScaledDown"
    return Decided(decisions=(Decision(variant=variant, desired=desired, reason=reason, victims=("v-0",)),))


def fresh(*variants: VariantObservation, complete: bool = True, **more: Any) -> ClusterReading:
    pools = tuple(more.pop("pools", (a_pool(),)))
    return ClusterReading(
        variants=variants,
        complete=complete,
        inventory=Inventory(pools=pools, quotas=tuple(more.pop("quotas", ()))),
    )


def again(before: VariantObservation, desired: int, reading: ClusterReading) -> tuple[int, str]:
    (decision,) = revalidated(decided(before, desired), reading).decisions
    return decision.desired, decision.reason


class TestLookingAgain:
    def test_what_is_as_it_was_is_done(self) -> None:
        variant = a_variant(ready=4)
        assert again(variant, 6, fresh(variant)) == (6, "ScaledUp")
        assert again(variant, 2, fresh(variant)) == (2, "ScaledDown")

    def test_readiness_that_changed_is_in_nobodys_way(self) -> None:
        assert again(a_variant(ready=2, wanted=4), 6, fresh(a_variant(ready=4))) == (6, "ScaledUp")

    @pytest.mark.parametrize(
        ("now", "held"),
        [
            (None, (4, "TargetNotFound")),
            (a_variant(ready=0, wanted=None), (6, "TargetNotFound")),
            (a_variant(ready=3), (3, "ReplicasMoved")),
            (a_variant(ready=7), (7, "ReplicasMoved")),
            (a_variant(ready=5), (6, "ScaledUp")),
            (a_variant(ready=4, max_replicas=9), (4, "Edited")),
            (a_variant(ready=4, accelerator="A100"), (4, "Edited")),
            (a_variant(ready=4, paused=True), (4, "Paused")),
        ],
    )
    def test_what_changed_since_is_held(self, now: VariantObservation | None, held: tuple[int, str]) -> None:
        assert again(a_variant(ready=4), 6, fresh(*([] if now is None else [now]))) == held

    def test_a_cluster_that_does_not_answer_is_not_written_to(self) -> None:
        assert again(a_variant(ready=4), 6, fresh(complete=False)) == (4, "ClusterUnknown")

    def test_nothing_goes_on_an_incomplete_reading_and_growth_does(self) -> None:
        variant = a_variant(ready=4)
        assert again(variant, 2, fresh(variant, complete=False)) == (4, "ClusterUnknown")
        assert again(variant, 6, fresh(variant, complete=False)) == (6, "ScaledUp")

    def test_growth_is_granted_again(self) -> None:
        variant = a_variant(ready=4)
        assert again(variant, 9, fresh(variant, pools=[a_pool(gpus=6, nodes=1)])) == (6, "ScaledUp")
        cordoned = fresh(variant, pools=[a_pool(cordoned=True)])
        assert again(variant, 9, cordoned) == (4, "ResourceConstrained")

    def test_victims_are_forgotten_where_nothing_goes(self) -> None:
        before = a_variant(ready=4)
        (decision,) = revalidated(decided(before, 2), fresh(a_variant(ready=5))).decisions
        assert (decision.desired, decision.victims) == (5, ())


def queue(**more: Any) -> list[Any]:
    return [some_traffic(**{"queued": 3.0, **more})]


def woken(reading: ClusterReading, traffic: list[Any] | None = None, **rules: Any) -> dict[str, int]:
    found = wake(reading, queue() if traffic is None else traffic, settings(**rules))
    return {one.variant.name: one.desired for one in found}


class TestWaking:
    dear = a_variant("dear", ready=0, cost=20.0)
    cheap = a_variant("cheap", ready=0, cost=5.0, accelerator="L40S")
    both = (a_pool(), a_pool(accelerator="L40S"))

    def test_the_cheapest_wakes_and_no_other(self) -> None:
        assert woken(fresh(self.dear, self.cheap, pools=self.both)) == {"cheap": 1}

    def test_the_cheapest_that_fits(self) -> None:
        pools = (a_pool(), a_pool(accelerator="L40S", cordoned=True))
        assert woken(fresh(self.dear, self.cheap, pools=pools)) == {"dear": 1}

    def test_a_quota_counts(self) -> None:
        quota = QuotaObservation(namespace="prod", resource="requests.nvidia.com/gpu", hard=2, used=2)
        reading = fresh(self.dear, self.cheap, pools=self.both, quotas=[quota])
        (decision,) = wake(reading, queue(), settings())
        assert (decision.variant.name, decision.desired, decision.reason) == (
            "cheap",
            0,
            "ResourceConstrained",
        )
        assert decision.facts["short"] == 1

    def test_nobody_waits_nobody_wakes(self) -> None:
        reading = fresh(self.dear, self.cheap, pools=self.both)
        for traffic in ([], [some_traffic()], queue(queued=None), queue(namespace="test"), queue(model="m")):
            assert woken(reading, traffic) == {}

    def test_a_service_that_serves_is_none_of_its_business(self) -> None:
        assert woken(fresh(self.dear, a_variant("runs", ready=1), pools=self.both)) == {}

    def test_one_that_starts_already_is_not_woken_again(self) -> None:
        assert woken(fresh(self.dear, a_variant("starts", ready=0, wanted=1), pools=self.both)) == {}

    def test_prefill_and_decode_wake_together(self) -> None:
        pair = [a_variant(r.value, ready=0, role=r, cost=4.0) for r in (Role.PREFILL, Role.DECODE)]
        assert woken(fresh(*pair, self.dear)) == {"prefill": 1, "decode": 1}
        alone = a_variant("alone", ready=0, cost=7.0)
        assert woken(fresh(*pair, alone)) == {"alone": 1}

    def test_the_side_that_is_missing_wakes(self) -> None:
        fill, make = a_variant("fill", ready=1, role="prefill"), a_variant("make", ready=0, role="decode")
        assert woken(fresh(fill, make)) == {"make": 1}

    @pytest.mark.parametrize(
        ("variant", "rules"),
        [
            (a_variant(ready=0, paused=True), {}),
            (a_variant(ready=0, max_replicas=0), {}),
            (a_variant(ready=0, wanted=None), {}),
            (a_variant(ready=0), {"paused": True}),
        ],
    )
    def test_what_people_forbid_sleeps_on(self, variant: VariantObservation, rules: dict[str, Any]) -> None:
        assert woken(fresh(variant), **rules) == {}

    def test_two_services_do_not_get_the_same_accelerators(self) -> None:
        first, second = a_variant("a", ready=0, model="a"), a_variant("b", ready=0, model="b")
        reading = fresh(first, second, pools=[a_pool(gpus=1, nodes=1)])
        traffic = [some_traffic(name, queued=1.0) for name in "ab"]
        assert woken(reading, traffic) == {"a": 1, "b": 0}
        assert woken(reading, traffic, overrides=[{"model": "b", "priority": 9.0}]) == {"b": 1, "a": 0}

    def test_asleep_is_who_has_no_whole_path(self) -> None:
        fill = a_variant("fill", ready=1, role="prefill")
        assert list(asleep([fill, a_variant("other", ready=1, model="m")])) == [("prod", "llm")]


class TestRoom:
    def test_pods_are_put_where_least_is_left_over(self) -> None:
        pool = a_pool(gpus=8, nodes=2)
        small = a_variant("small", ready=4, gpus=1, nodes=("h100-node-0",) * 4)
        big = a_variant("big", ready=0, gpus=8)
        room = Room.of([pool], [], [small])
        assert room.fitting(big) == 1
        room.take(small, 4)
        assert room.fitting(big) == 1

    def test_a_group_takes_all_its_pods(self) -> None:
        room = Room.of([a_pool(gpus=8, nodes=3)], [], [])
        assert room.fitting(a_variant(gpus=16, pods_per_replica=2)) == 1

    def test_what_is_kept_on_a_cordoned_node_is_still_held(self) -> None:
        variant = a_variant(ready=2, nodes=("h100-node-0", "h100-node-0"))
        room = Room.of([a_pool(nodes=1, cordoned=True)], [], [], staying=[variant])
        assert room.fitting(variant) == 2

    def test_clusters_are_apart(self) -> None:
        room = Room.of([a_pool(cluster="east")], [], [])
        assert room.fitting(a_variant(cluster="west")) == 0
        assert room.fitting(a_variant(cluster="east")) == 32

    @pytest.mark.parametrize(
        ("resource", "accelerator", "maker", "speaks"),
        [
            ("requests.nvidia.com/gpu", "H100", "nvidia", True),
            ("requests.nvidia.com/gpu", "MI300X", "amd", False),
            ("requests.nvidia.com/gpu", "X1", None, True),
            ("requests.nvidia.com/mig-1g.10gb", "H100-MIG-1g.10gb", "nvidia", True),
            ("requests.nvidia.com/mig-1g.10gb", "H100", "nvidia", False),
            ("requests.nvidia.com/gpu.shared", "L4-shared", "nvidia", True),
            ("requests.nvidia.com/gpu.shared", "L4", "nvidia", False),
            ("requests.example.com/npu", "X1", "example", True),
        ],
    )
    def test_what_a_quota_speaks_of(
        self, resource: str, accelerator: str, maker: str | None, speaks: bool
    ) -> None:
        assert speaks_of(resource, accelerator, maker) is speaks


class TestMemory:
    def seen(self) -> Observation:
        variant = a_variant(ready=3, cluster="east")
        engines = engines_of(variant, (0.7, 6.0), itl_s=0.03, ttft_s=0.4)
        return observed(
            [variant], engines, traffic=[some_traffic(cluster="east")], pools=[a_pool(cluster="east")]
        )

    @pytest.mark.parametrize("policy", ["wva-v1", "wva-v2", "planner"])
    def test_a_restart_in_the_middle_decides_as_if_there_was_none(self, policy: str) -> None:
        options = {"analyzers": [{"name": "throughput"}, {"name": "queueing-model"}]}
        more = {} if policy == "wva-v1" else {"policies": {policy: options}}
        going, restarted = Cycles(policy=policy, **more), Cycles(policy=policy, **more)
        for _ in range(4):
            assert going(self.seen()) == restarted(self.seen())
            assert going.state == restarted.state
            restarted.restart()
            assert going.state == restarted.state

    @pytest.mark.parametrize(
        "damaged",
        ["", "[]", "null", "{", '{"wishes": 3}', '{"analysis": {"quiet": [["a"]]}}', '{"decided": [[1, 2]]}'],
    )
    def test_what_is_damaged_is_refused_as_a_whole(self, damaged: str) -> None:
        with pytest.raises(ValueError, match=r"."):
            DecidingState.from_json(damaged)

    def test_fields_of_another_version_are_left_out(self) -> None:
        text = json.dumps({**json.loads(DecidingState().to_json()), "of_tomorrow": [1]})
        assert DecidingState.from_json(text) == DecidingState()

    def test_who_is_gone_is_forgotten(self) -> None:
        cycles = Cycles()
        cycles(self.seen())
        cycles(observed([], traffic=[]))
        assert (cycles.state.wishes, cycles.state.decided, cycles.state.analysis.quiet) == ({}, {}, {})
