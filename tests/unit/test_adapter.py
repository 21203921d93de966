"""What the published heuristics are told of a problem, computed by hand."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

import pytest

from models.hardware import NodeGrowth, Quota
from models.problem import Problem, VariantBounds
from models.saturation import Headroom
from models.scenario import Mode
from planner.optimization.formulation.index import Index
from planner.optimization.heuristics.adapter import (
    budget_of,
    ceiling_of,
    counts_from,
    free_gpus,
    headroom_of,
    required,
    rest_groups,
    role_groups,
    service_states,
    spare,
    tokens_of,
    variant_state,
)
from planner.optimization.scaling import Number
from planner.saturation.published.capacity import UNBOUNDED
from tests.builders import a_candidate, a_demand, a_node, a_pool, a_problem

SMALL, LARGE = (
    a_candidate(rated_rps=2.0, surge_rps=2.5),
    a_candidate(variant="large", rated_rps=5.0, surge_rps=5.5),
)
TOKENS = 1000 + 200 // 2
"""A request of the builders with its input and half its output."""


def told(problem: Problem, counts: dict[str, int]) -> list[tuple[str, Number, Number, Number]]:
    """Role, required, spare and residual headroom of every group."""
    groups = role_groups(Index(problem))
    return [(g.role, required(g, counts), spare(g, counts), headroom_of(g, counts)) for g in groups]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("counts", "missing", "above", "headroom"),
    [
        ({}, 10, 0, -inf),
        ({SMALL.id: 1}, 8, 0, -4),
        ({SMALL.id: 2, LARGE.id: 1}, 1, 0, Fraction(-1, 9)),
        ({SMALL.id: 5}, 0, 0, 0),
        ({SMALL.id: 5, LARGE.id: 1}, 0, 5, Fraction(1, 3)),
    ],
)
def test_required_and_spare_are_the_tokens_of_so_many_requests(
    counts: dict[str, int], missing: int, above: int, headroom: Number
) -> None:
    problem = a_problem([a_demand(rps=10.0)], [SMALL, LARGE])
    assert told(problem, counts) == [("both", missing * TOKENS, above * TOKENS, headroom)]


@pytest.mark.parametrize(
    ("fields", "covers"),
    [
        ({}, 2200),
        ({"headroom": Headroom(relative=0.1)}, 2200),
        ({"headroom": Headroom(relative=1.0)}, 1375),
        ({"headroom": Headroom(burst_rps=15.0)}, 1100),
        ({"kind": "batch"}, 2750),
    ],
    ids=["trigger", "a small headroom", "a large headroom", "a burst", "batch fills to tau"],
)
def test_a_replica_covers_the_smaller_of_two_shares(fields: dict[str, Any], covers: int) -> None:
    problem = a_problem([a_demand(rps=10.0, **fields)], [SMALL])
    (group,) = role_groups(Index(problem))
    assert (group.tokens, group.covers) == (10 * TOKENS, {SMALL.id: covers})


def test_each_role_has_its_own_word_and_the_aggregated_path_goes_first() -> None:
    prefill = a_candidate(variant="p", role="prefill", rated_rps=5.0)
    decode = a_candidate(variant="d", role="decode", rated_rps=2.0)
    split = a_problem([a_demand(rps=10.0)], [prefill, decode])
    counts = {prefill.id: 1, decode.id: 6}
    assert told(split, counts) == [
        ("prefill", 5_000, 0, -1),
        ("decode", 0, 200, Fraction(1, 6)),
    ]
    both = split.but(candidates=tuple(sorted((*split.candidates, SMALL), key=lambda c: c.id)))
    assert [role for role, *_ in told(both, counts)] == ["both"]


RESIDENT = {
    "all-know": ({"kv_tokens_per_rps": 300.0}, {"kv_tokens_per_rps": 40.0}, {"chat": 3_000, "code": 200}),
    "one-knows-nothing": ({"kv_tokens_per_rps": 300.0}, {}, {"chat": 10 * TOKENS, "code": 5 * TOKENS}),
    "none-knows": ({}, {}, {"chat": 10 * TOKENS, "code": 5 * TOKENS}),
    "nothing-is-held": (
        {"kv_tokens_per_rps": 300.0},
        {"kv_tokens_per_rps": 0.0},
        {"chat": 10 * TOKENS, "code": 5 * TOKENS},
    ),
}


@pytest.mark.parametrize(("chat", "code", "tokens"), RESIDENT.values(), ids=RESIDENT)
def test_one_unit_serves_all_services(
    chat: dict[str, Any], code: dict[str, Any], tokens: dict[str, int]
) -> None:
    demands = [a_demand(rps=10.0), a_demand("code", rps=5.0), a_demand("silent", rps=0.0)]
    candidates = [a_candidate(**chat), a_candidate("code", rated_rps=2.5, **code), a_candidate("silent")]
    groups = list(role_groups(Index(a_problem(demands, candidates))))
    assert {group.demand.service: group.tokens for group in groups} == tokens
    # A replica covers the same part of its demand in any unit.
    assert [group.tokens / sum(group.covers.values()) for group in groups] == [10, 2]


def test_a_demand_holds_what_its_slowest_candidate_holds() -> None:
    candidates = [
        a_candidate(kv_tokens_per_rps=300.0),
        a_candidate(variant="slow", kv_tokens_per_rps=450.0),
        a_candidate(variant="unknown"),
    ]
    (group,) = role_groups(Index(a_problem([a_demand(rps=10.0)], candidates)))
    assert group.tokens == 4_500


@pytest.mark.parametrize(("role", "tokens"), [("both", 11_000), ("prefill", 10_000), ("decode", 1_000)])
def test_prefill_and_decode_weigh_together_what_whole_replicas_weigh(role: Any, tokens: int) -> None:
    problem = a_problem([a_demand(rps=10.0)])
    assert tokens_of(Index(problem), problem.demands[0], role, resident=False) == tokens


def test_the_other_path_is_asked_for_what_is_left() -> None:
    prefill, decode = a_candidate(variant="p", role="prefill"), a_candidate(variant="d", role="decode")
    index = Index(a_problem([a_demand(rps=10.0)], [SMALL, prefill, decode]))
    groups = list(rest_groups(index, {SMALL.id: 2}))
    assert [(g.role, g.asked, required(g, {})) for g in groups] == [
        ("prefill", 6_000, 6_000),
        ("decode", 600, 600),
    ]


@pytest.mark.parametrize("demand", [a_demand(rps=0.0), a_demand("silent")])
def test_who_needs_nothing_or_can_have_nothing_is_not_told_of(demand: Any) -> None:
    assert told(a_problem([demand], [c for c in [SMALL] if c.service == demand.service]), {}) == []


@pytest.mark.parametrize(
    ("pool", "mode", "counts", "free"),
    [
        ({}, "constrained", {}, 16),
        ({}, "constrained", {SMALL.id: 3, LARGE.id: 1}, 12),
        ({}, "constrained", {SMALL.id: 99}, 0),
        ({}, "unconstrained", {SMALL.id: 3}, -1),
        ({"growth": NodeGrowth(gpus_per_node=4, max_nodes=2)}, "constrained", {SMALL.id: 3}, 21),
        ({"growth": NodeGrowth(gpus_per_node=4)}, "constrained", {}, -1),
        ({"growth": NodeGrowth(gpus_per_node=4, max_nodes=2)}, "unconstrained", {}, -1),
        ({"nodes": [a_node("a", 8, free_gpus=5), a_node("b", accepts_pods=False), a_node("c", holds_pods=False)]},
         "constrained", {SMALL.id: 1}, 4),
    ],
    ids=["all", "some", "never negative", "unconstrained", "growth", "endless growth", "growth without limits",
         "closed nodes"],
)  # fmt: skip
def test_free_gpus(pool: dict[str, Any], mode: str, counts: dict[str, int], free: int) -> None:
    problem = a_problem(None, [SMALL, LARGE], [a_pool(**pool)], mode=Mode(mode))
    assert free_gpus(Index(problem), counts) == {"east": free}  # type: ignore[arg-type]


def quotas(*limits: Quota) -> Problem:
    candidates = [
        a_candidate(),
        a_candidate(pool="west", accelerator="A100"),
        a_candidate("code", pool="west", accelerator="A100"),
    ]
    pools = [a_pool(cluster="one"), a_pool("west", accelerator="A100", cluster="two")]
    return a_problem(
        [a_demand(namespace="red"), a_demand("code", namespace="blue")], candidates, pools, quotas=limits
    )


@pytest.mark.parametrize(
    ("limit", "counts", "red", "blue"),
    [
        ({}, {}, (16, 16), (16, 16)),
        ({"gpus": 10}, {}, (10, 10), (10, 10)),
        ({"gpus": 10}, {"chat/small@east": 4}, (6, 6), (6, 6)),
        ({"gpus": 3, "accelerator": "A100"}, {"chat/small@east": 4}, (12, 3), (12, 3)),
        ({"gpus": 5, "namespace": "red"}, {"code/small@west": 4}, (5, 5), (16, 12)),
        ({"gpus": 5, "namespace": "red"}, {"chat/small@west": 4}, (1, 1), (16, 12)),
        ({"gpus": 2, "cluster": "two"}, {"chat/small@west": 9}, (16, 0), (16, 0)),
        ({"gpus": 1, "namespace": "blue", "accelerator": "H100"}, {}, (16, 16), (1, 16)),
    ],
)
def test_quotas_are_told_to_every_pool_that_they_speak_of(
    limit: dict[str, Any], counts: dict[str, int], red: tuple[int, int], blue: tuple[int, int]
) -> None:
    problem = quotas(*([Quota(id="q", **limit)] if limit else []))
    budget = budget_of(Index(problem), counts)  # type: ignore[arg-type]
    assert tuple(budget.free("red", pool) for pool in ("east", "west")) == red
    assert tuple(budget.free("blue", pool) for pool in ("east", "west")) == blue


def test_what_nothing_limits_is_unbounded() -> None:
    problem = a_problem(mode=Mode.UNCONSTRAINED)
    assert budget_of(Index(problem), {}).free("default", "east") == UNBOUNDED


@pytest.mark.parametrize(
    ("fields", "floor", "ceiling"),
    [
        ({}, 0, None),
        ({"min_replicas": 2, "max_replicas": 5}, 2, 5),
        ({"current": 3, "scale_in_permitted": False}, 3, None),
        ({"current": 3, "pending": 1, "max_step_down": 1, "max_step_up": 2}, 3, 6),
        ({"current": 3, "max_step_up": 2, "max_replicas": 4}, 0, 4),
        ({"current": 3, "max_step_up": 9, "max_replicas": 4, "min_replicas": 1, "max_step_down": 3}, 1, 4),
    ],
)
def test_floors_and_ceilings(fields: dict[str, Any], floor: int, ceiling: int | None) -> None:
    state = variant_state(a_candidate(**fields), 0.5, 3, fields.get("max_replicas"))
    assert (state.min_replicas, state.max_replicas, state.pending) == (
        floor,
        ceiling,
        fields.get("pending", 0),
    )
    assert (state.accelerator, state.gpus_per_replica, state.per_replica_capacity) == ("east", 1, 0.5)


def test_a_candidate_that_may_have_no_replica_has_no_capacity() -> None:
    assert variant_state(a_candidate(max_replicas=0), 0.5, 0, 0).per_replica_capacity == 0.0


@pytest.mark.parametrize(
    ("demand", "counts", "ceiling"),
    [
        ({}, {}, None),
        ({"max_replicas": 5}, {LARGE.id: 2, SMALL.id: 1}, 3),
        ({"max_replicas": 1}, {LARGE.id: 2}, 0),
        (
            {"variants": (VariantBounds(variant="small", max_replicas=4),)},
            {SMALL.id: 1, "chat/small@west": 3},
            1,
        ),
        ({"variants": (VariantBounds(variant="large", max_replicas=0),)}, {}, None),
        (
            {"max_replicas": 3, "variants": (VariantBounds(variant="small", max_replicas=9),)},
            {LARGE.id: 1},
            2,
        ),
    ],
)
def test_what_maxima_of_service_and_variant_leave(
    demand: dict[str, Any], counts: dict[str, int], ceiling: int | None
) -> None:
    problem = a_problem(
        [a_demand(**demand)], [SMALL, LARGE, a_candidate(pool="west")], [a_pool(), a_pool("west")]
    )
    assert ceiling_of(problem, problem.candidate[SMALL.id], counts) == ceiling  # type: ignore[arg-type]


def test_a_service_is_told_with_its_variants_and_one_analyzer() -> None:
    problem = a_problem(
        [a_demand(rps=10.0, priority=3, namespace="red")], [SMALL.but(current=2, pending=1), LARGE]
    )
    index = Index(problem)
    (state,) = service_states(index, tuple(role_groups(index)), {SMALL.id: 3})
    (signal,) = state.signals
    assert (state.name, state.namespace, state.priority) == ("chat", "red", 3.0)
    assert {variant.name: variant.current for variant in state.variants} == {SMALL.id: 3, LARGE.id: 0}
    assert dict(signal.required) == {"both": 4 * TOKENS}
    assert dict(signal.spare) == {"both": 0}
    assert dict(signal.demand) == {"both": 10 * TOKENS}


def test_targets_are_put_into_counts() -> None:
    assert counts_from({"a": 2, "b": 0}, {"a": 1, "c": 4}) == {"a": 2, "b": 0, "c": 4}  # type: ignore[dict-item]
