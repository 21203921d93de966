"""Fits shares of peak to measured rows: one value for all, a factor per engine where its rows ask for one.

Least squares on logarithms of latencies, robust (pseudo-Huber), with ridge pulls toward the start values
and of the engines' own values toward the common one, so that an engine with few rows stays near the rest. Work cannot be done faster than at peak: those
shares are 1 + exp(x). Rows are weighted
so that an LLM on an accelerator counts no more than ``_FULL_WEIGHT`` rows, however often it was measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.performance.roofline.formula import Shares, first_token_s, step_s
from planner.performance.roofline.work import Work, stacked

__all__ = ["Fit", "Observation", "fit_shares", "predict"]

Floats = NDArray[np.float64]

_NAMES: Final = tuple(field.name for field in fields(Shares))
_START: Final = Shares(
    base_s=2e-3, layer_s=5e-5, expert_layer_s=3e-5, sequence_s=1e-5, weights=1.25, experts=1.4, kv=1.4,
    flops=1.5, expert_flops=2.5, prefill=1.8, expert_prefill=2.5, hop_s=6e-6, link=1.5,
    first_base_s=0.03, first_steps=1.0, first_prefill=1.0, wait=0.5, burst=0.05,
)  # fmt: skip
_AT_PEAK: Final = np.array(
    [
        name in {"weights", "experts", "kv", "flops", "expert_flops", "prefill", "expert_prefill", "link"}
        for name in _NAMES
    ]
)
_PULL: Final = 0.3
_ENGINE_PULL: Final = 0.7
_OUTLIER: Final = 0.15
_OUTLIER_FIRST: Final = 0.2
_FIRST_WEIGHT: Final = 0.5
_FULL_WEIGHT: Final = 15
_EVALUATIONS: Final = 80
_MOST: Final = 50.0
"""exp of more would leave the range of what can be squared."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One measured row.

    Attributes:
        work: what the replica had to do.
        in_flight: requests in flight.
        itl_s: measured inter-token latency, s.
        ttft_s: measured time to first token, s; None: not measured.
        rps: measured rate, req/s; None: not measured.
        engine: engine or benchmark whose rows share a factor.
        llm: LLM, near-duplicates under one name, so that leaving one out leaves out its twins.
        accelerator: type.
    """

    work: Work[float]
    in_flight: float
    itl_s: float
    ttft_s: float | None
    rps: float | None
    engine: str
    llm: str
    accelerator: str


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted shares.

    Attributes:
        common: for an engine that no row is from.
        engines: by engine.
    """

    common: Shares[float]
    engines: dict[str, Shares[float]]

    def of(self, engine: str) -> Shares[float]:
        """The shares of one engine."""
        return self.engines.get(engine, self.common)


def fit_shares(rows: Sequence[Observation]) -> Fit:
    """Shares that explain the rows.

    Raises:
        ValueError: there is no row.
    """
    from scipy.optimize import least_squares

    if not rows:
        raise ValueError("no row to fit")
    engines = sorted({row.engine for row in rows})
    problem = _Problem(rows, engines)
    start = np.concatenate([problem.start, np.zeros(len(engines) * len(_NAMES))])
    found = least_squares(problem.residuals, start, max_nfev=_EVALUATIONS).x
    common, by_engine = found[: len(_NAMES)], found[len(_NAMES) :].reshape(len(engines), -1)
    return Fit(
        common=Shares(**dict(zip(_NAMES, _values(common).tolist(), strict=True))),
        engines={
            engine: Shares(**dict(zip(_NAMES, _values(common + logs).tolist(), strict=True)))
            for engine, logs in zip(engines, by_engine, strict=True)
        },
    )


def predict(fit: Fit, rows: Sequence[Observation]) -> tuple[Floats, Floats]:
    """Inter-token latency and time to first token of each row, s."""
    work = stacked([row.work for row in rows])
    shares = [fit.of(row.engine) for row in rows]
    each = Shares(**{name: np.array([getattr(one, name) for one in shares]) for name in _NAMES})
    in_flight = np.array([row.in_flight for row in rows])
    return step_s(work, each, in_flight), first_token_s(work, each, in_flight)


class _Problem:
    """Residuals of the fit as a function of the logarithms of all shares and factors."""

    def __init__(self, rows: Sequence[Observation], engines: Sequence[str]) -> None:
        start = np.array([getattr(_START, name) for name in _NAMES])
        self.start: Floats = np.log(start - _AT_PEAK)
        self._work = stacked([row.work for row in rows])
        self._engine = np.array([engines.index(row.engine) for row in rows])
        self._engines = len(engines)
        self._in_flight = np.array([row.in_flight for row in rows])
        self._itl = np.log([row.itl_s for row in rows])
        self._ttft = np.log([row.ttft_s or np.nan for row in rows])
        self._has_ttft = np.isfinite(self._ttft)
        seen = Counter((row.llm, row.accelerator, row.engine) for row in rows)
        counts = np.array([seen[row.llm, row.accelerator, row.engine] for row in rows])
        self._weight = np.minimum(1.0, np.sqrt(_FULL_WEIGHT / counts))

    def residuals(self, logs: Floats) -> Floats:
        common, by_engine = logs[: len(_NAMES)], logs[len(_NAMES) :].reshape(self._engines, -1)
        values = _values(common + by_engine[self._engine]).T
        shares = Shares(**dict(zip(_NAMES, values, strict=True)))
        itl = np.log(step_s(self._work, shares, self._in_flight)) - self._itl
        ttft = np.log(first_token_s(self._work, shares, self._in_flight)) - self._ttft
        first = (_robust(ttft, _OUTLIER_FIRST) * self._weight)[self._has_ttft]
        return np.concatenate(
            [
                _robust(itl, _OUTLIER) * self._weight,
                first * _FIRST_WEIGHT,
                (common - self.start) * _PULL,
                by_engine.ravel() * _ENGINE_PULL,
            ]
        )


def _values(logs: Floats) -> Floats:
    """Shares from what is fitted; the last axis is the share."""
    values: Floats = np.exp(np.minimum(logs, _MOST)) + _AT_PEAK
    return values


def _robust(residual: Floats, scale: float) -> Floats:
    """Signed root of the pseudo-Huber loss: quadratic below ``scale``, linear above."""
    loss: Floats = np.sqrt(2.0 * (np.sqrt(1.0 + (residual / scale) ** 2) - 1.0))
    return np.sign(residual) * scale * loss
