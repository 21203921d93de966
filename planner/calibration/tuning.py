"""An extended Kalman filter that follows alpha, beta and gamma while a fleet runs. Pure: state in, state out.

The state is the logarithm of the parameters, so that none turns negative and drift and noise are shares; the
observation is the logarithm of TTFT and ITL, whose model is the queueing model at the batch that was seen (or at the
rate). Equations: Simon, Optimal State Estimation (2006), 13.2; the covariance is updated in Joseph's form, which
stays symmetric and non-negative.

The gate: with a right model the normalized innovation squared of m latencies is chi-squared with m degrees of freedom.
llm-d's autoscaler gates two latencies at 7.378 and calls it 95 %; that is the 97.5 % point. Here the probability is a
setting and the point is computed from it: 95 %, 5.991 for two latencies, 3.841 for one. The tighter gate refuses one good
observation in twenty, which costs a step; the looser one would let twice as many wrong ones move what plans rest on.
A run of refusals longer than ``patience`` is no series of outliers but another replica than was known (a new version,
another mix): the filter then opens its covariance and learns anew, within the bounds around the start.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from models.queueing import QueueingParameters
from models.tuning import TunerObservation, TunerSettings, TunerState, TunerStep, TunerVerdict
from planner.calibration.design import PARAMETERS, Design, Load, design_of

__all__ = ["first_guess", "restarted", "started", "tune"]

Floats = NDArray[np.float64]
Triple = tuple[float, float, float]

_HALF_WIDTH: Final = 1.96
_SMALLEST: Final = 1e-12
_MOST_VARIANCE: Final = 1.0
"""Of a logarithm: a parameter known to a factor of e, which is not known."""
_ITL_SHARE: Final = 0.9
_SEARCH: Final = 60
_LEAST_RPS: Final = 1e-6
"""Of a queue's wait: at rates next to 0 requests that wait would wait longer than numbers reach."""

_LONGEST_S: Final = 1e9
"""What nouns allow; only an absurd rate models more."""


def started(parameters: QueueingParameters, *, settings: TunerSettings | None = None) -> TunerState:
    """The state at the start: parameters believed within one step of drift.

    Args:
        parameters: as fitted, or :func:`first_guess`; a parameter of 0 starts just above it.
        settings: how fast the tuner follows.
    """
    settings = settings or TunerSettings()
    start = parameters.but(**{name: max(getattr(parameters, name), _SMALLEST) for name in PARAMETERS})
    return TunerState(parameters=start, start=start, covariance=_triples(np.eye(3) * settings.drift**2))


def restarted(state: TunerState, *, at_s: float) -> TunerState:
    """The state after the replica count changed: latencies are in transition for a while."""
    return state.but(changed_at_s=at_s)


def tune(state: TunerState, seen: TunerObservation, *, settings: TunerSettings | None = None) -> TunerStep:
    """Learn from one observation, or refuse it.

    Args:
        state: from :func:`started`, or of the step before.
        seen: what a replica did.
        settings: how fast the tuner follows, and what it refuses.

    Returns:
        The next state. It always holds finite parameters within the bounds, whatever was observed.
    """
    settings = settings or TunerSettings()
    if not _is_usable(seen):
        return TunerStep(state=state, verdict=TunerVerdict.UNUSABLE)
    if state.changed_at_s is not None and 0 <= seen.at_s - state.changed_at_s < settings.transient_s:
        return TunerStep(state=state, verdict=TunerVerdict.TRANSIENT)
    theta = _theta(state.parameters)
    lines, waited = _lines(state.parameters, seen, theta)
    modeled = lines @ theta + waited
    slope = lines * theta / modeled[:, None]
    stated = np.array([value for value in (seen.ttft_s, seen.itl_s) if value is not None])
    innovation = np.log(stated / modeled)
    before = np.minimum(np.array(state.covariance) + np.eye(3) * settings.drift**2, _MOST_VARIANCE)
    noise = np.eye(len(stated)) * (settings.noise / _HALF_WIDTH) ** 2
    spread = slope @ before @ slope.T + noise
    surprise = float(innovation @ np.linalg.solve(spread, innovation))
    gate = float(chi2.ppf(settings.gate, len(stated)))
    said = {"surprise": surprise, "gate": gate, **_said(seen, modeled)}
    if not math.isfinite(surprise) or surprise > gate:
        return TunerStep(state=_refused(state, settings), verdict=TunerVerdict.OUTLIER, **_finite(said))
    gain = np.linalg.solve(spread, slope @ before).T
    after, bounded = _bounded(np.log(theta) + gain @ innovation, state.start, settings)
    kept = np.eye(3) - gain @ slope
    covariance = kept @ before @ kept.T + gain @ noise @ gain.T
    learned = state.but(
        parameters=_with(state.parameters, np.exp(after)),
        covariance=_triples(covariance),
        outliers_in_a_row=0,
        accepted=state.accepted + 1,
    )
    verdict = TunerVerdict.BOUNDED if bounded else TunerVerdict.ACCEPTED
    return TunerStep(state=learned, verdict=verdict, **said)


