"""The mathematics of every family as LP text, each from a problem as small as it can be.

Columns and rows that are not of the family are left out, so that a change of one family changes one text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from models.hardware import NodeGrowth, PowerDomain, Quota
from models.problem import BucketRating, Candidate, Problem, VariantBounds
from models.saturation import Headroom
from models.variant import Role
from models.workload import PrefillDecodeRatio, Routing, ServiceKind, Survive
from planner.optimization.formulation import formulate
from planner.optimization.lp_text import lp_text
from planner.optimization.program import IntegerProgram
from tests.builders import (
    a_bucket,
    a_candidate,
    a_demand,
    a_node,
    a_pool,
    a_problem,
    an_incumbent,
)

Golden = Callable[[str, str], None]

SMALL: Final = a_candidate(rated_rps=0.7, surge_rps=0.9)
LARGE: Final = a_candidate(variant="large", rated_rps=3.0, surge_rps=3.6, gpus_per_pod=4, cost=2.5)


def demanding(*candidates: Candidate, **fields: Any) -> Problem:
    """One service at 2.1 req/s that may be shed, so that its shares are decisions."""
    return a_problem([a_demand(rps=2.1, best_effort=True, **fields)], candidates or (SMALL, LARGE))


def pair(**fields: Any) -> tuple[Candidate, Candidate]:
    """Prefill and decode of one service."""
    return (
        a_candidate(variant="p", role=Role.PREFILL, rated_rps=2.0, **fields),
        a_candidate(variant="d", role=Role.DECODE, rated_rps=0.5, **fields),
    )


def by_length(**fields: Any) -> Problem:
    """Short requests may go to both variants, long ones to the large one only."""
    short, long = BucketRating(rated_rps=2.0, surge_rps=2.5), BucketRating(rated_rps=0.5, surge_rps=0.8)
    token = {"kv_capacity_tokens": 5000.0} if "headroom" in fields else {}
    if token:
        short, long = short.but(kv_tokens_per_rps=100.0), long.but(kv_tokens_per_rps=900.0)
    return a_problem(
        [a_demand(
            buckets=(a_bucket("short", 4.0), a_bucket("long", 1.0)),
            routing=Routing.BY_LENGTH,
            best_effort=True,
            **fields,
        )],
        [
            SMALL.but(by_bucket={"short": short}, **token),
            LARGE.but(pool="west", id="chat/large@west", by_bucket={"short": short, "long": long}, **token),
        ],
        [a_pool("east"), a_pool("west")],
    )  # fmt: skip


def lending() -> Problem:
    """A batch service on the replicas of an online one, and on its own."""
    host = a_demand(rps=2.1, best_effort=True)
    guest = a_demand(
        "night", rps=0.4, kind=ServiceKind.BATCH, shares_replicas_of="chat", best_effort=True
    )  # fmt: skip
    carrying = [c.but(guest_surge_rps={"night": c.surge_rps / 2}) for c in (SMALL, LARGE)]
    return a_problem([host, guest], [*carrying, a_candidate("night", rated_rps=0.2, surge_rps=0.25)])


def running(rule: str) -> Problem:
    """Three replicas of one GPU on two nodes beside a variant of two GPUs."""
    small = SMALL.but(current=3)
    return a_problem(
        [a_demand(rps=2.1)],
        [small, a_candidate(variant="pair", gpus_per_pod=2)],
        [a_pool(nodes=[a_node("n0", 2), a_node("n1", 4)])],
        incumbents=(an_incumbent(small, "n0", count=2), an_incumbent(small, "n1")),
        incumbents_rule=rule,
    )


def sized(*sizes: int, **pool: Any) -> Problem:
    """Variants whose pods need so many GPUs, on two free nodes of 8 and one of 5."""
    nodes = [a_node("n0"), a_node("n1"), a_node("n2", free_gpus=5)]
    candidates = [a_candidate(variant=f"tp{size}", gpus_per_pod=size) for size in sizes]
    return a_problem(None, candidates, [a_pool(nodes=nodes, **pool)])


def in_domains() -> Problem:
    """A replica of two pods that stays in one rack, beside one that may go anywhere."""
    nodes = [a_node("n0", fabric_domain="rack-a"), a_node("n1", fabric_domain="rack-b"), a_node("n2")]
    across = [
        a_candidate(variant="tp16", domain=rack, pods_per_replica=2, gpus_per_pod=8)
        for rack in ("rack-a", "rack-b")
    ]
    return a_problem(None, [*across, a_candidate(variant="tp4", gpus_per_pod=4)], [a_pool(nodes=nodes)])


def drawing(basis: str) -> Problem:
    """Two variants under a cap of 3 kW, in a pool that may grow."""
    growth = NodeGrowth(gpus_per_node=4, max_nodes=2, overhead_w=250.0)
    pool = a_pool(nodes=1, power_domain="hall", idle_gpu_w=60.0, node_overhead_w=300.0, growth=growth)
    candidates = [SMALL.but(power_w=450.5), LARGE.but(power_w=1800.0)]
    cap = (PowerDomain(id="hall", cap_w=3000.0),)
    return a_problem(None, candidates, [pool], power=cap, power_basis=basis)


def bounded() -> Problem:
    """Bounds of a candidate, of a variant over two pools, and of the service."""
    candidates = [SMALL.but(min_replicas=1, max_replicas=4), a_candidate(pool="west"), LARGE]
    demand = a_demand(
        rps=9.0,
        min_replicas=2,
        max_replicas=6,
        variants=(VariantBounds(variant="small", min_replicas=1, max_replicas=5),),
    )
    return a_problem([demand], candidates, [a_pool(), a_pool("west")])


def changing() -> Problem:
    """One candidate that runs, one that does not, and steps that may not be exceeded."""
    now = SMALL.but(current=2, pending=1, max_step_up=2, max_step_down=1)
    return a_problem(None, [now, LARGE], max_changes=3)


def growing() -> Problem:
    """A pool of one node that may grow by two of four GPUs."""
    return a_problem(
        None,
        [SMALL, LARGE],
        [a_pool(nodes=1, growth=NodeGrowth(gpus_per_node=4, max_nodes=2, usd_per_node_h=3.0))],
    )


def closed() -> Problem:
    """One node is cordoned: what is kept there counts, nothing new goes there."""
    small = SMALL.but(current=2)
    nodes = [a_node("n0", 4), a_node("n1", 4, accepts_pods=False)]
    return a_problem(None, [small, LARGE], [a_pool(nodes=nodes)], incumbents=(an_incumbent(small, "n1"),))


KV: Final = {"kv_capacity_tokens": 5000.0, "kv_tokens_per_rps": 1000.0}
TOKENS: Final = Headroom(kv_tokens=2000.0)
AWAY: Final = Survive(share=0.5, failure_domains=("east", "west"))
TEAM: Final = Quota(id="team", gpus=12, accelerator="H100", namespace="default")

CASES: Final[dict[str, tuple[str, Callable[[], Problem]]]] = {
    "demand": ("demand", demanding),
    "demand-lending": ("demand", lending),
    "demand-by-length": ("demand", by_length),
    "rate": ("rate", demanding),
    "rate-two-roles": ("rate", lambda: demanding(*pair())),
    "rate-lending": ("rate", lending),
    "rate-by-length": ("rate", by_length),
    "headroom-relative": ("headroom", lambda: demanding(headroom=Headroom(relative=0.2))),
    "headroom-burst": ("headroom", lambda: demanding(headroom=Headroom(burst_rps=1.5))),
    "headroom-tokens": ("headroom", lambda: demanding(SMALL.but(**KV), LARGE, headroom=TOKENS)),
    "headroom-by-length": ("headroom", lambda: by_length(headroom=Headroom(relative=0.2))),
    "headroom-tokens-by-length": ("headroom", lambda: by_length(headroom=TOKENS)),
    "gpus": ("gpus", growing),
    "gpus-closed-node": ("gpus", closed),
    "nodes": ("nodes", growing),
    "placement-divisible": ("placement", lambda: sized(1, 2, 4)),
    "placement-growth": ("placement", growing),
    "placement-patterns": ("placement", lambda: sized(2, 3)),
    "placement-domains": ("placement", in_domains),
    "placement-incumbents": ("placement", lambda: running("pinned")),
    "incumbents-pinned": ("incumbents", lambda: running("pinned")),
    "incumbents-movable": ("incumbents", lambda: running("movable")),
    "quota": ("quota", lambda: a_problem(None, [SMALL, LARGE], quotas=(TEAM,))),
    "power-tdp": ("power", lambda: drawing("tdp")),
    "power-expected": ("power", lambda: drawing("expected")),
    "spend": ("spend", lambda: growing().but(spend_usd_per_h=9.5)),
    "bounds": ("bounds", bounded),
    "safe_scale_in": ("safe_scale_in", lambda: a_problem(None, [SMALL.but(current=2, scale_in_permitted=False)])),
    "survive": ("survive", lambda: by_length().but(demands=(a_demand(rps=2.1, best_effort=True, survive=AWAY),))),
    "survive-by-length": ("survive", lambda: by_length(survive=AWAY)),
    "ratio": ("ratio", lambda: demanding(*pair(), ratio=PrefillDecodeRatio(min=0.25, max=1.5))),
    "variants": ("variants", lambda: demanding(max_variants=1)),
    "change": ("change", changing),
}  # fmt: skip


def only(program: IntegerProgram, family: str) -> IntegerProgram:
    """The rows of a family with the columns that they speak of."""
    rows = tuple(row for row in program.rows if row.family == family)
    named = {key for row in rows for key in row.terms}
    return IntegerProgram(tuple(c for c in program.columns if c.key in named), rows)


@pytest.mark.parametrize("name", CASES)
def test_the_rows_of_a_family(name: str, golden: Golden) -> None:
    family, problem = CASES[name]
    program = only(formulate(problem(), roomy=True).program, family)
    assert program.rows
    golden(f"lp/{name}.lp", lp_text(program))


def families() -> Iterator[str]:
    for _, problem in CASES.values():
        yield from formulate(problem(), roomy=True).program.families


def test_every_family_that_some_problem_has_is_shown() -> None:
    assert set(families()) == {family for family, _ in CASES.values()}
