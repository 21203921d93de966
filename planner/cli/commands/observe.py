"""``observe``: what engines, routers and clusters say now."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from planner.cli.edge import Common, ExitCode
from planner.cli.gathering import Gathering
from planner.cli.outputs import FORCE_HELP, Output, begins_with
from planner.cli.terminal import note, out_console

if TYPE_CHECKING:
    from models.observation import Finding, Observation, VariantObservation
    from planner.control.protocols import MetricsReading

__all__ = ["TOKEN_VARIABLE", "ObserveOptions", "observation_output", "observe", "seen_by"]

_HEAD: Final = '{"at_s":'
_WAYS: Final = (
    "--prometheus URL, --metrics FILE... or --endpoint URL...; or --kubernetes, alone or beside one of them"
)
TOKEN_VARIABLE: Final = "FLEETPLAN_PROMETHEUS_TOKEN"  # noqa: S105 - the name of a variable


@dataclass(frozen=True, kw_only=True)
class ObserveOptions(Common):
    """Options of ``observe``."""

    more: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MORE]...", help="Further files of --metrics, or URLs of --endpoint.", show_default=False
        ),
    ] = None
    prometheus: Annotated[
        str | None, typer.Option("--prometheus", metavar="URL", show_default=False, help="Ask a Prometheus.")
    ] = None
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics", metavar="FILE", show_default=False,
            help="Read pages of engines, folders of them (times in their names), or a recorded observation.",
        ),
    ] = None  # fmt: skip
    endpoint: Annotated[
        list[str] | None,
        typer.Option(
            "--endpoint", metavar="URL", show_default=False, help="Read an engine's own page; HOST:PORT will do."
        ),
    ] = None  # fmt: skip
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Ask Kubernetes for variants, accelerators and quotas.")
    ] = False
    context: Annotated[
        list[str] | None,
        typer.Option("--context", metavar="NAME", show_default=False, help="With --kubernetes: this context of the kubeconfig; repeatable, one cluster each."),
    ] = None  # fmt: skip
    kubeconfig: Annotated[Path | None, typer.Option("--kubeconfig", metavar="FILE", show_default=False, help="With --kubernetes: in place of KUBECONFIG.")] = None  # fmt: skip
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", metavar="NAME", show_default=False, help="With --prometheus or --kubernetes: read this namespace alone; repeatable."),
    ] = None  # fmt: skip
    for_s: Annotated[float, typer.Option("--for", min=0, max=600, metavar="S", help="With --endpoint: read twice so far apart; rates need it.")] = 5.0  # fmt: skip
    check: Annotated[bool, typer.Option("--check", help="Look for every expected series and say why one is absent; exit code 3 if any is.")] = False  # fmt: skip
    token_file: Annotated[Path | None, typer.Option("--token-file", metavar="FILE", show_default=False, help=f"Bearer token; or set {TOKEN_VARIABLE}.")] = None  # fmt: skip
    ca_file: Annotated[Path | None, typer.Option("--ca-file", metavar="FILE", show_default=False, help="Certificates to trust (PEM).")] = None  # fmt: skip
    client_cert: Annotated[Path | None, typer.Option("--client-cert", metavar="FILE", show_default=False, help="Our certificate (PEM).")] = None  # fmt: skip
    client_key: Annotated[Path | None, typer.Option("--client-key", metavar="FILE", show_default=False, help="Its key (PEM).")] = None  # fmt: skip
    insecure: Annotated[bool, typer.Option("--insecure-skip-verify", help="Trust any certificate.")] = False
    allow_http: Annotated[bool, typer.Option("--allow-http", help="Allow http to another machine.")] = False
    timeout_s: Annotated[float, typer.Option("--timeout", min=0.1, max=600, metavar="S", help="Longest time of one call.")] = 10.0  # fmt: skip
    every: Annotated[bool, typer.Option("--all", help="Show every engine, not only the first ones.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", show_default=False, help="Write the observation; --metrics reads it again."),
    ] = None  # fmt: skip
    force: Annotated[bool, typer.Option("--force", help=FORCE_HELP)] = False


def observe(options: ObserveOptions) -> ExitCode:
    """Show what engines, routers and clusters say now, how old it is, and what is missing.

    Exit code 4 when a source did not answer in full, 3 when --check found something.
    """
    output = observation_output(options)
    if output is not None:
        output.check()
    seen, checked = seen_by(options)
    if output is not None:
        output.write(f"{seen.canonical_json()}\n")
    if options.as_json and not (output is not None and output.on_stdout):
        sys.stdout.write(f"{seen.canonical_json()}\n")
    elif output is None or not output.on_stdout:
        from planner.cli.screen.observation import show_observation

        show_observation(out_console(), seen, every=options.every)
    if output is not None and not output.on_stdout:
        note(f"wrote {output.path}")
    if not seen.complete:
        return ExitCode.TRY_AGAIN
    return ExitCode.NOT_KEPT if options.check and checked else ExitCode.DONE


def observation_output(options: ObserveOptions) -> Output | None:
    """Where the observation is to be written; None: nowhere."""
    if options.output is None:
        return None
    return Output(
        path=options.output,
        ours=begins_with(_HEAD),
        inputs=tuple(map(Path, _files(options))),
        force=options.force,
    )


def _files(options: ObserveOptions) -> list[str]:
    return [*options.metrics, *(options.more or ())] if options.metrics else []


def seen_by(options: ObserveOptions) -> tuple[Observation, Sequence[Finding]]:
    """The observation, and what the self-check found.

    Raises:
        ConfigurationError: options that do not go together, or are wrong; lists all of it.
    """
    ways = [way for way in (options.prometheus, options.metrics, options.endpoint) if way]
    alone = options.kubernetes and not ways
    gathering = Gathering()
    if (len(ways) != 1 and not alone) or (options.more and (alone or options.prometheus)):
        gathering.wrong("", "none of them" if not ways else "more than that", f"exactly one of {_WAYS}")
    if not options.kubernetes and (options.context or options.kubeconfig):
        gathering.wrong("", "no --kubernetes", "--kubernetes beside --context and --kubeconfig")
    gathering.check()
    if not options.kubernetes:
        return _measured(options, ())
    from planner.cli.commands.clusters import observed, see_clusters

    now_s, reading = see_clusters(options.context or (), options.kubeconfig, options.namespace or ())
    if alone:
        from planner.control.protocols import MetricsReading

        return observed(_observation(MetricsReading(), now_s), reading), ()
    seen, found = _measured(options, reading.variants)
    return observed(seen, reading), found


def _measured(
    options: ObserveOptions, variants: Sequence[VariantObservation]
) -> tuple[Observation, Sequence[Finding]]:
    if options.prometheus:
        return _of_prometheus(options, variants)
    return _of_files(options, variants) if options.metrics else _of_endpoints(options, variants)


def _of_prometheus(
    options: ObserveOptions, variants: Sequence[VariantObservation]
) -> tuple[Observation, Sequence[Finding]]:
    from planner.clock import SystemClock
    from planner.control.collectors import METRICS_SOURCES

    # Says which package is missing, where one is.
    METRICS_SOURCES.get("prometheus")
    from planner.control.collectors.prometheus import source

    clock = SystemClock()
    token = None if options.token_file is not None else os.environ.get(TOKEN_VARIABLE)
    more = {"bearer_token": token} if token else {}
    made = source(
        {"url": options.prometheus, "namespaces": options.namespace or ()} | _credentials(options) | more,
        clock,
    )
    try:
        found = made.check(variants) if options.check else ()
        now_s = clock.unix_s()
        return _observation(made.read(variants, now_s), now_s, found), found
    finally:
        made.close()


def _of_endpoints(
    options: ObserveOptions, variants: Sequence[VariantObservation]
) -> tuple[Observation, Sequence[Finding]]:
    from planner.clock import SystemClock
    from planner.control.collectors import open_source

    clock = SystemClock()
    urls = [*(options.endpoint or ()), *(options.more or ())]
    made = open_source(
        "endpoints", {"endpoints": urls, "retries": {"tries": 2}} | _credentials(options), clock
    )
    now_s = clock.unix_s()
    reading = made.read(variants, now_s)
    if options.for_s > 0:
        clock.sleep(options.for_s)
        now_s = clock.unix_s()
        reading = made.read(variants, now_s)
    return _observation(reading, now_s), reading.findings


def _of_files(
    options: ObserveOptions, variants: Sequence[VariantObservation]
) -> tuple[Observation, Sequence[Finding]]:
    from planner.clock import SystemClock
    from planner.control.collectors.files import source

    clock = SystemClock()
    made = source({"paths": _files(options)}, clock)
    now_s = clock.unix_s() if made.end_s is None else made.end_s
    reading = made.read_end(variants, now_s)
    seen = _observation(reading, now_s)
    if made.recorded is not None:
        kept = made.recorded
        seen = seen.but(variants=kept.variants, pools=kept.pools, quotas=kept.quotas)
    return seen, reading.findings


def _credentials(options: ObserveOptions) -> dict[str, Any]:
    given = {
        "token_file": options.token_file,
        "ca_file": options.ca_file,
        "client_cert": options.client_cert,
        "client_key": options.client_key,
        "insecure_skip_verify": options.insecure or None,
        "allow_http": options.allow_http or None,
        "timeout_s": options.timeout_s,
    }
    return {name: value for name, value in given.items() if value is not None}


def _observation(reading: MetricsReading, now_s: float, found: Sequence[Finding] = ()) -> Observation:
    from models.observation import Observation

    return Observation(
        at_s=now_s,
        engines=reading.engines,
        traffic=reading.traffic,
        findings=tuple(dict.fromkeys((*reading.findings, *found))),
        complete=reading.complete,
    )
