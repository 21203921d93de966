"""Every input moved down and up, solved again, and ranked by how far the answer moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from models.problem import Problem
from models.report import Assessment
from models.scenario import Scenario
from models.sensitivity import Lever, Moved, Sensitivity, Swing
from models.solution import Solution, Status
from planner.clock import Clock, SolvingClock
from planner.errors import ConfigurationError, Finding
from planner.optimization.protocol import SolveOptions
from planner.optimization.warm import WarmStart
from planner.planning import judge, known_catalog, solve_with
from planner.sensitivity.levers import levers_of, list_prices, moved
from planner.sizing import size

__all__ = ["How", "Step", "sensitivity"]

_COST = "cost"


@dataclass(frozen=True, slots=True)
class Step:
    """How far the work is.

    Attributes:
        done: answers that are there.
        of: answers that are wanted, the unmoved one among them.
        so_far: what is known by now.
    """

    done: int
    of: int
    so_far: Sensitivity


def _untold(step: Step) -> None:
    """Nobody wants to hear."""


@dataclass(frozen=True, slots=True)
class How:
    """How everything is solved.

    Attributes:
        solver: name of a solver.
        options: time for all answers together, gap, threads; once cancelled, what is known by then is the answer.
        allow_unserved: demand is an objective for every service, not a promise.
        told: is given every step.
    """

    solver: str = "auto"
    options: SolveOptions = field(default_factory=SolveOptions)
    allow_unserved: bool = False
    told: Callable[[Step], None] = _untold


def sensitivity(
    scenario: Scenario,
    share: float = 0.1,
    *,
    most: int = 0,
    how: How | None = None,
    clock: Clock | None = None,
) -> Sensitivity:
    """Move every input down and up by a share of itself, one at a time, and solve again.

    Where no plan keeps every promise any more, the figures are those of the best plan under scarcity, and the status
    says so: its cost alone would look like a saving.

    Args:
        scenario: what the user states.
        share: how far, e.g. 0.1 for 10 %; above 0 and below 1.
        most: services, and pools, that are moved one by one too, those that cost most first.
        how: solver, time and gap.
        clock: measures that time.

    Raises:
        ConfigurationError: the share is none, or the scenario cannot be sized.
        InternalError: a plan of ours fails the referee.
    """
    if not 0 < share < 1:
        finding = Finding("", None, "share", f"{share:g}", "above 0 and below 1")
        raise ConfigurationError.from_findings([finding])
    return _Measuring(scenario, share, how or How(), clock or SolvingClock()).run(most)


class _Measuring:
    def __init__(self, scenario: Scenario, share: float, how: How, clock: Clock) -> None:
        self._scenario = scenario
        self._share = share
        self._how = how
        self._clock = clock
        self._deadline_s = clock.monotonic_s() + how.options.time_limit_s
        self._catalog = known_catalog(scenario.profiles)
        self._warm: WarmStart | None = None
        self._left = 1

    def run(self, most: int) -> Sensitivity:
        problem = self._sized(self._scenario)
        self._left = 1 + 2 * len(levers_of(self._scenario, most=most))
        base, plan = self._solved(problem, 1.0, clipped=False)
        levers = levers_of(self._scenario, plan, most=most)
        answer = Sensitivity(
            problem=problem.name,
            share=self._share,
            cost_unit=problem.cost_unit,
            base=base,
            derived_from=problem.fingerprint,
        )
        swings: list[Swing] = []
        total = 1 + 2 * len(levers)
        self._how.told(Step(1, total, answer))
        for number, (lever, swing) in enumerate(self._swings(levers), start=1):
            if swing is None:
                break
            if swing.sides:
                swings.append(swing)
            answer = answer.but(swings=_ranked(base, swings), complete=lever == levers[-1])
            self._how.told(Step(1 + 2 * number, total, answer))
        return answer

    def _swings(self, levers: Sequence[Lever]) -> Iterator[tuple[Lever, Swing | None]]:
        """A swing for each lever; None where there is no time any more."""
        prices = list_prices(self._scenario, self._catalog)
        for lever in levers:
            sides: list[Moved | None] = []
            for factor in (1 - self._share, 1 + self._share):
                if self._over():
                    yield lever, None
                    return
                new = moved(self._scenario, lever, factor, prices)
                self._left -= new is None
                sides.append(None if new is None else self._resolved(new, factor))
            yield lever, Swing(lever=lever, down=sides[0], up=sides[1])

    def _over(self) -> bool:
        return self._how.options.cancelled() or self._clock.monotonic_s() >= self._deadline_s

    def _resolved(self, new: tuple[Scenario, bool], factor: float) -> Moved:
        return self._solved(self._sized(new[0]), factor, clipped=new[1])[0]

    def _sized(self, scenario: Scenario) -> Problem:
        return size(scenario, self._catalog, allow_unserved=self._how.allow_unserved)

    def _solved(self, problem: Problem, factor: float, *, clipped: bool) -> tuple[Moved, Assessment | None]:
        solution, plan = self._answer(problem)
        self._left -= 1
        status = solution.status
        if status is Status.INFEASIBLE and not problem.allow_unserved:
            solution, plan = self._answer(problem.but(allow_unserved=True))
        found = Moved(
            factor=factor,
            clipped=clipped,
            status=status,
            cost=None if plan is None else plan.cost,
            unserved_rps=None if plan is None else plan.unserved_rps,
            power_w=None if plan is None else plan.power_w,
            gap=next((level.gap for level in solution.proof.levels if level.name == _COST), None),
        )
        return found, plan

    def _answer(self, problem: Problem) -> tuple[Solution, Assessment | None]:
        """In a fair part of the time left; from the first answer on each begins with what that one left."""
        seconds = max(1e-3, (self._deadline_s - self._clock.monotonic_s()) / max(1, self._left))
        options = replace(self._how.options, time_limit_s=seconds, warm=self._warm)
        result = solve_with(problem, solver=self._how.solver, options=options)
        self._warm = self._warm or result.warm
        return result.solution, judge(problem, self._how.solver, result.solution).assessment


def _ranked(base: Moved, swings: Sequence[Swing]) -> tuple[Swing, ...]:
    return tuple(sorted(swings, key=lambda swing: (*_strength(base, swing), swing.lever.canonical_json())))


def _strength(base: Moved, swing: Swing) -> tuple[bool, float, float]:
    """The strongest first: whether promises break, how much demand stays unserved in addition, and how cost moves."""
    breaks = any(side.status is Status.INFEASIBLE for side in swing.sides) and (
        base.status is not Status.INFEASIBLE
    )
    unserved = max(
        (abs((s.unserved_rps or 0.0) - (base.unserved_rps or 0.0)) for s in swing.sides), default=0
    )
    costs = [side.cost for side in (*swing.sides, base) if side.cost is not None]
    return not breaks, -unserved, min(costs, default=0.0) - max(costs, default=0.0)
