"""Metrics from files: pages of engines, with or without times, and recorded observations; replayed as time goes on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import Field, ValidationError

from models.ids import Name
from models.observation import EngineObservation, Finding, Observation, VariantObservation
from models.units import PositiveSeconds
from models.value import Value
from planner.clock import Clock
from planner.control.collectors.pages import Origin, PageBook
from planner.control.options import options_of
from planner.control.protocols import MetricsReading
from planner.errors import ConfigurationError
from planner.errors import Finding as InputFinding
from planner.importers.reports.exposition import time_in_name

__all__ = ["FileOptions", "FileSource", "read_observations", "source"]

_MOST_BYTES: Final = 512 * 2**20
_MOST_FILES: Final = 100_000
_FIRST_BYTES: Final = 4096
_TIME: Final = re.compile(
    r"[._@-]?(?:\d{4}-\d\d-\d\d[T_ ]\d\d[-:]?\d\d[-:]?\d\dZ?|(?<!\d)(?:\d{13}|\d{10}(?:\.\d+)?)(?!\d))[._@-]?"
)
"""A time in the name of a file, which is no part of the name of the engine."""


class FileOptions(Value):
    """What to read, and how fast it is replayed."""

    paths: tuple[Path, ...] = Field(
        min_length=1, description="files or folders: pages, recorded observations"
    )
    speed: PositiveSeconds = Field(1.0, description="seconds of the record that pass in one second")
    again: bool = Field(False, description="start over at the end of the record")
    retention_s: PositiveSeconds = Field(
        600.0, le=86_400, description="period over which arrived and completed requests are counted, s"
    )
    pools: Mapping[str, Name] = Field({}, description="namespace by InferencePool")


@dataclass(frozen=True, slots=True)
class _Frame:
    """A page or an observation, and when it was (s of the epoch)."""

    at_s: float
    origin: Origin | None = None
    path: Path | None = None
    observation: Observation | None = None


class FileSource:
    """Replays files: the first reading is the first moment of the record, later ones are as much later.

    Pages without a time are of now.

    Args:
        options: which files.
        frames: the record, oldest first.
        timeless: pages without a time.
    """

    def __init__(
        self, options: FileOptions, frames: Sequence[_Frame], timeless: Sequence[tuple[Origin, Path]]
    ) -> None:
        self.options = options
        self._frames = frames
        self._timeless = timeless
        self._book = PageBook(retention_s=options.retention_s, pools=options.pools)
        self._begun_s: float | None = None
        self._next = 0
        self._recorded: Observation | None = None

    @property
    def span_s(self) -> float:
        """How long the record is, s."""
        return self._frames[-1].at_s - self._frames[0].at_s if self._frames else 0.0

    @property
    def end_s(self) -> float | None:
        """When the record ends, s of the epoch; None: it holds no times."""
        return self._frames[-1].at_s if self._frames else None

    @property
    def recorded(self) -> Observation | None:
        """The recorded observation that was read last, with its variants and pools; None: pages were read."""
        return self._recorded

    def read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        """See :class:`planner.control.protocols.MetricsSource`."""
        if self._begun_s is None:
            self._begun_s = now_s
        passed_s = max(0.0, now_s - self._begun_s) * self.options.speed
        if self.options.again and self._frames and passed_s > self.span_s:
            self._begun_s, passed_s = now_s, 0.0
            self._start_over()
        return self._at(variants, passed_s, now_s)

    def read_end(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        """The reading at the end of the record, as if it were now."""
        return self._at(variants, self.span_s, now_s)

    def _at(self, variants: Sequence[VariantObservation], passed_s: float, now_s: float) -> MetricsReading:
        findings: list[Finding] = []
        moment_s = self._frames[0].at_s + passed_s if self._frames else now_s
        # Times of the record are moved so that the moment that is read is now.
        shift_s = now_s - moment_s
        while self._next < len(self._frames) and self._frames[self._next].at_s <= moment_s + 1e-6:
            self._take(self._frames[self._next], findings)
            self._next += 1
        for origin, path in self._timeless:
            self._take(_Frame(moment_s, origin, path), findings)
        if self._recorded is not None:
            return _replayed(self._recorded, moment_s, findings)
        reading = self._book.reading(variants, moment_s, findings=findings, complete=not findings)
        return _moved(reading, shift_s)

    def _start_over(self) -> None:
        self._book = PageBook(retention_s=self.options.retention_s, pools=self.options.pools)
        self._next, self._recorded = 0, None

    def _take(self, frame: _Frame, findings: list[Finding]) -> None:
        if frame.observation is not None:
            self._recorded = frame.observation
        elif frame.path is not None and frame.origin is not None:
            try:
                self._book.take(frame.origin, _text(frame.path), frame.at_s)
            except OSError as cause:
                problem = f"it cannot be read: {cause.strerror}"
                findings.append(
                    Finding(subject=f"file {frame.path}", problem=problem, remedy="was it moved away?")
                )


def _replayed(recorded: Observation, moment_s: float, findings: Iterable[Finding]) -> MetricsReading:
    """A recorded observation as it is some time after."""
    later_s = max(0.0, moment_s - recorded.at_s)
    return MetricsReading(
        engines=tuple(_aged(engine, later_s) for engine in recorded.engines),
        traffic=recorded.traffic,
        findings=(*recorded.findings, *findings),
        complete=recorded.complete,
    )


def _aged(engine: EngineObservation, later_s: float) -> EngineObservation:
    return (
        engine
        if engine.age_s is None or later_s == 0.0
        else engine.but(age_s=min(1e9, engine.age_s + later_s))
    )


def _moved(reading: MetricsReading, shift_s: float) -> MetricsReading:
    if shift_s == 0.0:
        return reading
    engines = tuple(
        each if each.started_s is None else each.but(started_s=max(0.0, each.started_s + shift_s))
        for each in reading.engines
    )
    return replace(reading, engines=engines)


def read_observations(path: Path) -> tuple[Observation, ...]:
    """Recorded observations of a file: one as JSON, or one a line.

    Raises:
        ConfigurationError: it holds none, or something else too; lists every line that is wrong.
    """
    text = _text(path)
    found: list[Observation] = []
    wrong: list[InputFinding] = []
    for number, line in enumerate(text.splitlines() if _is_lines(text) else [text], start=1):
        if not line.strip():
            continue
        try:
            found.append(Observation.model_validate_json(line))
        except ValidationError as cause:
            first = cause.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            wrong.append(
                InputFinding(str(path), number, place, str(first["msg"])[:200], "a recorded observation")
            )
    if wrong or not found:
        raise ConfigurationError.from_findings(
            wrong or [InputFinding(str(path), None, "", "nothing", "recorded observations")]
        )
    return tuple(found)


def _is_lines(text: str) -> bool:
    """Whether it is one document a line: the first line is one by itself."""
    first = text.lstrip().partition("\n")[0].rstrip()
    return first.startswith("{") and first.endswith("}")


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES).decode("utf-8", "replace")


def _is_record(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(_FIRST_BYTES).lstrip().startswith(b"{")


def _origin(path: Path, folder: Path | None) -> Origin:
    """Whose page a file is: its name without time and ending, or the folder that is named after the engine."""
    stem = path.stem if path.suffix in {".prom", ".txt", ".metrics"} else path.name
    name = stem if time_in_name(path.name) is None else _TIME.sub("", stem, count=1)
    inside = path.parent if folder is None else path.parent.relative_to(folder)
    return Origin(name or (inside.name if folder is None or inside.parts else "") or "engine")


def source(options: Mapping[str, Any], clock: Clock) -> FileSource:
    """Make the source of these options; reads which files there are, and recorded observations.

    Raises:
        ConfigurationError: lists everything that is wrong with options and files.
    """
    return _opened(options_of(FileOptions, "files", options))


def _opened(read: FileOptions) -> FileSource:
    frames: list[_Frame] = []
    timeless: list[tuple[Origin, Path]] = []
    wrong: list[InputFinding] = []
    for path, folder in _files(read.paths, wrong):
        try:
            if _is_record(path):
                frames += [_Frame(each.at_s, observation=each) for each in read_observations(path)]
                continue
        except ConfigurationError as cause:
            wrong += cause.findings
            continue
        except OSError as cause:
            wrong.append(InputFinding(str(path), None, "", f"that it cannot be read: {cause.strerror}", "a file that we may read"))  # fmt: skip
            continue
        at_s = time_in_name(path.name)
        if at_s is None:
            timeless.append((_origin(path, folder), path))
        else:
            frames.append(_Frame(at_s, _origin(path, folder), path))
    if wrong:
        raise ConfigurationError.from_findings(wrong)
    return FileSource(read, sorted(frames, key=lambda frame: frame.at_s), timeless)


def _files(paths: Iterable[Path], wrong: list[InputFinding]) -> list[tuple[Path, Path | None]]:
    found: list[tuple[Path, Path | None]] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(
                each for each in path.rglob("*") if each.is_file() and not each.name.startswith(".")
            )
            found += [(each, path) for each in inside[:_MOST_FILES]]
            if not inside:
                wrong.append(
                    InputFinding(str(path), None, "", "an empty folder", "pages or recorded observations")
                )
        elif path.exists():
            found.append((path, None))
        else:
            wrong.append(InputFinding(str(path), None, "", "no such file", "a file or a folder"))
    return found
