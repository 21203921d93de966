"""What one solve of one instance left: JSON lines, so that an interrupted run goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final

__all__ = [
    "GAPS",
    "Event",
    "LevelEnd",
    "Record",
    "Task",
    "bounds_of",
    "final_gap",
    "load",
    "parsed",
    "save",
    "time_to",
]

GAPS: Final = (0.1, 0.01, 0.001)
_COST: Final = "cost"
_NEARLY: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Task:
    """What is measured: an instance by family and size, a solver by name, and how long and exact."""

    family: str
    size: int
    solver: str
    seconds: float
    gap: float = 1e-4
    seed: int = 0
    threads: int | None = None

    @property
    def instance(self) -> str:
        """Its name in tables."""
        return f"{self.family}-{self.size}" + (f"#{self.seed}" if self.seed else "")


@dataclass(frozen=True, slots=True)
class Event:
    """Best value and bound of a level at a moment, s since the solver was called."""

    seconds: float
    level: str
    value: float | None
    bound: float | None


@dataclass(frozen=True, slots=True)
class LevelEnd:
    """A level as the answer states it."""

    name: str
    value: float
    bound: float | None


@dataclass(frozen=True, slots=True)
class Record:
    """One solve; times in s, memory in MiB at its peak over the whole process."""

    task: Task
    status: str
    candidates: int = 0
    build_s: float = 0.0
    formulate_s: float = 0.0
    total_s: float = 0.0
    check_s: float = 0.0
    peak_mib: float = 0.0
    unserved_rps: float | None = None
    cost: float | None = None
    violations: int = 0
    levels: tuple[LevelEnd, ...] = ()
    events: tuple[Event, ...] = ()
    notes: tuple[str, ...] = ()
    again: dict[str, float] = field(default_factory=dict)


def distance(value: float | None, bound: float | None) -> float:
    """Relative gap; absolute where the value is 0; infinite while one is missing."""
    if value is None or bound is None:
        return inf
    apart = max(0.0, value - bound)
    return apart / abs(value) if value else apart


def _to_cost(record: Record) -> list[LevelEnd]:
    """Levels up to the cost: later ones choose among plans that are equal in all that people pay for."""
    names = [level.name for level in record.levels]
    return list(record.levels[: names.index(_COST) + 1]) if _COST in names else []


def time_to(record: Record, gap: float) -> float | None:
    """When all levels before the cost were proven to this gap, and the cost within it; None: never.

    A level that no event tells of had nothing to choose, and counts from when the next one is told of.
    """
    levels = _to_cost(record)
    if not levels or any(distance(level.value, level.bound) > gap + _NEARLY for level in levels):
        return None
    reached = [
        min(
            (
                e.seconds
                for e in record.events
                if e.level == level.name and distance(e.value, e.bound) <= gap + _NEARLY
            ),
            default=0.0,
        )
        for level in levels
    ]
    return max(reached) or record.total_s


def final_gap(record: Record, best: dict[str, float]) -> float:
    """The worst gap of the levels up to the cost against the best bounds that any solver proved; infinite without a plan.

    The bound of a level holds for plans that are as good on the levels before it, so that of another solver counts
    only up to the first level on which the two plans differ.
    """
    levels = _to_cost(record)
    if not levels:
        return inf
    return max(distance(level.value, best.get(level.name, level.bound)) for level in levels)


def bounds_of(record: Record, others: Iterable[Record]) -> dict[str, float]:
    """The best bound of each level that is valid for the plan of a record, its own or of another solver."""
    best = {level.name: level.bound for level in record.levels if level.bound is not None}
    for other in others:
        for mine, theirs in zip(record.levels, other.levels, strict=False):
            if mine.name != theirs.name:
                break
            if theirs.bound is not None:
                best[mine.name] = max(best.get(mine.name, -inf), min(theirs.bound, mine.value))
            if abs(mine.value - theirs.value) > 1e-6 * max(1.0, abs(mine.value)):
                break
    return best


def save(path: Path, record: Record) -> None:
    """Append one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(record), separators=(",", ":")) + "\n")


def load(path: Path) -> list[Record]:
    """All records of a file; a line that was cut short is left out. Of equal tasks the last one counts."""
    if not path.exists():
        return []
    found: dict[Task, Record] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            record = _record(json.loads(line))
        except (json.JSONDecodeError, TypeError, KeyError):
            continue
        found[record.task] = record
    return list(found.values())


def parsed(text: str) -> Record:
    """A record from the last line of a text."""
    return _record(json.loads(text.splitlines()[-1]))


def _record(document: dict[str, Any]) -> Record:
    def several(kind: type, values: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
        return tuple(kind(**value) for value in values)

    return Record(
        **document
        | {
            "task": Task(**document["task"]),
            "levels": several(LevelEnd, document["levels"]),
            "events": several(Event, document["events"]),
            "notes": tuple(document["notes"]),
        }
    )
