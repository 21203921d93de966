"""Changes of size in the rollout: replicas that stay themselves and become larger or smaller in one step.

Grows come before all else, shrinks after all else, as far as there is room; what finds no room before waits until the
rest has moved, and where the rest is stuck meanwhile it is the other way round. Between them the fleet moves as any
other: replicas that have changed their size run, those that will still are what they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from models.ids import CandidateId, PoolId
from models.plan import Plan, Step, StepKind, Stuck, Wave
from models.problem import Candidate, Problem, Resize
from models.solution import Solution
from planner.referee import Unplaced, check, pack

__all__ = ["Change", "changes_of", "roll_out_changes"]

_BUDGETS: Final = frozenset({"gpus", "placement", "nodes", "quota", "power", "spend"})

RollOut = Callable[[Problem, Solution], Plan]


@dataclass(frozen=True, slots=True)
class Change:
    """Replicas of one candidate that become replicas of another one.

    Attributes:
        stays: what they are now.
        way: what they become.
        resize: how.
        count: so many.
    """

    stays: Candidate
    way: Candidate
    resize: Resize
    count: int

    @property
    def grows(self) -> bool:
        """Whether they carry no less afterwards."""
        return self.way.rated_rps >= self.stays.rated_rps


def changes_of(problem: Problem, solution: Solution) -> tuple[Change, ...]:
    """Every change of size in a solution, in the order of the candidates."""
    found = []
    for way in problem.candidates:
        count = solution.count(way.id)
        if way.resize is not None and count:
            found.append(Change(problem.candidate[way.resize.of], way, way.resize, count))
    return tuple(found)


def roll_out_changes(
    problem: Problem, solution: Solution, changes: Sequence[Change], *, roll_out: RollOut
) -> Plan:
    """The plan of a solution in which replicas change their size.

    Args:
        problem: the question.
        solution: the answer.
        changes: of size in it.
        roll_out: makes the plan of everything else.
    """
    grows, shrinks = _split(changes, lambda change: change.grows)
    first = _try(problem, solution, (grows, shrinks), roll_out)
    if first.stuck is None or not shrinks:
        return first
    second = _try(problem, solution, ((*shrinks, *grows), ()), roll_out)
    return second if second.stuck is None else first


def _split(
    changes: Iterable[Change], belongs: Callable[[Change], bool]
) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    listed = [(belongs(change), change) for change in changes]
    return tuple(c for yes, c in listed if yes), tuple(c for yes, c in listed if not yes)


def _try(
    problem: Problem,
    solution: Solution,
    order: tuple[Sequence[Change], Sequence[Change]],
    roll_out: RollOut,
) -> Plan:
    """Changes that are to come first, as far as they find room, then the rest of the fleet, then the other changes."""
    counts = {c.id: c.on_order for c in problem.candidates if c.on_order}
    early: list[Change] = []
    late = list(order[1])
    for change in order[0]:
        if _has_room(problem, counts, change, {}):
            early.append(change)
            counts = _changed(counts, [change])
        else:
            late.append(change)
    between = _between(problem, early)
    goal = solution.but(
        counts=_changed(solution.counts, late, back=True), placements=() if late else solution.placements
    )
    middle = roll_out(between, goal)
    waves = [*_waves(problem, early), *middle.waves]
    stuck = middle.stuck
    if stuck is None and late:
        # A plan may end where its goal breaks rules; this goal is one of ours, on the way.
        stuck = _breaks_more(problem, goal, solution)
    if stuck is None:
        last, stuck = _late_waves(problem, goal, late)
        waves += last
    return middle.but(
        waves=tuple(waves),
        duration_s=sum(wave.duration_s for wave in waves),
        changes=middle.changes + sum(change.count for change in (*early, *late)),
        proven_fewest=stuck is None and len(waves) <= 1,
        stuck=stuck,
    )


def _breaks_more(problem: Problem, goal: Solution, solution: Solution) -> Stuck | None:
    """Rules that hold in the solution and not before the last changes of size; None: there are none."""
    free = problem.but(allow_unserved=True)
    known = {(v.family, v.key) for v in check(free, solution)}
    new = tuple(
        v for v in check(free, goal.but(served=(), shares=(), borrowed=())) if (v.family, v.key) not in known
    )
    budgets = tuple(v for v in new if v.family in _BUDGETS)
    return Stuck(proven=False, violations=budgets) if budgets else None


def _late_waves(problem: Problem, goal: Solution, late: Sequence[Change]) -> tuple[list[Wave], Stuck | None]:
    """A wave for each change, those first that free accelerators; what finds no room is stuck."""
    counts, left = dict(goal.counts), sorted(late, key=lambda c: c.way.gpus - c.stays.gpus)
    waves: list[Wave] = []
    while left:
        fits = next((c for c in left if _has_room(problem, counts, c, goal.nodes_added)), None)
        if fits is None:
            return waves, Stuck(proven=False)
        counts = _changed(counts, [fits])
        waves += _waves(problem, [fits])
        left.remove(fits)
    return waves, None


def _has_room(
    problem: Problem, counts: dict[CandidateId, int], change: Change, nodes: dict[PoolId, int]
) -> bool:
    """Whether both sides of a change have room at once: the replica that grows in place, or the two of a redeploy."""
    beside = change.resize.moving_gpus > max(change.way.gpus, change.stays.gpus)
    if beside:
        during = Counter(counts)
        during[change.way.id] += change.count
        return not isinstance(pack(problem, during, nodes), Unplaced)
    after = _changed(counts, [change])
    return not isinstance(pack(problem, after, nodes), Unplaced)


def _changed(
    counts: Mapping[CandidateId, int], changes: Iterable[Change], *, back: bool = False
) -> dict[CandidateId, int]:
    """Counts after these changes; ``back``: before them."""
    found = Counter(counts)
    for change in changes:
        before, after = (change.way, change.stays) if back else (change.stays, change.way)
        found[before.id] -= change.count
        found[after.id] += change.count
    return {name: count for name, count in found.items() if count > 0}


def _between(problem: Problem, early: Sequence[Change]) -> Problem:
    """The problem as it is once these replicas have changed; where their ranks sit then is not known."""
    if not early:
        return problem
    gone: Counter[CandidateId] = Counter()
    come: Counter[CandidateId] = Counter()
    for change in early:
        gone[change.stays.id] += change.count
        come[change.way.id] += change.count
    return problem.but(
        candidates=tuple(
            c.but(current=c.current - gone[c.id] + come[c.id]) if gone[c.id] or come[c.id] else c
            for c in problem.candidates
        ),
        incumbents=tuple(seat for seat in problem.incumbents if not gone[seat.candidate]),
    )


def _waves(problem: Problem, changes: Sequence[Change]) -> list[Wave]:
    """One wave for changes that run together."""
    if not changes:
        return []
    steps = [step for change in changes for step in _steps(problem, change)]
    extra: Counter[PoolId] = Counter()
    for change in changes:
        ends = max(change.way.gpus, change.stays.gpus)
        extra[change.way.pool] += change.count * max(0, change.resize.moving_gpus - ends)
    return [
        Wave(
            steps=tuple(steps),
            duration_s=max(change.way.startup_s for change in changes),
            extra_gpus={pool: gpus for pool, gpus in sorted(extra.items()) if gpus},
        )
    ]


def _steps(problem: Problem, change: Change) -> Iterable[Step]:
    """Both sides of a change: what they are no more, and what they become."""
    for candidate, sign in ((change.stays, -1), (change.way, 1)):
        before = problem.candidate[candidate.id].on_order if sign < 0 else 0
        yield Step(
            kind=StepKind.RESIZE,
            pool=candidate.pool,
            candidate=candidate.id,
            service=candidate.service,
            variant=candidate.variant,
            count=change.count,
            before=before,
            after=before + sign * change.count,
            resize=change.resize if sign > 0 else None,
        )
