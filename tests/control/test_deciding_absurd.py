"""Counts that nobody has: typed by mistake, asked for by absurd figures, or stated in an inventory."""

from __future__ import annotations

import pytest

from models.hardware import Node, Pool
from models.observation import VariantObservation
from planner.control.analysis.reading import MOST_REPLICAS
from planner.control.deciding.room import Room
from tests.observed_fleets import (
    KV_TOKENS,
    Cycles,
    a_pool,
    a_variant,
    engines_of,
    observed,
    settings,
    some_traffic,
)

BILLION = 10**9


def room(pool: Pool, *variants: VariantObservation) -> Room:
    return Room.of([pool], [], variants)


@pytest.mark.parametrize("policy", ["wva-v1", "wva-v2", "planner"])
@pytest.mark.parametrize("most", [None, BILLION])
@pytest.mark.parametrize("cost", [0.0, 1e300])
def test_absurd_figures_ask_for_no_more_replicas_than_anybody_has(
    policy: str, most: int | None, cost: float
) -> None:
    variant = a_variant(ready=2, max_replicas=most, cost=cost)
    full = engines_of(variant, (1.0, 1e15), input_tokens=1e15, running=1e15)
    cycles = Cycles(settings(policy=policy))
    assert 2 <= cycles(observed([variant], full, pools=[]))["v"] <= MOST_REPLICAS


@pytest.mark.parametrize("policy", ["wva-v1", "wva-v2", "planner"])
def test_a_count_typed_by_mistake_is_counted_and_not_listed(policy: str) -> None:
    typed = a_variant("typed", ready=1, wanted=BILLION, max_replicas=None)
    other = a_variant("other", ready=2, model="other")
    seen = observed(
        [typed, other], [*engines_of(typed, (0.5, 0.0)), *engines_of(other, (0.9, 9.0))], pools=[a_pool()]
    )
    wishes = Cycles(settings(policy=policy))(seen)
    assert wishes["typed"] == typed.wanted
    assert wishes["other"] == 2, "what is on order takes what is free before anything grows"


@pytest.mark.parametrize(
    ("gpus", "pods", "left"),
    [
        pytest.param(3, 5, 1, id="two each on three nodes, the third half full"),
        pytest.param(8, 2, 2, id="whole nodes"),
        pytest.param(5, 9, 0, id="one each, and no more than fit"),
        pytest.param(8, BILLION, 0, id="a billion"),
    ],
)
def test_pods_on_order_fill_the_fullest_node_that_has_room(gpus: int, pods: int, left: int) -> None:
    waiting = a_variant("waiting", ready=0, wanted=pods, gpus=gpus, max_replicas=None)
    free = room(a_pool(gpus=8, nodes=4), waiting)
    assert free.fitting(a_variant(gpus=8)) == left


def test_an_inventory_of_a_billion_nodes_is_a_number() -> None:
    pool = a_pool(nodes=1)
    many = pool.model_copy(update={"nodes": (Node(id="rack", gpus=8, count=BILLION),)})
    free = room(many, a_variant("waiting", ready=0, wanted=BILLION, gpus=8))
    assert free.fitting(a_variant()) == 0
    assert room(many, a_variant(ready=0, wanted=1, gpus=8)).fitting(a_variant(gpus=8)) == BILLION - 1


def test_what_people_have_stays_however_large() -> None:
    variant = a_variant(ready=1, wanted=3 * MOST_REPLICAS, max_replicas=None)
    seen = observed([variant], engines_of(variant, (0.95, 50.0)), pools=[])
    assert Cycles(settings(policy="wva-v2"))(seen) == {"v": variant.wanted}


@pytest.mark.parametrize("policy", ["wva-v2", "planner"])
@pytest.mark.parametrize("held", [1e3, 1e5, 1e7, 1e12])
def test_a_demand_that_nothing_could_carry_grows_to_all_there_is(policy: str, held: float) -> None:
    variant = a_variant(ready=2, max_replicas=10)
    seen = observed([variant], engines_of(variant, (0.5, 0.0)), traffic=[some_traffic(queued=held)])
    cycles = Cycles(settings(policy=policy))
    assert cycles(seen) == {"v": 10}
    assert cycles.last is not None
    (decision,) = cycles.last.decisions
    assert int(decision.facts.get("short", 0)) * KV_TOKENS > held, "what is missing is told whole"


def test_a_flood_gets_all_that_is_free_and_takes_nothing_that_runs() -> None:
    flooded, other = a_variant("flooded", ready=2), a_variant("other", ready=2, model="other")
    engines = [*engines_of(flooded, (0.5, 0.0)), *engines_of(other, (0.9, 9.0))]
    flood = [some_traffic(queued=1e9), some_traffic("other")]
    wishes = Cycles(settings(policy="planner"))(
        observed([flooded, other], engines, traffic=flood, pools=[a_pool()])
    )
    assert wishes == {"flooded": 30, "other": 2}


@pytest.mark.parametrize(
    "delta",
    [{"relative": 50}, {"relative": 1e300}, {"kv_tokens": 1e6}, {"kv_tokens": 1e15}, {"burst_rps": 1e7}],
    ids=str,
)
def test_a_delta_that_nothing_could_carry_grows_to_all_there_is(delta: dict[str, float]) -> None:
    variant = a_variant(ready=2, max_replicas=10)
    cycles = Cycles(settings(policy="planner", delta=delta))
    assert cycles(observed([variant], engines_of(variant, (0.79, 0.0)))) == {"v": 10}
