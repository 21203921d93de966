"""Step times fitted on one half of a recorded run, by replaying it until the twin shows the same latencies.

Only when requests of that half got their tokens is looked at; arrivals and lengths of all requests are the question, not
the answer. A decoding span covers hundreds of steps, a first token a few, of which the one under way is met anywhere: so
spans tell step times about ten times as well, and weigh so. Residuals are ln(replayed / measured), outliers count little
(the first requests met an engine that was not warm). What the half cannot tell stays near where it started: a ridge on
the logarithms of the parameters, a factor of two being one standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import least_squares

from models.twin_timing import TableTiming
from planner.reproduction.measured.runs import Engine, Floats, Timeline
from planner.reproduction.measured.shape import StepShape

__all__ = ["Fitted", "fit_overhead", "fit_shape"]

_SPAN_WEIGHT: Final = 10.0
_USUAL: Final = 0.1
"""Size of a residual from which on it counts as an outlier."""
_DEVIATION: Final = float(np.log(2.0))
_STEPS: Final = (0.1, 0.05, 0.03)
"""Relative steps of a parameter, one fit after the other: the replay answers to small ones in jumps of whole steps."""
_MOST_CALLS: Final = 60
_STARTS: Final = 4
_SPREAD: Final = 0.5
"""The fit starts at the start of the form and at others, each parameter within exp(±this) of it."""
_OVERHEAD_S: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Fitted:
    """Step times and how well they explain the half that they were fitted on.

    Attributes:
        timing: the step times.
        parameters: what was fitted, by name; s.
        loss: of the residuals, for comparing fits of one run.
    """

    timing: TableTiming
    parameters: dict[str, float]
    loss: float


def fit_shape(engine: Engine, seen: slice, *, shape: StepShape) -> Fitted:
    """The parameters of a form that explain the requests in ``seen`` best, of several starts."""
    chance = np.random.default_rng(0)
    offsets = [np.zeros(len(shape.start))]
    offsets += [chance.uniform(-_SPREAD, _SPREAD, len(shape.start)) for _ in range(_STARTS - 1)]
    fits = [_fit(engine, seen, start=shape.start, make=shape.timing, offset=offset) for offset in offsets]
    return min(fits, key=lambda fit: fit.loss)


def fit_overhead(engine: Engine, seen: slice, *, kernels: TableTiming) -> Fitted:
    """Kernel times with what the host adds to every step, fitted on the requests in ``seen``."""

    def make(values: Floats) -> TableTiming:
        return kernels.but(overhead_s=float(values[0]))

    return _fit(engine, seen, start={"overhead": _OVERHEAD_S}, make=make, offset=np.zeros(1))


def _fit(
    engine: Engine,
    seen: slice,
    *,
    start: Mapping[str, float],
    make: Callable[[Floats], TableTiming],
    offset: Floats,
) -> Fitted:
    measured, first = engine.measured.part(seen), np.array(list(start.values()))

    # Logarithms begin at 1, since the step of a derivative is relative to them.
    def values(logs: Floats) -> Floats:
        scaled: Floats = first * np.exp(logs - 1.0)
        return scaled

    def residuals(logs: Floats) -> Floats:
        missed = _residuals(engine.replayed(make(values(logs))).part(seen), measured)
        held: Floats = np.concatenate([missed, _USUAL * (logs - 1.0) / _DEVIATION])
        return held

    logs, loss = 1.0 + offset, 0.0
    for step in _STEPS:
        found = least_squares(
            residuals, logs, diff_step=step, loss="soft_l1", f_scale=_USUAL, max_nfev=_MOST_CALLS
        )
        logs, loss = found.x, float(found.cost)
    best = values(logs)
    return Fitted(make(best), dict(zip(start, best.tolist(), strict=True)), loss)


def _residuals(replayed: Timeline, measured: Timeline) -> Floats:
    firsts = np.log(replayed.ttft_s / measured.ttft_s)
    spans = np.log(replayed.itl_s / measured.itl_s)
    together: Floats = np.concatenate([firsts, _SPAN_WEIGHT * spans])
    return together
