"""Time by phase of seeded instances, side by side in one run, so that ratios mean something on any machine."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from models.problem import Problem
from models.report import Assessment
from models.solution import Level, Solution
from planner.optimization import SOLVERS, solve
from planner.optimization.formulation import formulate
from planner.optimization.protocol import SolveOptions
from planner.referee import assess
from tests.benchmarks.registry import INSTANCES, ONE_SERVICE_SIZES, SIZES, Family, Instance

__all__ = [
    "SOLVED_BY",
    "Measured",
    "cold_starts",
    "instances_table",
    "main",
    "measured",
    "starts_table",
    "written",
]

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "benchmarks.md"
SCENARIO: Final = "data/scenarios/02-contention.yaml"
SOLVED_BY: Final = ("auto", "pulp", "pulp-cbc", "cp-sat", "column-generation")
OPENING, CLOSING = "<!-- written by make bench: begin -->", "<!-- written by make bench: end -->"
_COMMAND: Final = "import sys; from planner.cli import main; sys.exit(main())"
WARM: Final = Instance(Family.AMPLE, 1)


@dataclass(frozen=True, slots=True)
class Measured:
    """One solve of one instance; times in s."""

    instance: str
    candidates: int
    solver: str
    formulate_s: float
    solve_s: float
    check_s: float
    solution: Solution
    assessment: Assessment | None = None

    @property
    def cost(self) -> Level | None:
        """The cost level; None without a plan."""
        return next((level for level in self.solution.proof.levels if level.name == "cost"), None)


def measured(
    instances: Iterable[Instance], solvers: Sequence[str], options: SolveOptions
) -> Iterator[Measured]:
    """Every instance with every solver; one small solve before, so that nobody pays for loading."""
    for solver in solvers:
        solve(WARM.problem(), solver=solver, options=options)
    for instance in instances:
        problem = instance.problem()
        formulate_s = _formulate_s(problem)
        for solver in solvers:
            yield _once(instance, problem, solver, options, formulate_s)


def _formulate_s(problem: Problem) -> float:
    start = time.perf_counter()
    formulate(problem)
    return time.perf_counter() - start


def _once(
    instance: Instance, problem: Problem, solver: str, options: SolveOptions, formulate_s: float
) -> Measured:
    start = time.perf_counter()
    solution = solve(problem, solver=solver, options=options).solution
    solved = time.perf_counter()
    assessment = assess(problem, solution) if solution.has_plan else None
    return Measured(
        instance=instance.name,
        candidates=len(problem.candidates),
        solver=solver,
        formulate_s=formulate_s,
        solve_s=solved - start,
        check_s=time.perf_counter() - solved,
        solution=solution,
        assessment=assessment,
    )


def cold_starts(repeats: int = 3) -> dict[str, float]:
    """Wall time of new processes, s: the best of a few."""
    commands = {
        "python -c pass": ["-c", "pass"],
        "import planner": ["-c", "import planner"],
        "fleetplan --version": ["-c", _COMMAND, "--version"],
        f"fleetplan plan {SCENARIO}": ["-c", _COMMAND, "plan", SCENARIO],
    }
    return {
        name: min(_process_s(arguments) for _ in range(repeats))
        for name, arguments in commands.items()
        if SCENARIO not in arguments or (ROOT / SCENARIO).exists()
    }


def _process_s(arguments: Sequence[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, check=False)
    return time.perf_counter() - start


def instances_table(rows: Sequence[Measured]) -> str:
    """A Markdown table; the ratio is against the fastest solver of the same instance in the same run."""
    lines = [
        "| instance | candidates | solver | formulate s | solve s | × fastest | check s | status | unserved req/s | cost | gap of cost |",
        "|---|--:|---|--:|--:|--:|--:|---|--:|--:|--:|",
    ]
    for row in rows:
        fastest = min(other.solve_s for other in rows if other.instance == row.instance)
        cost, figures = row.cost, row.assessment
        lines.append(
            f"| {row.instance} | {row.candidates} | {row.solver} | {row.formulate_s:.3f} | {row.solve_s:.2f}"
            f" | {row.solve_s / fastest:.1f} | {row.check_s:.3f} | {row.solution.status}"
            f" | {_shown(figures and figures.unserved_rps)} | {_shown(cost and cost.value)}"
            f" | {_shown(cost and cost.gap, '.2%')} |"
        )
    return "\n".join(lines)


def starts_table(starts: dict[str, float]) -> str:
    """A Markdown table of cold starts."""
    lines = ["| new process | wall s |", "|---|--:|"]
    return "\n".join([*lines, *(f"| `{name}` | {seconds:.2f} |" for name, seconds in starts.items())])


def _shown(value: float | None, pattern: str = ".2f") -> str:
    return "–" if value is None else format(value, pattern)


def written(page: str, section: str) -> str:
    """The page with what stands between the two marks replaced; the marks are added where they are missing."""
    if OPENING not in page:
        return f"{page.rstrip()}\n\n{OPENING}\n{section}\n{CLOSING}\n".lstrip()
    before, _, rest = page.partition(OPENING)
    return f"{before}{OPENING}\n{section}\n{CLOSING}{rest.partition(CLOSING)[2]}"


def _section(rows: Sequence[Measured], starts: dict[str, float], arguments: argparse.Namespace) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("ortools", "pulp", "highspy"))
    return "\n\n".join([
        f"Measured on {os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python"
        f" {platform.python_version()}, {versions}. Time limit per solve {arguments.seconds:g} s, gap 0.01 %.",
        "Run it again with `make bench`, or a part of it with `python tests/benchmarks/run.py --sizes 10 --seconds 5"
        " --no-write`.",
        instances_table(rows),
        starts_table(starts),
    ])  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, and write the section of the page."""
    parser = argparse.ArgumentParser(description="Measure sizes by phases.")
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[20, 100],
        choices=(*SIZES, *ONE_SERVICE_SIZES),
        help="numbers of services",
    )
    parser.add_argument(
        "--families", nargs="+", default=list(Family), choices=list(Family), help="how scarce"
    )
    parser.add_argument("--solvers", nargs="+", default=list(SOLVED_BY), choices=SOLVERS.names())
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit per solve")
    parser.add_argument("--no-write", action="store_true", help=f"leave {PAGE.relative_to(ROOT)} as it is")
    arguments = parser.parse_args(argv)
    chosen = [i for i in INSTANCES if i.size in arguments.sizes and i.family in arguments.families]
    rows = []
    for row in measured(chosen, arguments.solvers, SolveOptions(time_limit_s=arguments.seconds)):
        rows.append(row)
        print(f"{row.instance:12} {row.solver:18} {row.solve_s:8.2f} s  {row.solution.status}", flush=True)
    section = _section(rows, cold_starts(), arguments)
    print(f"\n{section}")
    if not arguments.no_write:
        page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else _TITLE
        PAGE.write_text(written(page, section), encoding="utf-8")


_TITLE: Final = """# Benchmarks

Seeded instances (`tests/benchmarks/registry.py`) of three families. What a service needs is the mean over the pools of
the fewest GPUs there; *ample* has twice that in all pools together, *tight* 0.7 of it (the fast pools must carry most),
and *scarce* 0.4, so that demand is an objective. All have whole nodes, a power cap and a quota. Each service has about
twelve candidates. Times are of one run on one machine: compare them with one another only.
"""
