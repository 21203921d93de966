"""``pareto``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.commands.solving import Overrides, Threads, solve_options
from planner.cli.edge import Common, ExitCode
from planner.cli.outputs import FORCE_HELP, Output, begins_with
from planner.cli.terminal import note, out_console
from planner.errors import ConfigurationError, Finding, InternalError, nearest

if TYPE_CHECKING:
    from models.pareto import Axis, ParetoFront

__all__ = ["ParetoOptions", "pareto"]

_AXES = "cost, power, unserved, changes or headroom"


@dataclass(frozen=True, kw_only=True)
class ParetoOptions(Common):
    """Options of ``pareto``."""

    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML).", show_default=False)
    ]
    x: Annotated[str, typer.Option("--x", metavar="AXIS", help=f"To the right: {_AXES}.")] = "cost"
    y: Annotated[str, typer.Option("--y", metavar="AXIS", help="Upwards: another one of them.")] = "power"
    points: Annotated[int, typer.Option(metavar="N", help="Plans at most, the two ends among them.")] = 25
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON (docs/pareto.md).")] = False
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a line per plan, for plotting.")] = False
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            show_default=False,
            help="Write to a file too: CSV if it ends in .csv, else JSON.",
        ),
    ] = None
    force: Annotated[bool, typer.Option("--force", help=FORCE_HELP)] = False
    time_limit: Annotated[
        float | None,
        typer.Option(min=0.001, max=1e7, metavar="S", help="Wall time for all plans, s; default 60."),
    ] = None
    gap: Annotated[float, typer.Option(min=0, max=1, metavar="G", help="Gap that counts as proven.")] = 0.0
    threads: Threads = None
    overrides: Overrides = None


def pareto(options: ParetoOptions) -> ExitCode:
    """Weigh two objectives against one another: every plan that is not worse than another in both, each proven."""
    from planner.cli.front_files import front_csv, front_object
    from planner.cli.json_output import as_json

    if options.as_json and options.as_csv:
        raise ConfigurationError("give --json or --csv, not both")
    output = _output(options)
    if output is not None:
        output.check()
    front = _front(options, (_axis("--x", options.x), _axis("--y", options.y)))
    if output is not None:
        output.write(front_csv(front) if _in_csv(output) else as_json(front_object(front)))
        if output.on_stdout:
            return _ending(front)
        note(f"saved to {options.output}")
    if options.as_json:
        sys.stdout.write(as_json(front_object(front)))
    elif options.as_csv:
        sys.stdout.write(front_csv(front))
    else:
        from planner.cli.screen.front import show_front

        show_front(out_console(), front)
    return _ending(front)


def _output(options: ParetoOptions) -> Output | None:
    """Where the front goes.

    Raises:
        ConfigurationError: two documents are asked for on standard output.
    """
    from planner.cli.files import names_our_schema
    from planner.cli.front_files import CSV_HEAD

    if options.output is None:
        return None
    ours = begins_with(CSV_HEAD) if options.output.suffix == ".csv" else names_our_schema
    output = Output(path=options.output, ours=ours, inputs=(options.scenario,), force=options.force)
    if output.on_stdout and (options.as_json or options.as_csv):
        raise ConfigurationError("give --json or --csv, or -o to standard output, not both")
    return output


def _in_csv(output: Output) -> bool:
    return output.path.suffix == ".csv"


def _front(options: ParetoOptions, axes: tuple[Axis, Axis]) -> ParetoFront:
    from planner.door import load_scenario
    from planner.door import pareto as front

    scenario = load_scenario(options.scenario, overrides=options.overrides or ())
    return front(scenario, *axes, points=options.points, options=solve_options(options))


def _axis(option: str, word: str) -> Axis:
    from models.pareto import Axis

    known = [str(axis) for axis in Axis]
    if word not in known:
        finding = Finding("", None, option, repr(word), ", ".join(known), nearest(word, known))
        raise ConfigurationError.from_findings([finding])
    return Axis(word)


def _ending(front: ParetoFront) -> ExitCode:
    from models.solution import Status

    match front.status:
        case Status.INFEASIBLE:
            return ExitCode.NOT_KEPT
        case Status.TIMED_OUT:
            return ExitCode.TRY_AGAIN
        case Status.FAILED:
            raise InternalError("the solver failed; it gave no plan")
        case Status.OPTIMAL | Status.FEASIBLE:
            return ExitCode.DONE
