"""Pages of metrics of engines and endpoint pickers, in the words of vLLM V1 and llm-d-router."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Histogram", "line", "lines_of"]


@dataclass
class Histogram:
    """A histogram that somebody counts into."""

    bounds: Sequence[float]
    total: float = 0.0
    counts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        self.total += value
        self.counts[bisect_left(self.bounds, value)] += 1

    def lines(self, name: str, labels: Mapping[str, str]) -> Iterable[str]:
        below = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            below += count
            yield line(f"{name}_bucket", below, {**labels, "le": bound})
        yield line(f"{name}_count", below, labels)
        yield line(f"{name}_sum", self.total, labels)


def line(name: str, value: float, labels: Mapping[str, str]) -> str:
    """One sample."""
    inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value}" if inside else f"{name} {value}"


def lines_of(
    prefix: str, values: Mapping[str, float], histograms: Mapping[str, Histogram], labels: Mapping[str, str]
) -> Iterable[str]:
    """Samples of values and histograms that share the beginning of their names, and their labels."""
    for name, value in values.items():
        yield line(prefix + name, value, labels)
    for name, each in histograms.items():
        yield from each.lines(prefix + name, labels)
