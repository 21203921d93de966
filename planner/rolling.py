"""From a report to ordered waves, and back again; and to a plan near by that moves less.

What needs an answer and a rollout is composed here, since the two have never met.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from models.ids import Name
from models.plan import Plan, WaveLimits
from models.problem import Problem
from models.report import Comparison, FewestMoves, Report
from models.solution import Solution, Status
from planner.clock import Clock, SolvingClock
from planner.optimization.protocol import SolveOptions
from planner.planning import HEURISTICS, judge, solve_with

__all__ = ["FEWEST_MOVES", "WITHIN", "plan_rollout", "plan_way_back", "with_rollout"]

FEWEST_MOVES: Final = "fewest-moves"
"""Name of the answer beside that costs little more and changes fewer replicas."""

WITHIN: Final = 0.01
"""How much more that answer may cost unless somebody says otherwise."""

_ROLLOUT: Final = 0.25
"""Share of the time limit that working out waves may take, as far as it is left."""

_ROLLOUT_LEAST: Final = 0.05
"""The same where the answer took all of it: most waves are worked out in a moment, and nothing is solved for them."""

_ALTERNATIVE: Final = 0.05
"""Share of the time limit that solving for fewer changes may take."""

_JUDGED: Final = 4
"""So often a plan is judged while another one near by is looked for."""

_TOO_SHORT_S: Final = 0.05
"""No solver is started for less."""


def plan_rollout(report: Report, *, limits: WaveLimits | None = None) -> Plan:
    """The waves from the fleet that runs to a report's answer, however long they take to work out.

    Args:
        report: whose answer has a plan.
        limits: how much may change at once; None: no limits but those of the problem.

    Raises:
        ConfigurationError: the answer has no plan, or no step can be as small as is asked.
    """
    from planner.rollout import roll_out

    return roll_out(report.problem, report.answer.solution, limits=limits)


def plan_way_back(report: Report, plan: Plan) -> Plan:
    """The waves from the end of a plan of :func:`plan_rollout` to the fleet that ran before it."""
    from planner.rollout import reverse

    return reverse(plan, report.problem)


def with_rollout(
    report: Report,
    *,
    limits: WaveLimits | None = None,
    within: float = WITHIN,
    options: SolveOptions | None = None,
    clock: Clock | None = None,
) -> Report:
    """The report with the waves to its plan, and with a plan near by that changes fewer replicas.

    A plan that breaks limits is not rolled out: only a heuristic's does. What there is no time for is left
    out. In ``seconds`` there are two phases more.

    Args:
        report: an answer; where it is infeasible, its best effort counts.
        limits: how much may change at once; None: no limits but those of the problem.
        within: how much more the other plan may cost; 0: none is looked for.
        options: of the solver that answered. A quarter of its time limit is for the waves and a twentieth for the plan
            near by, as far as the answer has left them; the waves have a twentieth in any case.
        clock: measures the phases.

    Raises:
        ConfigurationError: no step can be as small as is asked, or ``within`` is no share.
        InternalError: a plan of ours fails the referee.
    """
    shown = report.shown
    if shown.assessment is None or shown.assessment.violations:
        return report
    problem = report.problem.but(allow_unserved=True) if report.best_effort else report.problem
    run = _Run(problem, limits, options or SolveOptions(), clock or SolvingClock(), dict(report.seconds))
    with run.phase("rollout"):
        rollout = run.rolled_out(shown.solution)
    found, other = None, None
    if within and shown.name not in HEURISTICS:
        with run.phase("alternative"):
            found, other = run.near(shown, within)
    others = tuple(each for each in report.beside if each.name != FEWEST_MOVES)
    beside = others if other is None else (other, *others)
    return report.but(rollout=rollout, fewest_moves=found, beside=beside, seconds=run.seconds)


class _OutOfTimeError(Exception):
    """The waves would take too long to work out."""


@dataclass(frozen=True, slots=True)
class _Run:
    problem: Problem
    limits: WaveLimits | None
    options: SolveOptions
    clock: Clock
    seconds: dict[Name, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: Name) -> Iterator[None]:
        """Add the time spent inside to a phase."""
        start_s = self.clock.monotonic_s()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + self.clock.monotonic_s() - start_s

    @property
    def left_s(self) -> float:
        """What is left of the time limit; negative where it is over."""
        return self.options.time_limit_s - sum(self.seconds.values())

    def seconds_for(self, part: float) -> float:
        """This part of the time limit, or what is left of it."""
        return min(self.left_s, self.options.time_limit_s * part)

    def rolled_out(self, solution: Solution) -> Plan | None:
        """The waves to a solution; None: there was no time."""
        from planner.rollout import roll_out

        seconds = max(self.options.time_limit_s * _ROLLOUT_LEAST, self.seconds_for(_ROLLOUT))
        # Waves are judged as the plan was, and more than once.
        if self.seconds.get("check", 0.0) > seconds:
            return None
        end_s = self.clock.monotonic_s() + seconds

        def tick() -> None:
            if self.clock.monotonic_s() > end_s:
                raise _OutOfTimeError

        try:
            return roll_out(self.problem, solution, limits=self.limits, tick=tick)
        except _OutOfTimeError:
            return None

    def near(self, shown: Comparison, within: float) -> tuple[FewestMoves | None, Comparison | None]:
        """What changes fewer replicas within so much of the cost, and how it stands beside; None: there was no time."""
        from planner.rollout import fewest_moves

        if shown.assessment is None or not shown.assessment.changes:
            return FewestMoves(within=within, proven=True), None
        seconds = min(self.seconds_for(_ALTERNATIVE), self.left_s - _JUDGED * self.seconds.get("check", 0.0))
        if seconds < _TOO_SHORT_S:
            return None, None
        options = replace(self.options, time_limit_s=seconds)
        status = Status.FAILED

        def solve_again(problem: Problem) -> Solution:
            nonlocal status
            solution = solve_with(problem, solver=shown.name, options=options).solution
            status = solution.status
            return solution

        other = fewest_moves(self.problem, shown.solution, solve_again, within=within)
        proven = status is Status.OPTIMAL
        if other is None:
            return (FewestMoves(within=within, proven=True), None) if proven else (None, None)
        found = FewestMoves(within=within, name=FEWEST_MOVES, proven=proven, rollout=self.rolled_out(other))
        return found, judge(self.problem, FEWEST_MOVES, other)
