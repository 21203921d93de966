"""The smallest move of one limit with which every promise holds, verified by solving again.

One limit at a time: its rows are left out and its own use is made small. What comes out is put into the
problem, solved, and judged by the referee before it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Final

from models.explanation import Conflict, Relaxation
from models.hardware import NodeGrowth
from models.problem import PoolState, Problem
from planner.clock import Clock
from planner.optimization.decoding import counts_of, nodes_added
from planner.optimization.explaining.feasibility import Oracle
from planner.optimization.formulation import Formulation, formulate
from planner.optimization.formulation.budgets import domain_pools, power_terms, quota_speaks_of
from planner.optimization.formulation.counts import change_terms
from planner.optimization.formulation.goals import cost_goal
from planner.optimization.formulation.index import added, replicas
from planner.optimization.program import Goal, IntegerProgram, Key
from planner.optimization.scaling import Number, exact
from planner.referee import check, state_with

__all__ = ["relaxations"]


@dataclass(frozen=True)
class Limit:
    """One limit that may be moved.

    Attributes:
        family: family of its rows.
        key: which of them.
        value: where the limit stands.
        unit: of the value.
        rows: keys of rows that are left out to move it.
        problem: the problem in which it is left out (another one where columns are needed).
        use: what is made small.
        moved: the problem with the limit at a new value.
        step: values are rounded up to a multiple of this.
    """

    family: str
    key: tuple[str, ...]
    value: float
    unit: str
    rows: frozenset[Key]
    problem: Problem
    use: Callable[[Formulation], Goal]
    moved: Callable[[float], Problem]
    step: float = 1.0


_PHYSICAL: Final = frozenset({"gpus", "placement"})


def relaxations(
    problem: Problem, conflict: Conflict | None, *, clock: Clock, deadline_s: float
) -> tuple[Relaxation, ...]:
    """Every single limit of the conflict whose move alone would do, in order of the limits' families and names."""
    if conflict is None:
        return ()
    oracle = Oracle(clock=clock, deadline_s=deadline_s)
    found: list[Relaxation] = []
    for limit in _limits(problem, frozenset(conflict.families)):
        needed = _needed(limit, oracle)
        if needed is not None:
            verified = _holds(limit.moved(needed), oracle)
            found.append(
                Relaxation(
                    family=limit.family,
                    key=limit.key,
                    limit=limit.value,
                    needed=needed,
                    unit=limit.unit,
                    verified=verified,
                )
            )
    return tuple(_cheapest_of_each(found))


def _needed(limit: Limit, oracle: Oracle) -> float | None:
    formulation = formulate(limit.problem, roomy=True)
    goal = limit.use(formulation)
    outcome = oracle.smallest(_without(formulation.program, limit.rows), goal)
    if outcome.values is None:
        return None
    value = goal.in_units(goal.activity(outcome.values))
    return float(ceil(exact(value) / exact(limit.step) - exact(1e-9)) * exact(limit.step))


def _without(program: IntegerProgram, rows: frozenset[Key]) -> IntegerProgram:
    return IntegerProgram(program.columns, tuple(row for row in program.rows if row.key not in rows))


def _holds(problem: Problem, oracle: Oracle) -> bool:
    """Whether there is a plan now that the referee finds nothing against."""
    formulation = formulate(problem)
    values = oracle.smallest(formulation.program, Goal("feasible", {})).values
    if values is None:
        return False
    index = formulation.index
    counts, nodes = counts_of(index, values), nodes_added(index, values)
    return check(problem, state_with(problem, counts, nodes_added=nodes, solver="relaxation")) == ()


def _cheapest_of_each(found: list[Relaxation]) -> Iterator[Relaxation]:
    """Of several ways to move one limit (nodes of several sizes) the one that moves it least."""
    best: dict[tuple[str, tuple[str, ...]], Relaxation] = {}
    for one in found:
        known = best.get((one.family, one.key))
        if known is None or (not one.verified, one.needed) < (not known.verified, known.needed):
            best[one.family, one.key] = one
    yield from best.values()


def _limits(problem: Problem, families: frozenset[str]) -> Iterator[Limit]:
    if families & _PHYSICAL:
        for pool in problem.pools:
            yield from _more_gpus(problem, pool)
    if "nodes" in families:
        yield from _more_nodes(problem)
    if "quota" in families:
        yield from _quotas(problem)
    if "power" in families:
        yield from _power(problem)
    if "spend" in families and problem.spend_usd_per_h is not None:
        yield _spend(problem, problem.spend_usd_per_h)
    if "bounds" in families:
        yield from _service_maxima(problem)
    if "change" in families and problem.max_changes is not None:
        yield _changes(problem, problem.max_changes)


