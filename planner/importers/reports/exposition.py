"""Prometheus text -> samples with their times (text format 0.0.4; the ``# EOF`` of OpenMetrics is a comment here)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Final

__all__ = ["Sample", "is_exposition", "samples_of", "time_in_name"]

_LINE: Final = re.compile(
    r"^(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+(?P<time>-?\d+(?:\.\d+)?))?\s*$"
)
_LABEL: Final = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ISO: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T_ ](\d\d)[-:]?(\d\d)[-:]?(\d\d)")
_UNIX: Final = re.compile(r"(?<!\d)(\d{13}|\d{10}(?:\.\d+)?)(?!\d)")
_SERVERS: Final = ("vllm:", "sglang:")
_MS: Final = 1e11
"""Times above this are in ms: in s it would be the year 5138."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: name, labels, value, and the time in s since 1970 (None: the line states none)."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    time_s: float | None

    def label(self, name: str) -> str | None:
        """The value of a label."""
        return dict(self.labels).get(name)


def is_exposition(text: str) -> bool:
    """Whether a text is a metrics page of an inference server."""
    return any(line.startswith(_SERVERS) for line in text.splitlines())


def samples_of(text: str) -> Iterator[Sample]:
    """Samples of inference servers; lines of other exporters and lines that are no sample are passed over."""
    for line in text.splitlines():
        match = _LINE.match(line) if line.startswith(_SERVERS) else None
        if match is None:
            continue
        try:
            value = float(match["value"])
        except ValueError:
            continue
        if math.isnan(value):
            continue
        labels = tuple(sorted(_LABEL.findall(match["labels"] or "")))
        stamp = float(match["time"]) if match["time"] else None
        if stamp is not None and stamp > _MS:
            stamp /= 1000
        yield Sample(match["name"], labels, value, stamp)


def time_in_name(file: str) -> float | None:
    """The time that a file name states, s since 1970: ``2026-04-25T18-47-18.prom``, ``1777142838.txt``; None: none."""
    name = PurePath(file).name
    iso = _ISO.search(name)
    if iso is not None:
        try:
            return datetime(*(int(part) for part in iso.groups()), tzinfo=UTC).timestamp()  # type: ignore[misc, arg-type]
        except ValueError:
            return None
    unix = _UNIX.search(name)
    if unix is None:
        return None
    stamp = float(unix[1])
    return stamp / 1000 if stamp > _MS else stamp
