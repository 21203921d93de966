"""Two engines after one another: the first that proves wins, and the best bound of both is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from planner.clock import Clock, SystemClock
from planner.optimization.backends.engine import Ask, Engine, Outcome, Termination

__all__ = ["Relay"]

_FIRST_SHARE: Final = 0.6


class Relay:
    """Run engines in order until one proves its answer; each starts from the best plan before it.

    In turn and not at once: on the two cores that a planning job usually has, two engines halve each
    other, and an answer that does not depend on which thread was faster can be reproduced.
    """

    name = "relay"

    def __init__(self, engines: Sequence[Callable[[], Engine]], *, clock: Clock | None = None) -> None:
        self._engines = tuple(engines)
        self._clock = clock or SystemClock()
        self.used: list[str] = []

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization."""
        end = self._clock.monotonic_s() + ask.seconds
        best = Outcome(Termination.TIMED_OUT)
        for position, make in enumerate(self._engines):
            left = end - self._clock.monotonic_s()
            last = position == len(self._engines) - 1
            if left <= 0:
                break
            engine = make()  # loading a solver takes a while: not before it is needed
            turn = replace(ask, seconds=left if last else left * _FIRST_SHARE, hint=best.values or ask.hint)
            self.used.append(engine.name)
            best = _better(ask, best, engine.minimize(turn))
            if best.termination in (Termination.OPTIMAL, Termination.INFEASIBLE):
                break
        return best


def _better(ask: Ask, old: Outcome, new: Outcome) -> Outcome:
    """The better plan with the better bound; an infeasibility that is proven ends the search."""
    if new.termination is Termination.INFEASIBLE and old.values is None:
        return new
    bounds = [bound for bound in (old.bound, new.bound) if bound is not None]
    bound = max(bounds) if bounds else None
    plans = [outcome for outcome in (old, new) if outcome.values is not None]
    if not plans:
        return new if new.termination is Termination.FAILED else replace(old, bound=bound)
    best = min(plans, key=lambda outcome: ask.goal.activity(outcome.values or {}))
    proven = new.termination is Termination.OPTIMAL or _proves(ask, best, bound)
    return Outcome(Termination.OPTIMAL if proven else Termination.FEASIBLE, best.values, bound)


def _proves(ask: Ask, outcome: Outcome, bound: float | None) -> bool:
    if outcome.values is None or bound is None:
        return False
    value = ask.goal.activity(outcome.values)
    return value - bound <= ask.gap * abs(value)
