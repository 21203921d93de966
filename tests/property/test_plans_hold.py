"""What must hold of every plan, whatever the problem: order, bounds, more room, and the same bytes again."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import pytest

from models.problem import Demand, Problem
from models.scenario import Objective
from models.solution import Solution, Status
from models.workload import ServiceKind
from planner.optimization import solve
from planner.optimization.protocol import SolveOptions
from planner.referee import assess, check
from tests.random_problems import random_problem

FIRST, LAST = (int(side) for side in os.environ.get("FLEETPLAN_SEEDS", "0:500").split(":"))
CHUNK: Final = 50
EXACTLY: Final = SolveOptions(time_limit_s=30, gap=0)
CLOSE: Final = 1e-6

chunks = pytest.mark.parametrize(
    "seeds", [range(start, min(start + CHUNK, LAST)) for start in range(FIRST, LAST, CHUNK)], ids=str
)


def solved(problem: Problem, solver: str = "pulp") -> Solution:
    solution = solve(problem, solver=solver, options=EXACTLY).solution
    assert solution.status in (Status.OPTIMAL, Status.INFEASIBLE)
    return solution


def worse(values: Sequence[float], others: Sequence[float]) -> bool:
    """Whether the first level that differs is larger than the other's."""
    for value, other in zip(values, others, strict=True):
        if abs(value - other) > CLOSE * max(1.0, abs(value), abs(other)):
            return value > other
    return False


def goodness(problem: Problem, solution: Solution) -> list[float]:
    """What is made small, in order: by class the shares, largest first, and the load; cost, power and changes."""
    classes = defaultdict(list)
    for demand in problem.demands:
        classes[-demand.priority, demand.kind is ServiceKind.BATCH].append(demand)
    found: list[float] = []
    for _, members in sorted(classes.items()):
        found += sorted((unserved_share(solution, demand) for demand in members), reverse=True)
        found.append(sum(demand.arrival_rps * unserved_share(solution, demand) for demand in members))
    return [*found, *(level.value for level in solution.proof.levels[-3:])]


def unserved_share(solution: Solution, demand: Demand) -> float:
    """What no path serves, buckets weighed by their load; also of a service without load, which may owe headroom."""
    weights = {bucket.id: bucket.arrival_rps / (demand.arrival_rps or 1.0) for bucket in demand.buckets}
    served = [
        share.share * (1.0 if share.bucket is None else weights[share.bucket])
        for share in (*solution.served, *solution.borrowed)
        if share.service == demand.service
    ]
    return 1.0 - sum(served)


def roomier(problem: Problem) -> dict[str, Problem]:
    """The same problem with one limit moved outwards, by what was moved."""
    found = {}
    for number, quota in enumerate(problem.quotas):
        wider = tuple(q.but(gpus=quota.gpus + 3) if i == number else q for i, q in enumerate(problem.quotas))
        found[f"quota {quota.id}"] = problem.but(quotas=wider)
    if problem.power:
        found["power"] = problem.but(power=tuple(d.but(cap_w=d.cap_w * 1.3) for d in problem.power))
    if problem.spend_usd_per_h is not None:
        found["spend"] = problem.but(spend_usd_per_h=problem.spend_usd_per_h + 2.5)
    if problem.max_changes is not None:
        found["changes"] = problem.but(max_changes=problem.max_changes + 2)
    for number, pool in enumerate(problem.pools):
        if pool.growth is not None and pool.growth.max_nodes is not None:
            more = pool.but(growth=pool.growth.but(max_nodes=pool.growth.max_nodes + 1))
            found[f"nodes of {pool.id}"] = problem.but(
                pools=(*problem.pools[:number], more, *problem.pools[number + 1 :])
            )
    return found


@chunks
def test_more_room_is_never_worse(seeds: Sequence[int]) -> None:
    for seed in seeds[::2]:
        for allow in (False, True):
            problem = random_problem(seed, allow_unserved=allow, objective=Objective(tolerance=0))
            wider = roomier(problem)
            if not wider:
                continue
            before = solved(problem)
            for name, other in wider.items():
                after = solved(other)
                assert after.has_plan or not before.has_plan, f"seed {seed}: {name}"
                if before.has_plan:
                    assert not worse(goodness(other, after), goodness(problem, before)), (
                        f"seed {seed}: {name}"
                    )


