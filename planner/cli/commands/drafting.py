"""``import observation``: what was observed into a scenario to plan from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.commands.importing import put
from planner.cli.edge import Common, ExitCode
from planner.cli.gathering import Gathering, made
from planner.cli.outputs import FORCE_HELP, Output, begins_with
from planner.cli.terminal import note

__all__ = ["DraftOptions", "import_observation"]

_MARK = "# Imported by fleetplan"


@dataclass(frozen=True, kw_only=True)
class DraftOptions(Common):
    """Options of ``import observation``."""

    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="What 'observe -o' wrote; of several observations the last.",
            show_default=False,
        ),
    ]
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="SCENARIO", help="Scenario to write (YAML).", show_default=False
        ),
    ]
    accelerator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", show_default=False, help="Of what names none; default: that is left out."
        ),
    ] = None
    name: Annotated[str, typer.Option(help="Name of the scenario.")] = "observed"
    force: Annotated[bool, typer.Option("--force", help=FORCE_HELP)] = False


def import_observation(options: DraftOptions) -> ExitCode:
    """Turn an observation into a scenario, and say what is assumed of all that nobody observes."""
    from planner.catalog import load_catalog
    from planner.control.collectors.files import read_observations
    from planner.drafting import draft_scenario
    from planner.scenario import dump_scenario

    output = Output(path=options.output, ours=begins_with(_MARK), inputs=(options.path,), force=options.force)
    asked = Gathering()
    asked.attempt(output.check)
    observations = asked.attempt(lambda: read_observations(options.path))
    asked.check()
    draft = draft_scenario(
        made(observations)[-1], load_catalog(), name=options.name, accelerator=options.accelerator
    )
    put(output, dump_scenario(draft.scenario))
    for sentence in draft.assumptions:
        note(f"assumed: {sentence}")
    return ExitCode.DONE
