"""What every wish goes through, whoever made it: each rule through whole cycles on a fake clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from models.observation import Observation, QuotaObservation, VariantObservation
from planner.clock import Clock
from planner.control.analysis import VariantRef, Voices
from planner.control.deciding import Decider, Policy, PolicyFactory, Proposal, Proposed, Question
from planner.control.protocols import Decision
from planner.registry import Registry
from tests.observed_fleets import (
    NO_TRAFFIC,
    Cycles,
    a_pool,
    a_variant,
    engines_of,
    observed,
    settings,
    some_traffic,
)

WISHES: dict[str, int] = {}
"""What the policy ``wishing`` of these tests wishes, by name of the variant."""


@dataclass(frozen=True)
class _Wishing:
    voices: Voices = field(default_factory=dict)

    def propose(self, question: Question) -> Proposal:
        found: dict[VariantRef, Proposed] = {
            one.ref: Proposed(replicas=WISHES[one.name], why="wished")
            for service in question.services
            for one in service.seen.variants
            if one.name in WISHES
        }
        return Proposal(wishes=found)


@dataclass(frozen=True)
class _Failing:
    voices: Voices = field(default_factory=dict)

    def propose(self, question: Question) -> Proposal:
        raise RuntimeError("secret-token")


class _Deciding:
    """A plug-in that looks at the observation alone."""

    def decide(self, observation: Observation, now_s: float) -> list[Decision]:
        return [Decision(variant=one, desired=7, reason="Seven") for one in observation.variants]


def wishing(options: Mapping[str, object], clock: Clock) -> Policy:
    return _Wishing()


def failing(options: Mapping[str, object], clock: Clock) -> Policy:
    return _Failing()


def seven(options: Mapping[str, object], clock: Clock) -> _Deciding:
    return _Deciding()


def nonsense(options: Mapping[str, object], clock: Clock) -> object:
    return 3


REGISTRY: Registry[PolicyFactory] = Registry(
    "policy", {name: f"{__name__}:{name}" for name in ("wishing", "failing", "seven", "nonsense")}
)


class Wishing(Cycles):
    """Cycles of a policy that wishes what it is told."""

    def __init__(self, policy: str = "wishing", **rules: Any) -> None:
        super().__init__(settings(policy=policy, **rules))
        self.decider = Decider(clock=self.clock, policies=REGISTRY)

    def wish(self, observation: Observation, *, after_s: float = 15.0, **wishes: int) -> dict[str, int]:
        WISHES.clear()
        WISHES.update(wishes)
        return self(observation, after_s=after_s)


CALM = (0.2, 0.0)


def calm(variant: VariantObservation, **more: Any) -> Observation:
    return observed([variant], engines_of(variant, CALM), **more)


class TestHolding:
    def test_a_paused_variant_keeps_its_replicas(self) -> None:
        cycles = Wishing()
        assert cycles.wish(calm(a_variant(ready=3, paused=True)), v=9) == {"v": 3}
        assert cycles.why("v") == "Paused"

    def test_an_override_pauses_too(self) -> None:
        cycles = Wishing(overrides=[{"variant": "v", "paused": True}])
        assert cycles.wish(calm(a_variant(ready=3)), v=9) == {"v": 3}

    def test_a_target_that_is_gone_keeps_what_was_last_decided(self) -> None:
        cycles = Wishing()
        assert cycles.wish(calm(a_variant(ready=3)), v=5) == {"v": 5}
        gone = a_variant(ready=0, wanted=None)
        assert cycles.wish(observed([gone]), v=9) == {"v": 5}
        assert cycles.why("v") == "TargetNotFound"
        assert cycles.last is not None
        gates = {one.type: one.status for one in cycles.last.conditions["", "prod", "v"]}  # type: ignore[index]
        assert gates == {"TargetResolved": False, "MetricsAvailable": True, "OptimizationReady": False}

    def test_missing_metrics_take_nothing_back_that_was_decided(self) -> None:
        cycles = Wishing()
        cycles.wish(calm(a_variant(ready=3)), v=6)
        blind = observed([a_variant(ready=3)], [])
        assert cycles.wish(blind, v=0) == {"v": 6}
        assert cycles.why("v") == "MetricsUnavailable"

    @pytest.mark.parametrize("age_s", [90.0, 400.0, None])
    def test_old_and_missing_metrics_scale_nothing_in(self, age_s: float | None) -> None:
        variant, cycles = a_variant(ready=4), Wishing()
        half = engines_of(variant, CALM)[:3]
        old = [one.model_copy(update={"age_s": age_s}) for one in engines_of(variant, CALM)[3:]]
        assert cycles.wish(observed([variant], [*half, *old]), v=1) == {"v": 4}
        assert cycles.why("v") == "MetricsUnavailable"

    def test_who_is_blind_for_long_is_told_of(self) -> None:
        cycles, blind = Wishing(), observed([a_variant(ready=3)], [])
        told = []
        for _ in range(23):
            cycles.wish(blind)
            assert cycles.last is not None
            told.append([one.problem for one in cycles.last.findings])
        assert told[:20] == [[]] * 20
        assert "for 315 s: it is held" in told[21][0]

    def test_metrics_of_some_replicas_are_enough_to_grow(self) -> None:
        variant, cycles = a_variant(ready=4), Wishing()
        assert cycles.wish(observed([variant], engines_of(variant, CALM)[:3]), v=6) == {"v": 6}

    def test_an_incomplete_observation_scales_nothing_in(self) -> None:
        cycles = Wishing()
        assert cycles.wish(calm(a_variant(ready=4), complete=False), v=1) == {"v": 4}
        assert cycles.wish(calm(a_variant(ready=4)), v=1) == {"v": 1}

    def test_a_policy_that_fails_holds_its_services_and_its_words_are_not_repeated(self) -> None:
        cycles = Wishing("failing")
        assert cycles.wish(calm(a_variant(ready=4))) == {"v": 4}
        assert cycles.why("v") == "OptimizationFailed"
        assert cycles.last is not None
        assert "secret" not in str(cycles.last.findings)
        assert "RuntimeError" in str(cycles.last.findings)

    @pytest.mark.parametrize("policy", ["nonsense", "unknown"])
    def test_a_policy_that_cannot_be_opened_is_a_finding(self, policy: str) -> None:
        cycles = Wishing(policy)
        assert cycles.wish(calm(a_variant(ready=4))) == {"v": 4}
        assert cycles.last is not None
        assert cycles.last.findings[0].subject == f"policy {policy}"

    def test_a_plugin_may_decide_from_the_observation_alone(self) -> None:
        assert Wishing("seven").wish(calm(a_variant(ready=4))) == {"v": 7}

    def test_below_its_minimum_a_variant_is_raised_though_nothing_is_known_of_it(self) -> None:
        assert Wishing().wish(observed([a_variant(ready=1, min_replicas=3)], []), v=1) == {"v": 3}


class TestZero:
    def test_the_last_replica_stays_while_a_service_may_not_sleep(self) -> None:
        cycles = Wishing()
        dear, cheap = a_variant("dear", ready=2, cost=9.0), a_variant("cheap", ready=2, cost=2.0)
        both = observed([dear, cheap], engines_of(dear, CALM) + engines_of(cheap, CALM))
        assert cycles.wish(both, dear=0, cheap=0) == {"dear": 0, "cheap": 1}
        assert cycles.why("cheap") == "ScaledDown"

    def test_each_role_keeps_one(self) -> None:
        cycles = Wishing()
        fill, make = a_variant("fill", ready=2, role="prefill"), a_variant("make", ready=2, role="decode")
        both = observed([fill, make], engines_of(fill, CALM) + engines_of(make, CALM))
        assert cycles.wish(both, fill=0, make=0) == {"fill": 1, "make": 1}

    def test_a_service_that_nobody_used_for_its_retention_time_sleeps(self) -> None:
        cycles = Wishing(scale_to_zero=True, retention_s=60.0)
        idle = calm(a_variant(ready=1), traffic=[some_traffic(**NO_TRAFFIC)])
        found = [cycles.wish(idle, v=1)["v"] for _ in range(6)]
        assert found == [1, 1, 1, 1, 0, 0]
        assert cycles.why("v") == "ScaledToZero"

    @pytest.mark.parametrize("sign", ["arrival_rps", "queued", "in_flight"])
    def test_what_is_not_known_is_no_proof_of_idleness(self, sign: str) -> None:
        cycles = Wishing(scale_to_zero=True, retention_s=60.0)
        traffic = some_traffic(**{**NO_TRAFFIC, sign: None, "arrived": None})
        idle = calm(a_variant(ready=1), traffic=[traffic])
        assert [cycles.wish(idle, v=1)["v"] for _ in range(8)] == [1] * 8

    @pytest.mark.parametrize("sign", ["arrival_rps", "queued", "in_flight"])
    def test_every_sign_of_use_keeps_it_awake(self, sign: str) -> None:
        cycles = Wishing(scale_to_zero=True, retention_s=60.0)
        used = calm(a_variant(ready=1), traffic=[some_traffic(**{**NO_TRAFFIC, sign: 0.5})])
        assert [cycles.wish(used, v=1)["v"] for _ in range(8)] == [1] * 8

    def test_a_gap_in_what_is_known_begins_the_retention_time_anew(self) -> None:
        cycles = Wishing(scale_to_zero=True, retention_s=60.0)
        idle = calm(a_variant(ready=1), traffic=[some_traffic(**NO_TRAFFIC)])
        dark = calm(a_variant(ready=1), traffic=[])
        found = [
            cycles.wish(each, v=1)["v"] for each in (idle, idle, idle, dark, idle, idle, idle, idle, idle)
        ]
        assert found == [1] * 8 + [0]

    def test_a_minimum_forbids_zero(self) -> None:
        cycles = Wishing(scale_to_zero=True, retention_s=30.0)
        idle = calm(a_variant(ready=1, min_replicas=1), traffic=[some_traffic(**NO_TRAFFIC)])
        assert [cycles.wish(idle, v=1)["v"] for _ in range(5)] == [1] * 5

    def test_a_restart_goes_on_watching(self) -> None:
        cycles = Wishing(scale_to_zero=True, retention_s=60.0)
        idle = calm(a_variant(ready=1), traffic=[some_traffic(**NO_TRAFFIC)])
        for _ in range(4):
            cycles.wish(idle, v=1)
        cycles.restart()
        cycles.decider = Decider(clock=cycles.clock, policies=REGISTRY)
        assert cycles.wish(idle, v=1) == {"v": 0}


class TestBounds:
    @pytest.mark.parametrize(
        ("wish", "least", "most", "wanted"), [(9, 0, 5, 5), (1, 2, 5, 2), (9, 4, 2, 9), (4, 0, None, 4)]
    )
    def test_people_bound_what_a_policy_may_wish(
        self, wish: int, least: int, most: int | None, wanted: int
    ) -> None:
        variant = a_variant(ready=3, min_replicas=least, max_replicas=most)
        assert Wishing().wish(calm(variant), v=wish) == {"v": wanted}

    def test_what_a_maximum_cuts_off_is_short(self) -> None:
        cycles = Wishing()
        cycles.wish(calm(a_variant(ready=3, max_replicas=5)), v=9)
        assert cycles.last is not None
        assert cycles.last.decisions[0].facts["short"] == 4


class TestDamping:
    def test_down_goes_to_the_highest_wish_of_the_window(self) -> None:
        cycles = Wishing(stabilize_down_s=60.0)
        wishes = [8, 3, 5, 3, 3, 3, 3, 3]
        found = [cycles.wish(calm(a_variant(ready=8)), v=wish)["v"] for wish in wishes]
        assert found == [8, 8, 8, 8, 5, 5, 3, 3]
        assert cycles.why("v") == "ScaledDown"

    def test_up_goes_to_the_lowest_wish_of_the_window(self) -> None:
        cycles = Wishing(stabilize_up_s=30.0)
        found = [cycles.wish(calm(a_variant(ready=2)), v=wish)["v"] for wish in (6, 4, 6, 6, 6)]
        assert found == [2, 2, 4, 6, 6]

    def test_a_controller_that_lost_its_memory_waits_for_a_whole_window(self) -> None:
        cycles = Wishing(stabilize_down_s=45.0)
        found = [cycles.wish(calm(a_variant(ready=8)), v=2)["v"] for _ in range(5)]
        assert found == [8, 8, 8, 2, 2]

    def test_a_controller_that_kept_it_goes_on(self) -> None:
        cycles = Wishing(stabilize_down_s=45.0)
        for _ in range(4):
            cycles.wish(calm(a_variant(ready=8)), v=2)
        cycles.restart()
        cycles.decider = Decider(clock=cycles.clock, policies=REGISTRY)
        assert cycles.wish(calm(a_variant(ready=8)), v=2) == {"v": 2}

    def test_a_wish_that_swings_moves_nothing(self) -> None:
        cycles, replicas = Wishing(stabilize_down_s=60.0), 4
        found = []
        for turn in range(20):
            replicas = cycles.wish(calm(a_variant(ready=replicas)), v=3 + 2 * (turn % 2))["v"]
            found.append(replicas)
        assert sorted(set(found)) == [4, 5]
        assert found.count(4) == 1

    def test_recovery_from_a_gap_comes_without_a_jump(self) -> None:
        cycles = Wishing(stabilize_down_s=60.0)
        for _ in range(6):
            cycles.wish(calm(a_variant(ready=6)), v=6)
        for _ in range(20):
            assert cycles.wish(observed([a_variant(ready=6)], []), v=1) == {"v": 6}
        found = [cycles.wish(calm(a_variant(ready=6)), v=1)["v"] for _ in range(5)]
        assert found == [6, 6, 6, 1, 1]

    @pytest.mark.parametrize(("wish", "wanted"), [(21, 20), (22, 20), (23, 23), (18, 20), (17, 17), (0, 1)])
    def test_changes_inside_of_the_dead_band_are_not_made(self, wish: int, wanted: int) -> None:
        assert Wishing(dead_band=0.1).wish(calm(a_variant(ready=20)), v=wish) == {"v": wanted}

    @pytest.mark.parametrize(("wish", "wanted"), [(10, 7), (6, 6), (1, 4), (4, 4)])
    def test_steps_limit_one_cycle(self, wish: int, wanted: int) -> None:
        assert Wishing(step_up=2, step_down=1).wish(calm(a_variant(ready=5)), v=wish) == {"v": wanted}

    def test_up_to_the_minimum_goes_at_once(self) -> None:
        assert Wishing(step_up=1).wish(calm(a_variant(ready=1, min_replicas=6)), v=1) == {"v": 6}

    def test_rules_of_one_accelerator_bind_that_one(self) -> None:
        cycles = Wishing(overrides=[{"accelerator": "L40S", "step_up": 1}])
        big, small = a_variant("big", ready=2), a_variant("small", ready=2, accelerator="L40S")
        pools = [a_pool(), a_pool(accelerator="L40S")]
        both = observed([big, small], engines_of(big, CALM) + engines_of(small, CALM), pools=pools)
        assert cycles.wish(both, big=6, small=6) == {"big": 6, "small": 3}


class TestScaleIn:
    @pytest.mark.parametrize(
        ("loads", "wanted"),
        [
            ([(0.9, 0), (0.9, 0), (0.2, 0)], 3),
            ([(0.9, 0), (0.2, 0), (0.2, 0)], 1),
            ([(0.2, 9), (0.2, 9), (0.2, 0)], 3),
        ],
    )
    def test_none_starts_with_fewer_than_two_below_saturation(
        self, loads: list[tuple[float, float]], wanted: int
    ) -> None:
        variant = a_variant(ready=3)
        assert Wishing().wish(observed([variant], engines_of(variant, *loads)), v=1) == {"v": wanted}

    def test_how_many_are_needed_can_be_told(self) -> None:
        variant = a_variant(ready=3)
        busy = observed([variant], engines_of(variant, (0.9, 0), (0.9, 0), (0.2, 0)))
        assert Wishing(min_non_saturated=1).wish(busy, v=2) == {"v": 2}

    def test_a_held_scale_in_does_not_chase_a_target_that_follows_late(self) -> None:
        """An HPA does what the gauge said a while ago: a gauge that said what there is now would go up and down for ever."""
        cycles, said = Wishing(), []
        calm, full = a_variant(ready=3), a_variant(ready=2)
        assert cycles.wish(observed([calm], engines_of(calm, *[(0.2, 0.0)] * 3)), v=2) == {"v": 2}
        for variant in (calm, full, calm, full):
            busy = observed([variant], engines_of(variant, *[(0.9, 0.0)] * variant.ready))
            said.append(cycles.wish(busy, v=1)["v"])
        assert said == [3, 3, 3, 3]

    def test_another_role_is_not_in_the_way(self) -> None:
        fill, make = a_variant("fill", ready=3, role="prefill"), a_variant("make", ready=3, role="decode")
        both = observed([fill, make], engines_of(fill, (0.95, 9)) + engines_of(make, CALM))
        assert Wishing().wish(both, fill=2, make=2) == {"fill": 3, "make": 2}

    def test_what_goes_waits_for_what_comes(self) -> None:
        cycles = Wishing()
        dear, cheap = a_variant("dear", ready=2, cost=30.0), a_variant("cheap", ready=0, cost=5.0)
        first = observed([dear, cheap], engines_of(dear, (0.5, 0.0)))
        assert cycles.wish(first, dear=0, cheap=2) == {"dear": 2, "cheap": 2}
        assert cycles.why("dear") == "WaitsForReplacement"
        starting = a_variant("cheap", ready=0, wanted=2, cost=5.0)
        assert (
            cycles.wish(observed([dear, starting], engines_of(dear, (0.5, 0.0))), dear=0, cheap=2)["dear"]
            == 2
        )
        ready = a_variant("cheap", ready=2, cost=5.0)
        both = observed([dear, ready], engines_of(dear, (0.25, 0.0)) + engines_of(ready, (0.25, 0.0)))
        assert cycles.wish(both, dear=0, cheap=2) == {"dear": 0, "cheap": 2}

    def test_the_emptiest_go_first(self) -> None:
        variant, cycles = a_variant(ready=4), Wishing()
        cycles.wish(observed([variant], engines_of(variant, (0.5, 0), (0.1, 0), (0.3, 0), (0.2, 0))), v=2)
        assert cycles.last is not None
        assert cycles.last.decisions[0].victims == ("v-1", "v-3")

    def test_pods_on_nodes_that_are_cordoned_go_before_them(self) -> None:
        nodes = ("h100-node-0", "h100-node-1", "x-node-0", "h100-node-2")
        variant, cycles = a_variant(ready=4, nodes=nodes), Wishing()
        away = a_pool(nodes=1, cordoned=True)
        away = away.but(id="away", nodes=(away.nodes[0].but(id="x-node-0"),))
        loads = engines_of(variant, (0.5, 0), (0.1, 0), (0.6, 0), (0.2, 0))
        cycles.wish(observed([variant], loads, pools=[a_pool(), away]), v=2)
        assert cycles.last is not None
        assert cycles.last.decisions[0].victims == ("v-2", "v-1")


class TestGranting:
    def test_growth_gets_what_is_free(self) -> None:
        cycles = Wishing()
        variant = a_variant(ready=2, gpus=2)
        assert cycles.wish(calm(variant, pools=[a_pool(gpus=4, nodes=2)]), v=9) == {"v": 4}
        assert cycles.last is not None
        (decision,) = cycles.last.decisions
        assert (decision.reason, decision.facts["short"]) == ("ScaledUp", 5)

    def test_a_large_pod_needs_its_accelerators_on_one_node(self) -> None:
        """Four nodes with three free each have twelve, and room for no pod of four."""
        assert Wishing().wish(calm(a_variant(ready=0), pools=[a_pool(gpus=3)]), v=0) == {"v": 0}
        cycles = Wishing()
        variant = a_variant(ready=1, gpus=4, nodes=("elsewhere",))
        assert cycles.wish(calm(variant, pools=[a_pool(gpus=3)]), v=2) == {"v": 1}
        assert cycles.why("v") == "ResourceConstrained"

    @pytest.mark.parametrize(
        "away", [{"cordoned": True}, {"ready": False}, {"tainted": True}, {"foreign_gpus": 8}]
    )
    def test_nodes_that_take_nothing_and_foreign_pods_do_not_count(self, away: dict[str, Any]) -> None:
        pools = [a_pool(nodes=3, **away)]
        assert Wishing().wish(calm(a_variant(ready=1), pools=pools), v=3) == {"v": 1}

    def test_replicas_on_order_come_first(self) -> None:
        ours = a_variant("ours", ready=1, wanted=6)
        other = a_variant("other", ready=1, model="m")
        engines = engines_of(ours, CALM) + engines_of(other, CALM)
        both = observed(
            [ours, other], engines, traffic=[some_traffic(), some_traffic("m")], pools=[a_pool(nodes=1)]
        )
        assert Wishing().wish(both, ours=6, other=9) == {"ours": 6, "other": 2}

    def test_the_more_important_service_is_served_first_then_the_fuller(self) -> None:
        rules = {"overrides": [{"model": "c", "priority": 5.0}]}
        few = [a_variant(name, ready=1, model=name) for name in "abc"]
        engines = [
            one for v, load in zip(few, (0.3, 0.6, 0.1), strict=True) for one in engines_of(v, (load, 0))
        ]
        seen = observed(few, engines, traffic=[some_traffic(n) for n in "abc"], pools=[a_pool(nodes=1)])
        assert Wishing(**rules).wish(seen, a=4, b=4, c=4) == {"a": 1, "b": 3, "c": 4}

    def test_a_quota_that_foreign_pods_fill_leaves_nothing(self) -> None:
        quota = QuotaObservation(namespace="prod", resource="requests.nvidia.com/gpu", hard=8, used=7)
        cycles = Wishing()
        assert cycles.wish(calm(a_variant(ready=2), quotas=[quota]), v=9) == {"v": 3}
        assert cycles.last is not None
        assert "quota" in cycles.last.decisions[0].message

    @pytest.mark.parametrize(
        ("namespace", "resource"), [("test", "requests.nvidia.com/gpu"), ("prod", "requests.amd.com/gpu")]
    )
    def test_quotas_of_others_are_not_ours(self, namespace: str, resource: str) -> None:
        quota = QuotaObservation(namespace=namespace, resource=resource, hard=8, used=8)
        assert Wishing().wish(calm(a_variant(ready=2), quotas=[quota]), v=9) == {"v": 9}

    def test_without_constraint_nothing_is_cut(self) -> None:
        assert Wishing(constrained=False).wish(calm(a_variant(ready=2), pools=[a_pool(nodes=1)]), v=30) == {
            "v": 30
        }


def test_every_change_of_a_count_leaves_its_trace() -> None:
    cycles = Wishing(step_up=3)
    cycles.wish(calm(a_variant(ready=2, max_replicas=20), pools=[a_pool(gpus=4, nodes=1)]), v=40)
    assert cycles.last is not None
    (decision,) = cycles.last.decisions
    trail = {name: value for name, value in decision.facts.items() if name.startswith("after_")}
    assert trail == {"after_AtMaximum": 20, "after_StepLimited": 5, "after_ResourceConstrained": 4}
    assert (decision.facts["proposed"], decision.desired) == (40, 4)
