"""What is one more worth: each limit is moved a step, and the problem solved again.

The value is the change of the first level of the objective that changes: unserved demand, then cost, and so on. Where
one step changes nothing, the smallest number of steps that does is searched for. What time does not reach is estimated
by the linear relaxation, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from models.explanation import Evidence, Gain, Worth
from models.ids import CandidateId
from models.problem import Problem
from models.solution import Level
from planner.optimization.explaining.feasibility import Judged, Oracle
from planner.optimization.explaining.limits import Rerate
from planner.optimization.explaining.moves import Move, moves_of
from planner.optimization.formulation import formulate
from planner.optimization.formulation.goals import cost_goal, unserved_load_goal

__all__ = ["worth_of"]

_SOLVES: Final = 0.85
"""Share of the time for solves; the rest is for estimates of what they did not reach."""

_NOISE: Final = 1e-5
"""Changes below this share of a level are not told from what its proof leaves open."""


def worth_of(
    problem: Problem,
    oracle: Oracle,
    *,
    rerate: Rerate | None = None,
    hint: Mapping[CandidateId, int] | None = None,
) -> tuple[Worth, ...]:
    """What a little more of each limit is worth; nothing where the problem has no plan.

    Args:
        problem: with a plan.
        oracle: solves until its deadline; limits that not even an estimate reaches are left out.
        rerate: sizes again with looser latency promises; None: they are not asked for.
        hint: counts of a good plan, to start from.
    """
    solves = oracle.until(_SOLVES)
    base = solves.plan(problem, levels=problem.objective.levels, hint=hint)
    if base is None:
        return ()
    bench = _Bench(problem, base, solves)
    estimates = _Estimates(problem, base, oracle)
    found: list[Worth] = []
    for move in moves_of(problem, rerate):
        if oracle.seconds_left <= 0:
            break
        answer = bench.worth(move) or estimates.worth(move)
        if answer is not None:
            found.append(answer)
    return tuple(found)


@dataclass(frozen=True)
class _Bench:
    """Solves of moved problems beside the one at hand."""

    problem: Problem
    base: Judged
    oracle: Oracle

    def worth(self, move: Move) -> Worth | None:
        """By solving; None when time ran out before one step was known, or nobody can say."""
        trial = _Trial(self, move)
        most = trial.gain(move.steps)
        if most is None:
            return None
        if most.level is None:
            return _worth(move, Gain(amount=move.amount(1)), None)
        one = trial.gain(1)
        if one is None:
            return None
        return _worth(move, one, one if one.level is not None else trial.first())

    def gain(self, problem: Problem, amount: float) -> Gain | None:
        """What another problem's best plan has less of; None when there was no time for it."""
        plan = self.oracle.plan(problem, levels=problem.objective.levels, hint=self.base.solution.counts)
        if plan is None:
            return None
        return _difference(self.base.solution.proof.levels, plan.solution.proof.levels, amount)


@dataclass
class _Trial:
    """One move on the bench; every number of steps is solved once."""

    bench: _Bench
    move: Move
    known: dict[int, Gain | None] = field(default_factory=dict)

    def gain(self, steps: int) -> Gain | None:
        """What so many steps gain."""
        if steps not in self.known:
            self.known[steps] = self._solved(steps) if self.bench.oracle.seconds_left > 0 else None
        return self.known[steps]

    def _solved(self, steps: int) -> Gain | None:
        problem, amount = self.move.problem(steps), self.move.amount(steps)
        # No other problem comes of it: then it is worth nothing.
        return Gain(amount=amount) if problem is None else self.bench.gain(problem, amount)

    def first(self) -> Gain | None:
        """The fewest steps that gain something: doubled until they do, then halved in between."""
        low, high = 1, 2
        while high < self.move.steps and not self._gains(high):
            low, high = high, 2 * high
        high = min(high, self.move.steps)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._gains(middle) else (middle, high)
        return self.gain(high)

    def _gains(self, steps: int) -> bool:
        gain = self.gain(steps)
        return gain is not None and gain.level is not None


@dataclass(frozen=True)
class _Estimates:
    """Differences of linear relaxations."""

    problem: Problem
    base: Judged
    oracle: Oracle
    known: dict[str, float | None] = field(default_factory=dict)

    def worth(self, move: Move) -> Worth | None:
        """One step by the relaxation of unserved load or, where all is served, of cost."""
        problem = move.problem(1)
        if problem is None:
            return None
        if "base" not in self.known:
            self.known["base"] = self._value(self.problem)
        before, after = self.known["base"], self._value(problem)
        if before is None or after is None:
            return None
        gain = max(0.0, before - after)
        changes = gain > _NOISE * max(abs(before), 1e-6)
        level = ("unserved-load", "req/s") if self._scarce else ("cost", self._cost_unit)
        one = Gain(
            amount=move.amount(1),
            level=level[0] if changes else None,
            value=gain if changes else 0.0,
            unit=level[1] if changes else "",
            evidence=Evidence.ESTIMATE,
        )
        return _worth(move, one, None, searched=move.amount(1))

    @property
    def _scarce(self) -> bool:
        return self.base.assessment.unserved_rps > 0

    @property
    def _cost_unit(self) -> str:
        return cost_goal(formulate(self.problem).index).unit_name

    def _value(self, problem: Problem) -> float | None:
        from planner.optimization.backends.linear import relaxed_value

        formulation = formulate(problem if self._scarce else problem.but(allow_unserved=False))
        index = formulation.index
        goal = (
            unserved_load_goal(index, problem.demands, "unserved-load") if self._scarce else cost_goal(index)
        )
        return relaxed_value(formulation.program, goal, seconds=self.oracle.seconds_left)


def _worth(move: Move, one: Gain, first: Gain | None, *, searched: float | None = None) -> Worth:
    return Worth(
        family=move.family,
        key=move.key,
        limit=move.limit,
        unit=move.unit,
        one=one,
        first=first,
        searched=move.amount(move.steps) if searched is None else searched,
        facts=dict(move.facts()),
    )


def _difference(before: tuple[Level, ...], after: tuple[Level, ...], amount: float) -> Gain:
    """The first level that gets smaller by more than proofs leave open."""
    proven = True
    for old, new in zip(before, after, strict=False):
        proven = proven and _proven(old) and _proven(new)
        if old.value - new.value > _NOISE * max(abs(old.value), 1e-6):
            return Gain(
                amount=amount,
                level=old.name,
                value=float(f"{old.value - new.value:.12g}"),
                unit=old.unit,
                evidence=Evidence.PROVEN if proven else Evidence.FOUND,
            )
        if new.value - old.value > _NOISE * max(abs(old.value), 1e-6):
            return Gain(amount=amount, evidence=Evidence.FOUND)
    return Gain(amount=amount, evidence=Evidence.PROVEN if proven else Evidence.FOUND)


def _proven(level: Level) -> bool:
    return level.gap is not None and level.gap <= _NOISE
