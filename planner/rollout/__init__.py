"""Rollout: from the fleet that runs to a solution, in waves of which none makes anything worse on the way.

``task`` says what has to change, ``places`` where, ``judge`` which waves may run. ``greedy`` fills waves for fleets of
any size, ``exact`` tries every order of a small one, ``slack`` says what a stuck fleet lacks.
"""

from __future__ import annotations

from planner.rollout.alternatives import SolveAgain, fewest_moves, fewest_moves_problem
from planner.rollout.front import roll_out
from planner.rollout.undo import reverse

__all__ = ["SolveAgain", "fewest_moves", "fewest_moves_problem", "reverse", "roll_out"]
