"""Rows on accelerators, nodes, quotas, power, money, counts and change: one plan inside each limit, one beyond."""

from __future__ import annotations

from typing import Any

import pytest

from models.problem import PoolState, Problem, VariantBounds
from models.report import RowUse
from models.scenario import Mode, PowerBasis
from models.variant import Role
from planner.referee import assess, check
from tests.builders import a_candidate, a_demand, a_node, a_pool, a_problem, a_solution, an_incumbent

CHAT = "chat/small@east"
IDLE = {"idle_gpu_w": 50.0, "node_overhead_w": 300.0}
GROWTH = {"gpus_per_node": 4, "max_nodes": 2, "usd_per_node_h": 3.0, "overhead_w": 200.0}
CAP = {"id": "hall", "cap_w": 2000.0}


def violations(
    problem: Problem, counts: dict[str, int], **fields: Any
) -> list[tuple[str, tuple[str, ...], float, float, str]]:
    """What is broken; nothing is promised and nothing is served."""
    solution = a_solution(problem, counts, served=(), **fields)
    return [(v.family, v.key, v.found, v.allowed, v.unit) for v in check(problem, solution)]


def uses(
    problem: Problem, counts: dict[str, int], **fields: Any
) -> dict[tuple[str, tuple[str, ...]], RowUse]:
    return {
        (row.family, row.key): row
        for row in assess(problem, a_solution(problem, counts, served=(), **fields)).rows
    }


def a_fleet(
    candidate: dict[str, Any] | None = None, pool: dict[str, Any] | None = None, **fields: Any
) -> Problem:
    """Default service, candidate and pool, with some fields changed, and no promise."""
    demand = a_demand(**fields.pop("demand", {}))
    return a_problem(
        [demand], [a_candidate(**candidate or {})], [a_pool(**pool or {})], allow_unserved=True, **fields
    )


CASES = [
    pytest.param(a_fleet(), 16, ("gpus", ("east",), 17, 16, "GPU"), id="gpus"),
    pytest.param(a_fleet(quotas=({"id": "q", "gpus": 5},)), 5, ("quota", ("q",), 6, 5, "GPU"), id="quota"),
    pytest.param(
        a_fleet({"power_w": 700.0}, {"power_domain": "hall"}, power=(CAP,)),
        2,
        ("power", ("hall",), 2100, 2000, "W"),
        id="power at tdp",
    ),
    pytest.param(
        # 2 nodes x 300 W, 16 GPUs x 50 W idle, and 150 W more for each GPU in use
        a_fleet(
            {"power_w": 200.0}, {"power_domain": "hall"} | IDLE, power=(CAP,), power_basis=PowerBasis.EXPECTED
        ),
        4,
        ("power", ("hall",), 2150, 2000, "W"),
        id="power as expected",
    ),
    pytest.param(
        a_fleet({"power_w": 700.0}, power=(CAP | {"pools": ("east",)},)),
        2,
        ("power", ("hall",), 2100, 2000, "W"),
        id="power of the pools that a cap names",
    ),
    pytest.param(a_fleet({"cost": 2.5}, spend_usd_per_h=7.5), 3, ("spend", (), 10, 7.5, "$/h"), id="spend"),
    pytest.param(
        a_fleet({"max_replicas": 3}), 3, ("bounds", (CHAT,), 4, 3, "replica"), id="candidate's maximum"
    ),
    pytest.param(
        a_fleet(demand={"max_replicas": 3}), 3, ("bounds", ("chat",), 4, 3, "replica"), id="service's maximum"
    ),
    pytest.param(
        a_fleet(demand={"variants": (VariantBounds(variant="small", max_replicas=3),)}),
        3,
        ("bounds", ("chat", "small"), 4, 3, "replica"),
        id="variant's maximum",
    ),
    pytest.param(
        a_fleet({"current": 1, "pending": 1}, max_changes=3),
        5,
        ("change", (), 4, 3, "change"),
        id="changes from on order",
    ),
    pytest.param(
        a_fleet({"current": 1, "pending": 1, "max_step_up": 2}),
        4,
        ("change", (CHAT,), 3, 2, "replica"),
        id="step up",
    ),
]


@pytest.mark.parametrize(("problem", "most", "expected"), CASES)
def test_one_replica_more_breaks_the_limit(
    problem: Problem, most: int, expected: tuple[str, tuple[str, ...], float, float, str]
) -> None:
    assert violations(problem, {CHAT: most}) == []
    assert expected in violations(problem, {CHAT: most + 1})


