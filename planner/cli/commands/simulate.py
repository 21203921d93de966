"""``simulate``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planner.cli.commands.check import solution_of
from planner.cli.commands.solving import Gap, Overrides, Threads, solve_options
from planner.cli.edge import Common, ExitCode, unstated
from planner.cli.gathering import Gathering, made
from planner.cli.terminal import note, out_console, shown_status
from planner.errors import ConfigurationError, nearest

if TYPE_CHECKING:
    from models.scenario import Scenario
    from models.simulation import RouterSpec
    from models.workload import Service
    from planner.cli.run_folder import RunFolder
    from planner.replaying import Observers, Prepared, Replayed, ReplayOptions
    from planner.traces import Change, HowRead

__all__ = ["SimulateOptions", "simulate"]

_LEAST_SCRAPE_S: Final = 0.001


@dataclass(frozen=True, kw_only=True)
class SimulateOptions(Common):
    """Options of ``simulate``."""

    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML).", show_default=False)
    ]
    trace: Annotated[
        list[str],
        unstated(
            "[SERVICE=]TRACE",
            "A trace file, or a line such as poisson:rate=5,duration=10m,input=512,output=128; may be repeated (docs/traces.md).",
            "--trace",
        ),
    ]
    policy: Annotated[
        list[str] | None,
        unstated(
            "NAME,NAME...",
            "static, hpa, keda, epp-keda, kpa, wva, wva-v2, planner; several side by side. Default: static.",
            "--policy",
        ),
    ] = None
    plan: Annotated[
        Path | None, unstated("FILE", "A saved plan that runs start from; without it one is made.")
    ] = None
    start: Annotated[
        str, typer.Option(metavar="plan|now|least", help="Replicas that are there at the start.")
    ] = "plan"
    every_variant: Annotated[
        bool,
        typer.Option(
            "--every-variant",
            help="Let every policy start every variant, not only those of the plan and of now.",
        ),
    ] = False
    solver: Annotated[str, typer.Option(help="Solver of the plan, by name.")] = "auto"
    time_limit: Annotated[
        float | None,
        typer.Option(min=0.001, max=1e7, metavar="S", help="Wall time for the plan, s; default 60."),
    ] = None
    gap: Gap = None
    threads: Threads = None
    overrides: Overrides = None
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=2**63 - 1, metavar="N", help="Of all chance: the same seed gives the same bytes."
        ),
    ] = 0
    until: Annotated[
        str | None, unstated("TIME", "End each run then; default: when every request has ended.")
    ] = None
    slice_: Annotated[
        str | None, unstated("FROM:TO", "Only this piece of the trace, e.g. 1h:2h.", "--slice")
    ] = None
    scale: Annotated[float, typer.Option(metavar="X", help="So many times the requests.")] = 1.0
    speed: Annotated[float, typer.Option(metavar="X", help="Replay the trace so many times as fast.")] = 1.0
    on_bad_row: Annotated[str, typer.Option(metavar="error|skip", help="What a bad row of a trace does.")] = (
        "error"
    )
    reorder: Annotated[
        str,
        typer.Option(metavar="TIME", help="Rows of a trace that are so much out of order are put in order."),
    ] = "60s"
    epp: Annotated[
        Path | None, unstated("FILE", "EndpointPickerConfig of llm-d's router, for every service.")
    ] = None
    routing: Annotated[
        str | None, unstated("scorers|round-robin|random", "How the router picks; default: scorers.")
    ] = None
    timeout: Annotated[str | None, unstated("TIME", "Clients give up after so long; default: never.")] = None
    retries: Annotated[
        int, typer.Option(min=0, max=1000, help="Further tries of clients after 429, 503 or an abort.")
    ] = 0
    grace: Annotated[
        str, typer.Option(metavar="TIME", help="What a removed replica may take to finish its requests.")
    ] = "30s"
    scrape: Annotated[str, typer.Option(metavar="TIME", help="Metrics are read so often.")] = "15s"
    lag: Annotated[
        str, typer.Option(metavar="TIME", help="Decisions see metrics that are at least so old.")
    ] = "0s"
    output: Annotated[
        Path | None, unstated("DIR", "Write figures, tables and pictures to a folder.", "--output", "-o")
    ] = None
    tables: Annotated[
        str | None, unstated("parquet|csv", "Format of tables; default: Parquet if pyarrow is there.")
    ] = None
    chrome_trace: Annotated[
        bool,
        typer.Option("--chrome-trace", help="With -o: write each run for chrome://tracing and Perfetto too."),
    ] = False
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="With -o: draw PNG and SVG pictures.")] = (
        True
    )
    every: Annotated[bool, typer.Option("--all", help="Show every variant, however many there are.")] = False
    force: Annotated[bool, typer.Option("--force", help="Let -o replace a folder that is not ours.")] = False
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object (docs/simulation.md) and nothing else.")
    ] = False


def simulate(options: SimulateOptions) -> ExitCode:
    """Replay a trace against the fleet of a scenario, under one or several policies, before anyone pays for it."""
    from planner.cli.run_folder import summary_text
    from planner.door import load_scenario

    gathering = Gathering()
    found = gathering.attempt(lambda: _asked(options))
    folder = gathering.attempt(lambda: _folder(options))
    scenario = gathering.attempt(lambda: load_scenario(options.scenario, overrides=options.overrides or ()))
    gathering.check()
    asked = made(found)
    prepared = _prepared(made(scenario), options, asked)
    replayed = _replayed(prepared, options, asked, folder)
    if options.as_json:
        sys.stdout.write(summary_text(replayed.told))
    else:
        from planner.cli.screen.replay import show_replay

        show_replay(out_console(), replayed.told, every=options.every)
    if options.output is not None:
        note(f"saved to {options.output}")
    return ExitCode.DONE


@dataclass(frozen=True, slots=True)
class _Asked:
    """Options that are texts, as values.

    Attributes:
        policies: by name.
        how: traces are read.
        replay: how policies are run.
        router: of each service; None: as its thresholds say.
        grace_s: of removed replicas.
        notes: of what was read.
    """

    policies: tuple[str, ...]
    how: HowRead
    replay: ReplayOptions
    router: Callable[[Service], RouterSpec]
    grace_s: float
    notes: tuple[str, ...]


def _asked(options: SimulateOptions) -> _Asked:
    """Every option, checked before anything is computed.

    Raises:
        ConfigurationError: everything that is wrong with options.
    """
    from models.simulation import Routing
    from planner.replaying import ReplayOptions, Start, check_policies
    from planner.traces import Change, HowRead, OnBadRow

    gathering = Gathering()
    names = [name.strip() for each in options.policy or ["static"] for name in each.split(",")]
    policies = gathering.attempt(lambda: check_policies(names))
    for option, value, known in (
        ("--start", options.start, [*map(str, Start)]),
        ("--on-bad-row", options.on_bad_row, [*map(str, OnBadRow)]),
        ("--routing", options.routing, [*map(str, Routing)]),
    ):
        if value is not None and value not in known:
            gathering.wrong(option, repr(value), ", ".join(known), nearest(value, known))
    times = {
        name: _seconds(
            f"--{name}", getattr(options, name), gathering, zero=name in {"lag", "grace", "reorder"}
        )
        for name in ("reorder", "grace", "scrape", "lag", "until", "timeout")
    }
    if times["scrape"] < _LEAST_SCRAPE_S:
        gathering.wrong("--scrape", repr(options.scrape), f"at least {_LEAST_SCRAPE_S:g} s")
    first_s, last_s = _span(options.slice_, gathering)
    change = Change(first_s, last_s, options.scale, options.speed, options.seed)
    gathering.attempt(lambda: _change(change))
    read = gathering.attempt(lambda: _picker(options))
    if options.chrome_trace and options.output is None:
        gathering.wrong("--chrome-trace", "no -o", "-o DIR, where it is written")
    gathering.check()
    base, notes = made(read)
    return _Asked(
        made(policies),
        HowRead(
            policy=OnBadRow(options.on_bad_row), window_s=times["reorder"], seed=options.seed, change=change
        ),
        ReplayOptions(
            seed=options.seed,
            until_s=None if options.until is None else times["until"],
            start=Start(options.start),
            every_variant=options.every_variant,
            scrape_interval_s=times["scrape"],
            metric_lag_s=times["lag"],
            keep_requests=options.chrome_trace,
        ),
        _router(options, base, 0.0 if options.timeout is None else times["timeout"]),
        times["grace"],
        notes,
    )


def _change(change: Change) -> None:
    """Refuse a change that is none, by the names of options."""
    try:
        change.checked()
    except ConfigurationError as error:
        raise ConfigurationError.from_findings(
            replace(each, path=f"--{each.path}") for each in error.findings
        ) from error


def _seconds(option: str, text: str | None, gathering: Gathering, *, zero: bool) -> float:
    """A time of an option, s."""
    from pydantic import ValidationError

    from planner.traces.spec import SECONDS

    if text is None:
        return 0.0
    try:
        found = SECONDS.validate_python(text)
    except ValidationError:
        found = math.nan
    if math.isnan(found) or (found == 0 and not zero):
        allowed = "a time such as 30s, 5 min or 1h" + ("" if zero else ", more than 0")
        gathering.wrong(option, repr(text), allowed)
        return 1.0
    return found


def _span(text: str | None, gathering: Gathering) -> tuple[float, float]:
    """(from, to) of ``--slice``, s."""
    if text is None:
        return 0.0, math.inf
    first, colon, last = text.partition(":")
    if not colon:
        gathering.wrong("--slice", repr(text), "FROM:TO, either may be left out")
        return 0.0, math.inf
    ends = [
        _seconds("--slice", end, gathering, zero=True) if end else default
        for end, default in ((first, 0.0), (last, math.inf))
    ]
    return ends[0], ends[1]


def _picker(options: SimulateOptions) -> tuple[RouterSpec | None, tuple[str, ...]]:
    from planner.importers.endpoint_picker import read_endpoint_picker

    if options.epp is None:
        return None, ()
    read = read_endpoint_picker(options.epp)
    return read.router, read.notes


def _router(
    options: SimulateOptions, base: RouterSpec | None, timeout_s: float
) -> Callable[[Service], RouterSpec]:
    """The router of each service: as the file says, else as its thresholds do; then as the options change it."""
    from models.simulation import RetrySpec, Routing
    from planner.replaying import by_thresholds

    def router(service: Service) -> RouterSpec:
        found = by_thresholds(service) if base is None else base
        if options.routing is not None:
            found = found.but(routing=Routing(options.routing))
        return found.but(request_timeout_s=timeout_s, retry=RetrySpec(attempts=options.retries))

    return router


def _folder(options: SimulateOptions) -> RunFolder | None:
    """Where everything goes.

    Raises:
        ConfigurationError: it could not be written, or what writes it is not installed.
    """
    from planner.cli.run_folder import RunFolder, check_run_folder
    from planner.cli.tables import chosen_format

    form = chosen_format(options.tables)
    if options.output is None:
        return None
    check_run_folder(options.output, force=options.force)
    return RunFolder(options.output, form)


def _prepared(scenario: Scenario, options: SimulateOptions, asked: _Asked) -> Prepared:
    from planner.cli.files import read_solution_or_report
    from planner.replaying import prepare

    saved = options.plan
    return prepare(
        scenario,
        solution=None if saved is None else solution_of(read_solution_or_report(saved), saved),
        solver=options.solver,
        options=solve_options(options),
        router=asked.router,
        grace_s=asked.grace_s,
    )


def _replayed(
    prepared: Prepared, options: SimulateOptions, asked: _Asked, folder: RunFolder | None
) -> Replayed:
    """Run every policy, and write what is to be written as one folder."""
    from planner.replaying import Observers, replay_all

    def run(observers: Observers) -> Replayed:
        found = replay_all(
            prepared, options.trace, asked.policies, options=asked.replay, how=asked.how, observers=observers
        )
        return replace(found, told=found.told.but(notes=(*asked.notes, *found.told.notes)))

    with shown_status("replaying", quiet=options.as_json) as show:

        def told(policy: str, at_s: float) -> None:
            show(lambda: _line(policy, at_s))

        if folder is None:
            return run(Observers(told=told))
        with folder.writing():
            found = run(Observers(told=told, sink_of=folder.sink_of))
            _write(folder, found, prepared, options)
            return found


def _write(folder: RunFolder, found: Replayed, prepared: Prepared, options: SimulateOptions) -> None:
    from planner.cli.pictures import INSTALL, lacking
    from planner.replaying import series

    for run in found.runs:
        folder.add(run)
        if options.chrome_trace:
            folder.add_trace(run)
    folder.add_summary(found.told)
    if not options.plots:
        return
    if lacking():
        note(f"no pictures: they need {INSTALL}")
        return
    services = prepared.playable.scenario.services
    targets_s = series.ttft_targets_s(services)
    folder.add_plots(found.runs, targets_s=targets_s, saturated=series.saturated_kv(services))


def _line(policy: str, at_s: float) -> str:
    hours, rest = divmod(int(at_s), 3600)
    return f"{policy}: {hours}:{rest // 60:02}:{rest % 60:02} of simulated time"
