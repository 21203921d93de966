"""``commands``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planner.cli.commands.meant import first_waves, moving_less, refuse_without_plan, wanted_waves
from planner.cli.commands.solving import ending
from planner.cli.commands.waves import Waves
from planner.cli.edge import ExitCode
from planner.cli.outputs import FORCE_HELP, Output
from planner.cli.terminal import note

if TYPE_CHECKING:
    from planner.manifests import Route

__all__ = ["CommandsOptions", "Format", "commands"]


class Format(StrEnum):
    """How counts are written down."""

    KUBECTL = "kubectl"
    YAML = "yaml"
    KUSTOMIZE = "kustomize"


FORMAT_HELP: Final = (
    "kubectl: a script of waves. yaml: the objects at the end. kustomize: the same as a folder of patches."
)


@dataclass(frozen=True, kw_only=True)
class CommandsOptions(Waves):
    """Options of ``commands``."""

    answer: Annotated[
        Path, typer.Argument(metavar="PLAN", help="Answer saved with 'plan -o'.", show_default=False)
    ]
    format: Annotated[Format, typer.Option(help=FORMAT_HELP)] = Format.KUBECTL
    fewest_moves: Annotated[
        bool,
        typer.Option(
            "--fewest-moves",
            help="The plan of almost the same cost that changes less, where 'plan' found one.",
        ),
    ] = False
    undo: Annotated[
        bool, typer.Option("--undo", help="The way back instead: from the plan to what runs now.")
    ] = False
    waves: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", show_default=False, help="The first N waves only; default: all."),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", show_default=False, help="The objects of one cluster only; default: all."
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|DIR",
            show_default=False,
            help="Where to write: a file, for kustomize a folder; default: stdout.",
        ),
    ] = None
    force: Annotated[bool, typer.Option("--force", help=FORCE_HELP)] = False


def commands(options: CommandsOptions) -> ExitCode:
    """Write what carries out a plan on Kubernetes; nothing is run, and no cluster is asked."""
    from planner.cli.files import read_report
    from planner.manifests import gauges_of, left_to_do, route_of
    from planner.rolling import plan_way_back
    from planner.wording import stuck_sentence

    report = read_report(options.answer)
    if options.fewest_moves:
        report = moving_less(report, options.answer)
    refuse_without_plan(report, options.answer)
    plan = first_waves(wanted_waves(report, options), options.waves)
    if options.undo:
        route = route_of(report.problem, plan_way_back(report, plan), undone=plan)
    else:
        route = route_of(report.problem, plan)
    if options.cluster is not None:
        route = route.in_cluster(options.cluster)
    _write(route, options)
    for name in route.left_out:
        note(f"left out: {name} has no object in the scenario")
    for series in gauges_of(route):
        note(f"the control plane has to emit {series}")
    left = list(left_to_do(route))
    for line in left:
        note(line)
    if plan.stuck is not None:
        note(stuck_sentence(plan.stuck))
    return ExitCode.NOT_KEPT if plan.stuck is not None or left else ending(report)


def _write(route: Route, options: CommandsOptions) -> None:
    from planner.cli.folders import write_folder
    from planner.manifests import MADE_BY, one_stream, render_kustomize, render_manifests, render_script

    output = _output(options)
    if options.format is not Format.KUSTOMIZE:
        output.write(render_script(route) if options.format is Format.KUBECTL else render_manifests(route))
    elif output.on_stdout:
        output.write(one_stream(render_kustomize(route)))
    else:
        write_folder(output.path, render_kustomize(route), mark=MADE_BY)
    if not output.on_stdout:
        note(f"written to {output.path}")


def _output(options: CommandsOptions) -> Output:
    from planner.manifests import is_ours

    return Output(
        path=options.output or Path("-"),
        ours=is_ours,
        inputs=(options.answer,),
        force=options.force,
        executable=options.format is Format.KUBECTL,
    )
