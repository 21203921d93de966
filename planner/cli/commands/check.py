"""``check``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.commands.solving import Overrides
from planner.cli.edge import Common, ExitCode
from planner.cli.gathering import Gathering, made
from planner.cli.terminal import note, out_console
from planner.errors import ConfigurationError, Finding, InternalError, nearest

if TYPE_CHECKING:
    from models.problem import Problem
    from models.report import Report
    from models.solution import Solution
    from planner.importers.solver_solutions import Values

    Answer = Values | Solution | Report

__all__ = ["CheckOptions", "answer_in", "check", "solution_for", "solution_of"]


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Common):
    """Options of ``check``."""

    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML).", show_default=False)
    ]
    solution: Annotated[
        Path,
        typer.Argument(
            metavar="SOLUTION",
            help="Answer saved with 'plan -o', a bare solution, or a solver's solution of an exported program.",
            show_default=False,
        ),
    ]
    overrides: Overrides = None
    allow_unserved: Annotated[
        bool, typer.Option("--allow-unserved", help="Demand that stays unserved breaks no rule.")
    ] = False


def check(options: CheckOptions) -> ExitCode:
    """Judge a solution by the rules of a scenario; exit code 3 if it breaks any."""
    from planner.door import load_scenario
    from planner.planning import sized
    from planner.referee import check as violations_of

    asked = Gathering()
    scenario = asked.attempt(lambda: load_scenario(options.scenario, overrides=options.overrides or ()))
    found: Answer | None = asked.attempt(lambda: answer_in(options.solution))
    asked.check()
    problem = sized(made(scenario), allow_unserved=options.allow_unserved)
    solution = solution_for(problem, found, options.solution)
    violations = violations_of(problem, solution)
    console = out_console()
    if not violations:
        console.print("Every rule holds.", style="green")
        return ExitCode.DONE
    console.print(
        f"{len(violations)} {'rule is' if len(violations) == 1 else 'rules are'} broken:", style="bold red"
    )
    from planner.cli.screen.layout import bullets

    bullets(console, [violation.text for violation in violations])
    return ExitCode.NOT_KEPT


def answer_in(path: Path) -> Answer:
    """What a file holds: a saved answer, a bare solution, or what a solver wrote.

    Raises:
        ConfigurationError: it holds none of them.
    """
    from planner.cli.files import read_solution_or_report
    from planner.cli.solver_files import solver_values

    values = solver_values(path)
    if values is None:
        return read_solution_or_report(path)
    if not values.by_name:
        raise ConfigurationError.from_findings(values.findings)
    return values


def solution_for(problem: Problem, found: Answer | None, path: Path) -> Solution:
    """The solution of a problem that was found in a file.

    Raises:
        ConfigurationError: it speaks of what the problem does not have, or a value of it cannot be; all at once.
        InternalError: nothing was found, and nobody said why.
    """
    from planner.importers.solver_solutions import Values

    if found is None:
        raise InternalError("a solution was refused without a finding")
    if isinstance(found, Values):
        from planner.optimization.exporting import solution_from

        asked = Gathering(found.findings)
        read = asked.attempt(lambda: solution_from(problem, found.by_name, file=str(path)))
        asked.check()
        solution = made(read)
    else:
        solution = solution_of(found, path)
    _refuse_strangers(problem, solution, path)
    if solution.derived_from not in {"", problem.fingerprint}:
        note("the solution was made for another problem than this scenario is now; it is judged by this one")
    return solution


def solution_of(found: Solution | Report, path: Path) -> Solution:
    """The plan of a file: of a report the one that it shows.

    Raises:
        ConfigurationError: it has none.
    """
    from models.solution import Solution

    solution = found if isinstance(found, Solution) else found.shown.solution
    if not solution.has_plan:
        finding = Finding(str(path), None, "", f"status {solution.status}", "a solution that has a plan")
        raise ConfigurationError.from_findings([finding])
    return solution


def _refuse_strangers(problem: Problem, solution: Solution, path: Path) -> None:
    """A solution that speaks of what the scenario does not have cannot be judged."""
    places = (
        ("counts", solution.counts, problem.candidate),
        ("nodes_added", solution.nodes_added, problem.pool),
    )
    findings = [
        Finding(str(path), None, f"{field}.{name}", f"{name!r}, which the scenario does not have",
                suggestion=nearest(name, known))
        for field, counts, known in places
        for name, count in counts.items()
        if count and name not in known
    ]  # fmt: skip
    if findings:
        raise ConfigurationError.from_findings(findings)
