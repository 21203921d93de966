"""Lengths of synthetic requests: fixed, uniform, bounded normal, lognormal, or those of a trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from planner.traces.texts import MOST_TOKENS

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Empirical", "Fixed", "Independent", "Length", "Lengths", "LogNormal", "Normal", "Uniform"]


class Length(Protocol):
    """A distribution of one length."""

    def draw(self, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        """``n`` lengths, tokens, each at least 1."""


class Lengths(Protocol):
    """A distribution of inputs and outputs together."""

    def draw(self, rng: np.random.Generator, n: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Input and output tokens of ``n`` requests."""


def _whole(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.int32]:
    whole: NDArray[np.int32] = np.clip(np.rint(values), low, high).astype(np.int32)
    return whole


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same."""

    tokens: int

    def draw(self, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        """``n`` times the same."""
        return np.full(n, self.tokens, np.int32)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every whole number from ``low`` to ``high`` alike."""

    low: int
    high: int

    def draw(self, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        """``n`` lengths."""
        return rng.integers(self.low, self.high, n, dtype=np.int32, endpoint=True)


@dataclass(frozen=True, slots=True)
class Normal:
    """Normal with this mean and deviation; what is drawn outside the bounds counts as the bound."""

    mean: float
    sd: float
    low: int = 1
    high: int = MOST_TOKENS

    def draw(self, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        """``n`` lengths."""
        return _whole(rng.normal(self.mean, self.sd, n), self.low, self.high)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Lognormal; mean and deviation are those of the length itself, before it is held within the bounds."""

    mean: float
    sd: float
    low: int = 1
    high: int = MOST_TOKENS

    def draw(self, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        """``n`` lengths."""
        variance = np.log1p((self.sd / self.mean) ** 2)
        values = np.exp(rng.normal(np.log(self.mean) - variance / 2, np.sqrt(variance), n))
        return _whole(values, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Independent:
    """Inputs and outputs that know nothing of each other."""

    inputs: Length
    outputs: Length

    def draw(self, rng: np.random.Generator, n: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Input and output tokens of ``n`` requests."""
        return self.inputs.draw(rng, n), self.outputs.draw(rng, n)


@dataclass(frozen=True, slots=True, eq=False)
class Empirical:
    """Pairs drawn with replacement from those of a trace.

    Attributes:
        inputs: int32 (m,).
        outputs: int32 (m,).
    """

    inputs: NDArray[np.int32]
    outputs: NDArray[np.int32]

    def draw(self, rng: np.random.Generator, n: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Input and output tokens of ``n`` requests."""
        rows = rng.integers(0, len(self.inputs), n)
        return self.inputs[rows], self.outputs[rows]
