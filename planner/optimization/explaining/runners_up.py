"""Candidates that nearly made it, and what would: the smallest cut of their price, the smallest growth of their capacity.

A candidate that is not used is made to have a replica, and the problem solved again. How much more that plan costs
bounds the cut; cheaper replicas may then come in numbers, so the cut is made smaller until no plan with it is better
than the plan at hand (Dinkelbach's method on extra cost per replica).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from models.explanation import Evidence, RunnerUp
from models.problem import BucketRating, Candidate, Problem
from models.solution import Level, Solution
from planner.optimization.explaining.feasibility import Judged, Oracle
from planner.optimization.explaining.limits.counts import with_candidate

__all__ = ["SHOWN", "runners_up"]

SHOWN: Final = 5
"""Runners-up that are told of."""

_TRIED: Final = 24
"""Candidates that are solved for, those with the smallest cost per req/s beside what is used first."""

_TURNS: Final = 6
_NOISE: Final = 1e-6
_MOST_GAIN: Final = 300
"""Largest growth of the capacity that is tried, percent."""


def runners_up(problem: Problem, solution: Solution, oracle: Oracle) -> tuple[RunnerUp, ...]:
    """The candidates that the smallest price cut, as a share of their price, would bring into an optimal plan.

    Args:
        problem: the question.
        solution: an answer; what it does not use is asked about.
        oracle: solves until its deadline; what it does not reach is left out.
    """
    base = oracle.plan(problem, hint=solution.counts)
    if base is None:
        return ()
    race = _Race(problem, base, oracle)
    unused = [c for c in problem.candidates if not solution.count(c.id) and not base.solution.count(c.id)]
    found = []
    for candidate in sorted(unused, key=lambda c: (_closeness(problem, base, c), c.id))[:_TRIED]:
        runner_up = race.priced(candidate)
        if runner_up is not None:
            found.append(runner_up)
    closest = sorted(found, key=_distance)[:SHOWN]
    return tuple(each.but(capacity_gain=race.capacity_gain(each)) for each in closest)


def _closeness(problem: Problem, base: Judged, candidate: Candidate) -> float:
    """Cost per req/s beside the cheapest of its service and role in use."""
    used = [
        c.cost / c.rated_rps
        for c in problem.candidates_of[candidate.service]
        if c.role is candidate.role and base.solution.count(c.id) and c.cost
    ]
    return candidate.cost / candidate.rated_rps / (min(used) if used else 1.0)


def _distance(one: RunnerUp) -> tuple[bool, float, str]:
    cut = one.price_cut
    return cut is None, one.extra_cost if cut is None else cut / (one.cost or 1.0), one.candidate


@dataclass(frozen=True)
class _Race:
    problem: Problem
    base: Judged
    oracle: Oracle

    def priced(self, candidate: Candidate) -> RunnerUp | None:
        """With extra cost and price cut; None where limits or time leave no plan that has it."""
        forced = self._with(candidate)
        if forced is None:
            return None
        extra = self._extra(forced)
        cut = self._cut(candidate, extra / forced.solution.count(candidate.id))
        return RunnerUp(
            candidate=candidate.id,
            cost=candidate.cost,
            extra_cost=max(0.0, _rounded(extra)),
            price_cut=cut,
            evidence=Evidence.PROVEN if self._proven(forced) else Evidence.FOUND,
        )

    def capacity_gain(self, one: RunnerUp) -> float | None:
        """The smallest whole percentage by which its capacity must grow, by halving."""
        candidate = self.problem.candidate[one.candidate]
        if one.extra_cost <= self._noise:
            return 0.0

        def enough(percent: int) -> bool:
            plan = self._with(_larger(candidate, 1 + percent / 100))
            return plan is not None and self._extra(plan) <= self._noise

        return _smallest(enough, _MOST_GAIN)

    def _with(self, candidate: Candidate) -> Judged | None:
        """The best plan that has a replica of a candidate, if it serves as much."""
        if candidate.max_replicas == 0 or self.oracle.seconds_left <= 0:
            return None
        forced = with_candidate(self.problem, candidate.but(min_replicas=max(1, candidate.min_replicas)))
        plan = self.oracle.plan(forced, hint=self.base.solution.counts)
        if plan is None or _serves_less(plan.solution.proof.levels, self.base.solution.proof.levels):
            return None
        return plan

    def _cut(self, candidate: Candidate, cut: float) -> float | None:
        for _ in range(_TURNS):
            tried = min(cut, candidate.cost)
            plan = self._with(candidate.but(cost=max(0.0, candidate.cost - tried)))
            if plan is None:
                break
            count = plan.solution.count(candidate.id)
            enough = self._extra(plan) <= self._noise
            if not enough and tried == candidate.cost:
                return None
            better = (self._extra(plan) + tried * count) / count
            if better >= tried - self._noise:
                cut = better
                break
            cut = better
        return _rounded(max(0.0, cut)) if cut <= candidate.cost + self._noise else None

    def _extra(self, plan: Judged) -> float:
        return plan.assessment.cost - self.base.assessment.cost

    @property
    def _noise(self) -> float:
        return _NOISE * max(1.0, abs(self.base.assessment.cost))

    def _proven(self, plan: Judged) -> bool:
        levels = (*plan.solution.proof.levels, *self.base.solution.proof.levels)
        return all(level.gap is not None and level.gap <= _NOISE for level in levels)


def _serves_less(levels: Sequence[Level], base: Sequence[Level]) -> bool:
    return any(
        new.name.startswith("unserved") and new.value > old.value + _NOISE
        for new, old in zip(levels, base, strict=False)
    )


def _larger(candidate: Candidate, factor: float) -> Candidate:
    def more(rate: float) -> float:
        return _rounded(rate * factor)

    ratings = {
        name: BucketRating(
            rated_rps=more(r.rated_rps), surge_rps=more(r.surge_rps), kv_tokens_per_rps=r.kv_tokens_per_rps
        )
        for name, r in candidate.by_bucket.items()
    }
    return candidate.but(
        rated_rps=more(candidate.rated_rps),
        surge_rps=more(candidate.surge_rps),
        by_bucket=ratings,
        guest_surge_rps={service: more(rate) for service, rate in candidate.guest_surge_rps.items()},
    )


def _smallest(enough: Callable[[int], bool], most: int) -> float | None:
    """The smallest whole percentage that is enough, as a share; None: not even ``most`` is."""
    if not enough(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high / 100


def _rounded(value: float) -> float:
    return float(f"{value:.9g}")
