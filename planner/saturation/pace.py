"""How inter-token latency rises with KV usage: ITL(k) = A·k + B, fitted on a window of what was seen.

Tier 1 is least squares over the window, once it is long and wide enough. Tier 2 pins B (the last fitted one, else
6 ms) and fits A alone.

Source: llm-d autoscaling v0.9, internal/engines/analyzers/throughput (ITL model).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

__all__ = ["DEFAULT_BASE_S", "REFERENCE_KV", "Pace", "PaceHistory", "Sample", "Tier", "fit_pace"]

REFERENCE_KV: Final = 0.85
"""KV usage that a replica is rated at."""

DEFAULT_BASE_S: Final = 0.006
"""B where none was ever fitted, s."""

_WINDOW: Final = 20
_KEPT_S: Final = 30 * 60.0
_ENOUGH: Final = 10
_SPREAD: Final = 0.30
_LOWEST_KV, _HIGHEST_KV = 0.15, 0.85
_LEAST_SLOPE: Final = 1e-12
_CHANGED: Final = 0.20
_WRONG: Final = 0.15
_JUDGED_FROM_KV: Final = 0.30
_WRONG_CYCLES: Final = 3
_LAST_BITS: Final = 1e-12


class Tier(StrEnum):
    """How a pace was found."""

    OLS = "T1-ols"
    PINNED = "T2-pinned"
    DEFAULT = "T2-default"
    FAILED = "T2-failed"
    ASLEEP = "T-sfz"
    """The variant has no replica: its last size once more."""


class Sample(NamedTuple):
    """One observation: when (s), KV usage, inter-token latency (s)."""

    at_s: float
    kv: float
    itl_s: float


class Pace(NamedTuple):
    """ITL(k) = slope·k + base, s."""

    slope_s: float
    base_s: float
    tier: Tier

    def itl_s(self, kv: float) -> float:
        """Inter-token latency at a KV usage, s."""
        return self.slope_s * kv + self.base_s

    @property
    def usable(self) -> bool:
        """Whether latency rises with usage and is positive where replicas are rated."""
        return self.slope_s > _LEAST_SLOPE and self.itl_s(REFERENCE_KV) > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceHistory:
    """What is remembered of one variant.

    Attributes:
        samples: of the last 30 minutes, newest last, at most 20.
        base_s: B of the last least-squares fit; None: there was none.
        lengths: (I, O) that the samples belong to; None: none yet.
        wrong: cycles in a row in which the predicted token rate was off.
        per_replica: last size of an instance, tokens/s.
    """

    samples: tuple[Sample, ...] = ()
    base_s: float | None = None
    lengths: tuple[float, float] | None = None
    wrong: int = 0
    per_replica: float = 0.0

    def of_lengths(self, lengths: tuple[float, float]) -> PaceHistory:
        """Emptied where input or output length moved by more than 20 %: the old samples tell of other requests."""
        moved = self.lengths is not None and any(
            abs(now - before) > _CHANGED * before for now, before in zip(lengths, self.lengths, strict=True)
        )
        if self.lengths is None or moved:
            return replace(self, samples=() if moved else self.samples, lengths=lengths, wrong=0)
        return self

    def seen(self, samples: Sequence[Sample], *, now_s: float) -> PaceHistory:
        """With what was seen now at a usage that tells something (0.15 to 0.85)."""
        useful = [one for one in samples if _LOWEST_KV <= one.kv <= _HIGHEST_KV and one.itl_s > 0]
        kept = [one for one in self.samples if now_s - one.at_s <= _KEPT_S]
        return replace(self, samples=tuple([*kept, *useful][-_WINDOW:]))

    def judged(self, errors: Sequence[tuple[float, float]]) -> PaceHistory:
        """With (KV usage, relative error of the token rate) of this cycle; off by 15 % for three cycles empties it."""
        telling = [error for kv, error in errors if kv >= _JUDGED_FROM_KV]
        if not telling:
            return self
        wrong = self.wrong + 1 if math.fsum(telling) / len(telling) > _WRONG else 0
        return replace(self, samples=(), wrong=0) if wrong >= _WRONG_CYCLES else replace(self, wrong=wrong)


def fit_pace(history: PaceHistory) -> Pace:
    """The pace that a history shows; tier ``T2-failed`` where it shows none."""
    samples = history.samples
    if len(samples) >= _ENOUGH and _spread(samples) >= _SPREAD - _LAST_BITS:
        fitted = _least_squares(samples)
        if fitted.usable:
            return fitted
    base = DEFAULT_BASE_S if history.base_s is None else history.base_s
    weight = math.fsum(one.kv**2 for one in samples)
    slope = math.fsum((one.itl_s - base) * one.kv for one in samples) / weight if weight > 0 else 0.0
    pinned = Pace(slope, base, Tier.DEFAULT if history.base_s is None else Tier.PINNED)
    return pinned if pinned.usable else pinned._replace(tier=Tier.FAILED)


def _spread(samples: Sequence[Sample]) -> float:
    return max(one.kv for one in samples) - min(one.kv for one in samples)


def _least_squares(samples: Sequence[Sample]) -> Pace:
    number = len(samples)
    mean_kv = math.fsum(one.kv for one in samples) / number
    mean_itl = math.fsum(one.itl_s for one in samples) / number
    above = math.fsum((one.kv - mean_kv) * (one.itl_s - mean_itl) for one in samples)
    slope = above / math.fsum((one.kv - mean_kv) ** 2 for one in samples)
    return Pace(slope, mean_itl - slope * mean_kv, Tier.OLS)
