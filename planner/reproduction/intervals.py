"""Means over seeds, with how sure they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final

__all__ = ["Estimate", "estimate", "mean_of"]

_CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over runs and the half width of its 95 % confidence interval (Student's t); NaN for a single run."""

    mean: float
    half: float

    @property
    def low(self) -> float | None:
        """Lower end; None where one run says nothing of it."""
        return None if math.isnan(self.half) else self.mean - self.half

    @property
    def high(self) -> float | None:
        """Upper end."""
        return None if math.isnan(self.half) else self.mean + self.half

    def text(self, digits: int, *, scale: float = 1.0) -> str:
        """``mean ± half``."""
        if math.isnan(self.mean):
            return "–"
        mean = f"{self.mean * scale:.{digits}f}"
        return mean if math.isnan(self.half) else f"{mean} ± {self.half * scale:.{digits}f}"


def estimate(values: Sequence[float]) -> Estimate:
    """Mean of what there is (NaN: nothing was seen in that run) and its interval."""
    from scipy.stats import t

    known = [value for value in values if not math.isnan(value)]
    if not known:
        return Estimate(math.nan, math.nan)
    if len(known) == 1:
        return Estimate(known[0], math.nan)
    quantile = float(t.ppf((1 + _CONFIDENCE) / 2, len(known) - 1))
    return Estimate(fmean(known), quantile * stdev(known) / math.sqrt(len(known)))


def mean_of(runs: Sequence[object], figure: str) -> Estimate:
    """Mean of a figure over runs that have it by this name."""
    return estimate([float(getattr(run, figure)) for run in runs])