@pytest.mark.parametrize(
    ("problem", "least", "expected"),
    [
        pytest.param(
            a_fleet({"min_replicas": 3}), 3, ("bounds", (CHAT,), 2, 3, "replica"), id="candidate's minimum"
        ),
        pytest.param(
            a_fleet(demand={"min_replicas": 3}),
            3,
            ("bounds", ("chat",), 2, 3, "replica"),
            id="service's minimum",
        ),
        pytest.param(
            a_fleet(demand={"variants": (VariantBounds(variant="small", min_replicas=3),)}),
            3,
            ("bounds", ("chat", "small"), 2, 3, "replica"),
            id="variant's minimum",
        ),
        pytest.param(
            a_fleet({"current": 3, "pending": 2, "scale_in_permitted": False}),
            3,
            ("safe_scale_in", (CHAT,), 2, 3, "replica"),
            id="pending replicas may be dropped, ready ones not",
        ),
        pytest.param(
            a_fleet({"current": 5, "pending": 1, "max_step_down": 2}),
            4,
            ("change", (CHAT,), 3, 2, "replica"),
            id="step down",
        ),
    ],
)
def test_one_replica_fewer_breaks_the_minimum(
    problem: Problem, least: int, expected: tuple[str, tuple[str, ...], float, float, str]
) -> None:
    assert violations(problem, {CHAT: least}) == []
    assert violations(problem, {CHAT: least - 1}) == [expected]


@pytest.mark.parametrize(
    ("node", "usable"),
    [
        pytest.param({}, 8, id="empty"),
        pytest.param({"free_gpus": 5}, 5, id="foreign pods take three"),
        pytest.param({"accepts_pods": False}, 0, id="cordoned"),
        pytest.param({"holds_pods": False}, 0, id="not ready"),
    ],
)
def test_usable_gpus_of_a_node(node: dict[str, Any], usable: int) -> None:
    problem = a_fleet(pool={"nodes": [a_node("n0", **node)]})
    assert uses(problem, {})["gpus", ("east",)].limit == usable
    assert violations(problem, {CHAT: usable}) == []
    assert ("gpus", ("east",), usable + 1, usable, "GPU") in violations(problem, {CHAT: usable + 1})


def test_pods_that_stay_on_a_cordoned_node_count_as_usable() -> None:
    candidate = a_candidate(gpus_per_pod=2, current=3)
    nodes = [a_node("n0", accepts_pods=False), a_node("n1")]
    seated = (an_incumbent(candidate, "n0", count=3),)
    problem = a_problem(None, [candidate], [a_pool(nodes=nodes)], incumbents=seated, allow_unserved=True)
    assert violations(problem, {CHAT: 7}) == []
    assert uses(problem, {CHAT: 2})["gpus", ("east",)].limit == 8 + 4
    assert ("gpus", ("east",), 16, 14, "GPU") in violations(problem, {CHAT: 8})


def test_a_pool_without_nodes_holds_nothing() -> None:
    assert ("gpus", ("east",), 1, 0, "GPU") in violations(a_fleet(pool={"nodes": 0}), {CHAT: 1})


def test_a_pool_grows_by_whole_nodes_up_to_its_maximum() -> None:
    problem = a_fleet(pool={"nodes": 0, "growth": GROWTH})
    assert violations(problem, {CHAT: 8}, nodes_added={"east": 2}) == []
    assert violations(problem, {CHAT: 8}, nodes_added={"east": 3}) == [("nodes", ("east",), 3, 2, "node")]
    assert ("gpus", ("east",), 5, 4, "GPU") in violations(problem, {CHAT: 5}, nodes_added={"east": 1})


def test_a_pool_without_growth_gets_no_node() -> None:
    assert violations(a_fleet(), {}, nodes_added={"east": 1}) == [("nodes", ("east",), 1, 0, "node")]


def test_unconstrained_pools_hold_anything_and_those_that_grow_need_their_nodes() -> None:
    free = a_fleet(pool={"nodes": 0}, mode=Mode.UNCONSTRAINED)
    assert violations(free, {CHAT: 500}) == []
    grows = a_fleet(pool={"nodes": 0, "growth": GROWTH}, mode=Mode.UNCONSTRAINED)
    assert violations(grows, {CHAT: 40}, nodes_added={"east": 10}) == []
    assert ("gpus", ("east",), 40, 36, "GPU") in violations(grows, {CHAT: 40}, nodes_added={"east": 9})


def test_added_nodes_are_paid_and_draw_power() -> None:
    pool = {"nodes": 0, "growth": GROWTH, "power_domain": "hall"} | IDLE
    problem = a_fleet(
        {"power_w": 600.0, "cost": 1.0},
        pool,
        power=(CAP,),
        power_basis=PowerBasis.EXPECTED,
        spend_usd_per_h=8.0,
    )
    rows = uses(problem, {CHAT: 2}, nodes_added={"east": 2})
    assert rows["spend", ()].used == 2 * 1.0 + 2 * 3.0
    assert rows["power", ("hall",)].used == 2 * 600.0 + 6 * 50.0 + 2 * 200.0


