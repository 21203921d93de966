"""Replay traffic against a draft's fleet under several policies; those that are through when stopped."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from models.scenario import Scenario
from planner.cli.run_folder import RunFolder
from planner.clock import SystemClock
from planner.errors import ConfigurationError, Finding, TemporaryError
from planner.optimization.protocol import ProgressEvent, SolveOptions
from planner.replaying import (
    Observers,
    Prepared,
    ReplayOptions,
    Run,
    Start,
    prepare,
    replay,
    series,
    told_replay,
)
from planner.traces import Change, HowRead, Trace, TraceFile, open_traces
from planner.ui.replaying.keeping import forget_old
from planner.ui.replaying.traffic import TRACES
from planner.ui.replaying.wanted import FOLDERS, Played, Wanted
from planner.ui.store import default_folder
from planner.ui.tasks.protocol import Reporter
from planner.ui.workspace import How

__all__ = ["MOST_REQUESTS", "run"]

MOST_REQUESTS: Final = 1_000_000
_KEPT: Final = 20
_SOLVER: Final = "twin"
_TELL_EVERY_S: Final = 0.3


class _StoppedError(Exception):
    """Somebody wants an end."""


def run(given: Mapping[str, Any], report: Reporter) -> str:
    """A :class:`Played`, JSON; after each policy a partial one. Progress is simulated time against the last arrival.

    Raises:
        ConfigurationError: the traffic, a policy, or the scenario is wrong.
        TemporaryError: there is no plan, or it was stopped before one policy was through.
    """
    scenario, how = Scenario.model_validate(given["scenario"]), How.model_validate(given["how"])
    wanted = Wanted.model_validate(given["wanted"])
    trace, files = _opened(wanted, scenario)
    last_s = _last_arrival_s(trace)
    options = SolveOptions(time_limit_s=how.time_limit_s, gap=how.gap, cancelled=report.stopped)
    prepared = prepare(scenario, solver=how.solver, options=options)
    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder(Path(name) / "replay", "csv")
        with folder.writing():
            runs = _runs(prepared, trace, wanted, _Watch(report, last_s, folder))
            played = _played(prepared, wanted, runs, files)
            for each in runs:
                folder.add(each)
            folder.add_summary(played.told)
        return played.but(archive=_archived(folder.path, runs, played.told.fingerprint)).model_dump_json()


class _Watch:
    """Who is told of runs, and ends them where somebody wants an end."""

    def __init__(self, report: Reporter, last_s: float, folder: RunFolder) -> None:
        self.report = report
        self.last_s = last_s
        self.folder = folder
        self._clock = SystemClock()
        self._due_s = 0.0

    def told(self, policy: str, at_s: float) -> None:
        if self.report.stopped():
            raise _StoppedError
        now_s = self._clock.monotonic_s()
        if now_s >= self._due_s:
            self._due_s = now_s + _TELL_EVERY_S
            self.report.progress(ProgressEvent(_SOLVER, policy, 0.0, at_s, self.last_s))

    def observers(self) -> Observers:
        return Observers(told=self.told, sink_of=self.folder.sink_of)


def _runs(prepared: Prepared, trace: Trace, wanted: Wanted, watch: _Watch) -> list[Run]:
    """Runs of policies, one after another, until all are through or somebody wants an end."""
    options = ReplayOptions(
        seed=wanted.seed, start=Start(wanted.start), every_variant=wanted.every_variant, keep_requests=False
    )
    made: list[Run] = []
    try:
        for each in replay(
            prepared.playable,
            prepared.solution,
            trace,
            wanted.policies,
            options=options,
            observers=watch.observers(),
        ):
            made.append(each)
            watch.report.partial(_played(prepared, wanted, made, ()).model_dump_json())
    except _StoppedError as stopped:
        if not made:
            raise TemporaryError("Stopped before one policy was through.") from stopped
    return made


def _opened(wanted: Wanted, scenario: Scenario) -> tuple[Trace, tuple[TraceFile, ...]]:
    """The traffic; findings speak of fields of the page."""
    traffic = wanted.traffic
    names = tuple(service.id for service in scenario.services)
    how = HowRead(services=names, seed=wanted.seed, change=Change(scale=traffic.scale))
    lines = [*traffic.lines]
    if traffic.file:
        path = str(_kept(traffic.file))
        lines.append(f"{traffic.service}={path}" if traffic.service else path)
    try:
        return open_traces(lines, how)
    except ConfigurationError as fault:
        raise _on_page(fault) from fault


def _kept(name: str) -> Path:
    """The file of a kept trace, which lies where uploads lie and nowhere else."""
    folder = (default_folder() / TRACES).resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder) or not path.is_file():
        raise ConfigurationError("the uploaded trace is not there any more: upload it again")
    return path


def _on_page(fault: ConfigurationError) -> ConfigurationError:
    findings = [_renamed(each) for each in fault.findings]
    return ConfigurationError.from_findings(findings) if findings else fault


def _renamed(finding: Finding) -> Finding:
    """A finding that names no option of a command, and a file as its owner calls it."""
    return replace(finding, file=Path(finding.file).name, path=finding.path.replace("--trace", "traffic"))


def _last_arrival_s(trace: Trace) -> float:
    """When the last request comes, s.

    Raises:
        ConfigurationError: there is none, there are too many, or a row cannot be read.
    """
    requests, last_s = 0, 0.0
    try:
        for chunk in trace:
            if len(chunk):
                requests, last_s = requests + len(chunk), float(chunk.arrival_s[-1])
            if requests > MOST_REQUESTS:
                break
    except ConfigurationError as fault:
        raise _on_page(fault) from fault
    if requests > MOST_REQUESTS:
        raise ConfigurationError(
            f"more than {MOST_REQUESTS:,} requests: shorten the traffic, or make it thinner; the command simulate takes it"
        )
    if not requests:
        raise ConfigurationError("the traffic holds no request: more minutes, or a higher rate")
    return last_s


def _played(prepared: Prepared, wanted: Wanted, runs: list[Run], files: tuple[TraceFile, ...]) -> Played:
    traffic = wanted.traffic
    read = [f"{Path(each.name).name}: {each.bad.told()}" for each in files if each.bad.told()]
    names = [Path(traffic.file).name] if traffic.file else list(traffic.lines)
    told = told_replay(
        prepared.playable, runs, traces=names, seed=wanted.seed, notes=[*prepared.notes, *read]
    )
    through = {each.figures.policy for each in runs}
    services = prepared.playable.scenario.services
    return Played(
        told=told,
        rows={
            "traffic": series.traffic_rows(runs),
            "replicas": series.replica_rows(runs),
            "kv": series.kv_rows(runs),
            "ttft": series.ttft_rows(runs),
            "failures": series.failure_rows(runs),
        },
        targets_s=series.ttft_targets_s(services),
        saturated=series.saturated_kv(services),
        missing=tuple(policy for policy in dict.fromkeys(wanted.policies) if policy not in through),
    )


def _archived(folder: Path, runs: list[Run], name: str) -> str:
    """All tables of the policies that are through, as one file; the name of it. Old ones are forgotten."""
    through = {each.figures.policy for each in runs}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder)
            if path.is_file() and (len(inside.parts) == 1 or inside.parts[0] in through):
                archive.writestr(zipfile.ZipInfo(str(inside)), path.read_bytes(), zipfile.ZIP_DEFLATED)
    kept = default_folder() / FOLDERS
    kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    (kept / f"{name}.zip").write_bytes(out.getvalue())
    forget_old(kept, _KEPT)
    return f"{name}.zip"
