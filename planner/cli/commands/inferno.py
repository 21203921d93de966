"""``import inferno``: a system description of Inferno into a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.commands.importing import put
from planner.cli.edge import Common, ExitCode
from planner.cli.gathering import Gathering, made
from planner.cli.outputs import FORCE_HELP, Output, begins_with

__all__ = ["InfernoOptions", "import_inferno"]

_MARK = "# Imported by fleetplan"


@dataclass(frozen=True, kw_only=True)
class InfernoOptions(Common):
    """Options of ``import inferno``."""

    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="JSON files with accelerators, count, models, servers, serviceClasses, optimizer; told by their keys.",
            show_default=False,
        ),
    ]
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="SCENARIO", help="Scenario to write (YAML).", show_default=False
        ),
    ]
    name: Annotated[str, typer.Option(help="Name of the scenario.")] = "inferno"
    force: Annotated[bool, typer.Option("--force", help=FORCE_HELP)] = False


def import_inferno(options: InfernoOptions) -> ExitCode:
    """Turn Inferno's system description into a scenario rated by the queueing model."""
    from planner.importers.inferno import import_inferno as read
    from planner.scenario import dump_scenario

    output = Output(
        path=options.output, ours=begins_with(_MARK), inputs=tuple(options.paths), force=options.force
    )
    asked = Gathering()
    asked.attempt(output.check)
    scenario = asked.attempt(lambda: read(options.paths, name=options.name))
    asked.check()
    put(output, dump_scenario(made(scenario)))
    return ExitCode.DONE
