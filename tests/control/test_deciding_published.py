"""Published decision cases through whole cycles: from engines and variants that were observed to replicas."""

from __future__ import annotations

import pytest

from models.observation import Observation
from tests.observed_fleets import Cycles, a_pool, a_variant, engines_of, observed, settings, some_traffic

Load = tuple[float, float]


@pytest.mark.parametrize(
    ("case", "loads", "wanted"),
    [
        ("V1-1", [(0.75, 2.0), (0.76, 2.0)], 3),
        ("V1-2", [(0.5, 3.0), (0.5, 3.0)], 3),
        ("V1-3", [(0.5, 1.0), (0.5, 1.0)], 2),
        ("V1-4", [(0.2, 1.0), (0.3, 1.0), (0.25, 1.0)], 2),
        ("V1-5", [(0.70, 2.0), (0.75, 2.0)], 3),
        ("V1-6", [(0.5, 2.0)], 1),
        ("V1-8", [(0.85, 2.0), (0.5, 6.0), (0.9, 7.0)], 4),
    ],
)
def test_percentages_move_one_replica(case: str, loads: list[Load], wanted: int) -> None:
    variant = a_variant(ready=len(loads))
    assert Cycles(policy="wva-v1")(observed([variant], engines_of(variant, *loads))) == {"v": wanted}, case


FULL, CALM = (0.79, 0.0), (0.1, 0.0)


@pytest.mark.parametrize(
    ("case", "load", "wanted"),
    [
        ("V1-12", FULL, {"expensive": 2, "cheap": 3, "medium": 2}),
        ("V1-13", CALM, {"expensive": 1, "cheap": 2, "medium": 2}),
    ],
)
def test_percentages_choose_by_cost(case: str, load: Load, wanted: dict[str, int]) -> None:
    costs = {"expensive": 20.0, "cheap": 5.0, "medium": 15.0}
    fleet = [a_variant(name, ready=2, cost=cost) for name, cost in costs.items()]
    engines = [engine for one in fleet for engine in engines_of(one, load)]
    assert Cycles(policy="wva-v1")(observed(fleet, engines)) == wanted, case


def test_percentages_wait_for_what_is_pending() -> None:
    """V1-14: while a variant is in transition nothing of its role moves."""
    moving, other = a_variant("moving", ready=2, wanted=4, cost=20.0), a_variant("other", ready=2, cost=5.0)
    engines = engines_of(moving, FULL) + engines_of(other, FULL)
    assert Cycles(policy="wva-v1")(observed([moving, other], engines)) == {"moving": 4, "other": 2}


def test_percentages_share_few_accelerators_by_saturation() -> None:
    """GB-1: the fuller service is served first."""
    loads = {"a": 0.71, "b": 0.78, "c": 0.74}
    fleet = [a_variant(name, ready=2, model=name, gpus=2) for name in loads]
    engines = [engine for one in fleet for engine in engines_of(one, (loads[one.name], 0.0))]
    traffic = [some_traffic(name) for name in loads]
    pools = [a_pool(gpus=8, nodes=2)]
    wanted = Cycles(policy="wva-v1")(observed(fleet, engines, traffic=traffic, pools=pools))
    assert wanted == {"a": 2, "b": 3, "c": 3}


CHEAP, MID, EXP = (5.0, 10_000.0), (10.0, 15_000.0), (15.0, 20_000.0)
"""Cost, and capacity of a replica."""


def at_demand(demand: float, **fleet: tuple[tuple[float, float], int, int]) -> Observation:
    """Variants by name: cost and capacity, ready and pending replicas; 70 % of the caches hold what they can, routers the rest."""
    variants, engines = [], []
    whole = sum(size / 0.8 * ready for (_, size), ready, _ in fleet.values())
    usage = min(0.7, demand / whole)
    for name, ((cost, size), ready, pending) in fleet.items():
        variant = a_variant(name, ready=ready, pending=pending, cost=cost)
        variants.append(variant)
        engines += engines_of(variant, (usage, 0.0), kv_tokens=size / 0.8)
    queued = (demand - usage * whole) / 150.0
    return observed(variants, engines, traffic=[some_traffic(queued=max(0.0, queued))])


