"""A metrics source: figures of engines that an agent of your own leaves in a JSON file.

    [{"pod": "llama-0", "namespace": "prod", "model": "llama-8b", "at_s": 1764500000, "kv": 0.4, "waiting": 0, "running": 7}]

A source never raises for what it cannot read, and never guesses: a figure that is absent stays unknown, a line that makes no
sense is a finding, and a file that cannot be read makes the reading incomplete, on which nothing is scaled in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from models.observation import EngineObservation, Finding, VariantObservation
from models.units import EpochSeconds
from models.value import Value
from planner.clock import Clock
from planner.control.options import options_of
from planner.control.protocols import MetricsReading

_MOST_BYTES = 64 * 2**20


class Options(Value):
    """Options of the source."""

    path: Path = Field(description="JSON file that the agent writes")


class Row(Value):
    """What the agent says of one engine."""

    pod: Annotated[str, Field(min_length=1, max_length=253)]
    namespace: Annotated[str, Field(min_length=1, max_length=253)]
    model: Annotated[str, Field(min_length=1, max_length=253)]
    at_s: EpochSeconds
    kv: Annotated[float, Field(ge=0, le=1)] | None = None
    kv_tokens: Annotated[int, Field(ge=0, le=10**12)] | None = None
    waiting: Annotated[float, Field(ge=0, le=1e9)] | None = None
    running: Annotated[float, Field(ge=0, le=1e9)] | None = None


class AgentReadings:
    """Reads the file afresh each time."""

    def __init__(self, options: Options) -> None:
        self._path = options.path

    def read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        """Engines that the file tells of."""
        owners = {(each.namespace, pod): each.name for each in variants for pod in each.pods}
        try:
            with self._path.open("rb") as file:
                rows = json.loads(file.read(_MOST_BYTES))
        except (OSError, ValueError, RecursionError) as cause:
            problem = f"it cannot be read ({type(cause).__name__})"
            finding = Finding(subject=f"file {self._path}", problem=problem, remedy="does the agent run?")
            return MetricsReading(findings=(finding,), complete=False)
        engines, findings = [], []
        for place, row in enumerate(rows if isinstance(rows, list) else [rows]):
            try:
                one = TypeAdapter(Row).validate_python(row)
            except ValidationError as cause:
                findings.append(
                    Finding(
                        subject=f"file {self._path}",
                        problem=f"entry {place} is ignored: {cause.error_count()} faults",
                    )
                )
                continue
            engines.append(_engine(one, owners.get((one.namespace, one.pod), ""), now_s))
        return MetricsReading(engines=tuple(engines), findings=tuple(findings))


def _engine(row: Row, variant: str, now_s: float) -> EngineObservation:
    return EngineObservation(
        instance=row.pod, namespace=row.namespace, pod=row.pod, variant=variant, model=row.model,
        age_s=max(0.0, now_s - row.at_s), running=row.running, waiting=row.waiting, kv_usage=row.kv, kv_now=row.kv,
        kv_tokens=row.kv_tokens,
    )  # fmt: skip


def source(options: Mapping[str, object], clock: Clock) -> AgentReadings:
    """The factory that the entry point names."""
    del clock
    return AgentReadings(options_of(Options, "agent", options))
