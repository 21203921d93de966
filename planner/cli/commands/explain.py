"""``explain``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.commands.solving import Solving, answered, ending, scenario_of, solve_options
from planner.cli.edge import ExitCode
from planner.cli.terminal import out_console

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
    from planner.cli.files import is_saved_report, read_report
    from planner.planning import closer

    saved = is_saved_report(options.subject)
    report = read_report(options.subject) if saved else answered(options.subject, options)
    scenario = None if saved else scenario_of(options.subject, options)
    report = closer(
        report, scenario=scenario, worth=options.worth, time_limit_s=solve_options(options).time_limit_s
    )
    if options.as_json:
        from planner.cli.json_output import as_json, explanation_object

        sys.stdout.write(as_json(explanation_object(report.explanation)))
    else:
        from planner.cli.screen.explanation import show_explanation

        show_explanation(out_console(), report.explanation, report.problem)
    return ending(report)
