"""Where no single limit is enough: limits that have to move together, each as little as the others allow.

The limits that touch a conflict are set free, then those that touch what still conflicts, until everything can be
promised. What can go back is put back (a deletion filter): what stays free is needed, every one of it. The moves are then
made small one after the other, and the problem with all of them is solved and judged by the referee.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from models.explanation import Conflict, Relaxation
from models.problem import Problem
from planner.optimization.explaining.conflict import conflict_in
from planner.optimization.explaining.feasibility import Oracle
from planner.optimization.explaining.limits import Ladder, Limit, Rerate, Use, limits_of
from planner.optimization.explaining.smallest import Move, Opened, smallest
from planner.optimization.formulation import formulate

__all__ = ["together"]

_ORDER: Final = (
    "slo",
    "survive",
    "headroom",
    "safe_scale_in",
    "incumbents",
    "ratio",
    "variants",
    "bounds",
    "change",
    "gpus",
    "nodes",
    "quota",
    "spend",
    "power",
)
"""What is put back first: promises to users, then rules of operation, then hardware, then budgets."""

_ROUNDS: Final = 20
"""Conflicts that are looked at, one after the other."""

_LOOKING: Final = 0.3
"""Share of the time left that the search for one more conflict may take."""

Name = tuple[str, tuple[str, ...], str]
"""Of a limit in whatever problem: family, key, and the side of its rows."""


def together(
    problem: Problem, conflict: Conflict | None, oracle: Oracle, *, rerate: Rerate | None = None
) -> tuple[Relaxation, ...]:
    """Limits whose moves together make every promise hold; without any one of them the others would not do.

    Args:
        problem: that has no plan, and no single limit whose move is enough.
        conflict: what cannot hold together; without it nothing is known, and nothing said.
        oracle: solves until its deadline; what is not certain by then is not said.
        rerate: sizes again with looser latency promises; None: they are not asked for.

    Returns:
        Each with the cost of the plan that all of them allow, or unverified where none could be judged; empty: not even
        all limits together do, or time ran out.
    """
    if conflict is None:
        return ()
    search = _Search(problem, oracle, rerate)
    enough = search.enough(conflict)
    needed = None if enough is None else search.needed(enough)
    return () if needed is None else search.moved(needed)


def _name(limit: Limit) -> Name:
    side = limit.search.side.value if isinstance(limit.search, Use) and limit.search.rows else ""
    return limit.family, limit.key, side


def _rank(name: Name) -> tuple[int, Name]:
    return (_ORDER.index(name[0]) if name[0] in _ORDER else -1), name


@dataclass(frozen=True)
class _Search:
    """Questions about one problem with some of its limits free."""

    problem: Problem
    oracle: Oracle
    rerate: Rerate | None

    def enough(self, conflict: Conflict) -> list[Name] | None:
        """Limits with which there is a plan if all of them are free; None: there are none, or time ran out."""
        free: set[Name] = set()
        for _ in range(_ROUNDS):
            more = {_name(limit) for limit in self._limits(self.problem) if limit.helps(conflict)} - free
            if not more:
                return None
            free |= more
            names = sorted(free, key=_rank)
            program = self._opened(self.problem, names).program
            possible = self.oracle.feasible(program)
            if possible is not False:
                return names if possible else None
            next_one = conflict_in(program, self.oracle.until(_LOOKING))
            if next_one is None:
                return None
            conflict = next_one
        return None

    def needed(self, names: Sequence[Name]) -> tuple[Name, ...] | None:
        """Names of which none can be left out; None: time ran out before that was certain."""
        kept, size = list(names), len(names)
        while size > 0:
            start = 0
            while start < len(kept):
                rest = [*kept[:start], *kept[start + size :]]
                possible = self.oracle.feasible(self._opened(self.problem, rest).program)
                if possible is None:
                    return None
                if possible:
                    kept = rest
                else:
                    start += size
            size //= 2
        return tuple(kept)

    def moved(self, names: Sequence[Name]) -> tuple[Relaxation, ...]:
        """Each limit moved as little as will do while the later ones are free, and judged with all of them moved."""
        problem, found = self.problem, list[Move]()
        for place, name in enumerate(names):
            least = self._least(problem, name, names[place + 1 :])
            if least is None:
                return ()
            found.append(least)
            problem = least.problem
        plan = self.oracle.plan(problem)
        return tuple(move.told(plan) for move in found)

    def _least(self, problem: Problem, name: Name, free: Sequence[Name]) -> Move | None:
        """The smallest move of one limit while others are free."""
        moves = (
            smallest(limit, self.oracle, opens=lambda changed: self._opened(changed, free))
            for limit in self._called(problem, name)
        )
        possible = (move for move in moves if move is not None)
        return min(possible, key=lambda move: abs(move.needed - move.limit.value), default=None)

    def _limits(self, problem: Problem) -> Iterable[Limit]:
        return limits_of(problem, self.rerate)

    def _called(self, problem: Problem, name: Name) -> list[Limit]:
        return [limit for limit in self._limits(problem) if _name(limit) == name]

    def _opened(self, problem: Problem, free: Iterable[Name]) -> Opened:
        """The program in which these limits are free: as far as they go where they go by steps.

        Where time runs out some are not: then nobody is asked about it any more.
        """
        uses: list[Use] = []
        for name in free:
            if self.oracle.seconds_left <= 0:
                break
            # Of several ways to move one limit (nodes of several sizes) the widest.
            for limit in self._called(problem, name)[-1:]:
                match limit.search:
                    case Ladder(values=values):
                        problem = limit.moved(values[-1]) or problem
                    case Use(rows=rows) as use if rows:
                        uses.append(use)
                    case Use() as use:
                        problem = use.problem
        formulation = formulate(problem, roomy=True)
        program = formulation.program
        for use in uses:
            program = use.freed(program)
        return Opened(formulation, program)
