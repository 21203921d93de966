"""The published heuristics as solvers: fed by the adapter, repeated until they rest, answered as counts.

A control loop runs them every few seconds, so one call here is as many cycles as they need to come to
rest. Growth that a cycle grants counts in the next one; what it frees is free in the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from models.ids import CandidateId
from models.problem import Problem
from planner.optimization.formulation.index import Index
from planner.optimization.heuristics.adapter import (
    RoleGroup,
    budget_of,
    ceiling_of,
    counts_from,
    headroom_of,
    required,
    rest_groups,
    role_groups,
    service_states,
    variant_state,
)
from planner.optimization.heuristics.capacity import ServiceState, Targets
from planner.optimization.heuristics.cost_aware import cost_aware, scale_down
from planner.optimization.heuristics.fair_share import fair_share
from planner.optimization.heuristics.greedy_by_saturation import Growth, greedy_by_saturation
from planner.optimization.heuristics.rescale import RescaleScope, rescaled_fair_share

__all__ = [
    "HEURISTICS",
    "Heuristic",
    "cost_aware_counts",
    "fair_share_counts",
    "greedy_counts",
    "rescale_counts",
]

Counts = dict[CandidateId, int]
Heuristic = Callable[[Problem], Counts]

_CYCLES: Final = 50


def greedy_counts(problem: Problem) -> Counts:
    """Greedy-by-Saturation: services that have too much shrink; then the fullest grow first, cheapest variant first.

    In a cycle every service that misses capacity asks for its cheapest variant that can still grow. Growth by whole
    replicas may leave a dearer one to spare, so shrinking and growing take turns until neither changes anything.
    """
    return _on_both_paths(problem, _greedy)


def _greedy(index: Index, groups: tuple[RoleGroup, ...], counts: Counts) -> Counts:
    seen = [counts]
    for _ in range(_CYCLES):
        counts = _grown(index, groups, _until_steady(index, groups, (counts, _shrink)))
        if counts in seen:
            break
        seen.append(counts)
    return counts


def _grown(index: Index, groups: tuple[RoleGroup, ...], counts: Counts) -> Counts:
    for _ in range(_CYCLES):
        before = dict(counts)
        for group in sorted(groups, key=lambda g: _urgency(g, before)):
            if required(group, counts) > 0:
                counts = _grow(index, group, counts)
        if counts == before:
            break
    return counts


def _urgency(group: RoleGroup, counts: Mapping[CandidateId, int]) -> tuple[float, float, str, str]:
    cheapest = min(candidate.cost for candidate in group.candidates)
    return headroom_of(group, counts), cheapest, group.demand.service, group.role


def _grow(index: Index, group: RoleGroup, counts: Counts) -> Counts:
    """Ask for the cheapest variant that gets at least one replica; the rest waits for the next cycle."""
    budget = budget_of(index, counts)
    for candidate in sorted(group.candidates, key=lambda c: (c.cost, c.id)):
        current = counts.get(candidate.id, 0)
        state = variant_state(
            candidate, group.covers[candidate.id], current, ceiling_of(index.problem, candidate, counts)
        )
        if not state.per_replica_capacity:
            continue
        wish = current + -int(-(required(group, counts) - 1e-12) // state.per_replica_capacity)
        growth = Growth(
            service=group.demand.service, variant=state, target=wish, headroom=headroom_of(group, counts)
        )
        free: dict[str, int] = {candidate.pool: budget.free(group.demand.namespace, candidate.pool)}
        (grant,) = greedy_by_saturation([growth], free)
        if grant.target > current:
            return counts_from({candidate.id: grant.target}, counts)
    return counts


def cost_aware_counts(problem: Problem) -> Counts:
    """CostAware: no budget, every service on its own; cheapest capacity first, dearest away first."""

    def rule(index: Index, groups: tuple[RoleGroup, ...], counts: Counts) -> Counts:
        return _until_steady(index, groups, (counts, _each(cost_aware)))

    return _on_both_paths(problem, rule)


def fair_share_counts(problem: Problem) -> Counts:
    """GreedyByScore: the service that misses most, weighed by priority, is brought down to the mean, again and again."""

    def rule(index: Index, groups: tuple[RoleGroup, ...], counts: Counts) -> Counts:
        def cycle(states: tuple[ServiceState, ...], counts: Counts) -> Mapping[str, Targets]:
            return fair_share(states, budget_of(index, counts))[0]

        return _until_steady(index, groups, (counts, cycle))

    return _on_both_paths(problem, rule)


def rescale_counts(problem: Problem) -> Counts:
    """Rescale: contended pools are shared out by water-filling, reclaiming from who has more; the rest as fair share."""

    def rule(index: Index, groups: tuple[RoleGroup, ...], counts: Counts) -> Counts:
        def cycle(states: tuple[ServiceState, ...], counts: Counts) -> Mapping[str, Targets]:
            return rescaled_fair_share(states, budget_of(index, counts), RescaleScope())[0]

        return _until_steady(index, groups, (counts, cycle))

    return _on_both_paths(problem, rule)


Rule = Callable[[Index, tuple[RoleGroup, ...], Counts], Counts]
"""From counts to counts at which the rule rests, for these roles."""


def _on_both_paths(problem: Problem, rule: Rule) -> Counts:
    """A rule from the fleet that runs, pending replicas on order; then for what is left to the other path."""
    index = Index(problem)
    counts: Counts = {c.id: c.on_order for c in problem.candidates if c.on_order}
    counts = rule(index, tuple(role_groups(index)), _at_least_minimum(problem, counts))
    rest = tuple(rest_groups(index, counts))
    return rule(index, rest, counts) if rest else counts


Cycle = Callable[[tuple[ServiceState, ...], Counts], Mapping[str, Targets]]


def _each(rule: Callable[[ServiceState], Targets]) -> Cycle:
    return lambda states, _: {state.key: rule(state) for state in states}


def _shrink(states: tuple[ServiceState, ...], _: Counts) -> Mapping[str, Targets]:
    return {state.key: scale_down(state) for state in states}


def _until_steady(index: Index, groups: tuple[RoleGroup, ...], start: tuple[Counts, Cycle]) -> Counts:
    """Repeat a cycle from some counts until it changes nothing or goes round."""
    counts, cycle = start
    seen = [dict(counts)]
    for _ in range(_CYCLES):
        targets = cycle(service_states(index, groups, counts), counts)
        moved = {name: count for target in targets.values() for name, count in target.replicas.items()}
        counts = {name: count for name, count in counts_from(moved, counts).items() if count}
        if counts in seen:
            break
        seen.append(dict(counts))
    return counts


def _at_least_minimum(problem: Problem, counts: Counts) -> Counts:
    """Published minima are hard floors, with or without GPUs."""
    floors = {c.id: c.min_replicas for c in problem.candidates if c.min_replicas > counts.get(c.id, 0)}
    return counts | floors


HEURISTICS: Final[Mapping[str, Heuristic]] = {
    "greedy": greedy_counts,
    "cost-aware": cost_aware_counts,
    "fair-share": fair_share_counts,
    "rescale": rescale_counts,
}
