"""``apply``: a plan, or the way back from one, carried out on clusters; a dry run unless it is told otherwise."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.commands.meant import first_waves, moving_less, refuse_without_plan, wanted_waves
from planner.cli.commands.solving import ending
from planner.cli.commands.watching import Watching, watch
from planner.cli.commands.waves import wave_limits
from planner.cli.ctrl_c import ending_on_ctrl_c
from planner.cli.edge import ExitCode
from planner.cli.gathering import Gathering
from planner.cli.terminal import note, out_console

if TYPE_CHECKING:
    from models.applied import ApplyEvent, ApplyEventKind, ApplyReview
    from planner.control.carrying import Applied, CarryOut, Order
    from planner.manifests import Route

__all__ = ["ApplyOptions", "apply"]


@dataclass(frozen=True, kw_only=True)
class ApplyOptions(Watching):
    """Options of ``apply``."""

    answer: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="Answer saved with 'plan -o', or the undo file that 'apply' left.",
            show_default=False,
        ),
    ]
    yes: Annotated[bool, typer.Option("--yes", help="Carry it out. Without it nothing is changed.")] = False
    undo: Annotated[
        bool, typer.Option("--undo", help="The way back instead: to what ran before the plan.")
    ] = False
    fewest_moves: Annotated[
        bool,
        typer.Option(
            "--fewest-moves", help="The plan of almost the same cost that changes less, where there is one."
        ),
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
    context: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default=False, help="Context of the kubeconfig; default: that called like the cluster, else the current one."),
    ] = None  # fmt: skip
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default=False, help="In place of KUBECONFIG.")
    ] = None
    assume_done: Annotated[
        bool,
        typer.Option(
            "--assume-done", help="What no object carries out (nodes, variants without one) is ready."
        ),
    ] = False
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="The cluster may be on the way already, though no record here says so."
        ),
    ] = False
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", show_default=False, help="For the audit record: why.")
    ] = ""
    records: Annotated[
        Path | None,
        typer.Option("--records", metavar="DIR", show_default=False, help="Audit records and undo files; default: $XDG_STATE_HOME/fleetplan/applied."),
    ] = None  # fmt: skip
    every: Annotated[bool, typer.Option("--all", help="Show every change, not only the first ones.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False


def apply(options: ApplyOptions) -> ExitCode:
    """Carry a plan out on Kubernetes, wave by wave; a dry run with the differences unless --yes.

    Every object is read again before each wave. Exit code 5: the cluster is not what the plan started from, people hold
    an object, or another scaler has it; nothing was changed. 4: a cluster did not answer, or a wait took too long: the same
    command goes on. 3: it is done, and something is left that no command does, or the cluster drifts (--watch).
    """
    from planner.clock import SystemClock
    from planner.control.carrying import CarryOut, apis_of, begun_in, look, records_folder

    order = _order(options)
    route = order.route()
    clock = SystemClock()
    folder = options.records or records_folder()
    apis = apis_of(route, clock, context=options.context, kubeconfig=options.kubeconfig)
    begun = begun_in(order, folder, somewhere=options.resume)
    how = CarryOut(apis=apis, clock=clock, assume_done=options.assume_done, begun=begun)
    review = look(route, how)
    if not options.as_json:
        from planner.cli.screen.applying import show_review

        show_review(out_console(), review, every=options.every)
    applied: Applied | None = None
    events: list[ApplyEvent] = []
    if options.yes and not review.done:
        # Also where it is refused: the record says who wanted it.
        applied, events = _carried(order, how, folder, options)
    if options.as_json:
        sys.stdout.write(_json(review, applied, events))
    code = _code(review, applied, order, route)
    if options.watch and (options.yes or review.done) and code in {ExitCode.DONE, ExitCode.NOT_KEPT}:
        return max(code, watch(route, apis, options, aside=options.as_json))
    if not options.yes and not review.refusals and not review.done:
        note("a dry run: nothing was changed; --yes carries it out")
    return code


def _order(options: ApplyOptions) -> Order:
    """What the file and the options mean."""
    from planner.cli.files import read_report
    from planner.cli.undo_files import read_undo
    from planner.control.carrying import Order

    undo = read_undo(options.answer)
    if undo is not None:
        _refuse_beside_undo(options)
        return Order.undoing(undo)
    report = read_report(options.answer)
    if options.fewest_moves:
        report = moving_less(report, options.answer)
    refuse_without_plan(report, options.answer)
    plan = first_waves(wanted_waves(report, options), options.waves)
    return Order(report=report, plan=plan, back=options.undo, cluster=options.cluster)


def _refuse_beside_undo(options: ApplyOptions) -> None:
    """An undo file says which waves lead back; options that choose others are of no use beside it."""
    asked = Gathering()
    given = {
        "--undo": options.undo,
        "--fewest-moves": options.fewest_moves,
        "--waves": options.waves is not None,
        "--cluster": options.cluster is not None,
        "limits on waves": wave_limits(options) is not None,
    }
    for name, is_given in given.items():
        if is_given:
            asked.wrong(name, "it beside an undo file", "it beside an answer of 'plan -o'")
    asked.check()


def _carried(
    order: Order, how: CarryOut, folder: Path, options: ApplyOptions
) -> tuple[Applied, list[ApplyEvent]]:
    from dataclasses import replace

    from planner.cli.screen.applying import event_line
    from planner.control.carrying import apply_order

    events: list[ApplyEvent] = []

    def told(event: ApplyEvent) -> None:
        events.append(event)
        if line := event_line(event):
            note(line)

    with ending_on_ctrl_c(
        lambda _: note("stopping before the next write; Ctrl-C again to stop at once")
    ) as wanted:
        applied = apply_order(order, replace(how, note=told, stop=wanted), folder, why=options.reason)
    note(f"record: {applied.record}")
    if applied.undo is not None:
        note(f"the way back: fleetplan apply {applied.undo}")
    return applied, events


def _code(review: ApplyReview, applied: Applied | None, order: Order, route: Route) -> ExitCode:
    from models.applied import ApplyEventKind
    from planner.manifests import left_to_do

    ended: ApplyEventKind | None = None if applied is None else applied.ended
    if ended is ApplyEventKind.REFUSED or (review.refusals and not review.passing):
        return ExitCode.REFUSED
    if ended is ApplyEventKind.STOPPED or review.refusals:
        return ExitCode.TRY_AGAIN
    if order.back:
        return ExitCode.DONE
    left = order.plan.stuck is not None or route.left_out or any(left_to_do(route))
    return ExitCode.NOT_KEPT if left else ending(order.report)


def _json(review: ApplyReview, applied: Applied | None, events: list[ApplyEvent]) -> str:
    document: dict[str, Any] = {"review": review.model_dump(mode="json")}
    if applied is not None:
        document["ended"] = str(applied.ended)
        document["record"] = str(applied.record)
        document["undo"] = None if applied.undo is None else str(applied.undo)
        document["events"] = [event.model_dump(mode="json") for event in events]
    return f"{json.dumps(document, indent=2, ensure_ascii=False)}\n"
