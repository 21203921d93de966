"""What is known to go wrong in llm-d's autoscaler (its code at v0.9, its issues), each shown right through a whole cycle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from models.observation import VariantObservation
from planner.control.analysis import AnalysisMemory, Move, analyze
from planner.control.deciding.token_groups import groups_of
from planner.saturation import THROUGHPUT, Analysis, Sized, Step, TokenMemory
from planner.saturation.memory import Stored, VariantKey
from planner.saturation.readings import EngineLimits
from tests.observed_fleets import (
    NO_TRAFFIC,
    NOW_S,
    Cycles,
    a_variant,
    engines_of,
    observed,
    settings,
    some_traffic,
)

FULL, CALM = (0.79, 0.0), (0.2, 0.0)
POLICIES = ("wva-v1", "wva-v2", "planner")


def test_an_override_is_keyed_by_fields_that_a_config_map_can_hold() -> None:
    """There the key is ``model#namespace``, which no ConfigMap may have, so no override ever matched."""
    model = "meta-llama/Llama-3.1-8B"
    mine = a_variant("mine", ready=2, model=model)
    other = a_variant("other", ready=2, model=model, namespace="test")
    override = {"namespace": "prod", "model": model, "tau_kv": 0.5}
    cycles = Cycles(settings(policy="wva-v1", overrides=[override]))
    engines = engines_of(mine, (0.45, 0)) + engines_of(other, (0.45, 0))
    assert cycles(observed([mine, other], engines)) == {"mine": 3, "other": 2}


def test_an_override_of_one_field_leaves_all_others_as_they_were_tuned() -> None:
    """There every entry was filled with stock defaults first, which then replaced what was tuned."""
    tuned = settings(gamma_kv=0.3, overrides=[{"model": "llm", "tau_queue": 9.0}])
    rules = tuned.rules_of(a_variant())
    assert (rules.gamma_kv, rules.tau_queue, rules.tau_kv) == (0.3, 9.0, 0.8)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_variant_whose_pods_all_start_keeps_its_cost_and_accelerator(policy: str) -> None:
    """There cost and accelerator were read from metric rows: no row made it free of charge, and the first to grow."""
    dear = a_variant("dear", ready=0, wanted=1, cost=50.0)
    cheap = a_variant("cheap", ready=2, cost=5.0)
    wanted = Cycles(policy=policy)(observed([dear, cheap], engines_of(cheap, (1.0, 4.0))))
    assert wanted["dear"] == 1


@pytest.mark.parametrize("policy", ["wva-v2", "planner"])
def test_a_variant_at_zero_takes_what_a_full_one_cannot(policy: str) -> None:
    """There variants without replicas were invisible: a service stayed short beside an idle pool."""
    full = a_variant("full", ready=2, max_replicas=2, cost=5.0)
    spare = a_variant("spare", ready=0, accelerator="L40S", cost=8.0)
    cycles = Cycles(policy=policy, constrained=False)
    wanted = cycles(observed([full, spare], engines_of(full, (1.0, 9.0))))
    assert wanted["full"] == 2
    assert wanted["spare"] > 0


def test_requests_that_run_keep_a_service_awake_though_none_ended() -> None:
    """There only completed requests counted: one very long answer read as idle."""
    cycles = Cycles(scale_to_zero=True, retention_s=30.0)
    variant = a_variant(ready=1)
    traffic = some_traffic(**{**NO_TRAFFIC, "in_flight": 1.0})
    for _ in range(6):
        wanted = cycles(observed([variant], engines_of(variant, (0.1, 0.0)), traffic=[traffic]))
    assert wanted == {"v": 1}


def test_a_service_that_was_just_woken_is_not_put_back_to_sleep() -> None:
    """There nothing had completed yet, so that the next cycle took the replica away again."""
    cycles = Cycles(scale_to_zero=True, retention_s=60.0)
    asleep, awake = a_variant(ready=0), a_variant(ready=1)
    for _ in range(10):
        cycles(observed([asleep], traffic=[some_traffic(**NO_TRAFFIC)]))
    wanted = cycles(observed([awake], engines_of(awake, (0, 0)), traffic=[some_traffic(**NO_TRAFFIC)]))
    assert wanted == {"v": 1}


def test_a_queue_counts_in_its_own_namespace_alone() -> None:
    """There the router's queue had no namespace: the same model in two namespaces counted both queues twice."""
    here, there = a_variant("here", ready=2), a_variant("there", ready=2, namespace="test")
    traffic = [some_traffic(queued=1000.0), some_traffic(namespace="test")]
    engines = engines_of(here, (0.5, 0)) + engines_of(there, (0.5, 0))
    wanted = Cycles(policy="wva-v2")(observed([here, there], engines, traffic=traffic))
    assert wanted["here"] > 2
    assert wanted["there"] == 2


