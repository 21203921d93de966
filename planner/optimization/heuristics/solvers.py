"""The published heuristics as solvers: fed by the adapter, repeated until they rest, answered as counts.

A control loop runs them every few seconds, so one call here is as many cycles as they need to come to
rest. Growth that a cycle grants counts in the next one; what it frees is free in the next one. Cycles that go
round, or are not at rest after fifty, answer the best fleet that they pass through there, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from models.ids import CandidateId, ServiceId
from models.problem import Problem
from planner.optimization.formulation.index import Index
from planner.optimization.formulation.traffic import load_of
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
from planner.optimization.scaling import Number, exact
from planner.saturation.published.capacity import ServiceState, Targets
from planner.saturation.published.cost_aware import cost_aware, scale_down
from planner.saturation.published.fair_share import fair_share
from planner.saturation.published.greedy_by_saturation import Growth, greedy_by_saturation
from planner.saturation.published.rescale import RescaleScope, rescaled_fair_share

__all__ = [
    "HEURISTICS",
    "Heuristic",
    "Outcome",
    "cost_aware_outcome",
    "fair_share_outcome",
    "greedy_counts",
    "greedy_outcome",
    "rescale_outcome",
]

Counts = dict[CandidateId, int]

_CYCLES: Final = 50


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the cycles of a heuristic end: its counts, and of how many fleets they are the best (1: it came to rest)."""

    counts: Counts
    fleets: int = 1

    @property
    def rests(self) -> bool:
        """Whether another cycle would change nothing."""
        return self.fleets == 1


Heuristic = Callable[[Problem], Outcome]


def greedy_counts(problem: Problem) -> Counts:
    """The counts of :func:`greedy_outcome`, as a hint for solvers."""
    return greedy_outcome(problem).counts


def greedy_outcome(problem: Problem) -> Outcome:
    """Greedy-by-Saturation: services that have too much shrink; then the fullest grow first, cheapest variant first.

    In a cycle every service that misses capacity asks for its cheapest variant that can still grow. Growth by whole
    replicas may leave a dearer one to spare, so shrinking and growing take turns until neither changes anything.
    """
    return _on_both_paths(problem, _greedy)


def _greedy(index: Index, groups: tuple[RoleGroup, ...], start: Counts) -> Outcome:
    def turn(counts: Counts) -> Counts:
        return _grown(index, groups, _repeated(index, groups, (counts, _shrink)).counts)

    return _until_rest(index.problem, groups, (start, turn))


def _grown(index: Index, groups: tuple[RoleGroup, ...], counts: Counts) -> Counts:
    """Rounds in which every role that misses capacity asks once; over when nobody gets any."""
    while True:
        before = dict(counts)
        for group in sorted(groups, key=lambda g: _urgency(g, before)):
            if required(group, counts) > 0:
                counts = _grow(index, group, counts)
        if counts == before:
            return counts


def _urgency(group: RoleGroup, counts: Mapping[CandidateId, int]) -> tuple[Number, float, str, str]:
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
        wish = current + ceil(required(group, counts) / state.per_replica_capacity)
        growth = Growth(
            service=group.demand.service, variant=state, target=wish, headroom=headroom_of(group, counts)
        )
        free: dict[str, int] = {candidate.pool: budget.free(group.demand.namespace, candidate.pool)}
        (grant,) = greedy_by_saturation([growth], free)
        if grant.target > current:
            return counts_from({candidate.id: grant.target}, counts)
    return counts


def cost_aware_outcome(problem: Problem) -> Outcome:
    """CostAware: no budget, every service on its own; cheapest capacity first, dearest away first."""

    def rule(index: Index, groups: tuple[RoleGroup, ...], counts: Counts) -> Outcome:
        return _repeated(index, groups, (counts, _each(cost_aware)))

    return _on_both_paths(problem, rule)


def fair_share_outcome(problem: Problem) -> Outcome:
    """GreedyByScore: the service that misses most, weighed by priority, is brought down to the mean, again and again."""

    def rule(index: Index, groups: tuple[RoleGroup, ...], counts: Counts) -> Outcome:
        def cycle(states: tuple[ServiceState, ...], counts: Counts) -> Mapping[str, Targets]:
            return fair_share(states, budget_of(index, counts))[0]

        return _repeated(index, groups, (counts, cycle))

    return _on_both_paths(problem, rule)


