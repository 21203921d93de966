"""The commands and their names; what they do is in ``planner.cli.commands``."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from planner import __version__
from planner.cli.commands import importing as formats
from planner.cli.commands import knowledge
from planner.cli.commands.analyze import AnalyzeOptions, analyze
from planner.cli.commands.apply import ApplyOptions, apply
from planner.cli.commands.calibrate import CalibrateOptions, calibrate
from planner.cli.commands.check import CheckOptions, check
from planner.cli.commands.commands import CommandsOptions, commands
from planner.cli.commands.controller import (
    ConfigOptions,
    RunOptions,
    StatusOptions,
    controller_config,
    controller_run,
    controller_status,
)
from planner.cli.commands.controller_check import ControllerCheckOptions, controller_check
from planner.cli.commands.controller_release import ControllerReleaseOptions, controller_release
from planner.cli.commands.drafting import DraftOptions, import_observation
from planner.cli.commands.elastic import (
    ElasticCheckOptions,
    ElasticOptions,
    ElasticScheduleOptions,
    RecordOptions,
    ResizeOptions,
    elastic_check,
    elastic_resize,
    elastic_resume,
    elastic_schedule,
    elastic_sizes,
    elastic_status,
)
from planner.cli.commands.explain import ExplainOptions, explain
from planner.cli.commands.export import ExportOptions, export
from planner.cli.commands.inferno import InfernoOptions, import_inferno
from planner.cli.commands.observe import ObserveOptions, observe
from planner.cli.commands.pareto import ParetoOptions, pareto
from planner.cli.commands.plan import PlanOptions, plan
from planner.cli.commands.reproduce import ReproduceOptions, reproduce
from planner.cli.commands.simulate import SimulateOptions, simulate
from planner.cli.commands.trace import TraceOptions, trace
from planner.cli.commands.ui import UiOptions, ui
from planner.cli.edge import ExitCode, is_about_output, takes, unwritten
from planner.cli.terminal import complain, spell_out_what_cannot_be_written
from planner.errors import Finding, nearest

__all__ = ["app", "main"]

app = typer.Typer(
    name="fleetplan",
    help="How many replicas of which variant run on which GPUs, how good that is proven to be, and why.",
    epilog=(
        "Exit codes: 0 done, 1 a fault of ours, 2 an input must change, 3 infeasible or rules are broken, "
        "4 no answer in the time given or try again later, 5 refused by a safety gate."
    ),
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
controller = typer.Typer(
    help="The loop against clusters: from live metrics to scaled fleets.", no_args_is_help=True
)
elastic = typer.Typer(
    help="Elastic expert-parallel deployments: sizes, checks, and one resize carried out.",
    no_args_is_help=True,
)
catalog = typer.Typer(help="Accelerators, LLMs and profiles that are known.", no_args_is_help=True)


class _Formats(TyperGroup):
    """Commands that are named after formats."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:  # noqa: ANN401 - typer does not offer its type
        """The command of a format; an unknown one is answered with those that there are."""
        known = self.list_commands(ctx)
        if args and args[0] not in known:
            finding = Finding("", None, "FORMAT", repr(args[0]), ", ".join(known), nearest(args[0], known))
            complain(str(finding))
            raise typer.Exit(int(ExitCode.CHANGE_INPUT))
        return super().resolve_command(ctx, args)


importing = typer.Typer(help="Turn files of other tools into ours.", no_args_is_help=True, cls=_Formats)

app.command("plan")(takes(PlanOptions)(plan))
app.command("explain")(takes(ExplainOptions)(explain))
app.command("pareto")(takes(ParetoOptions)(pareto))
app.command("check")(takes(CheckOptions)(check))
app.command("simulate")(takes(SimulateOptions)(simulate))
app.command("export")(takes(ExportOptions)(export))
app.command("commands")(takes(CommandsOptions)(commands))
app.command("apply")(takes(ApplyOptions)(apply))
app.command("observe")(takes(ObserveOptions)(observe))
app.command("analyze")(takes(AnalyzeOptions)(analyze))
app.command("trace")(takes(TraceOptions)(trace))
app.command("calibrate")(takes(CalibrateOptions)(calibrate))
app.command("reproduce")(takes(ReproduceOptions)(reproduce))
app.add_typer(controller, name="controller")
controller.command("run")(takes(RunOptions)(controller_run))
controller.command("config")(takes(ConfigOptions)(controller_config))
controller.command("status")(takes(StatusOptions)(controller_status))
controller.command("check")(takes(ControllerCheckOptions)(controller_check))
controller.command("release")(takes(ControllerReleaseOptions)(controller_release))
app.add_typer(elastic, name="elastic")
elastic.command("sizes")(takes(ElasticOptions)(elastic_sizes))
elastic.command("check")(takes(ElasticCheckOptions)(elastic_check))
elastic.command("schedule")(takes(ElasticScheduleOptions)(elastic_schedule))
elastic.command("resize")(takes(ResizeOptions)(elastic_resize))
elastic.command("status")(takes(RecordOptions)(elastic_status))
elastic.command("resume")(takes(RecordOptions)(elastic_resume))
app.add_typer(catalog, name="catalog")
catalog.command("list")(takes(knowledge.ListOptions)(knowledge.catalog_list))
catalog.command("show")(takes(knowledge.ShowOptions)(knowledge.catalog_show))
app.command("schema")(takes(knowledge.SchemaOptions)(knowledge.schema))
app.command("plugins")(takes(knowledge.PluginOptions)(knowledge.plugins))
app.command("ui")(takes(UiOptions)(ui))
app.add_typer(importing, name="import")
importing.command("aiconfigurator")(takes(knowledge.ImportOptions)(knowledge.import_aiconfigurator))
importing.command("huggingface")(takes(formats.HuggingfaceOptions)(formats.import_huggingface))
importing.command("melange")(takes(formats.MelangeOptions)(formats.import_melange))
importing.command("aibrix")(takes(formats.AibrixOptions)(formats.import_aibrix))
importing.command("inferno")(takes(InfernoOptions)(import_inferno))
importing.command("observation")(takes(DraftOptions)(import_observation))
importing.command("vllm")(takes(formats.VllmOptions)(formats.import_vllm))


@importing.callback()
def _importing() -> None:
    """Keep ``import`` a group though it has one format so far."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fleetplan {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and end."),
    ] = False,
) -> None:
    """Options before the command."""


def main() -> None:
    """Run the command line and end the process with its exit code."""
    if sys.stdout is None:
        sys.exit(unwritten("it is closed"))
    spell_out_what_cannot_be_written()
    try:
        app()
    except OSError as fault:
        # What typer prints itself, such as the help.
        if not is_about_output(fault):
            raise
        sys.exit(unwritten(fault.strerror))
