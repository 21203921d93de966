"""Figures recomputed from problem and solution: cost, power, load, headroom, tokens, and equalized saturation."""

from __future__ import annotations

from typing import Any

import pytest

from models.problem import CostUnit, Problem
from models.report import Assessment
from models.scenario import Mode, Objective, PowerBasis
from models.variant import Role
from planner.referee import assess
from tests.builders import (
    a_bucket,
    a_candidate,
    a_demand,
    a_node,
    a_pool,
    a_problem,
    a_solution,
    fully_served,
)

SMALL, BIG = "chat/small@east", "chat/big@east"


def figures(problem: Problem, counts: dict[str, int], share: float = 1.0, **fields: Any) -> Assessment:
    return assess(problem, a_solution(problem, counts, served=fully_served(problem, share), **fields))


def test_cost_is_that_of_replicas_nodes_and_starts() -> None:
    pool = a_pool(growth={"gpus_per_node": 8, "usd_per_node_h": 5.0})
    problem = a_problem(
        candidates=[a_candidate(cost=0.1, startup_cost=4.0, current=1, pending=1)],
        pools=[pool],
        objective=Objective(horizon_h=2.0),
    )
    answer = figures(problem, {SMALL: 3}, nodes_added={"east": 1})
    assert answer.switching_cost == 2.0
    assert answer.cost == 0.3 + 5.0 + 2.0
    assert answer.services[0].cost == 0.3 + 5.0
    assert answer.nodes_added == {"east": 1}


def test_who_uses_the_gpus_of_a_pool_pays_for_its_nodes() -> None:
    growth = {"gpus_per_node": 8, "usd_per_node_h": 24.0}
    problem = a_problem(
        [a_demand(), a_demand("mail")],
        [a_candidate(cost=0.0, gpus_per_pod=2), a_candidate("mail", cost=0.5), a_candidate(pool="west")],
        [a_pool(nodes=0, growth=growth), a_pool("west")],
    )
    answer = figures(problem, {SMALL: 3, "mail/small@east": 2, "chat/small@west": 7}, nodes_added={"east": 1})
    assert {one.candidate: one.cost for one in answer.candidates} == {
        SMALL: 18.0,
        "mail/small@east": 6.0 + 1.0,
        "chat/small@west": 7.0,
    }
    assert sum(one.cost for one in answer.services) == answer.cost - answer.switching_cost


def test_stopping_replicas_costs_nothing() -> None:
    problem = a_problem(candidates=[a_candidate(startup_cost=4.0, current=5)])
    answer = figures(problem, {SMALL: 2})
    assert (answer.switching_cost, answer.changes) == (0.0, 3)


@pytest.mark.parametrize(
    ("basis", "power_w", "expected"),
    [
        (PowerBasis.TDP, 700.0, 2800.0),
        # 8 + 8 GPUs are on ready nodes, 4 of them in use; both nodes draw their overhead
        (PowerBasis.EXPECTED, 500.0, 4 * 500.0 + 12 * 50.0 + 2 * 300.0),
        (PowerBasis.TDP, None, None),
        (PowerBasis.EXPECTED, None, None),
    ],
)
def test_power_of_the_fleet(basis: PowerBasis, power_w: float | None, expected: float | None) -> None:
    nodes = [a_node("n0", free_gpus=4), a_node("n1", accepts_pods=False), a_node("n2", holds_pods=False)]
    problem = a_problem(
        candidates=[a_candidate(power_w=power_w)],
        pools=[a_pool(nodes=nodes, idle_gpu_w=50.0, node_overhead_w=300.0)],
        power_basis=basis,
    )
    assert figures(problem, {SMALL: 4}).power_w == expected
    assert figures(problem, {}).power_w == (0.0 if basis is PowerBasis.TDP else 16 * 50.0 + 600.0)


