"""What one answer leaves for the next one of nearly the same problem: a fleet is planned every few seconds.

A warm start is a proposal in everything. Whatever it holds is looked at anew against the problem of now, bounds are
always proven anew, and an answer from a warm start is as good as one from nothing; only faster to find where little
changed. It holds one program with its patterns, however many answers went before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import is_

from models.problem import Candidate, Problem
from planner.optimization.backends.memory import Memory
from planner.optimization.formulation import Formulation
from planner.optimization.program import Key

__all__ = ["WarmStart", "recognized"]


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """Handed out with an answer, handed in with the next question; never changed, so threads may share it.

    Attributes:
        formulation: of the problem that was answered.
        memory: what the engines kept.
        values: of the plan, by column; empty where there was none.
        reached: by name of a level that only breaks ties, the gap that was left after all the time it may take.
    """

    formulation: Formulation
    memory: Memory
    values: Mapping[Key, int]
    reached: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Short: it holds a whole program."""
        return f"WarmStart(of {self.formulation.index.problem.name!r})"


def recognized(problem: Problem, before: Problem) -> Problem:
    """An equal problem, with the candidates of the one before where they are equal.

    They know their fingerprints, and whatever was made of them is found again without another look at their fields.
    """
    old = before.candidates
    if len(old) == len(problem.candidates) and all(map(is_, problem.candidates, old)):
        return problem
    known = before.candidate
    candidates = tuple(_either(c, known.get(c.id)) for c in problem.candidates)
    return problem.model_copy(update={"candidates": candidates})


def _either(candidate: Candidate, before: Candidate | None) -> Candidate:
    return before if before is not None and before == candidate else candidate
