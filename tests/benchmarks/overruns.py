"""How far a solve goes beyond its time limit, by family, size and limit: what a loop that plans every few seconds counts on.

Usage: python tests/benchmarks/overruns.py [--families F...] [--sizes N...] [--limits S...] [--warm]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from models.problem import Problem
from planner.optimization import SOLVERS, solve
from planner.optimization.protocol import SolveOptions
from planner.optimization.warm import WarmStart
from tests.benchmarks.registry import Family, Instance, drifted
from tests.benchmarks.solve_one import load

LIMITS: Final = (0.5, 1.0, 2.0, 5.0)
SIZES: Final = (20, 100, 1_000)
_GAP: Final = 1e-4
_SHARE, _LEAST_S = 0.2, 0.5


@dataclass(frozen=True)
class Overrun:
    """One solve.

    Attributes:
        instance: what was solved.
        limit_s: time that it had, s.
        took_s: time that it took, s.
        ended: its status.
    """

    instance: str
    limit_s: float
    took_s: float
    ended: str

    @property
    def beyond_s(self) -> float:
        """Time beyond the limit, s."""
        return max(0.0, self.took_s - self.limit_s)

    @property
    def is_long(self) -> bool:
        """Whether it is beyond the limit by more than a fifth of it, and by more than half a second."""
        return self.beyond_s > max(_SHARE * self.limit_s, _LEAST_S)


def overruns(instance: Instance, limits: Sequence[float], solver: str, *, again: bool) -> Iterator[Overrun]:
    """One instance under one limit after the other; ``again``: each from what an answer before a drift left."""
    problem, warm = instance.problem(), None
    if again:
        warm = solve(problem, solver=solver, options=SolveOptions(time_limit_s=10.0, gap=_GAP)).warm
        problem = drifted(problem)
    for limit_s in limits:
        yield _measured(instance, problem, warm, limit_s=limit_s, solver=solver)


def _measured(
    instance: Instance, problem: Problem, warm: WarmStart | None, *, limit_s: float, solver: str
) -> Overrun:
    options = SolveOptions(time_limit_s=limit_s, gap=_GAP, warm=warm)
    start_s = time.perf_counter()
    result = solve(problem, solver=solver, options=options)
    took_s = time.perf_counter() - start_s
    name = f"{instance.family}-{instance.size}"
    return Overrun(name, limit_s, took_s, str(result.solution.status))


def table(found: Sequence[Overrun], limits: Sequence[float]) -> str:
    """Markdown: wall time by instance and limit, with the status; in bold what is too long."""
    lines = ["| instance | " + " | ".join(f"{limit:g} s" for limit in limits) + " |", "|---|" + "--:|" * len(limits)]  # fmt: skip
    for name in dict.fromkeys(one.instance for one in found):
        cells = [_cell(one) for one in found if one.instance == name]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(one: Overrun) -> str:
    shown = f"{one.took_s:.2f}{'' if one.ended in {'OPTIMAL', 'FEASIBLE'} else f' {one.ended}'}"
    return f"**{shown}**" if one.is_long else shown


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    families = [family for family in Family if not Instance(family, 4).one_service]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--families", nargs="+", type=Family, default=families, choices=families)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--limits", nargs="+", type=float, default=LIMITS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--solver", choices=SOLVERS.names(), default="auto")
    parser.add_argument("--warm", action="store_true", help="from what an answer before a drift left")
    asked = parser.parse_args(argv)
    load(asked.solver)
    found: list[Overrun] = []
    for size in asked.sizes:
        for family in asked.families:
            instance = Instance(family, size, asked.seed)
            for one in overruns(instance, asked.limits, asked.solver, again=asked.warm):
                found.append(one)
                late = f"{one.beyond_s:.2f} s beyond" if one.beyond_s > 0 else "within"
                print(f"{one.instance:20} limit {one.limit_s:g} s: {one.took_s:.2f} s, {late}, {one.ended}",
                      file=sys.stderr, flush=True)  # fmt: skip
    print(table(found, asked.limits))


if __name__ == "__main__":
    main()