def test_load_that_stays_unserved() -> None:
    problem = a_problem([a_demand(), a_demand("extra", 4.0)], [a_candidate(), a_candidate("extra")])
    served = (fully_served(problem, 0.75)[0], fully_served(problem, 0.5)[1])
    answer = assess(problem, a_solution(problem, {SMALL: 10, "extra/small@east": 2}, served=served))
    assert (answer.unserved_rps, answer.unserved_share_worst) == (2.5 + 2.0, 0.5)
    chat = answer.services[0]
    assert (chat.demand_rps, chat.served_rps, chat.unserved_rps, chat.unserved_share) == (
        10.0,
        7.5,
        2.5,
        0.25,
    )


def test_nothing_is_unserved_where_nothing_arrives() -> None:
    answer = figures(a_problem([a_demand(rps=0.0)]), {SMALL: 1}, share=0.0)
    assert (answer.unserved_rps, answer.unserved_share_worst) == (0.0, 0.0)
    assert answer.services[0].headroom is None
    assert answer.services[0].usd_per_million_tokens is None


def test_headroom_is_that_of_the_surge_rate() -> None:
    problem = a_problem(candidates=[a_candidate(rated_rps=1.0, surge_rps=1.5)])
    assert figures(problem, {SMALL: 10}).services[0].headroom == 0.5
    assert figures(problem, {SMALL: 10}, share=0.5).services[0].headroom == 2.0


def test_dollars_per_million_tokens_are_of_served_tokens() -> None:
    demand = a_demand(
        buckets=(a_bucket("short", 3.0, input_tokens=100, output_tokens=100), a_bucket("long", 1.0))
    )
    problem = a_problem([demand], [a_candidate(cost=1.8)])
    # (3 x 200 + 1 x 1,200) tokens/s x 3,600 s, half of them served, for 7.2 $/h
    assert figures(problem, {SMALL: 4}, share=0.5).services[0].usd_per_million_tokens == pytest.approx(
        7.2 / 3.24
    )
    relative = problem.but(cost_unit=CostUnit.RELATIVE)
    assert figures(relative, {SMALL: 4}).services[0].usd_per_million_tokens is None


def test_energy_per_million_tokens_is_that_of_all_replicas_over_served_tokens() -> None:
    demand = a_demand(
        buckets=(a_bucket("short", 3.0, input_tokens=100, output_tokens=100), a_bucket("long", 1.0))
    )
    problem = a_problem([demand], [a_candidate(power_w=500.0)])
    # 2,000 W over 900 tokens/s served.
    assert figures(problem, {SMALL: 4}, share=0.5).services[0].kwh_per_million_tokens == pytest.approx(
        2000 / 900 * 1e6 / 3.6e6
    )
    assert figures(problem, {SMALL: 4}, share=0.0).services[0].kwh_per_million_tokens is None
    unknown = a_problem([demand], [a_candidate(power_w=None)])
    assert figures(unknown, {SMALL: 4}).services[0].kwh_per_million_tokens is None


def test_gpus_used_of_every_pool() -> None:
    problem = a_problem(
        candidates=[a_candidate(pods_per_replica=2, gpus_per_pod=3)], pools=[a_pool(), a_pool("west")]
    )
    assert figures(problem, {SMALL: 2}).gpus_used == {"east": 12, "west": 0}


def unlike(**small: Any) -> Problem:
    """``small`` and ``big`` are rated 1 and 4 req/s; ``small`` has KV room for as many requests as ``big``."""
    kv = {"kv_capacity_tokens": 1000.0, "kv_tokens_per_rps": 100.0}
    return a_problem(
        candidates=[
            a_candidate(**(kv | small)),
            a_candidate(variant="big", rated_rps=4.0, power_w=500.0, **kv),
        ]
    )


def test_load_is_split_as_rated() -> None:
    answer = figures(unlike(), {SMALL: 2, BIG: 2})
    load = {one.candidate: (one.load_rps, one.utilization) for one in answer.candidates}
    assert load == {SMALL: (2.0, 1.0), BIG: (8.0, 1.0)}


