"""Plans judged from outside: every state by the referee's verdict on the whole problem, and the fewest waves by brute force.

Nothing of `planner.rollout` is used here. A state is what is held and what serves, see `docs/rollout.md`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

from models.plan import Plan, StepKind
from models.problem import Problem
from models.solution import Solution
from planner.referee import Unplaced, best_service, check, pack
from tests.builders import a_solution

__all__ = ["Rules", "counts_after", "fewest_waves", "states_of"]

BUDGETS = {"nodes", "quota", "power", "spend"}
SERVING = {"safe_scale_in", "ratio"}

Counts = Mapping[str, int]


class Rules:
    """What no state may be worse in than both ends are."""

    def __init__(self, problem: Problem, solution: Solution) -> None:
        self.problem = problem
        self.kept = {c.id: max(c.current, min(c.on_order, solution.count(c.id))) for c in problem.candidates}
        self.crowded = {
            pool.id for pool in problem.pools if isinstance(self._pack(pool.id, self.kept, {}), Unplaced)
        }
        self.holding = {
            c.id: c.current if c.pool in self.crowded else self.kept[c.id] for c in problem.candidates
        }
        ordered = {c.id: c.on_order for c in problem.candidates}
        ready = {c.id: c.current for c in problem.candidates}
        end, added = solution.counts, solution.nodes_added
        self.levels: Counter[tuple[str, ...]] = Counter()
        self.floors: dict[str, float] = {}
        self.misplaced: list[tuple[str, Counts]] = []
        for held, room, serving, nodes in ((ordered, self.holding, ready, {}), (end, end, end, added)):
            rows = (*self._budgets(held, nodes), *self._room(room, nodes), *self._serving(serving))
            for key, excess in rows:
                self.levels[key] = max(self.levels[key], excess)  # type: ignore[assignment]
            self.misplaced += [(pool, room) for pool in self._unplaced(room, nodes)]
            for service, share in self._shares(serving).items():
                self.floors[service] = min(self.floors.get(service, 1.0), share)

    def broken(self, held: Counts, serving: Counts, standing: Counts, coming: Counts) -> list[str]:
        """What is worse while these replicas hold accelerators and those serve."""
        rows = (*self._budgets(held, coming), *self._room(held, standing), *self._serving(serving))
        found = [
            f"{key} by {excess}, not {self.levels[key]}"
            for key, excess in rows
            if excess > self.levels[key] + 1e-6
        ]
        found += [
            f"pods in {pool} do not fit"
            for pool in self._unplaced(held, standing)
            if not any(end == pool and self._within(pool, held, counts) for end, counts in self.misplaced)
        ]
        shares = self._shares(serving)
        return found + [
            f"{service} serves {shares[service]} of {floor}"
            for service, floor in self.floors.items()
            if shares[service] < floor - 1e-9
        ]

    def _excesses(self, counts: Counts, nodes: Counts) -> Iterator[tuple[tuple[str, ...], float, bool]]:
        solution = a_solution(self.problem, dict(counts), nodes_added=dict(nodes), served=())
        for one in check(self.problem, solution):
            over = one.found > one.allowed
            yield (one.family, *one.key, str(over)), abs(one.found - one.allowed), over

    def _budgets(self, held: Counts, nodes: Counts) -> Iterator[tuple[tuple[str, ...], float]]:
        for key, excess, over in self._excesses(held, nodes):
            if key[0] in BUDGETS or (key[0] == "bounds" and over):
                yield key, excess

    def _room(self, held: Counts, nodes: Counts) -> Iterator[tuple[tuple[str, ...], float]]:
        yield from ((key, excess) for key, excess, _ in self._excesses(held, nodes) if key[0] == "gpus")

    def _inside(self, pool: str, counts: Counts) -> dict[str, int]:
        return {c.id: counts.get(c.id, 0) for c in self.problem.candidates if c.pool == pool}

    def _pack(self, pool: str, counts: Counts, nodes: Counts) -> object:
        return pack(self.problem, self._inside(pool, counts), nodes)  # type: ignore[arg-type]

    def _unplaced(self, counts: Counts, nodes: Counts) -> list[str]:
        return [p.id for p in self.problem.pools if isinstance(self._pack(p.id, counts, nodes), Unplaced)]

    def _within(self, pool: str, counts: Counts, most: Counts) -> bool:
        return all(n <= most.get(c, 0) for c, n in self._inside(pool, counts).items())

    def _serving(self, serving: Counts) -> Iterator[tuple[tuple[str, ...], float]]:
        for key, excess, over in self._excesses(serving, {}):
            if key[0] in SERVING or (key[0] == "bounds" and not over):
                yield key, excess

    def _shares(self, serving: Counts) -> dict[str, float]:
        found: Counter[str] = Counter()
        answer = best_service(self.problem, serving)  # type: ignore[arg-type]
        for one in (*answer.served, *answer.borrowed):
            found[one.service] += one.share  # type: ignore[assignment]
        return {demand.service: found[demand.service] for demand in self.problem.demands}


def states_of(rules: Rules, plan: Plan) -> Iterator[tuple[Counts, Counts, Counts, Counts]]:
    """While each wave runs and after it: held, serving, nodes that stand, nodes that are paid for."""
    held: Counter[str] = Counter(rules.holding)
    ready: Counter[str] = Counter({c.id: c.current for c in rules.problem.candidates})
    nodes: Counter[str] = Counter()
    for wave in plan.waves:
        standing, serving = nodes.copy(), ready.copy()
        for step in wave.steps:
            if step.kind in (StepKind.ADD_NODES, StepKind.REMOVE_NODES):
                nodes[step.pool] += step.after - step.before
                continue
            assert step.candidate is not None
            if step.kind is StepKind.DRAIN:
                serving[step.candidate] -= step.count
            elif step.kind is StepKind.START or (step.kind is StepKind.AWAIT and step.pool in rules.crowded):
                held[step.candidate] += step.count
        yield dict(held), dict(serving), dict(standing), dict(nodes)
        for step in wave.steps:
            if step.kind in (StepKind.START, StepKind.AWAIT):
                ready[step.candidate or ""] += step.count
            elif step.kind is StepKind.REMOVE:
                held[step.candidate or ""] -= step.count
                ready[step.candidate or ""] -= step.count
        yield dict(held), dict(ready), dict(nodes), dict(nodes)


def counts_after(problem: Problem, plan: Plan) -> dict[str, int]:
    """Replicas once every step is done, as the steps' own counts say; each step begins where the last one ended."""
    counts: dict[str, int] = {c.id: c.on_order for c in problem.candidates}
    for step in (step for wave in plan.waves for step in wave.steps):
        if step.candidate is not None:
            assert step.before == counts[step.candidate]
            counts[step.candidate] = step.after
    return {candidate: n for candidate, n in counts.items() if n}


