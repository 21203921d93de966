"""Instances are what their families claim: valid, repeatable, and short of what they say they are short of."""

from __future__ import annotations

from collections.abc import Callable
from math import log10
from typing import Final

import pytest

from models.problem import Problem
from models.scenario import Objective, ObjectiveLevel
from models.solution import Status
from models.variant import Role
from models.workload import Routing
from planner.optimization import solve
from planner.optimization.protocol import SolveOptions
from planner.referee import assess
from tests.benchmarks.registry import INSTANCES, ONE_SERVICE_SIZES, SIZES, Family, Instance, drifted, instance

FLEETS: Final = [family for family in Family if not Instance(family, 1).one_service]
SCARCE: Final = [Family.SCARCE_65, Family.SCARCE_45]
CHEAP: Final = Objective(levels=(ObjectiveLevel.UNSERVED, ObjectiveLevel.COST))
QUICK: Final = SolveOptions(time_limit_s=5.0, gap=0.02)


def any_plan_of(problem: Problem) -> Problem:
    """The question whether there is a plan at all."""
    return problem.but(objective=Objective(levels=(ObjectiveLevel.UNSERVED,)))


def _on_one_node(problem: Problem) -> Problem:
    """The same free GPUs, all on one node of each pool."""
    pools = []
    for pool in problem.pools:
        free = sum(node.free_gpus for node in pool.nodes)
        one = pool.nodes[0].model_copy(update={"gpus": free, "free_gpus": free, "fabric_domain": None})
        pools.append(pool.but(nodes=(one,)))
    spanning = {c.id for c in problem.candidates if c.fabric_domain is not None}
    return problem.but(
        pools=tuple(pools), candidates=tuple(c for c in problem.candidates if c.id not in spanning)
    )


@pytest.mark.parametrize("family", FLEETS)
def test_a_fleet_has_services_of_all_sizes_with_about_forty_candidates_each(family: Family) -> None:
    problem = instance(family, 100)
    assert len(problem.demands) == 100
    assert 35 <= len(problem.candidates) / 100 <= 45
    assert len(problem.pools) == (30 if family is Family.POOLS_30 else 8)
    rates = [candidate.rated_rps for candidate in problem.candidates]
    assert log10(max(rates) / min(rates)) > 2
    worth = [
        demand.arrival_rps / sorted(c.rated_rps for c in problem.candidates_of[demand.service])[0]
        for demand in problem.demands
    ]
    assert min(worth) < 1
    assert max(worth) > 100
    assert {c.gpus for c in problem.candidates} >= {1, 2, 4, 8}
    assert any(c.current for c in problem.candidates)
    assert any(d.min_replicas for d in problem.demands)
    assert any(d.max_replicas for d in problem.demands)
    assert {d.headroom.relative for d in problem.demands} > {None}


@pytest.mark.parametrize("family", list(Family))
def test_the_same_name_is_the_same_problem(family: Family) -> None:
    size = 4 if Instance(family, 4).one_service else 20
    assert instance(family, size) == instance(family, size)
    assert instance(family, size, seed=0) != instance(family, size, seed=1)
    assert Instance(family, size).problem().name == Instance(family, size).name.replace("60-", "60x").replace(
        "960-", "960x"
    )


def test_all_families_come_in_all_sizes() -> None:
    fleets = {(one.family, one.size) for one in INSTANCES if not one.one_service}
    assert fleets == {(family, size) for family in FLEETS for size in SIZES}
    assert {one.size for one in INSTANCES if one.one_service} == set(ONE_SERVICE_SIZES)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("family", [f for f in FLEETS if f not in SCARCE])
def test_what_is_promised_can_be_kept(family: Family, seed: int) -> None:
    problem = instance(family, 20, seed)
    assert not problem.allow_unserved
    assert solve(any_plan_of(problem), solver="pulp", options=QUICK).solution.has_plan


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("family", SCARCE)
def test_scarce_fleets_cannot_serve_all(family: Family, seed: int) -> None:
    problem = instance(family, 20, seed)
    assert problem.allow_unserved
    promised = any_plan_of(problem.but(allow_unserved=False))
    assert solve(promised, solver="pulp", options=QUICK).solution.status is Status.INFEASIBLE


@pytest.mark.parametrize(
    ("family", "relief"),
    [
        (Family.QUOTA, lambda p: p.but(quotas=())),
        (Family.POWER, lambda p: p.but(power=())),
        (Family.PLACEMENT, _on_one_node),
    ],
)
def test_what_a_family_is_named_for_breaks_the_plan_that_ignores_it(
    family: Family, relief: Callable[[Problem], Problem]
) -> None:
    problem = instance(family, 20)
    careless = solve(relief(problem).but(objective=CHEAP), solver="pulp", options=QUICK).solution
    assert careless.has_plan
    broken = {violation.family for violation in assess(problem, careless.but(placements=())).violations}
    assert str(family) in broken


def test_large_llms_span_two_nodes_of_a_fabric_domain() -> None:
    spanning = [c for c in instance(Family.PLACEMENT, 100).candidates if c.pods_per_replica == 2]
    assert {c.gpus_per_pod for c in spanning} == {8}
    assert all(c.fabric_domain is not None for c in spanning)
    assert len(spanning) > 20


def test_routing_by_length_has_several_buckets_each_with_a_rate_of_its_own() -> None:
    problem = instance(Family.BUCKETS, 20)
    assert {len(d.buckets) for d in problem.demands} <= {3, 4, 5, 6}
    assert all(d.routing is Routing.BY_LENGTH for d in problem.demands)
    names = {d.service: {b.id for b in d.buckets} for d in problem.demands}
    assert all(set(c.by_bucket) == names[c.service] for c in problem.candidates)


def test_prefill_and_decode_have_rates_of_their_own_and_some_bounds() -> None:
    problem = instance(Family.PREFILL_DECODE, 20)
    assert all(
        {Role.PREFILL, Role.DECODE} <= {c.role for c in problem.candidates_of[d.service]}
        for d in problem.demands
    )
    assert {d.ratio is None for d in problem.demands} == {True, False}
    assert any(c.role is Role.BOTH for c in problem.candidates)


@pytest.mark.parametrize(("family", "buckets"), [(Family.ONE_SERVICE_60, 60), (Family.ONE_SERVICE_960, 960)])
def test_one_service_has_so_many_buckets_and_types(family: Family, buckets: int) -> None:
    problem = instance(family, 32)
    (demand,) = problem.demands
    assert len(demand.buckets) == buckets
    assert len(problem.candidates) == len({c.accelerator for c in problem.candidates}) == 32


def test_a_drift_changes_demands_alone_and_by_little() -> None:
    problem = instance(Family.TIGHT, 20)
    later = drifted(problem)
    assert later.but(demands=problem.demands) == problem
    factors = [
        new.arrival_rps / old.arrival_rps for new, old in zip(later.demands, problem.demands, strict=True)
    ]
    assert 0.979 < min(factors) < 1 < max(factors) < 1.021