def test_a_scheduler_that_equalizes_saturation_overloads_the_smaller_variant() -> None:
    answer = figures(unlike(), {SMALL: 2, BIG: 2})
    shares = {one.candidate: one.saturating_load_share for one in answer.candidates}
    assert shares == {SMALL: 2.5, BIG: 0.625}
    assert [one.candidate for one in answer.overloads_when_equalized] == [SMALL]
    assert answer.violations == ()


def test_equalized_saturation_is_unknown_where_a_kv_figure_is() -> None:
    answer = figures(unlike(kv_capacity_tokens=None), {SMALL: 2, BIG: 2})
    assert {one.saturating_load_share for one in answer.candidates} == {None}
    assert answer.overloads_when_equalized == ()


def test_candidates_in_proportion_to_their_kv_are_not_overloaded() -> None:
    assert figures(unlike(kv_capacity_tokens=250.0), {SMALL: 2, BIG: 2}).overloads_when_equalized == ()


def test_figures_of_candidates() -> None:
    one = next(one for one in figures(unlike(), {BIG: 3}).candidates if one.candidate == BIG)
    assert (one.replicas, one.cost, one.power_w, one.utilization) == (3, 3.0, 1500.0, pytest.approx(10 / 12))


def test_power_of_a_service_is_unknown_where_a_replica_is() -> None:
    assert figures(unlike(), {SMALL: 1, BIG: 1}).services[0].power_w is None
    assert figures(unlike(), {BIG: 1}).services[0].power_w == 500.0


def test_rows_tell_load_and_capacity() -> None:
    rows = {(row.family, row.key): row for row in figures(unlike(), {SMALL: 3, BIG: 2}).rows}
    rate = rows["rate", ("chat", "aggregated", "both")]
    assert (rate.used, rate.limit, rate.step, rate.unit, rate.binds) == (10.0, 11.0, 1.0, "req/s", False)
    gpus = rows["gpus", ("east",)]
    assert (gpus.used, gpus.limit, gpus.step, gpus.slack) == (5.0, 16.0, 1.0, 11.0)


@pytest.mark.parametrize(
    ("growth", "mode", "limited"),
    [
        (None, Mode.CONSTRAINED, True),
        ({"gpus_per_node": 8, "max_nodes": 1}, Mode.CONSTRAINED, True),
        ({"gpus_per_node": 8, "max_nodes": 2}, Mode.CONSTRAINED, False),
        ({"gpus_per_node": 8}, Mode.CONSTRAINED, False),
        ({"gpus_per_node": 8, "max_nodes": 1}, Mode.UNCONSTRAINED, False),
    ],
)
def test_gpus_are_no_limit_where_another_node_may_come(
    growth: dict[str, int] | None, mode: Mode, limited: bool
) -> None:
    problem = a_problem(pools=[a_pool(growth=growth)], mode=mode)
    added = {"nodes_added": {"east": 1}} if growth is not None else {}
    assert ("gpus" in {row.family for row in figures(problem, {SMALL: 10}, **added).rows}) is limited


@pytest.mark.parametrize(
    ("prefill", "decode", "binding"),
    [(3, 3, {"min"}), (4, 3, set()), (6, 3, {"max"}), (5, 3, set()), (0, 0, set())],
)
def test_a_ratio_binds_where_a_replica_of_prefill_more_or_less_breaks_it(
    prefill: int, decode: int, binding: set[str]
) -> None:
    problem = a_problem(
        [a_demand(ratio={"min": 0.75, "max": 2.0})],
        [a_candidate(variant="p", role=Role.PREFILL), a_candidate(variant="d", role=Role.DECODE)],
    )
    answer = assess(problem, a_solution(problem, {"chat/p@east": prefill, "chat/d@east": decode}, served=()))
    assert {row.key[1] for row in answer.rows if row.family == "ratio" and row.binds} == binding