@pytest.mark.parametrize(
    ("case", "seen", "wanted"),
    [
        ("CA-1", at_demand(0.85 * 45_000, cheap=(CHEAP, 2, 0), exp=(EXP, 1, 0)), {"cheap": 3, "exp": 1}),
        ("CA-2", at_demand(0.85 * 50_000, cheap=(CHEAP, 1, 0), mid=(MID, 1, 0)), {"cheap": 4, "mid": 1}),
        ("CA-3", at_demand(0.85 * 50_000, cheap=(CHEAP, 2, 1), mid=(MID, 1, 0)), {"cheap": 4, "mid": 1}),
        ("CA-6", at_demand(0.70 * 55_000, cheap=(CHEAP, 3, 0), exp=(EXP, 2, 0)), {"cheap": 2, "exp": 2}),
        ("CA-7", at_demand(0.0, exp=(EXP, 1, 0), cheap=(CHEAP, 1, 0)), {"exp": 0, "cheap": 1}),
        ("CA-8", at_demand(0.70 * 15_000, exp=(EXP, 1, 0), cheap=(CHEAP, 1, 0)), {"exp": 1, "cheap": 0}),
        ("CA-22", at_demand(15_000, cheap=(CHEAP, 2, 0)), {"cheap": 2}),
    ],
)
def test_tokens_choose_by_cost_for_capacity(case: str, seen: Observation, wanted: dict[str, int]) -> None:
    """Missing or spare are those of the case; counts that it gives without replicas on order have them added (CA-3)."""
    assert Cycles(policy="wva-v2", constrained=False)(seen) == wanted, case


@pytest.mark.parametrize(
    ("case", "nodes", "wanted"),
    [("GS-5", 4, {"a": 3, "b": 3}), ("GS-8", 2, {"a": 1, "b": 1})],
)
def test_few_accelerators_are_shared_fairly(case: str, nodes: int, wanted: dict[str, int]) -> None:
    """Two services miss 20,000 each; a replica of 10,000 takes two accelerators, nodes have two each."""
    fleet = [a_variant(name, ready=1, model=name, gpus=2) for name in "ab"]
    engines = [one for v in fleet for one in engines_of(v, (0.7, 0.0), kv_tokens=12_500.0)]
    queued = (0.85 * 30_000 - 0.7 * 12_500) / 150.0
    traffic = [some_traffic(name, queued=queued) for name in "ab"]
    pools = [a_pool(gpus=2, nodes=nodes + 2 if case == "GS-5" else nodes)]
    assert Cycles(policy="wva-v2")(observed(fleet, engines, traffic=traffic, pools=pools)) == wanted, case


def test_the_more_important_service_gets_more_of_few() -> None:
    """GS-9: priorities 1 and 5, two replicas to give."""
    fleet = [a_variant(name, ready=1, model=name, gpus=2) for name in "ab"]
    engines = [one for v in fleet for one in engines_of(v, (0.7, 0.0), kv_tokens=12_500.0)]
    traffic = [some_traffic(name, queued=(0.85 * 30_000 - 0.7 * 12_500) / 150.0) for name in "ab"]
    seen = observed(fleet, engines, traffic=traffic, pools=[a_pool(gpus=2, nodes=4)])
    given = settings(policy="wva-v2", overrides=[{"model": "b", "priority": 5.0}])
    assert Cycles(given)(seen) == {"a": 1, "b": 3}


def test_analyzers_vote_for_the_most_that_any_misses() -> None:
    """CA-21, with latencies that are promised: the queueing analyzer is asked beside the tokens."""
    variant = a_variant(ready=2)
    calm = engines_of(variant, (0.4, 0.0), ttft_s=0.3, itl_s=0.02, request_rps=3.0)
    seen = observed([variant], calm, traffic=[some_traffic(queued=200.0)])
    plain, promised = Cycles(policy="wva-v2"), Cycles(policy="wva-v2", ttft_s=0.31, itl_s=0.021)
    for _ in range(10):
        counts = plain(seen), promised(seen)
    assert promised.last is not None
    assert {one.analyzer for one in promised.last.verdicts} == {"saturation", "queueing-model"}
    assert counts[1]["v"] >= counts[0]["v"]
