"""Learning α, β and γ of a running replica from the latencies it shows: an extended Kalman filter.

State x = (α, β, γ) in ms, measurement z = (TTFT, ITL) in ms, h = the queueing model of phases at the rate and lengths of
the moment. Q and the first P are diag((0.05·x)²), R = diag((0.05/1.96)²·z²), and x stays within a hundredth and a
hundred times where it began.

Source: llm-d's autoscaler @4fcefe6b, internal/engines/analyzers/queueingmodel (tuner). Ours: the gate is the 95 % point of
χ² with two degrees of freedom, as its comment says and its number (7.378, the 97.5 % point) does not; and a filter that
refused four measurements in a row doubts itself at the next (P doubles until it passes), since it would refuse for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.queueing import QueueingForm, QueueingParameters
from planner.performance.queueing import Case, columns_of
from planner.performance.queueing.sizing import latencies_at

__all__ = ["GATE_95", "Learner", "Measured", "first_guess"]

GATE_95: Final = 5.991
"""Squared distance beyond which a measurement is refused: 95 % point of χ²(2)."""

DEFAULT_MS: Final = (5.0, 0.05, 5e-5)

_NOISE: Final = 0.05
_DEVIATIONS: Final = 1.96
_WITHIN: Final = 100.0
_REFUSED_IN_A_ROW: Final = 5
_DOUBTS: Final = 40
_HALVINGS: Final = 30
_STEP: Final = 1e-4
_MS: Final = 1e3

Floats = NDArray[np.float64]
Vector = tuple[float, float, float]


class Measured(NamedTuple):
    """What one replica showed on average: rate (req/s), lengths (tokens), latencies (s)."""

    rps: float
    input_tokens: float
    output_tokens: float
    ttft_s: float
    itl_s: float

    @property
    def usable(self) -> bool:
        """Whether every figure is there."""
        return min(self.rps, self.output_tokens, self.ttft_s, self.itl_s) > 0 and self.input_tokens > 0


def first_guess(shown: Measured) -> Vector:
    """α = 0.9·ITL, β + γ = (TTFT - α)/I, γ = ((ITL - α) - (β + γ))/(I + (O + 1)/2 - 1), ms; else the defaults.

    Source: llm-d's autoscaler @4fcefe6b (initial parameters).
    """
    ttft, itl = shown.ttft_s * _MS, shown.itl_s * _MS
    alpha = 0.9 * itl
    both = (ttft - alpha) / shown.input_tokens if shown.input_tokens > 0 else 0.0
    length = shown.input_tokens + (shown.output_tokens + 1.0) / 2.0 - 1.0
    gamma = (itl - alpha - both) / length if length > 0 else 0.0
    if min(alpha, both - gamma, gamma) <= 0:
        return DEFAULT_MS
    return alpha, both - gamma, gamma


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """The filter as a value.

    Attributes:
        state: (α, β, γ), ms.
        covariance: of the state, row by row.
        origin: where it began.
        refused: measurements refused in a row.
        accepted: measurements accepted since it began.
    """

    state: Vector
    covariance: tuple[Vector, Vector, Vector]
    origin: Vector
    refused: int = 0
    accepted: int = 0

    @classmethod
    def from_guess(cls, guess: Vector) -> Learner:
        """A filter that begins at a guess, each parameter known to 5 %."""
        return cls(state=guess, covariance=_rows(np.diag((_NOISE * np.array(guess)) ** 2)), origin=guess)

    def parameters(self, *, max_batch: int = 256, max_queue: int = 100) -> QueueingParameters:
        """What it believes now, for the queueing model."""
        return _parameters(self.state, (max_batch, max_queue))

    @classmethod
    def begun(cls, shown: Measured, *, max_batch: int = 256, max_queue: int = 100) -> Learner:
        """A filter that begins at the first guess, made smaller until it foretells the inter-token latency that was seen.

        The guess takes the replica to be at rest, where all of the latency is work; under load a part of it is sharing.
        """
        guess = np.array(first_guess(shown))
        low, high = 1.0 / _WITHIN, 1.0
        for _ in range(_HALVINGS):
            middle = float(np.sqrt(low * high))
            over = _model(middle * guess, shown, (max_batch, max_queue))[1] > shown.itl_s * _MS
            low, high = (low, middle) if over else (middle, high)
        alpha, beta, gamma = (float(value) for value in high * guess)
        return cls.from_guess((alpha, beta, gamma))

    def learned(self, shown: Measured, *, max_batch: int = 256, max_queue: int = 100) -> Learner:
        """The filter after one measurement; unusable ones change nothing.

        Returns:
            With an updated state, or with one more refusal where the measurement is too far off (the state is kept).
            The fifth refusal in a row is none: the filter doubts itself until the measurement passes.
        """
        if not shown.usable:
            return self
        doubting = self.refused + 1 >= _REFUSED_IN_A_ROW
        return self._updated(shown, (max_batch, max_queue), doubting=doubting)

    def _updated(self, shown: Measured, limits: tuple[int, int], *, doubting: bool) -> Learner:
        x = np.array(self.state)
        here = _model(x, shown, limits)
        slope = _jacobian(x, here, shown, limits)
        p = np.array(self.covariance) + np.diag((_NOISE * x) ** 2)
        z = np.array([shown.ttft_s, shown.itl_s]) * _MS
        r = np.diag((_NOISE / _DEVIATIONS) ** 2 * z**2)
        off = z - here
        for _ in range(_DOUBTS if doubting else 0):
            if _distance(off, slope @ p @ slope.T + r) < GATE_95:
                break
            p = 2.0 * p
        s = slope @ p @ slope.T + r
        if _distance(off, s) >= GATE_95:
            return replace(self, refused=self.refused + 1)
        gain = np.linalg.solve(s, slope @ p).T
        kept = np.eye(3) - gain @ slope
        origin = np.array(self.origin)
        x = np.clip(x + gain @ off, origin / _WITHIN, origin * _WITHIN)
        # Joseph's form stays symmetric and positive whatever rounding does.
        p = kept @ p @ kept.T + gain @ r @ gain.T
        return replace(
            self,
            state=(float(x[0]), float(x[1]), float(x[2])),
            covariance=_rows(p),
            refused=0,
            accepted=self.accepted + 1,
        )


def _distance(off: Floats, spread: Floats) -> float:
    """Squared distance of a measurement in units of what was to be expected (NIS)."""
    return float(off @ np.linalg.solve(spread, off))


def _parameters(state: Vector, limits: tuple[int, int]) -> QueueingParameters:
    """(α, β, γ) in ms and (batch, queue) for the queueing model."""
    alpha, beta, gamma = state
    return QueueingParameters(
        form=QueueingForm.PHASES,
        alpha_ms=alpha,
        beta_ms_per_token=beta,
        gamma_ms_per_token=gamma,
        max_batch=limits[0],
        max_queue=limits[1],
    )


def _model(x: Floats, shown: Measured, limits: tuple[int, int]) -> Floats:
    """(TTFT, ITL) in ms that the queueing model shows at the measured rate and lengths."""
    known = _parameters((float(x[0]), float(x[1]), float(x[2])), limits)
    case = Case(parameters=known, input_tokens=shown.input_tokens, output_tokens=shown.output_tokens)
    found = latencies_at(columns_of([case]), np.array([shown.rps]))
    return np.array([found.ttft_s[0], found.itl_s[0]]) * _MS


def _jacobian(x: Floats, here: Floats, shown: Measured, limits: tuple[int, int]) -> Floats:
    """∂(TTFT, ITL)/∂(α, β, γ) by differences, 2 × 3."""
    columns = []
    for index in range(3):
        step = _STEP * x[index]
        moved = x.copy()
        moved[index] += step
        columns.append((_model(moved, shown, limits) - here) / step)
    return np.column_stack(columns)


def _rows(matrix: Floats) -> tuple[Vector, Vector, Vector]:
    first, second, third = (tuple(float(value) for value in row) for row in matrix)
    return first, second, third  # type: ignore[return-value]  # three rows of three