def rescale_outcome(problem: Problem) -> Outcome:
    """Rescale: contended pools are shared out by water-filling, reclaiming from who has more; the rest as fair share."""

    def rule(index: Index, groups: tuple[RoleGroup, ...], counts: Counts) -> Outcome:
        def cycle(states: tuple[ServiceState, ...], counts: Counts) -> Mapping[str, Targets]:
            return rescaled_fair_share(states, budget_of(index, counts), RescaleScope())[0]

        return _repeated(index, groups, (counts, cycle))

    return _on_both_paths(problem, rule)


Rule = Callable[[Index, tuple[RoleGroup, ...], Counts], Outcome]
"""From counts to where the rule ends, for these roles."""


def _on_both_paths(problem: Problem, rule: Rule) -> Outcome:
    """A rule from the fleet that runs, pending replicas on order; then for what is left to the other path."""
    index = Index(problem)
    running: Counts = {c.id: c.on_order for c in problem.candidates if c.on_order}
    first = rule(index, tuple(role_groups(index)), _at_least_minimum(problem, running))
    rest = tuple(rest_groups(index, first.counts))
    if not rest:
        return first
    second = rule(index, rest, first.counts)
    return Outcome(second.counts, max(first.fleets, second.fleets))


Cycle = Callable[[tuple[ServiceState, ...], Counts], Mapping[str, Targets]]


def _each(rule: Callable[[ServiceState], Targets]) -> Cycle:
    return lambda states, _: {state.key: rule(state) for state in states}


def _shrink(states: tuple[ServiceState, ...], _: Counts) -> Mapping[str, Targets]:
    return {state.key: scale_down(state) for state in states}


def _repeated(index: Index, groups: tuple[RoleGroup, ...], start: tuple[Counts, Cycle]) -> Outcome:
    """A published cycle again and again from some counts."""
    counts, cycle = start

    def turn(before: Counts) -> Counts:
        targets = cycle(service_states(index, groups, before), before)
        moved = {name: count for target in targets.values() for name, count in target.replicas.items()}
        return {name: count for name, count in counts_from(moved, before).items() if count}

    return _until_rest(index.problem, groups, (counts, turn))


def _until_rest(
    problem: Problem, groups: tuple[RoleGroup, ...], start: tuple[Counts, Callable[[Counts], Counts]]
) -> Outcome:
    """Take turns until one changes nothing; else the best of the fleets that come round, or of all that were seen."""
    counts, turn = start
    seen = [counts]
    for _ in range(_CYCLES):
        counts = turn(counts)
        if counts in seen:
            break
        seen.append(counts)
    else:
        counts = seen[0]
    around = seen[seen.index(counts) :]
    return Outcome(min(around, key=lambda fleet: _badness(problem, groups, fleet)), len(around))


def _badness(
    problem: Problem, groups: tuple[RoleGroup, ...], counts: Counts
) -> tuple[Fraction, Fraction, list[tuple[CandidateId, int]]]:
    """What a fleet leaves unserved in req/s, then what it costs; fleets that are equal in both go by their counts."""
    missing: dict[ServiceId, Fraction] = {}
    for group in groups:
        rps = load_of(group.demand) * required(group, counts) / group.tokens
        missing[group.demand.service] = max(missing.get(group.demand.service, rps), rps)
    cost = (exact(problem.candidate[name].cost) * count for name, count in counts.items())
    return sum(missing.values(), Fraction(0)), sum(cost, Fraction(0)), sorted(counts.items())


def _at_least_minimum(problem: Problem, counts: Counts) -> Counts:
    """Published minima are hard floors, with or without GPUs."""
    floors = {c.id: c.min_replicas for c in problem.candidates if c.min_replicas > counts.get(c.id, 0)}
    return counts | floors


HEURISTICS: Final[Mapping[str, Heuristic]] = {
    "greedy": greedy_outcome,
    "cost-aware": cost_aware_outcome,
    "fair-share": fair_share_outcome,
    "rescale": rescale_outcome,
}