def fewest_waves(rules: Rules, solution: Solution, *, most_states: int = 200) -> int | None:
    """Waves of the shortest way over counts between both ends; -1: there is none. None: too many states to try."""
    problem = rules.problem
    names = [c.id for c in problem.candidates]
    pools = [pool.id for pool in problem.pools]
    ready = {c.id: c.current for c in problem.candidates}
    start = tuple(rules.holding[c] for c in names) + (0,) * len(pools)
    goal = tuple(solution.count(c) for c in names) + tuple(solution.nodes_added.get(p, 0) for p in pools)
    span = [range(min(a, b), max(a, b) + 1) for a, b in zip(start, goal, strict=True)]
    size = 1
    for numbers in span:
        size *= len(numbers)
    if size > most_states:
        return None

    @cache
    def fine(
        held: tuple[int, ...], serving: tuple[int, ...], standing: tuple[int, ...], coming: tuple[int, ...]
    ) -> bool:
        u = len(names)
        return not rules.broken(
            dict(zip(names, held, strict=False)),
            dict(zip(names, serving, strict=False)),
            dict(zip(pools, standing[u:], strict=True)),
            dict(zip(pools, coming[u:], strict=True)),
        )

    def between(a: tuple[int, ...], b: tuple[int, ...], serving: tuple[int, ...]) -> bool:
        held = tuple(map(max, a, b))
        left = tuple(s - max(0, x - y) for s, x, y in zip(serving, a, b, strict=False))
        return fine(held[: len(names)], left, a, b) and fine(b[: len(names)], b[: len(names)], b, b)

    def ahead(a: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        toward = [range(min(x, g), max(x, g) + 1) for x, g in zip(a, goal, strict=True)]
        yield from itertools.product(*toward)

    pending = any(c.pending for c in problem.candidates)
    if start == goal and not pending:
        return 0
    layer = {b for b in ahead(start) if between(start, b, tuple(ready[c] for c in names))}
    seen, waves = set(layer), 1
    while layer and goal not in seen:
        layer = {b for a in layer for b in ahead(a) if b not in seen and between(a, b, a[: len(names)])}
        seen |= layer
        waves += 1
    return waves if goal in seen else -1
