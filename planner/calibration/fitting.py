"""Robust least squares for alpha, beta and gamma: relative errors, several starts, and outliers that hardly count.

Residuals are logarithms of modeled over seen latencies, so that a deviation counts alike at 2 ms and at 20 s. A start
from non-negative least squares and scaled copies of it are improved under a soft-L1 loss, the best of them under a
Cauchy loss, whose influence falls to nothing for points far off (Huber and Ronchetti, Robust Statistics, 2nd ed., ch. 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, least_squares, nnls

__all__ = ["Fit", "Observations", "fit_parameters", "noise_of"]

Floats = NDArray[np.float64]

_LOWEST: Final = np.array([1e-6, 1e-9, 1e-12])
_HIGHEST: Final = np.array([1e5, 1e3, 1e2])
"""Bounds in ms, ms/token, ms/token: far below and above any engine."""
_STARTS: Final = ((1, 1, 1), (0.3, 3, 1), (3, 0.3, 1), (1, 0.1, 10), (1, 10, 0.1), (0.5, 1, 3))
_FIRST_SCALE: Final = 0.1
_LEAST_NOISE, _MOST_NOISE = 0.01, 0.3
_MAD: Final = 1.4826
"""Standard deviation over median absolute deviation of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Observations:
    """What was seen, and the lines of the model there.

    Attributes:
        lines: seconds per unit of each parameter, of shape (observations, 3).
        seconds: latencies seen, of shape (observations,), above 0.
    """

    lines: Floats
    seconds: Floats

    def __len__(self) -> int:
        """How many latencies were seen."""
        return len(self.seconds)

    def take(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> Observations:
        """Some of them."""
        return Observations(self.lines[chosen], self.seconds[chosen])


@dataclass(frozen=True, slots=True)
class Fit:
    """Parameters and what they leave.

    Attributes:
        theta: alpha in ms, beta and gamma in ms per token.
        residuals: ln(modeled / seen), of shape (observations,).
        noise: robust standard deviation of the residuals.
    """

    theta: Floats
    residuals: Floats
    noise: float


def fit_parameters(seen: Observations, *, near: Floats | None = None) -> Fit:
    """The parameters that explain what was seen.

    Args:
        seen: at least three latencies.
        near: a start that is known to be good (bootstrap); None: several starts are tried.
    """
    starts = [near] if near is not None else _starts(seen)
    first = [_improved(seen, start, loss="soft_l1", scale=_FIRST_SCALE) for start in starts]
    best = min(first, key=lambda found: float(found.cost))
    scale = max(2 * noise_of(best.fun), 2 * _LEAST_NOISE)
    last = _improved(seen, np.exp(best.x), loss="cauchy", scale=scale)
    return Fit(theta=np.exp(last.x), residuals=last.fun, noise=noise_of(last.fun))


def _starts(seen: Observations) -> list[Floats]:
    weighted = seen.lines / seen.seconds[:, None]
    # Columns differ by orders of magnitude: scale them before, and the answer after.
    size = np.linalg.norm(weighted, axis=0)
    size[size == 0] = 1.0
    found, _ = nnls(weighted / size, np.ones(len(seen)))
    # A parameter that least squares puts to 0 starts at what one per cent of the latencies would need.
    start = np.maximum(found / size, 0.01 / np.maximum(weighted.max(axis=0), 1e-30))
    return [np.clip(start * factors, _LOWEST * 10, _HIGHEST / 10) for factors in np.array(_STARTS)]


def _improved(seen: Observations, start: Floats, *, loss: str, scale: float) -> OptimizeResult:
    def residuals(log_theta: Floats) -> Floats:
        return np.asarray(np.log(seen.lines @ np.exp(log_theta) / seen.seconds))

    def jacobian(log_theta: Floats) -> Floats:
        parts = seen.lines * np.exp(log_theta)
        return np.asarray(parts / parts.sum(axis=1, keepdims=True))

    bounds = (np.log(_LOWEST), np.log(_HIGHEST))
    inside = np.clip(np.log(start), bounds[0] + 1e-9, bounds[1] - 1e-9)
    return least_squares(residuals, inside, jacobian, bounds=bounds, loss=loss, f_scale=scale, max_nfev=200)


def noise_of(residuals: Floats) -> float:
    """Robust standard deviation of residuals, within what clocks leave at least and a fit can bear."""
    middle = np.median(residuals)
    return float(np.clip(_MAD * np.median(np.abs(residuals - middle)), _LEAST_NOISE, _MOST_NOISE))