def first_guess(seen: TunerObservation, *, template: QueueingParameters) -> QueueingParameters:
    """Parameters from one observation of a lightly loaded replica, as llm-d's autoscaler guesses them.

    alpha = 0.9·ITL, beta + gamma = (TTFT - alpha)/I, gamma from what is left of ITL; none below 0.

    Args:
        seen: with both latencies.
        template: gives form and limits.

    Raises:
        ValueError: a latency or a length is missing.
    """
    if seen.ttft_s is None or seen.itl_s is None or not _is_usable(seen):
        raise ValueError("a first guess needs TTFT, ITL and both lengths")
    itl, ttft = seen.itl_s * 1000, seen.ttft_s * 1000
    alpha = _ITL_SHARE * itl
    both = max(0.0, ttft - alpha) / seen.input_tokens
    read = seen.input_tokens + (seen.output_tokens + 1) / 2 - 1
    gamma = min(both, max(0.0, (itl - alpha) - both) / max(1.0, read))
    return _with(template, np.array([alpha, both - gamma, gamma]))


def _is_usable(seen: TunerObservation) -> bool:
    lengths = (seen.input_tokens, seen.output_tokens, seen.arrival_rps)
    return (
        all(math.isfinite(value) and value > 0 for value in lengths)
        and (seen.ttft_s or seen.itl_s) is not None
    )


def _theta(parameters: QueueingParameters) -> Floats:
    return np.array([max(getattr(parameters, name), _SMALLEST) for name in PARAMETERS])


def _lines(parameters: QueueingParameters, seen: TunerObservation, theta: Floats) -> tuple[Floats, Floats]:
    """Lines of the latencies that were seen, s per unit of each parameter, and the time waited, s."""
    batch = seen.in_service if seen.in_service else _batch_at(parameters, seen, theta)
    inside = min(batch, float(parameters.max_batch))
    waited = max(0.0, batch - inside) / max(seen.arrival_rps, _LEAST_RPS)
    design = _design(parameters, seen, inside)
    rows = [(design.ttft[0], waited)] * (seen.ttft_s is not None) + [(design.itl[0], 0.0)] * (
        seen.itl_s is not None
    )
    return np.array([row for row, _ in rows]), np.array([wait for _, wait in rows])


def _batch_at(parameters: QueueingParameters, seen: TunerObservation, theta: Floats) -> float:
    """Mean batch at a rate: the n with n = λ·τ(n + 1), by halving; the whole batch where the rate is beyond the replica."""
    low, high = 0.0, float(parameters.max_batch)
    for _ in range(_SEARCH):
        middle = (low + high) / 2
        service = float(_design(parameters, seen, middle).service[0] @ theta)
        low, high = (middle, high) if seen.arrival_rps * service > middle else (low, middle)
    return max(low, _SMALLEST)


def _design(parameters: QueueingParameters, seen: TunerObservation, mean_batch: float) -> Design:
    load = Load(mean_batch + 1, max(1.0, mean_batch), seen.input_tokens, seen.output_tokens)
    return design_of([load], form=parameters.form, chunk_tokens=parameters.chunk_tokens)


def _said(seen: TunerObservation, modeled: Floats) -> dict[str, float]:
    names = [name for name, value in (("ttft", seen.ttft_s), ("itl", seen.itl_s)) if value is not None]
    return {
        f"modeled_{name}_s": min(float(value), _LONGEST_S) for name, value in zip(names, modeled, strict=True)
    }


def _finite(said: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in said.items() if math.isfinite(value)}


def _refused(state: TunerState, settings: TunerSettings) -> TunerState:
    """One more outlier; after too many in a row the covariance is opened, so that the next one passes."""
    row = state.outliers_in_a_row + 1
    if row < settings.patience:
        return state.but(outliers_in_a_row=row)
    return state.but(outliers_in_a_row=0, covariance=_triples(np.eye(3) * _MOST_VARIANCE))


def _bounded(log_theta: Floats, start: QueueingParameters, settings: TunerSettings) -> tuple[Floats, bool]:
    middle, width = np.log(_theta(start)), math.log(settings.widest)
    inside = np.clip(log_theta, middle - width, middle + width)
    return inside, bool(np.any(inside != log_theta))


def _with(parameters: QueueingParameters, theta: Floats) -> QueueingParameters:
    return parameters.but(**{name: float(value) for name, value in zip(PARAMETERS, theta, strict=True)})


def _triples(matrix: Floats) -> tuple[Triple, Triple, Triple]:
    even = (matrix + matrix.T) / 2
    first, second, third = ((float(row[0]), float(row[1]), float(row[2])) for row in even)
    return first, second, third
