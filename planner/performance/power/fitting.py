"""Fits the power model to measured runs, and says how far off it is on LLMs that it has not seen."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["PowerRun", "fit_draw", "left_out_draws"]

Floats = NDArray[np.float64]

_START: Final = (0.5, 4.0, 0.1)
_OUTLIER: Final = 0.1
_FULL_WEIGHT: Final = 15


@dataclass(frozen=True, slots=True)
class PowerRun:
    """One measured run.

    Attributes:
        llm: with near-duplicates under one name.
        used: share of peak FLOP/s in use, 0 to 1.
        gpus: accelerators that ran together.
        power_w: mean draw of one accelerator, W.
        idle_w: of one accelerator without load, W.
        tdp_w: thermal design power of one accelerator, W.
    """

    llm: str
    used: float
    gpus: int
    power_w: float
    idle_w: float
    tdp_w: float


def fit_draw(runs: Sequence[PowerRun]) -> tuple[float, float, float]:
    """(floor, load, spread) of :class:`~planner.performance.power.model.KnownDraw`: robust least squares on logarithms.

    An LLM counts no more than ``_FULL_WEIGHT`` runs, however often it was measured.

    Raises:
        ValueError: there is no run.
    """
    from scipy.optimize import least_squares

    if not runs:
        raise ValueError("no run to fit")
    seen = Counter(run.llm for run in runs)
    weight = np.array([min(1.0, math.sqrt(_FULL_WEIGHT / seen[run.llm])) for run in runs])
    measured = np.log([run.power_w for run in runs])

    def residuals(values: Floats) -> Floats:
        off: Floats = (np.log(_modeled(values, runs)) - measured) * weight
        return off

    found = least_squares(residuals, _START, bounds=(0.0, 20.0), loss="soft_l1", f_scale=_OUTLIER).x
    return float(found[0]), float(found[1]), float(found[2])


def left_out_draws(runs: Sequence[PowerRun]) -> Iterator[tuple[PowerRun, float]]:
    """Each run with the draw that a fit without its LLM predicts, W."""
    for llm in sorted({run.llm for run in runs}):
        seen = [run for run in runs if run.llm != llm]
        unseen = [run for run in runs if run.llm == llm]
        if seen:
            yield from zip(unseen, _modeled(np.array(fit_draw(seen)), unseen).tolist(), strict=True)


def _modeled(values: Floats, runs: Sequence[PowerRun]) -> Floats:
    used, gpus = np.array([run.used for run in runs]), np.array([run.gpus for run in runs], dtype=np.float64)
    idle, tdp = np.array([run.idle_w for run in runs]), np.array([run.tdp_w for run in runs])
    modeled: Floats = idle + (tdp - idle) * -np.expm1(
        -(values[0] + values[1] * np.sqrt(used)) / gpus ** values[2]
    )
    return modeled
