"""Traffic to replay: the draft's own in several shapes, lines of a visitor, or a file of theirs. Nothing here is drawn."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import Field

from models.scenario import Scenario
from models.value import Value
from models.workload import Bucket
from planner.errors import ConfigurationError, Finding
from planner.ui.replaying.keeping import forget_old
from planner.ui.uploads import Upload, faults_of

__all__ = ["SHAPES", "TRACES", "Traffic", "kept_trace", "planned_lines", "typed_lines"]

TRACES: Final = "traces"
"""Folder below that of workspaces in which uploaded traces lie."""

_SUFFIXES: Final = (".csv", ".jsonl")
_KEPT: Final = 50
_STEPS: Final = (0.5, 1.0, 1.5, 1.0, 0.5)


class Traffic(Value):
    """What is replayed: lines, or one file."""

    lines: tuple[str, ...] = Field((), description="each [SERVICE=]KIND:KEY=VALUE,…, see docs/traces.md")
    file: str = Field("", description="name of a kept trace below the folder of traces; empty: none")
    service: str = Field("", description="that all requests of the file are for; empty: as the file says")
    scale: float = Field(1.0, gt=0, le=1000, description="so many times the requests of the file")


def _steady(rps: float, seconds: float) -> str:
    return f"poisson:rate={rps:.9g},duration={seconds:g}s"


def _bursts(rps: float, seconds: float) -> str:
    return f"gamma:rate={rps:.9g},cv=4,duration={seconds:g}s"


def _staircase(rps: float, seconds: float) -> str:
    rates = ",".join(f"{rps * share:.9g}" for share in _STEPS)
    return f"staircase:rates=[{rates}],step={seconds / len(_STEPS):.9g}s"


def _ramp(rps: float, seconds: float) -> str:
    return f"ramp:from={rps / 2:.9g},to={rps * 2:.9g},duration={seconds:g}s"


def _day(rps: float, seconds: float) -> str:
    return f"diurnal:low={rps * 0.3:.9g},high={rps * 1.2:.9g},period={seconds:g}s,duration={seconds:g}s"


SHAPES: Final[Mapping[str, Callable[[float, float], str]]] = {
    "steady: as planned, by chance": _steady,
    "bursts: as planned on average, in crowds": _bursts,
    "staircase: half, planned, half more, planned, half": _staircase,
    "ramp: from half to twice of what is planned": _ramp,
    "a day in short: from 30 % at night to 120 % at noon": _day,
}
"""How the draft's traffic comes: a line of :mod:`planner.traces.spec` for a rate, req/s, and a length, s."""


def planned_lines(scenario: Scenario, shape: str, *, minutes: float, times: float) -> tuple[str, ...]:
    """Traffic of every service and request shape of a scenario, in a shape of :data:`SHAPES`.

    Args:
        scenario: whose services.
        shape: key of :data:`SHAPES`.
        minutes: how long, min.
        times: so many times what is planned.
    """
    return tuple(
        f"{service.id}={SHAPES[shape](bucket.arrival_rps * times, minutes * 60)},{_lengths(bucket)}"
        for service in scenario.services
        for bucket in service.buckets
        if bucket.arrival_rps > 0
    )


def _lengths(bucket: Bucket) -> str:
    return f"input={bucket.input_tokens},output={bucket.output_tokens}"


def typed_lines(text: str) -> tuple[str, ...]:
    """Lines as somebody typed them; they describe traffic and name no files.

    Raises:
        ConfigurationError: there is none, or some name files.
    """
    lines = tuple(line.strip() for line in text.splitlines() if line.strip())
    findings = [
        Finding("", number, "traffic", f"{line[:60]!r}, which names a file", "a line without / and lengths=")
        for number, line in enumerate(lines, 1)
        if "/" in line or "\\" in line or "lengths=" in line.replace(" ", "") or ":" not in line
    ]
    if not lines:
        findings.append(
            Finding("", None, "traffic", "no line", "poisson:rate=5,duration=10m,input=512,output=128")
        )
    if findings:
        raise ConfigurationError.from_findings(findings)
    return lines


def kept_trace(upload: Upload, folder: Path) -> str:
    """The name under which an uploaded trace is kept: equal files have one, and old ones are forgotten.

    Args:
        upload: as the browser sent it.
        folder: of workspaces.

    Raises:
        ConfigurationError: its name or content is none that a trace may have.
    """
    findings = faults_of(upload, _SUFFIXES, "a .csv or .jsonl file")
    if findings:
        raise ConfigurationError.from_findings(findings)
    digest = hashlib.sha256(upload.content).hexdigest()[:32]
    name = f"{digest}/{PurePosixPath(upload.name).name}"
    path = folder / TRACES / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(upload.content)
    os.utime(path.parent)  # brought again, it is new again
    forget_old(folder / TRACES, _KEPT)
    return name
