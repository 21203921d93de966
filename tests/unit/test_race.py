"""A race ends when one engine proves, or when the plan of one meets the bound of another."""

from __future__ import annotations

import threading

import pytest

from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.backends.race import Race, Relay, Turn, works
from planner.optimization.program import Column, Goal, IntegerProgram

X = ("x",)
PROGRAM = IntegerProgram((Column(X, 0, 9),), ())
GOAL = Goal("least", {X: 1})
_PATIENCE_S = 20.0


class Waiting:
    """Tells a bound or a value, then waits until it is stopped."""

    def __init__(self, name: str, *, value: int | None = None, bound: float | None = None) -> None:
        self.name = name
        self.value, self.bound = value, bound
        self.stopped = False

    def minimize(self, ask: Ask) -> Outcome:
        ask.report(self.value, self.bound)
        tick = threading.Event()
        for _ in range(int(_PATIENCE_S / 0.005)):
            if ask.cancelled():
                self.stopped = True
                break
            tick.wait(0.005)
        if self.value is None:
            return Outcome(Termination.TIMED_OUT, bound=self.bound)
        return Outcome(Termination.FEASIBLE, {X: self.value}, self.bound)


class Sure:
    """Answers at once."""

    name = "sure"

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def minimize(self, ask: Ask) -> Outcome:
        return self.outcome


def asked(gap: float = 0.0) -> Ask:
    return Ask(PROGRAM, GOAL, seconds=_PATIENCE_S, gap=gap)


def test_the_plan_of_one_meets_the_bound_of_the_other() -> None:
    finder, prover = Waiting("finder", value=4), Waiting("prover", value=7, bound=4.0)
    outcome = Race([lambda: finder, lambda: prover]).minimize(asked())
    assert outcome == Outcome(Termination.OPTIMAL, {X: 4}, 4.0)
    assert finder.stopped
    assert prover.stopped


@pytest.mark.parametrize(
    "outcome",
    [Outcome(Termination.OPTIMAL, {X: 2}, 2.0), Outcome(Termination.INFEASIBLE)],
    ids=["a proof", "a proof that there is nothing"],
)
def test_one_proof_ends_it_for_all(outcome: Outcome) -> None:
    slow = Waiting("slow")
    assert Race([lambda: slow, lambda: Sure(outcome)]).minimize(asked()) == outcome
    assert slow.stopped


def test_a_gap_that_is_asked_for_is_enough() -> None:
    finder, prover = Waiting("finder", value=9), Waiting("prover", bound=8.5)
    outcome = Race([lambda: finder, lambda: prover]).minimize(asked(gap=0.1))
    assert outcome == Outcome(Termination.OPTIMAL, {X: 9}, 8.5)


def test_a_relay_tells_who_ran_in_a_race_and_who_found_and_proved() -> None:
    finder, prover = Waiting("finder", value=4), Waiting("prover", bound=4.0)
    relay = Relay([Turn(lambda: Race([lambda: finder, lambda: prover]))])
    relay.minimize(asked())
    told = {work.engine: (work.found, work.proved) for work in works(relay.spells)}
    assert told == {"finder": (("least",), ()), "prover": ((), ("least",))}


def test_a_fault_of_one_is_not_hidden() -> None:
    class Faulty:
        name = "faulty"

        def minimize(self, ask: Ask) -> Outcome:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Race([Faulty, lambda: Sure(Outcome(Termination.OPTIMAL, {X: 2}, 2.0))]).minimize(asked())