def shuffled(problem: Problem, rng: random.Random) -> Problem:
    """The same question written down in another order, and put in order again as sizing does."""
    keys: dict[str, Any] = {
        "demands": lambda d: d.service,
        "candidates": lambda c: c.id,
        "pools": lambda p: p.id,
        "incumbents": lambda i: (i.candidate, i.nodes),
    }
    fields = {}
    for name, key in keys.items():
        values = list(getattr(problem, name))
        rng.shuffle(values)
        fields[name] = tuple(sorted(values, key=key))
    return problem.but(**fields)


@chunks
def test_the_order_of_the_input_means_nothing(seeds: Sequence[int]) -> None:
    rng = random.Random(seeds[0])  # noqa: S311 - instances, not secrets
    for seed in seeds[::10]:
        problem = random_problem(seed)
        other = shuffled(problem, rng)
        assert other.fingerprint == problem.fingerprint
        assert solved(other).canonical_json() == solved(problem).canonical_json()


@chunks
@pytest.mark.parametrize("solver", ["auto", "pulp", "cp-sat"])
def test_equal_inputs_give_equal_bytes(solver: str, seeds: Sequence[int]) -> None:
    for seed in seeds[::10]:
        for allow in (False, True):
            problem = random_problem(seed, allow_unserved=allow)
            again = Problem.model_validate_json(problem.canonical_json())
            assert solved(problem, solver).canonical_json() == solved(again, solver).canonical_json(), (
                f"seed {seed}"
            )


def alone(problem: Problem, service: str) -> Problem:
    """One service of a problem, with the pools as they are."""
    own = tuple(c for c in problem.candidates if c.service == service)
    names = {c.id for c in own}
    return problem.but(
        demands=tuple(d for d in problem.demands if d.service == service),
        candidates=own,
        incumbents=tuple(i for i in problem.incumbents if i.candidate in names),
    )


@chunks
def test_without_limits_services_do_not_meet(seeds: Sequence[int]) -> None:
    for seed in seeds[::5]:
        untied = {"quotas": (), "power": (), "spend_usd_per_h": None, "max_changes": None, "incumbents": ()}
        problem = random_problem(seed, mode="unconstrained", **untied)
        problem = problem.but(pools=tuple(pool.but(growth=None) for pool in problem.pools), incumbents=())
        if any(demand.shares_replicas_of for demand in problem.demands):
            continue
        together = solved(problem)
        parts = [solved(alone(problem, demand.service)) for demand in problem.demands]
        assert together.has_plan is all(part.has_plan for part in parts), f"seed {seed}"
        if together.has_plan:
            costs = [
                assess(alone(problem, d.service), p).cost for d, p in zip(problem.demands, parts, strict=True)
            ]
            assert assess(problem, together).cost == pytest.approx(sum(costs)), f"seed {seed}"


@chunks
def test_nothing_is_shed_where_all_can_be_served(seeds: Sequence[int]) -> None:
    for seed in seeds[::4]:
        promised, best = solved(random_problem(seed)), solved(random_problem(seed, allow_unserved=True))
        problem = random_problem(seed, allow_unserved=True)
        if promised.has_plan:
            figures = assess(problem, best)
            assert figures.unserved_rps == 0, f"seed {seed}"
            assert figures.cost == pytest.approx(assess(problem, promised).cost), f"seed {seed}"
        elif best.has_plan:
            assert check(problem, best) == ()
            # A service without load may owe headroom: then a share is shed, and no load.
            shed = [level.value for level in best.proof.levels if level.name.startswith("unserved-share")]
            assert max(shed) > 0, f"seed {seed}"


def test_worse_is_told_by_the_first_level_that_differs() -> None:
    ranked = [(0.0, 5.0, 9.0), (0.0, 5.0, 9.5), (0.0, 6.0, 1.0), (0.1, 0.0, 0.0)]
    assert all(worse(after, before) and not worse(before, after) for before, after in pairwise(ranked))
    assert not worse((1.0, 2.0), (1.0, 2.0 + 1e-9))