def test_figures_of_one_model_in_two_namespaces_are_not_mixed_up() -> None:
    """There what was seen was filed under the model alone."""
    here, there = a_variant("here", ready=2), a_variant("there", ready=4, namespace="test")
    cycles = Cycles()
    cycles(observed([here, there], engines_of(here, (0.7, 0)) + engines_of(there, (0.3, 0))))
    assert cycles.last is not None
    found = {one.namespace: (one.demand, one.capacity) for one in cycles.last.verdicts}
    assert found == {"prod": (2 * 11_200, 2 * 12_800), "test": (4 * 4_800, 4 * 12_800)}


def test_peaks_of_cache_and_queue_that_were_not_at_one_moment_are_not_added() -> None:
    """There the largest usage and the longest queue of a minute were summed though one may follow the other."""
    variant = a_variant(ready=1)
    engines = engines_of(variant, (0.6, 0.0))
    then = [one.model_copy(update={"waiting": 4.0, "waiting_now": 0.0}) for one in engines]
    cycles = Cycles()
    cycles(observed([variant], then))
    assert cycles.last is not None
    assert cycles.last.verdicts[0].demand == pytest.approx(0.6 * 16_000)


def test_analyzers_that_count_in_different_units_are_never_subtracted_from_one_another() -> None:
    """There a grant lowered what every analyzer missed by the size in the first one's unit: tokens off tokens/s.

    Tokens miss 10,000 of 12,800 a replica, tokens/s miss 3,000 of 1,000 a replica: three more are needed, not one.
    """
    variant = a_variant(ready=1)
    seen, _ = analyze(
        observed([variant], engines_of(variant, (0.5, 0))), settings(), memory=AnalysisMemory(), now_s=NOW_S
    )
    service = seen.services[0]
    rates = _rates(variant, demand=4_000 * 0.85, per_replica=1_000)
    both = replace(service, others={THROUGHPUT: rates}, live=service.live | {THROUGHPUT})
    (group,) = groups_of(both)
    (carries,) = group.carries.values()
    assert both.move("both") is Move.UP
    assert -(-group.tokens // carries.rated) == 4


def _rates(variant: VariantObservation, *, demand: float, per_replica: float) -> Analysis:
    step = Step(
        demand=demand,
        supply=per_replica,
        anticipated=per_replica,
        required=demand / 0.85 - per_replica,
        spare=0.0,
    )
    sized = Sized(name=variant.name, per_replica=per_replica, instances=1)
    return Analysis(analyzer=THROUGHPUT, variants={variant.name: sized}, total=step, roles={"both": step})


@pytest.mark.parametrize("policy", POLICIES)
def test_an_unknown_accelerator_does_not_withhold_what_is_needed(policy: str) -> None:
    """There a variant whose accelerator nobody could name got no GPU (issues 1026, 1288)."""
    variant = a_variant(ready=2, accelerator="")
    assert Cycles(policy=policy)(observed([variant], engines_of(variant, FULL)))["v"] > 2


@pytest.mark.parametrize("policy", POLICIES)
def test_an_inventory_that_cannot_be_found_is_told_and_blocks_nothing(policy: str) -> None:
    """There an undiscoverable inventory silently blocked all growth (issue 1298)."""
    variant, cycles = a_variant(ready=2), Cycles(policy=policy)
    assert cycles(observed([variant], engines_of(variant, FULL), pools=[]))["v"] > 2
    assert cycles.last is not None
    assert any(finding.subject == "capacity" for finding in cycles.last.findings)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_service_without_load_is_left_alone(policy: str) -> None:
    """There thresholds without defaults were zero, so that every replica looked saturated (issues 380, 993)."""
    variant, cycles = a_variant(ready=1), Cycles(policy=policy)
    for _ in range(5):
        assert cycles(observed([variant], engines_of(variant, (0.0, 0.0)))) == {"v": 1}


@pytest.mark.parametrize("policy", POLICIES)
def test_stuck_queues_of_an_aborted_load_do_scale_down(policy: str) -> None:
    """There queues that nobody serves kept replicas saturated, and less than two others forbade it for ever (issue 769)."""
    variant, cycles = a_variant(ready=6), Cycles(policy=policy)
    stuck: dict[str, Any] = {"token_rate": 0.0, "request_rps": 0.0, "running": 4.0}
    engines = engines_of(variant, (0.9, 213.0), **stuck)
    traffic = [some_traffic(**{**NO_TRAFFIC, "in_flight": 900.0})]
    for _ in range(3):
        assert cycles(observed([variant], engines, traffic=traffic))["v"] >= 6
    for _ in range(12):
        wanted = cycles(observed([variant], engines, traffic=traffic))
    assert wanted["v"] < 6
    assert cycles.last is not None
    assert any("no token" in finding.problem for finding in cycles.last.findings)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_queue_that_makes_progress_is_demand(policy: str) -> None:
    """The same queues while tokens are still made are served, and nothing goes."""
    variant, cycles = a_variant(ready=6), Cycles(policy=policy)
    engines = engines_of(variant, (0.9, 213.0), token_rate=900.0, request_rps=0.0)
    traffic = [some_traffic(**{**NO_TRAFFIC, "in_flight": 900.0})]
    for _ in range(15):
        assert cycles(observed([variant], engines, traffic=traffic))["v"] >= 6


@pytest.mark.parametrize("policy", ["wva-v2", "planner"])
def test_the_queue_of_flow_control_counts(policy: str) -> None:
    """There the engines never saw what the router held, and growth came late (issue 813)."""
    variant = a_variant(ready=2)
    held = observed([variant], engines_of(variant, (0.5, 0.0)), traffic=[some_traffic(queued=400.0)])
    free = observed([variant], engines_of(variant, (0.5, 0.0)))
    assert Cycles(policy=policy)(free) == {"v": 2}
    assert Cycles(policy=policy)(held)["v"] > 2


@pytest.mark.parametrize("policy", POLICIES)
def test_growth_that_waits_for_slow_pods_is_not_repeated(policy: str) -> None:
    """Replicas on order are anticipated: the same load asks for the same replicas until they are ready."""
    cycles, before = Cycles(policy=policy), a_variant(ready=2)
    wanted = cycles(observed([before], engines_of(before, FULL)))["v"]
    assert wanted > 2
    for _ in range(8):
        waiting = a_variant(ready=2, wanted=wanted)
        assert cycles(observed([waiting], engines_of(waiting, FULL))) == {"v": wanted}


def test_a_group_of_pods_is_one_replica() -> None:
    """There every pod of a LeaderWorkerSet was counted, or the group was in transition for ever (issues 1302, 1303)."""
    group = a_variant(ready=1, pods_per_replica=2, gpus=16)
    assert Cycles(policy="wva-v1")(observed([group], engines_of(group, FULL))) == {"v": 2}


def test_ranks_of_a_data_parallel_pod_are_one_replica() -> None:
    """There capacity of one rank stood for that of a replica, or ranks were not counted (issue 1469)."""
    variant = a_variant(ready=1, gpus=8)
    ranks = [
        one.model_copy(update={"instance": f"v-0:{8000 + rank}"})
        for rank in range(8)
        for one in engines_of(variant, (0.79, 0.0))
    ]
    assert Cycles(policy="wva-v2")(observed([variant], ranks)) == {"v": 2}


def test_nothing_is_borrowed_that_is_not_alike() -> None:
    """A variant at zero is sized by what it had when it ran, whatever others of its service have."""
    small, large = (
        a_variant("small", ready=2, cost=5.0),
        a_variant("large", ready=0, accelerator="B200", cost=6.0),
    )
    kept = Stored(effective=100_000, at_s=NOW_S, accelerator="B200", gpus=1, limits=EngineLimits())
    memory = AnalysisMemory(tokens={"llm": TokenMemory(stored={VariantKey("llm", "prod", "large"): kept})})
    cycles = Cycles(policy="planner", constrained=False)
    cycles.state = replace(cycles.state, analysis=memory)
    wanted = cycles(observed([small, large], engines_of(small, (1.0, 9.0))))
    assert wanted["large"] == 1


def test_a_variant_that_never_ran_is_no_larger_than_its_memory() -> None:
    """There the arguments of the engine alone sized it: a small accelerator at zero looked like a bargain."""
    model = "meta-llama/Llama-3.1-8B-Instruct"
    full = a_variant("full", ready=2, max_replicas=2, model=model)
    small = a_variant("small", ready=0, model=model, accelerator="L4", cost=1.0)
    cycles = Cycles(policy="planner", constrained=False)
    busy = engines_of(full, (1.0, 50.0), kv_tokens=400_000.0, input_tokens=2_000.0, output_tokens=500.0)
    cycles(observed([full, small], busy, traffic=[some_traffic(model)]))
    assert cycles.last is not None
    carried = [one.surge_rps for one in cycles.last.problems["planner"].candidates if one.accelerator == "L4"]
    assert carried == [pytest.approx(44.384 * 0.8, rel=1e-3)]
