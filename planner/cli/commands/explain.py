"""``explain``."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from planner.cli.commands.check import answer_in, solution_for
from planner.cli.commands.solving import Solving, answered, ending, scenario_of, solve_options
from planner.cli.edge import ExitCode
from planner.cli.gathering import Gathering, made
from planner.cli.terminal import out_console
from planner.errors import ConfigurationError, Finding

if TYPE_CHECKING:
    from models.report import Report
    from planner.cli.commands.check import Answer

__all__ = ["ExplainOptions", "explain"]


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(Solving):
    """Options of ``explain``."""

    subject: Annotated[
        Path,
        typer.Argument(
            metavar="SCENARIO|SOLUTION",
            help="Scenario, or an answer saved with 'plan -o'.",
            show_default=False,
        ),
    ]
    solution: Annotated[
        Path | None,
        typer.Argument(
            metavar="SOLUTION",
            help="After a scenario: what to explain instead of planning it, as 'check' reads it.",
            show_default=False,
        ),
    ] = None
    worth: Annotated[
        bool,
        typer.Option(
            "--worth", help="Find what one more GPU, 10 kW, 100 $/h and so on are worth, by solving."
        ),
    ] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON (docs/json.md).")] = (
        False
    )


def explain(options: ExplainOptions) -> ExitCode:
    """Say why a plan is as it is: limits that bind, variants that are out, and what to relax if there is none."""
    from planner.cli.files import is_saved_report
    from planner.planning import closer

    saved = is_saved_report(options.subject)
    report = _report(options, saved=saved)
    scenario = None if saved else scenario_of(options.subject, options)
    report = closer(
        report, scenario=scenario, worth=options.worth, time_limit_s=solve_options(options).time_limit_s
    )
    if options.as_json:
        from planner.cli.json_output import as_json, explanation_object

        sys.stdout.write(as_json(explanation_object(report.explanation)))
    else:
        from planner.cli.screen.explanation import show_explanation

        has_plan = report.shown.assessment is not None
        show_explanation(out_console(), report.explanation, report.problem, has_plan=has_plan)
    return ending(report)


def _report(options: ExplainOptions, *, saved: bool) -> Report:
    """What is explained: a saved answer, a solution of a scenario, or the plan of one."""
    from planner.cli.files import read_report

    if options.solution is not None:
        if saved:
            _refuse(options.subject, "a saved answer, which stands alone", "a scenario before a solution")
        return _of_solution(options, options.solution)
    if saved:
        return read_report(options.subject)
    if _is_bare_solution(options.subject):
        _refuse(options.subject, "a bare solution", "its scenario before it: explain SCENARIO SOLUTION")
    return answered(options.subject, options)


def _of_solution(options: ExplainOptions, path: Path) -> Report:
    from models.report import Report
    from planner.optimization import explain as reasons
    from planner.planning import judge, rerating, sized

    asked = Gathering()
    read = asked.attempt(lambda: scenario_of(options.subject, options))
    found: Answer | None = asked.attempt(lambda: answer_in(path))
    asked.check()
    scenario = made(read)
    problem = sized(scenario, allow_unserved=options.allow_unserved)
    answer = judge(problem, "saved", solution_for(problem, found, path))
    time_limit_s = solve_options(options).time_limit_s
    explanation = reasons(
        problem,
        answer.solution,
        answer.assessment,
        time_limit_s=time_limit_s,
        rerate=rerating(scenario, problem),
    )
    return Report(problem=problem, answer=answer, explanation=explanation)


def _is_bare_solution(path: Path) -> bool:
    """Whether a file is a JSON object with the status and the proof that every solution has."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"status", "proof"} <= document.keys()


def _refuse(path: Path, found: str, allowed: str) -> NoReturn:
    raise ConfigurationError.from_findings([Finding(str(path), None, "", found, allowed)])
