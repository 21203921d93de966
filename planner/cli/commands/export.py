"""``export``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.commands.solving import Solving, scenario_of, solve_options
from planner.cli.edge import ExitCode
from planner.cli.outputs import FORCE_HELP, Output, begins_with
from planner.cli.terminal import note
from planner.errors import ConfigurationError, Finding, nearest

if TYPE_CHECKING:
    from models.scenario import ObjectiveLevel

__all__ = ["ExportOptions", "Format", "export"]


class Format(StrEnum):
    """Formats that every solver reads."""

    LP = "lp"
    MPS = "mps"


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Solving):
    """Options of ``export``."""

    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML).", show_default=False)
    ]
    format: Annotated[
        Format | None,
        typer.Option("--format", show_default=False, help="Default: as the file is called, else lp."),
    ] = None
    level: Annotated[
        str,
        typer.Option(metavar="LEVEL", help="What is made small; the levels before it are solved and held."),
    ] = "cost"
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", show_default=False, help="File; default: stdout."),
    ] = None
    force: Annotated[bool, typer.Option("--force", help=FORCE_HELP)] = False


def export(options: ExportOptions) -> ExitCode:
    """Write the integer program of a scenario for another solver; 'check' judges its solution file."""
    from planner.optimization.exporting import level_program
    from planner.optimization.lp_text import lp_text
    from planner.optimization.mps_text import mps_text
    from planner.planning import sized

    output = _output(options)
    output.check()
    level = _level(options.level)
    problem = sized(scenario_of(options.scenario, options), allow_unserved=options.allow_unserved)
    exported = level_program(problem, level, options=solve_options(options))
    if not exported.held:
        note("the levels before it have no plan; they are not held, and this program has none either")
    write = mps_text if _format(options) is Format.MPS else lp_text
    text = write(exported.program, exported.goal)
    output.write(text)
    if not output.on_stdout:
        columns, rows = len(exported.program.columns), len(exported.program.rows)
        note(f"saved to {options.output}: {columns} columns, {rows} rows")
    return ExitCode.DONE


def _output(options: ExportOptions) -> Output:
    # The first lines of both formats as we write them.
    ours = begins_with("Minimize\n goal:", "NAME fleet FREE\n")
    inputs = (options.scenario,)
    return Output(path=options.output or Path("-"), ours=ours, inputs=inputs, force=options.force)


def _format(options: ExportOptions) -> Format:
    if options.format is not None:
        return options.format
    return Format.MPS if options.output is not None and options.output.suffix == ".mps" else Format.LP


def _level(word: str) -> ObjectiveLevel:
    from models.scenario import ObjectiveLevel

    known = [str(level) for level in ObjectiveLevel]
    if word not in known:
        finding = Finding("", None, "--level", repr(word), ", ".join(known), nearest(word, known))
        raise ConfigurationError.from_findings([finding])
    return ObjectiveLevel(word)
