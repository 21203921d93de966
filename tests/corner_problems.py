"""Problems at the corners of what may be asked: tiny and huge rates, prices and capacities, zero budgets, twins."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from models.hardware import NodeGrowth, PowerDomain, Quota
from models.problem import Candidate, Demand, PoolState, Problem
from models.saturation import Headroom
from tests.builders import a_candidate, a_demand, a_pool, a_problem

__all__ = ["corner_problems"]

MOST_REPLICAS: Final = 10**8
"""One candidate alone may need so many at most: counts end at 10^9."""

Draw = st.DrawFn


def _six_decades(low: float, high: float) -> st.SearchStrategy[float]:
    """Powers of ten between two ends, round figures, and decimals of four digits."""
    round_ones = st.sampled_from(
        [value for value in (10.0**power for power in range(-4, 8)) if low <= value <= high]
    )
    return st.one_of(
        st.sampled_from([low, high]),
        round_ones,
        st.floats(low, high)
        .map(lambda value: float(f"{value:.4g}"))
        .filter(lambda value: low <= value <= high),
        st.floats(low, high),
    )


rates: Final = _six_decades(1e-3, 1e6)
capacities: Final = _six_decades(1e-3, 1e3)
prices: Final = st.one_of(st.sampled_from([0.0, 1e5, 1e-6, 1.0, 2.5]), st.floats(0, 1e5))
draws: Final = st.one_of(st.sampled_from([0.0, 1e5, 700.0]), st.floats(0, 1e5))


@st.composite
def _pool(draw: Draw, name: str) -> PoolState:
    nodes = draw(st.sampled_from([0, 0, 1, 2, 50]))
    growth = draw(
        st.sampled_from([
            None, None, NodeGrowth(gpus_per_node=8), NodeGrowth(gpus_per_node=8, usd_per_node_h=1e5),
            NodeGrowth(gpus_per_node=4, max_nodes=0), NodeGrowth(gpus_per_node=8, max_nodes=10**8),
        ])
    )  # fmt: skip
    return a_pool(
        name, nodes, growth=growth, power_domain="hall", idle_gpu_w=draw(st.sampled_from([0.0, 60.0]))
    )


@st.composite
def _candidates(draw: Draw, service: str, pools: list[PoolState], rps: float) -> list[Candidate]:
    """One to three candidates and now and then a twin of one of them."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        rated = max(draw(capacities), rps / MOST_REPLICAS)
        surge = rated * draw(st.sampled_from([1.0, 1.25]))
        fields: dict[str, Any] = {
            "rated_rps": rated,
            "surge_rps": surge,
            "cost": draw(prices),
            "power_w": draw(draws),
            "gpus_per_pod": draw(st.sampled_from([1, 2, 8])),
            "startup_cost": draw(st.sampled_from([0.0, 0.0, 1e5])),
            "current": draw(st.sampled_from([0, 0, 1, 1000])),
        }
        pool = draw(st.sampled_from(pools)).id
        found.append(a_candidate(service, f"v{number}", pool, **fields))
        if draw(st.integers(0, 3)) == 0:
            found.append(a_candidate(service, f"twin{number}", pool, **fields))
    return found


@st.composite
def _demand(draw: Draw, service: str, rps: float) -> Demand:
    headroom = draw(st.sampled_from([
        Headroom(), Headroom(), Headroom(relative=0.2), Headroom(burst_rps=1e-3), Headroom(relative=1e-6),
    ]))  # fmt: skip
    return a_demand(service, rps, headroom=headroom, priority=draw(st.sampled_from([1, 1, 2])))


@st.composite
def corner_problems(draw: Draw, *, most_services: int = 4) -> Problem:
    """One problem; about half of them allow unserved demand."""
    pools = [draw(_pool(name)) for name in ("east", "west")[: draw(st.integers(1, 2))]]
    demands, candidates = [], []
    for number in range(draw(st.integers(1, most_services))):
        service, rps = f"s{number}", draw(rates)
        demands.append(draw(_demand(service, rps)))
        candidates += draw(_candidates(service, pools, rps))
    if draw(st.integers(0, 4)) == 0:  # all prices equal
        price = draw(prices)
        candidates = [candidate.but(cost=price, startup_cost=0.0) for candidate in candidates]
    fields: dict[str, Any] = {"allow_unserved": draw(st.booleans())}
    budgets = draw(st.sets(st.sampled_from(["spend", "quota", "power", "changes"]), max_size=2))
    if "spend" in budgets:
        fields["spend_usd_per_h"] = draw(st.sampled_from([0.0, 1e-3, 100.0, 1e9]))
    if "quota" in budgets:
        fields["quotas"] = (Quota(id="q", gpus=draw(st.sampled_from([0, 1, 10, 10**9]))),)
    if "power" in budgets:
        fields["power"] = (PowerDomain(id="hall", cap_w=draw(st.sampled_from([0.0, 1.0, 1e4, 1e9]))),)
        fields["power_basis"] = draw(st.sampled_from(["tdp", "expected"]))
    if "changes" in budgets:
        fields["max_changes"] = draw(st.sampled_from([0, 1, 100, 10**9]))
    return a_problem(demands, candidates, pools, **fields)
