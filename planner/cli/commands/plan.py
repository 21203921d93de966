"""``plan``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.commands.solving import Solving, answered, ending, scenario_of, solve_options
from planner.cli.commands.waves import Waves, wave_limits
from planner.cli.edge import ExitCode
from planner.cli.gathering import Gathering, made
from planner.cli.outputs import FORCE_HELP
from planner.cli.terminal import note, out_console
from planner.errors import ConfigurationError, Finding

if TYPE_CHECKING:
    from models.report import Comparison, Report
    from planner.cli.outputs import Output

__all__ = ["PlanOptions", "plan"]


@dataclass(frozen=True, kw_only=True)
class PlanOptions(Waves, Solving):
    """Options of ``plan``."""

    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML).", show_default=False)
    ]
    against: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", show_default=False, help="A saved answer to show beside; may be repeated."
        ),
    ] = None
    within: Annotated[
        str,
        typer.Option(
            metavar="SHARE",
            help="How much more a plan with fewer changes may cost, which is shown beside; 0: none is looked for.",
        ),
    ] = "1%"
    every_service: Annotated[
        bool, typer.Option("--all", help="Show every service, wave and step, however many there are.")
    ] = False
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object (docs/json.md) and nothing else.")
    ] = False
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", show_default=False, help="Save the whole answer to a file."
        ),
    ] = None
    force: Annotated[bool, typer.Option("--force", help=FORCE_HELP)] = False


def plan(options: PlanOptions) -> ExitCode:
    """Plan a fleet: how many replicas of which variant on which GPUs, how good that is, and why."""
    from planner.cli.files import write_report

    output, within, saved = _asked(options)
    report = _with_way(answered(options.scenario, options), options, within)
    report = _with_saved(report, saved)
    if saved:
        report = _with_differences(report, len(saved))
    if output is not None and _worth_saving(report):
        write_report(output, report)
        if output.on_stdout:
            return ending(report)
        note(f"saved to {options.output}")
    if options.as_json:
        from planner.cli.json_output import as_json, report_object

        sys.stdout.write(as_json(report_object(report)))
    else:
        from planner.cli.screen.report import show_report

        console = out_console()
        show_report(console, report, every_service=options.every_service or not console.is_terminal)
    return ending(report)


def _asked(options: PlanOptions) -> tuple[Output | None, float, list[Comparison]]:
    """Where the answer goes, the width of what is looked for near by, and the saved answers to show beside.

    Raises:
        ConfigurationError: something of it is wrong; lists that and what is wrong with the scenario.
    """
    asked = Gathering()
    output = asked.attempt(lambda: _output(options))
    if output is not None:
        asked.attempt(output.check)
    within = asked.attempt(lambda: _share(options.within))
    saved = [asked.attempt(lambda path=path: _saved(path)) for path in options.against or ()]  # type: ignore[misc]
    if asked.refuses:
        asked.attempt(lambda: scenario_of(options.scenario, options))
    asked.check()
    return output, made(within), [made(each) for each in saved]


def _output(options: PlanOptions) -> Output | None:
    """Where the answer is saved.

    Raises:
        ConfigurationError: two documents are asked for on standard output.
    """
    from planner.cli.files import report_output

    if options.output is None:
        return None
    inputs = (options.scenario, *(options.against or ()))
    output = report_output(options.output, inputs=inputs, force=options.force)
    if output.on_stdout and options.as_json:
        raise ConfigurationError("give --json or -o to standard output, not both")
    return output


def _with_way(report: Report, options: PlanOptions, within: float) -> Report:
    """The report with the waves to its plan and what is near by."""
    from planner.rolling import with_rollout
    from planner.settings import load_settings

    solver = solve_options(options, load_settings())
    return with_rollout(report, limits=wave_limits(options), within=within, options=solver)


def _share(text: str) -> float:
    """The width of ``--within``.

    Raises:
        ConfigurationError: it is no share.
    """
    from pydantic import TypeAdapter, ValidationError

    from models.units import Share

    try:
        return TypeAdapter(Share).validate_python(text)
    except ValidationError as cause:
        finding = Finding("", None, "--within", repr(text), "a share from 0 to 1, such as 1% or 0.01")
        raise ConfigurationError.from_findings([finding]) from cause


def _saved(path: Path) -> Comparison:
    """The answer of a saved file, under the name of the file."""
    from planner.cli.files import read_report

    report = read_report(path)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._") or "saved"
    return report.shown.but(name=name)


def _with_saved(report: Report, saved: Sequence[Comparison]) -> Report:
    """The report with saved answers beside it, before the running fleet, each under a name of its own."""
    taken = {each.name for each in report.beside}
    named = []
    for each in saved:
        names = (each.name, *(f"{each.name}-{number}" for number in range(2, len(saved) + 3)))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        named.append(each.but(name=name))
    return report.but(beside=(*report.beside[:-1], *named, *report.beside[-1:]))


def _with_differences(report: Report, saved: int) -> Report:
    """The report with what saved answers, which stand before the running fleet, do differently."""
    from planner.planning import differences

    others = report.beside[-1 - saved : -1]
    return report.but(explanation=report.explanation.but(differences=differences(report, others)))


def _worth_saving(report: Report) -> bool:
    from models.solution import Status

    worth = report.answer.solution.status not in {Status.TIMED_OUT, Status.FAILED}
    if not worth:
        note("there is no answer to save; the file was left as it is")
    return worth