@pytest.mark.parametrize(
    ("quota", "used"),
    [
        ({}, 7),
        ({"accelerator": "A100"}, 4),
        ({"namespace": "lab"}, 2),
        ({"cluster": "c1"}, 3),
        ({"accelerator": "H100", "namespace": "lab", "cluster": "c1"}, 2),
        ({"accelerator": "A100", "namespace": "lab"}, 0),
    ],
)
def test_what_a_quota_speaks_of(quota: dict[str, str], used: int) -> None:
    problem = a_problem(
        [a_demand(), a_demand("extra", namespace="lab")],
        [a_candidate(), a_candidate("extra"), a_candidate(pool="west", accelerator="A100", gpus_per_pod=2)],
        [a_pool(cluster="c1"), a_pool("west", accelerator="A100", cluster="c2")],
        quotas=({"id": "q", "gpus": 9} | quota,),
        allow_unserved=True,
    )
    counts = {CHAT: 1, "extra/small@east": 2, "chat/small@west": 2}
    assert uses(problem, counts)["quota", ("q",)].used == used


def test_a_replica_of_unknown_power_cannot_run_under_a_cap() -> None:
    problem = a_fleet(pool={"power_domain": "hall"}, power=(CAP,))
    assert violations(problem, {CHAT: 1}) == [("power", ("hall", CHAT), 1, 0, "replica")]
    assert violations(problem, {}) == []


def test_pools_outside_a_power_domain_do_not_count() -> None:
    problem = a_fleet({"power_w": 5000.0}, power=(CAP,))
    assert violations(problem, {CHAT: 3}) == []


def test_starts_are_not_spend() -> None:
    problem = a_fleet({"startup_cost": 100.0}, spend_usd_per_h=2.0)
    assert violations(problem, {CHAT: 2}) == []


@pytest.mark.parametrize(
    ("prefill", "decode", "expected"),
    [
        (2, 2, []),
        (3, 2, []),
        (0, 0, []),
        (1, 3, [("ratio", ("chat", "min"), 1, 1.5, "replica")]),
        (4, 2, [("ratio", ("chat", "max"), 4, 3, "replica")]),
    ],
)
def test_ratio_of_prefill_to_decode(prefill: int, decode: int, expected: list[Any]) -> None:
    problem = a_problem(
        [a_demand(ratio={"min": 0.5, "max": 1.5})],
        [a_candidate(variant="p", role=Role.PREFILL), a_candidate(variant="d", role=Role.DECODE)],
        allow_unserved=True,
    )
    assert violations(problem, {"chat/p@east": prefill, "chat/d@east": decode}) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"chat/a@east": 2, "chat/a@west": 1}, []),
        ({"chat/a@east": 1, "chat/b@west": 1}, [("variants", ("chat", "both"), 2, 1, "variant")]),
        ({}, []),
    ],
)
def test_variants_that_run_at_once(counts: dict[str, int], expected: list[Any]) -> None:
    problem = a_problem(
        [a_demand(max_variants=1)],
        [a_candidate(variant=variant, pool=pool) for variant in ("a", "b") for pool in ("east", "west")],
        [a_pool("east"), a_pool("west")],
        allow_unserved=True,
    )
    assert violations(problem, counts) == expected


def test_a_limit_binds_when_not_even_the_smallest_replica_fits() -> None:
    problem = a_fleet({"gpus_per_pod": 3}, {"nodes": 1})
    assert uses(problem, {CHAT: 1})["gpus", ("east",)].binds is False
    assert uses(problem, {CHAT: 2})["gpus", ("east",)].binds is True


def test_bounds_are_reported_where_they_are_reached() -> None:
    problem = a_fleet({"max_replicas": 2}, demand={"max_replicas": 5})
    assert ("bounds", (CHAT,)) in uses(problem, {CHAT: 2})
    assert ("bounds", (CHAT,)) not in uses(problem, {CHAT: 1})
    assert ("bounds", ("chat",)) not in uses(problem, {CHAT: 2})


def test_pools_are_judged_apart() -> None:
    pools: list[PoolState] = [a_pool(nodes=1), a_pool("west", nodes=1)]
    problem = a_problem(None, [a_candidate(), a_candidate(pool="west")], pools, allow_unserved=True)
    found = violations(problem, {CHAT: 9, "chat/small@west": 7})
    assert ("gpus", ("east",), 9, 8, "GPU") in found
    assert not any(key == ("west",) for _, key, *_ in found)
