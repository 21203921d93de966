"""Planned versus actual after a plan was carried out: looked at again and again, with an alarm when they drift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planner.cli.commands.waves import Waves
from planner.cli.ctrl_c import ending_on_ctrl_c
from planner.cli.edge import ExitCode
from planner.cli.outputs import Output, begins_with
from planner.cli.terminal import err_console, note, out_console

if TYPE_CHECKING:
    from models.applied import Drift
    from planner.clock import Clock
    from planner.control.carrying import Apis
    from planner.manifests import Route

__all__ = ["Watching", "watch"]

_PIECE_S: Final = 0.5
_OURS: Final = "# HELP fleetplan_plan_replicas "


@dataclass(frozen=True, kw_only=True)
class Watching(Waves):
    """How long a cluster is compared with the plan, and when that is an alarm."""

    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Then compare the cluster with the plan until they drift; exit code 3 then."
        ),
    ] = False
    watch_s: Annotated[
        float | None,
        typer.Option("--watch-for", min=0, metavar="S", show_default=False, help="With --watch: so long at most, s; default: until Ctrl-C."),
    ] = None  # fmt: skip
    look_s: Annotated[float, typer.Option("--watch-every", min=1, max=3600, metavar="S", help="Between two looks, s.")] = 15.0  # fmt: skip
    drift_s: Annotated[float, typer.Option("--drift-after", min=0, metavar="S", help="A difference that lasts so long is a drift, s.")] = 60.0  # fmt: skip
    gauge: Annotated[
        Path | None,
        typer.Option("--gauge", metavar="FILE", show_default=False, help="With --watch: write the comparison for Prometheus (text file collector), and go on when they drift."),
    ] = None  # fmt: skip


def watch(route: Route, apis: Apis, options: Watching, *, aside: bool = False) -> ExitCode:
    """Compare until the first drift that lasts, the end of the time, or Ctrl-C; with a gauge through drifts.

    Args:
        route: with the counts at its end.
        apis: of the clusters.
        options: how long, and when it is an alarm.
        aside: standard output holds something else.
    """
    from planner.cli.screen.applying import drift_sentence, show_drift
    from planner.clock import SystemClock
    from planner.control.carrying import Watch, drift_of, gauge_text
    from planner.control.carrying.objects import read_objects
    from planner.control.carrying.review import scaled_targets

    clock, kept = SystemClock(), Watch(after_s=options.drift_s)
    output = None if options.gauge is None else Output(path=options.gauge, ours=begins_with(_OURS))
    targets = scaled_targets(route)
    console = err_console() if aside else out_console()
    begun_s = clock.monotonic_s()
    alarms: tuple[Drift, ...] = ()
    known: set[str] | None = None
    with ending_on_ctrl_c(lambda _: note("ending")) as stopped:
        while True:
            reading = read_objects(apis, targets, counts_alone=True)
            now_s = clock.monotonic_s()
            drifts = kept.look(drift_of(route, reading.states), now_s)
            alarms = kept.alarms(drifts)
            if output is not None:
                output.write(gauge_text(route, reading.states, drifts))
            if known != {str(each.object) for each in drifts}:
                known = {str(each.object) for each in drifts}
                show_drift(console, drifts, len(reading.states))
            for finding in reading.findings:
                note(f"{finding.subject}: {finding.problem}")
            over = options.watch_s is not None and now_s - begun_s >= options.watch_s
            if over or stopped() or (alarms and output is None):
                break
            _sleep(clock, options.look_s, stopped)
    for each in alarms:
        note(f"drift: {drift_sentence(each)}")
    return ExitCode.NOT_KEPT if alarms else ExitCode.DONE


def _sleep(clock: Clock, duration_s: float, stopped: Callable[[], bool]) -> None:
    """Sleep in short pieces, so that Ctrl-C ends it."""
    end_s = clock.monotonic_s() + duration_s
    while (left_s := end_s - clock.monotonic_s()) > 0 and not stopped():
        clock.sleep(min(_PIECE_S, left_s))
