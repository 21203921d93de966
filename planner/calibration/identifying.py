"""Whether data can tell the parameters apart, and which further measurement would.

The Jacobian of the logarithms of latencies over the logarithms of the parameters says how much each parameter matters
at each load. Its normal matrix gives the standard errors that the noise of the residuals leaves. A parameter whose error
is of its own size **and** moves the latencies that were seen is not identified: it could as well be another one
(Raue et al., Bioinformatics 25 (2009) 1923, on practical identifiability). One that hardly matters in the data is bounded by
them all the same, and its interval says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.calibration.design import PARAMETERS, Design, Load

__all__ = ["Identity", "Proposal", "best_next_load", "identity_of"]

Floats = NDArray[np.float64]

_MODEL_ERROR: Final = 0.03
"""Relative error that a queueing model of an engine has at best, however quiet the measurement."""
_RELATIVE: Final = 0.5
_MATTERS: Final = 0.05
_SINGULAR: Final = 1e-9
_SOME: Final = 8.0
"""Requests at once that any replica bears."""


@dataclass(frozen=True, slots=True)
class Identity:
    """How well data tell parameters.

    Attributes:
        relative_error: standard error of each parameter over the parameter, of shape (3,).
        matters: largest share of a latency that the standard error of each parameter moves, of shape (3,).
        condition: largest over smallest singular value of the scaled Jacobian.
    """

    relative_error: Floats
    matters: Floats
    condition: float

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the parameters that the data do not identify."""
        bad = (self.relative_error > _RELATIVE) & (self.matters > _MATTERS)
        return tuple(name for name, is_bad in zip(PARAMETERS, bad, strict=True) if is_bad)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A measurement that would help, and the relative error of the worst parameter after it."""

    load: Load
    error_after: float


def identity_of(lines: Floats, theta: Floats, *, noise: float) -> Identity:
    """How well latencies with these lines tell parameters near ``theta``.

    Args:
        lines: seconds per unit of each parameter, of shape (observations, 3).
        theta: the parameters.
        noise: standard deviation of ln(modeled / seen).
    """
    parts = lines * theta
    jacobian = parts / parts.sum(axis=1, keepdims=True)
    size = np.linalg.norm(jacobian, axis=0)
    scaled = jacobian / size
    _, found, directions = np.linalg.svd(scaled, full_matrices=True)
    singular = np.zeros(len(PARAMETERS))
    singular[: len(found)] = found
    # The floor makes what cannot be told at all an error that is huge instead of a division by zero.
    floored = np.maximum(singular, _SINGULAR * singular[0])
    error = np.sqrt(((directions / floored[:, None]) ** 2).sum(axis=0)) / size * max(noise, _MODEL_ERROR)
    condition = float(floored[0] / floored[-1])
    return Identity(error, error * jacobian.max(axis=0), condition)


def best_next_load(
    design: Callable[[Sequence[Load]], Design], seen: Floats, theta: Floats, *, loads: Sequence[Load]
) -> Proposal:
    """Of some measurements near those that there are, the one that tells most.

    Args:
        design: lines of loads.
        seen: lines that there are, of shape (observations, 3).
        theta: parameters, as far as they are known.
        loads: load levels that there are.
    """
    proposals = []
    for load in _candidates(loads):
        more = design([load])
        lines = np.vstack([seen, more.itl, more.ttft])
        proposals.append(
            Proposal(load, float(identity_of(lines, theta, noise=_MODEL_ERROR).relative_error.max()))
        )
    return min(proposals, key=lambda each: each.error_after)


def _candidates(loads: Sequence[Load]) -> list[Load]:
    """Loads and shapes around those that there are: alone, half and all of the largest batch; four times longer or shorter."""
    lengths = [(load.input_tokens, load.output_tokens) for load in loads]
    inputs, outputs = (sorted(each) for each in zip(*lengths, strict=True))
    middle = len(loads) // 2
    shapes = {
        (inputs[middle], outputs[middle]),
        (inputs[middle], outputs[-1] * 4),
        (inputs[middle], max(8.0, outputs[0] / 4)),
        (inputs[-1] * 4, outputs[middle]),
        (max(16.0, inputs[0] / 4), outputs[middle]),
    }
    most = max(load.batch for load in loads)
    # Beyond the largest batch that was seen a replica may be saturated, which would tell nothing.
    batches = {1.0, max(1.0, round(most / 2)), max(most, _SOME)}
    return [Load(batch, batch, *shape) for shape in sorted(shapes) for batch in sorted(batches)]
