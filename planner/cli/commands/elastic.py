"""``elastic sizes|check|schedule|resize|status|resume``: elastic deployments of a scenario, and one resize carried out."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planner.cli.edge import Common, ExitCode
from planner.cli.terminal import note, out_console
from planner.errors import ConfigurationError, Finding

if TYPE_CHECKING:
    from models.elastic import ElasticEngine
    from models.resize_operation import ResizeOperation
    from models.resizing import ElasticPicture
    from models.scenario import Scenario
    from planner.control.cluster import Api, Kind
    from planner.control.resizing import World
    from planner.control.resizing.http_engine import HttpEngine
    from planner.control.resizing.stores import FileStore, LeaseStore
    from planner.elastic import PreflightFacts

__all__ = [
    "ElasticCheckOptions",
    "ElasticOptions",
    "ElasticScheduleOptions",
    "RecordOptions",
    "ResizeOptions",
    "elastic_check",
    "elastic_resize",
    "elastic_resume",
    "elastic_schedule",
    "elastic_sizes",
    "elastic_status",
]


_EVERY_S: Final = 10.0


@dataclass(frozen=True, kw_only=True)
class ElasticOptions(Common):
    """Options of ``elastic sizes``, and of those that need a deployment."""

    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario with an elastic variant.", show_default=False)]  # fmt: skip
    variant: Annotated[str | None, typer.Option("--variant", metavar="NAME", show_default=False, help="service/variant, or service/variant@pool; default: the only one.")] = None  # fmt: skip
    overrides: Annotated[list[str] | None, typer.Option("--set", metavar="PATH=VALUE", show_default=False, help="Change the scenario; repeatable.")] = None  # fmt: skip
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False


@dataclass(frozen=True, kw_only=True)
class ElasticCheckOptions(ElasticOptions):
    """Options of ``elastic check``."""

    to: Annotated[int, typer.Option("--to", min=1, max=4096, metavar="N", help="Ranks that are to be.", show_default=False)]  # fmt: skip
    url: Annotated[list[str] | None, typer.Option("--url", metavar="URL", show_default=False, help="API server to ask whether a resize is running; with one for each rank all of them, in order. Default: elastic.url of the variant.")] = None  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RecordOptions(Common):
    """Where the record of a resize is."""

    record: Annotated[Path | None, typer.Option("--record", metavar="FILE", show_default=False, help="File that holds the record, and is the lock.")] = None  # fmt: skip
    kubernetes: Annotated[str | None, typer.Option("--kubernetes", metavar="NS/NAME", show_default=False, help="Keep it in a Lease beside this workload instead.")] = None  # fmt: skip
    context: Annotated[str | None, typer.Option("--context", metavar="NAME", show_default=False, help="Context of the kubeconfig.")] = None  # fmt: skip
    kubeconfig: Annotated[Path | None, typer.Option("--kubeconfig", metavar="FILE", show_default=False, help="In place of KUBECONFIG.")] = None  # fmt: skip
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False


@dataclass(frozen=True, kw_only=True)
class ResizeOptions(ElasticCheckOptions):
    """Options of ``elastic resize``."""

    record: Annotated[Path | None, typer.Option("--record", metavar="FILE", show_default=False, help="File that holds the record, and is the lock.")] = None  # fmt: skip
    kubernetes: Annotated[str | None, typer.Option("--kubernetes", metavar="NS/NAME", show_default=False, help="Keep it in a Lease, and have pods of this workload made before a grow and ended after a shrink.")] = None  # fmt: skip
    kind: Annotated[str, typer.Option("--kind", metavar="KIND", help="Of that workload: StatefulSet or LeaderWorkerSet.")] = "StatefulSet"  # fmt: skip
    ranks_per_replica: Annotated[int, typer.Option("--ranks-per-replica", min=1, max=4096, metavar="N", help="Ranks of one pod, or of one group.")] = 1  # fmt: skip
    pods_per_replica: Annotated[int, typer.Option("--pods-per-replica", min=1, max=4096, metavar="N", help="Pods of one group.")] = 1  # fmt: skip
    context: Annotated[str | None, typer.Option("--context", metavar="NAME", show_default=False, help="Context of the kubeconfig.")] = None  # fmt: skip
    kubeconfig: Annotated[Path | None, typer.Option("--kubeconfig", metavar="FILE", show_default=False, help="In place of KUBECONFIG.")] = None  # fmt: skip
    model: Annotated[str, typer.Option("--model", metavar="NAME", show_default=False, help="Served name, for the prompt that is asked before and after.")] = ""  # fmt: skip
    yes: Annotated[bool, typer.Option("--yes", help="Carry it out. Without it nothing is sent.")] = False


@dataclass(frozen=True, kw_only=True)
class ElasticScheduleOptions(ElasticOptions):
    """Options of ``elastic schedule``."""

    series: Annotated[Path, typer.Option("--series", metavar="FILE", help="Past load of the service: CSV with time and req/s.", show_default=False)]  # fmt: skip
    step_s: Annotated[float, typer.Option("--step", min=1, max=86_400, metavar="S", help="Length of a step, s.")] = 60.0  # fmt: skip
    horizon_h: Annotated[float, typer.Option("--horizon", min=0.02, max=168, metavar="H", help="Hours ahead.")] = 6.0  # fmt: skip
    season_h: Annotated[float, typer.Option("--season", min=0.02, max=8760, metavar="H", help="Hours after which load repeats.")] = 24.0  # fmt: skip
    quantile: Annotated[float, typer.Option("--quantile", min=0.05, max=0.95, metavar="Q", help="Of the forecast, that is to be carried.")] = 0.9  # fmt: skip


def elastic_schedule(options: ElasticScheduleOptions) -> ExitCode:
    """When to call for which size, so that the load of a forecast finds its capacity there. Exit code 3: no size carries it."""
    from planner.elasticity import scheduled
    from planner.forecasting import best_forecast, read_series

    scenario, picture = _picture(options)
    series = read_series(options.series, step_s=options.step_s)
    made = best_forecast(
        series,
        horizon=max(1, round(options.horizon_h * 3600 / options.step_s)),
        season=max(1, round(options.season_h * 3600 / options.step_s)),
    )
    found = scheduled(scenario, picture, made, quantile=options.quantile, now_s=series.end_s)
    if options.as_json:
        document = {
            "forecast": made.model_dump(mode="json"),
            **found.model_dump(mode="json"),
        }
        sys.stdout.write(f"{json.dumps(document, indent=2, ensure_ascii=False)}\n")
    else:
        from planner.cli.screen.elastic import show_schedule

        show_schedule(out_console(), picture, made, found)
    return ExitCode.NOT_KEPT if found.short_rps > 0 else ExitCode.DONE


def elastic_sizes(options: ElasticOptions) -> ExitCode:
    """Which sizes an elastic deployment can reach in place, why not the others, and what each way takes."""
    _, picture = _picture(options)
    if options.as_json:
        sys.stdout.write(f"{picture.model_dump_json(indent=2)}\n")
        return ExitCode.DONE
    from planner.cli.screen.elastic import show_sizes

    show_sizes(out_console(), picture)
    return ExitCode.DONE


def elastic_check(options: ElasticCheckOptions) -> ExitCode:
    """Look at everything that would make a resize fail, and say what to change. Exit code 5: it would be refused."""
    from planner.elasticity import preflight_of, ways_to

    scenario, picture = _picture(options)
    found = preflight_of(picture, options.to, _facts(picture, options))
    ways = () if options.to == picture.current else ways_to(scenario, picture, options.to)
    if options.as_json:
        document = {
            "passed": found.passed,
            "checks": [check.model_dump(mode="json") for check in found.checks],
            "ways": [way.model_dump(mode="json") for way in ways],
        }
        sys.stdout.write(f"{json.dumps(document, indent=2, ensure_ascii=False)}\n")
    else:
        from planner.cli.screen.elastic import show_preflight, show_ways

        show_preflight(out_console(), found)
        if ways:
            out_console().print()
            show_ways(out_console(), ways, own=picture.mode.value if picture.mode else "")
    return ExitCode.DONE if found.passed else ExitCode.REFUSED


def elastic_resize(options: ResizeOptions) -> ExitCode:
    """Resize a deployment: accelerators first, one call, a look, then traffic. A dry run unless --yes.

    The same command goes on after it was stopped; the record says where. Exit codes: 5 refused by a check, by another
    resize, or by the engine, and nothing was changed; 4 people must look, and the record says what is true.
    """
    operation = _going_on(options) or _new(options)
    if operation is None:
        return ExitCode.REFUSED
    if not options.yes:
        _show_commands(operation, options)
        note("a dry run: nothing was sent; --yes carries it out")
        return ExitCode.DONE
    return _carried_out(operation, options)


def _going_on(options: ResizeOptions) -> ResizeOperation | None:
    """The resize to this size that is on its way; None: there is none."""
    if options.record is None and options.kubernetes is None:
        return None
    last = _store(options).load()
    return last if last is not None and not last.over and last.to_ranks == options.to else None


def _new(options: ResizeOptions) -> ResizeOperation | None:
    """A resize that every check lets through; None: one refused it, which is shown."""
    from planner.cli.screen.elastic import show_preflight
    from planner.clock import SystemClock
    from planner.elasticity import ordered, preflight_of

    _, picture = _picture(options)
    found = preflight_of(picture, options.to, _facts(picture, options))
    if not found.passed:
        show_preflight(out_console(), found)
        return None
    name = options.kubernetes or f"{picture.service}/{picture.variant}"
    urls = _urls(picture, options)
    return ordered(picture, options.to, urls=urls, name=name, now_s=SystemClock().unix_s())


def elastic_status(options: RecordOptions) -> ExitCode:
    """How far a resize is, and what is true of the deployment. Exit code 4: people must look."""
    from models.resize_operation import OperationPhase

    operation = _store(options).load()
    if operation is None:
        note("no resize was ever ordered here")
        return ExitCode.DONE
    _show(operation, as_json=options.as_json)
    return ExitCode.TRY_AGAIN if operation.phase is OperationPhase.NEEDS_PEOPLE else ExitCode.DONE


def elastic_resume(options: RecordOptions) -> ExitCode:
    """Say that you have seen to a deployment (restarted it): the next resize looks at it again instead of refusing."""
    from planner.clock import SystemClock
    from planner.control.resizing import resume

    with closing(_store(options)) as store:
        operation = resume(store, SystemClock().unix_s())
    if operation is None:
        note("nothing was left to people here")
        return ExitCode.DONE
    _show(operation, as_json=options.as_json)
    return ExitCode.DONE


def _picture(options: ElasticOptions) -> tuple[Scenario, ElasticPicture]:
    from planner.door import load_scenario
    from planner.elasticity import elastic_pictures, picked

    scenario = load_scenario(options.scenario, overrides=options.overrides or ())
    return scenario, picked(elastic_pictures(scenario), options.variant)


def _urls(picture: ElasticPicture, options: ElasticCheckOptions) -> tuple[str, ...]:
    stated = picture.deployment.url
    return tuple(options.url or ([stated] if stated else []))


def _facts(picture: ElasticPicture, options: ElasticCheckOptions) -> PreflightFacts:
    """What the deployment itself says, where its address is known."""
    from planner.elastic import PreflightFacts

    urls = _urls(picture, options)
    if not urls:
        return PreflightFacts()
    from models.resize_call import ResizePhase

    status = _http_engine(picture.deployment.engine, urls).status()
    if status.phase is ResizePhase.UNKNOWN or (
        status.phase is ResizePhase.IDLE and not status.shows_preparing
    ):
        return PreflightFacts()
    busy = status.phase in (ResizePhase.PREPARING, ResizePhase.COMMITTING, ResizePhase.FAILED)
    return PreflightFacts(in_flight=busy)


def _http_engine(
    engine: ElasticEngine, urls: tuple[str, ...], recorded: ResizeOperation | None = None, *, model: str = ""
) -> HttpEngine:
    from planner.control.collectors.access import Credentials
    from planner.control.collectors.transport import Connections
    from planner.control.resizing.http_engine import HttpEngine

    connections = Connections(Credentials(), most=max(16, 2 * len(urls)))
    return HttpEngine(engine, urls, connections, operation=recorded, model=model)


def _show_commands(operation: ResizeOperation, options: ResizeOptions) -> None:
    from planner.elastic.dialects import calls_of, curl_of

    calls = calls_of(operation.engine, operation.urls[: operation.from_ranks], operation.to_ranks)
    lines = [curl_of(call) for call in calls]
    if options.as_json:
        document = {"operation": operation.model_dump(mode="json"), "commands": lines}
        sys.stdout.write(f"{json.dumps(document, indent=2, ensure_ascii=False)}\n")
        return
    from planner.cli.screen.elastic import show_steps

    show_steps(out_console(), operation, lines)


def _carried_out(operation: ResizeOperation, options: ResizeOptions) -> ExitCode:
    from models.resize_operation import OperationPhase
    from planner.cli.screen.elastic import entry_line
    from planner.clock import SystemClock
    from planner.control.resizing import drive, order

    def tell(now: ResizeOperation) -> None:
        note(entry_line(now, len(now.history) - 1))

    with closing(_store(options)) as store:
        world = _world(operation, options, store)
        taken = order(operation, world)
        with _telling(world):
            ended = drive(taken, world, SystemClock(), tell=tell)
    _show(ended, as_json=options.as_json)
    codes = {OperationPhase.DONE: ExitCode.DONE, OperationPhase.ABANDONED: ExitCode.REFUSED}
    return codes.get(ended.phase, ExitCode.TRY_AGAIN)


@contextmanager
def _telling(world: World) -> Iterator[None]:
    """Say now and then that it goes on, and how far it is: a call takes minutes to answer."""
    from planner.clock import SystemClock
    from planner.errors import FleetPlanError

    clock, over = SystemClock(), threading.Event()
    begun_s = clock.monotonic_s()

    def tell() -> None:
        while not over.wait(_EVERY_S):
            try:
                now = world.store.load()
            except FleetPlanError:
                continue
            if now is not None and not now.over:
                status = world.engine.status()
                shown = f", the engine says {status.phase.value}" if status.shows_preparing else ""
                note(f"{clock.monotonic_s() - begun_s:.0f} s: still {now.phase.value}{shown}")

    thread = threading.Thread(target=tell, name="fleetplan-elastic", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(_EVERY_S)


def _world(operation: ResizeOperation, options: ResizeOptions, store: FileStore | LeaseStore) -> World:
    from models.elastic import LoadBalancing
    from planner.control.resizing import World
    from planner.control.resizing.grounds import ByHand, PodGround
    from planner.control.resizing.routes import EngineRoutes, PodRoutes, pods_of_ranks

    engine = _http_engine(operation.engine, operation.urls, store.load(), model=options.model)
    if options.kubernetes is None:
        return World(engine=engine, ground=ByHand(), router=EngineRoutes(), store=store)
    api, (namespace, name) = _api(options), _named(options.kubernetes)
    ground = PodGround(
        api, _kind(options.kind), namespace, name, options.ranks_per_replica, options.pods_per_replica
    )
    external = operation.engine.load_balancing is LoadBalancing.EXTERNAL
    one_pod_each = options.ranks_per_replica == options.pods_per_replica
    pods = pods_of_ranks(name, options.pods_per_replica)
    routes = (
        PodRoutes(api, namespace, pods, ground.there, engine.in_flight)
        if external and one_pod_each
        else EngineRoutes()
    )
    return World(engine=engine, ground=ground, router=routes, store=store)


def _kind(name: str) -> Kind:
    from planner.control.cluster.kinds import LEADER_WORKER_SETS, STATEFUL_SETS

    kinds = {kind.name: kind for kind in (STATEFUL_SETS, LEADER_WORKER_SETS)}
    if name not in kinds:
        found = Finding("", None, "--kind", repr(name), ", ".join(kinds))
        raise ConfigurationError.from_findings([found])
    return kinds[name]


def _named(text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        found = Finding("", None, "--kubernetes", repr(text), "NAMESPACE/NAME of a workload")
        raise ConfigurationError.from_findings([found])
    return namespace, name


def _store(options: RecordOptions | ResizeOptions) -> FileStore | LeaseStore:
    from planner.control.resizing.stores import FileStore, LeaseStore

    if options.kubernetes is not None:
        named = _named(options.kubernetes)
        return LeaseStore(_api(options), *named)
    if options.record is None:
        found = Finding(
            "", None, "--record", "no place for the record", "--record FILE or --kubernetes NS/NAME"
        )
        raise ConfigurationError.from_findings([found])
    return FileStore(options.record)


def _api(options: RecordOptions | ResizeOptions) -> Api:
    from planner.clock import SystemClock
    from planner.control.cluster import ClusterOptions, connect

    return connect(ClusterOptions(context=options.context, kubeconfig=options.kubeconfig), SystemClock())


def _show(operation: ResizeOperation, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(f"{operation.model_dump_json(indent=2)}\n")
        return
    from planner.cli.screen.elastic import show_operation

    show_operation(out_console(), operation)
