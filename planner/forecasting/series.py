"""A series on a grid of equal steps; what is not known is a gap, which is not zero."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.errors import ConfigurationError

__all__ = ["Series", "series_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Series:
    """Values of equal steps.

    Attributes:
        start_s: begin of the first step, seconds of the epoch.
        step_s: length of a step, s.
        values: (n,) means over steps; NaN where nothing is known.
    """

    start_s: float
    step_s: float
    values: Floats

    @property
    def end_s(self) -> float:
        """End of the last step."""
        return self.start_s + self.step_s * len(self.values)

    @property
    def known(self) -> int:
        """Steps of which something is known."""
        return int(np.count_nonzero(np.isfinite(self.values)))

    def until(self, count: int) -> Series:
        """The first ``count`` steps."""
        return Series(self.start_s, self.step_s, self.values[:count])


def series_of(samples: Iterable[tuple[float, float]], *, step_s: float, end_s: float | None = None) -> Series:
    """Samples as means over steps that begin at whole multiples of the step; a step without one is a gap.

    Args:
        samples: time, s of the epoch, and value; in any order. What is no number is left out.
        step_s: length of a step, s.
        end_s: the last step is the last whole one before; None: that of the last sample.

    Raises:
        ConfigurationError: there is no sample, or they reach over more steps than anybody needs.
    """
    table = np.array([(at, value) for at, value in samples if np.isfinite(at) and np.isfinite(value)])
    if table.size == 0:
        raise ConfigurationError("a series without any value has no future")
    steps = np.floor(table[:, 0] / step_s).astype(np.int64)
    first, last = int(steps.min()), int(steps.max())
    if end_s is not None:
        last = int(np.floor(end_s / step_s)) - 1
    if not 0 <= last - first < 10**7:
        raise ConfigurationError(f"samples reach over {last - first + 1:,} steps of {step_s:g} s")
    inside = steps <= last
    place = steps[inside] - first
    size = last - first + 1
    count = np.bincount(place, minlength=size)
    total = np.bincount(place, weights=table[inside, 1], minlength=size)
    values = np.full(size, np.nan)
    np.divide(total, count, out=values, where=count > 0)
    return Series(first * step_s, step_s, values)
