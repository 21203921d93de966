"""Seeded instances, every solver in a process of its own, side by side in one run, so that ratios mean something anywhere."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Final

from planner.optimization import SOLVERS
from tests.benchmarks.records import Record, Task, load, parsed, save, time_to
from tests.benchmarks.registry import ONE_SERVICE_SIZES, Family, Instance
from tests.benchmarks.solve_one import MELANGE, REPLANS
from tests.benchmarks.tables import detail_table, draw, replan_table, summary_table

__all__ = ["cold_starts", "main", "run_all", "tasks", "written"]

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "benchmarks.md"
PLOT: Final = ROOT / "docs" / "images" / "benchmarks.svg"
RESULTS: Final = ROOT / ".benchmarks" / "results.jsonl"
SCENARIO: Final = "data/scenarios/02-contention.yaml"
SOLVED_BY: Final = ("auto", "column-generation", "pulp", "pulp-cbc", "cp-sat", "scip", MELANGE)
OPENING, CLOSING = "<!-- written by make bench: begin -->", "<!-- written by make bench: end -->"
_COMMAND: Final = "import sys; from planner.cli import main; sys.exit(main())"
_OURS: Final = "auto"
_PATIENCE_S: Final = 240.0
"""Building, warming up and judging the largest instance may take so long beside the solve."""


def tasks(arguments: argparse.Namespace) -> Iterator[Task]:
    """What is to be measured, instance by instance, so that solvers of one instance run one after the other."""
    for family in arguments.families:
        replan = family in REPLANS
        for size in arguments.sizes:
            alone = not replan and Instance(Family(family), size).one_service
            if alone is not (size in ONE_SERVICE_SIZES):
                continue
            for solver in arguments.solvers:
                if (solver == MELANGE and not alone) or (
                    replan and solver not in (_OURS, "column-generation")
                ):
                    continue
                yield Task(
                    family, size, solver, arguments.seconds, arguments.gap, arguments.seed, arguments.threads
                )


def run_all(
    wanted: Sequence[Task], results: Path, *, solve: Callable[[Task], Record], say: Callable[[str], None]
) -> list[Record]:
    """Measure what is not in the results yet and add it there, task by task."""
    done = {record.task: record for record in load(results)}
    for number, task in enumerate(wanted, 1):
        known = task in done
        if not known:
            done[task] = solve(task)
            save(results, done[task])
        say(f"{number}/{len(wanted)} {_line(done[task])}{' (as before)' if known else ''}")
    return [done[task] for task in wanted]


def _place(record: Record) -> tuple[int, int, int, str]:
    """Where a record stands on the page: by family and size, ours first."""
    families = [*(str(family) for family in Family), *REPLANS]
    task = record.task
    return families.index(task.family), task.size, int(task.solver != _OURS), task.solver


def in_own_process(task: Task) -> Record:
    """Solve in a new process; one that fails or does not end becomes a record that says so."""
    command = [sys.executable, str(Path(__file__).with_name("solve_one.py")), json.dumps(asdict(task))]
    limit = 3 * task.seconds + _PATIENCE_S
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return Record(task, "KILLED", total_s=limit)
    if done.returncode != 0:
        return Record(task, "CRASHED", notes=tuple(done.stderr.splitlines()[-1:]))
    return parsed(done.stdout)


def _line(record: Record) -> str:
    reached = time_to(record, 0.001)
    to_gap = "not to 0.1 %" if reached is None else f"0.1 % in {reached:.2f} s"
    return f"{record.task.instance:24} {record.task.solver:18} {record.status:10} {record.total_s:7.2f} s, {to_gap}"


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


def starts_table(starts: dict[str, float]) -> str:
    """A Markdown table of cold starts."""
    lines = ["| new process | wall s |", "|---|--:|"]
    return "\n".join([*lines, *(f"| `{name}` | {seconds:.2f} |" for name, seconds in starts.items())])


def written(page: str, section: str) -> str:
    """The page with what stands between the two marks replaced; the marks are added where they are missing."""
    if OPENING not in page:
        return f"{page.rstrip()}\n\n{OPENING}\n{section}\n{CLOSING}\n".lstrip()
    before, _, rest = page.partition(OPENING)
    return f"{before}{OPENING}\n{section}\n{CLOSING}{rest.partition(CLOSING)[2]}"


def section_of(records: Sequence[Record], starts: dict[str, float]) -> str:
    """What ``make bench`` writes into the page."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("ortools", "pulp", "highspy"))
    limits = ", ".join(sorted({f"{record.task.seconds:g} s" for record in records}))
    parts = [
        f"Measured on {os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python"
        f" {platform.python_version()}, {versions}. Time limit per solve: {limits}.",
        "![Time to a proven gap of 0.1 % by instance and solver](images/benchmarks.svg)",
        "### Ours beside the best solver on the whole program",
        summary_table(records, _OURS),
        "### Every solve",
        detail_table(records),
    ]
    if any(record.again for record in records):
        parts += ["### Planning again after a drift of 2 %", replan_table(records)]
    if starts:
        parts += ["### Cold starts", starts_table(starts)]
    return "\n\n".join(parts)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    families = [*(str(family) for family in Family), *REPLANS]
    parser = argparse.ArgumentParser(description="Measure families of instances by size and solver.")
    parser.add_argument("--families", nargs="+", default=families, choices=families)
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[20, 100, 1_000, *ONE_SERVICE_SIZES],
        help="numbers of services; of GPU types for one-service families",
    )
    parser.add_argument("--solvers", nargs="+", default=list(SOLVED_BY), choices=[*SOLVERS.names(), MELANGE])
    parser.add_argument("--seconds", type=float, default=20.0, help="time limit per solve")
    parser.add_argument("--gap", type=float, default=1e-4, help="gap at which solvers stop")
    parser.add_argument("--seed", type=int, default=0, help="other instances of the same kinds")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="JSON lines; a run goes on where they end"
    )
    parser.add_argument("--fresh", action="store_true", help="forget the results of earlier runs")
    parser.add_argument(
        "--page", action="store_true", help="measure nothing: write the page from all results that are kept"
    )
    parser.add_argument("--no-starts", action="store_true", help="leave out cold starts")
    parser.add_argument("--no-write", action="store_true", help="leave the page and the plot as they are")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, and write the section of the page and the plot."""
    arguments = _arguments(argv)
    if arguments.fresh:
        arguments.results.unlink(missing_ok=True)
    if arguments.page:
        records = sorted(load(arguments.results), key=_place)
    else:
        wanted = list(tasks(arguments))
        records = run_all(
            wanted, arguments.results, solve=in_own_process, say=lambda line: print(line, flush=True)
        )
    section = section_of(records, {} if arguments.no_starts else cold_starts())
    print(f"\n{section}")
    if not arguments.no_write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), section), encoding="utf-8")
        draw(records, PLOT)