def _more_gpus(problem: Problem, pool: PoolState) -> Iterator[Limit]:
    """More accelerators in a pool, as nodes that hold one pod of a size that the pool's candidates have."""
    sizes = sorted({c.gpus_per_pod for c in problem.candidates if c.pool == pool.id})
    present = sum(node.free_gpus for node in pool.nodes if node.accepts_pods and node.holds_pods)
    if pool.growth is not None:
        return
    for size in sizes:
        growing = pool.but(growth=NodeGrowth(gpus_per_node=size))
        yield Limit(
            family="gpus",
            key=(pool.id,),
            value=present,
            unit="GPUs",
            rows=frozenset(),
            problem=_with_pool(problem, growing),
            use=lambda _, pool=growing, size=size: Goal(  # type: ignore[misc]
                "gpus", {added(pool): size}, constant=present
            ),
            moved=lambda needed, pool=growing, size=size: _with_pool(  # type: ignore[misc]
                problem,
                pool.but(growth=NodeGrowth(gpus_per_node=size, max_nodes=round((needed - present) / size))),
            ),
        )


def _more_nodes(problem: Problem) -> Iterator[Limit]:
    for pool in problem.pools:
        growth = pool.growth
        if growth is None or growth.max_nodes is None:
            continue
        endless = pool.but(growth=growth.but(max_nodes=None))
        yield Limit(
            family="nodes",
            key=(pool.id,),
            value=growth.max_nodes,
            unit="nodes",
            rows=frozenset(),
            problem=_with_pool(problem, endless),
            use=lambda _, pool=pool: Goal("nodes", {added(pool): 1}),  # type: ignore[misc]
            moved=lambda needed, pool=pool, growth=growth: _with_pool(  # type: ignore[misc]
                problem, pool.but(growth=growth.but(max_nodes=round(needed)))
            ),
        )


def _quotas(problem: Problem) -> Iterator[Limit]:
    for quota in problem.quotas:
        terms = {replicas(c): c.gpus for c in problem.candidates if quota_speaks_of(problem, quota, c)}
        yield Limit(
            family="quota",
            key=(quota.id,),
            value=quota.gpus,
            unit="GPUs",
            rows=frozenset({("quota", quota.id)}),
            problem=problem,
            use=lambda _, terms=terms: Goal("quota", terms),  # type: ignore[misc]
            moved=lambda needed, quota=quota: problem.but(  # type: ignore[misc]
                quotas=tuple(q.but(gpus=round(needed)) if q.id == quota.id else q for q in problem.quotas)
            ),
        )


def _power(problem: Problem) -> Iterator[Limit]:
    for domain in problem.power:
        yield Limit(
            family="power",
            key=(domain.id,),
            value=domain.cap_w,
            unit="W",
            rows=frozenset({("power", domain.id)}),
            problem=problem,
            use=lambda formulation, domain=domain: _draw(  # type: ignore[misc]
                *power_terms(formulation.index, domain_pools(problem, domain))
            ),
            moved=lambda needed, domain=domain: problem.but(  # type: ignore[misc]
                power=tuple(d.but(cap_w=needed) if d.id == domain.id else d for d in problem.power)
            ),
        )


def _draw(use: Mapping[Key, Number], constant: Number) -> Goal:
    terms = {key: ceil(exact(watts) * 1000) for key, watts in use.items()}
    return Goal("power", terms, ceil(exact(constant) * 1000), unit=1e-3)


def _spend(problem: Problem, budget: float) -> Limit:
    # Starts are no part of the budget; without them the cost goal is exactly the spend row.
    unpriced = problem.but(candidates=tuple(c.but(startup_cost=0.0) for c in problem.candidates))
    return Limit(
        family="spend",
        key=(),
        value=budget,
        unit="$/h",
        rows=frozenset({("spend",)}),
        problem=unpriced,
        use=lambda formulation: cost_goal(formulation.index),
        moved=lambda needed: problem.but(spend_usd_per_h=needed),
        step=0.01,
    )


def _service_maxima(problem: Problem) -> Iterator[Limit]:
    for demand in problem.demands:
        if demand.max_replicas is None:
            continue
        terms = {replicas(c): 1 for c in problem.candidates_of[demand.service]}
        yield Limit(
            family="bounds",
            key=(demand.service,),
            value=demand.max_replicas,
            unit="replicas",
            rows=frozenset({("bounds", demand.service)}),
            problem=problem,
            use=lambda _, terms=terms: Goal("bounds", terms),  # type: ignore[misc]
            moved=lambda needed, service=demand.service: problem.but(  # type: ignore[misc]
                demands=tuple(
                    d.but(max_replicas=round(needed)) if d.service == service else d for d in problem.demands
                )
            ),
        )


def _changes(problem: Problem, most: int) -> Limit:
    return Limit(
        family="change",
        key=(),
        value=most,
        unit="changes",
        rows=frozenset({("change",)}),
        problem=problem,
        use=lambda formulation: Goal("changes", *change_terms(formulation.index)),
        moved=lambda needed: problem.but(max_changes=round(needed)),
    )


def _with_pool(problem: Problem, changed: PoolState) -> Problem:
    return problem.but(pools=tuple(changed if pool.id == changed.id else pool for pool in problem.pools))
