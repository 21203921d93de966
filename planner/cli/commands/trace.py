"""``trace``: from a pod back to the metric that asked for it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planner.cli.edge import Common, ExitCode
from planner.cli.gathering import Gathering
from planner.cli.terminal import out_console

if TYPE_CHECKING:
    from models.observation import VariantObservation

__all__ = ["RECORDS_VARIABLE", "TraceOptions", "records_of", "trace"]

RECORDS_VARIABLE: Final = "FLEETPLAN_RECORDS"
"""Folder of the controller's records, where nobody names one."""


@dataclass(frozen=True, kw_only=True)
class TraceOptions(Common):
    """Options of ``trace``."""

    pod: Annotated[
        str, typer.Argument(metavar="POD", help="Name of the pod, or NAMESPACE/NAME.", show_default=False)
    ]
    records: Annotated[
        Path | None,
        typer.Option("--records", metavar="DIR", show_default=False, help=f"Records of the controller; or set {RECORDS_VARIABLE}."),
    ] = None  # fmt: skip
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Ask the cluster whose pod it is, where no record has it.")
    ] = False
    context: Annotated[
        list[str] | None,
        typer.Option("--context", metavar="NAME", show_default=False, help="With --kubernetes: this context of the kubeconfig; repeatable."),
    ] = None  # fmt: skip
    kubeconfig: Annotated[
        Path | None,
        typer.Option("--kubeconfig", metavar="FILE", show_default=False, help="In place of KUBECONFIG."),
    ] = None
    every: Annotated[bool, typer.Option("--all", help="Show every series, not only the first ones.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False


def trace(options: TraceOptions) -> ExitCode:
    """Walk from a pod to the decision that asked for it, its record, the observation and the series.

    Exit code 3 when a link of the chain is missing; it says which, and why.
    """
    from planner.control.running.recording import read_records
    from planner.control.tracing import trace_pod

    asked = Gathering()
    folder = asked.attempt(lambda: records_of(options.records))
    if not options.kubernetes and (options.context or options.kubeconfig):
        asked.wrong("", "no --kubernetes", "--kubernetes beside --context and --kubeconfig")
    asked.check()
    assert folder is not None  # noqa: S101 - checked above
    namespace, _, name = options.pod.rpartition("/")
    owner = _owner(options, namespace, name) if options.kubernetes else None
    found = trace_pod(lambda: read_records(folder), name, namespace=namespace, owner=owner)
    if options.as_json:
        sys.stdout.write(f"{found.canonical_json()}\n")
    else:
        from planner.cli.screen.tracing import show_trace

        show_trace(out_console(), found, every=options.every)
    return ExitCode.DONE if found.complete else ExitCode.NOT_KEPT


def records_of(named: Path | None) -> Path:
    """The folder of records that is meant.

    Raises:
        ConfigurationError: none is named, or it is no folder.
    """
    from planner.errors import ConfigurationError, Finding

    given = named or Path(os.environ.get(RECORDS_VARIABLE, ""))
    if not str(given) or given == Path():
        found, allowed = "no folder", f"--records DIR, or the variable {RECORDS_VARIABLE}"
        raise ConfigurationError.from_findings([Finding("", None, "--records", found, allowed)])
    if not given.is_dir():
        allowed = "the folder that the controller writes its records to (records.folder of its settings)"
        raise ConfigurationError.from_findings([Finding(str(given), None, "", "no folder", allowed)])
    return given


def _owner(options: TraceOptions, namespace: str, name: str) -> VariantObservation | None:
    """The variant whose pod it is now; None: nobody's."""
    from planner.cli.commands.clusters import see_clusters

    _, reading = see_clusters(options.context or (), options.kubeconfig, [namespace] if namespace else [])
    return next((each for each in reading.variants if name in each.pods), None)
