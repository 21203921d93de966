"""How long phases take when a number of requests is in service: both published forms.

``n`` requests in service (a mean may be fractional), I input tokens of which I' are computed, O output tokens made in
S decoding iterations that compute v tokens each (without drafting S = O, v = 1), T tokens per iteration.

Iterations (llm-inferno/queue-analysis @cfadd1cb):
    c(n) = the smallest i ≥ 1 with ⌊(i + S)(T - I'/i)/(I' + v·S)⌋ ≥ n      iterations that prefill a request
    w_p = β·I' + γ·((I - I')·c + I'·(c + 1)/2),  w_d = β·v·S + γ·S·(I + (O + 1)/2)
    δ = (w_p + w_d)/(c + S),  service τ(n) = (c + S)(α + n·δ),  prefill(n) = c·max(0, α + (n - 1)δ) + w_p

Phases (llm-d's autoscaler @4fcefe6b):
    T(n) = α + n·(β·(I' + v·S)/(S + 1) + γ·(I + O/2))
    prefill(n) = T(n) + β·I' + γ·I (0 without input),  decode(n) = T(n) + β·v + γ·(I + O/2)
    τ(n) = prefill(n) + S·decode(n)

In both μ_n = n/τ(n) and ITL = (τ - prefill)/O. Where O and I' are what a role does (prefill: no output, decode:
nothing computed of the input), the same lines serve replicas of one role.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["chunks", "fill_service_times", "phase_times", "service_time"]

Floats = NDArray[np.float64]

_INSTANT_S: Final = 1e-9
"""A request whose whole input is cached takes no time by the formulas; rates stay finite all the same."""

_ENDLESS: Final = 1e18


@njit(cache=True, error_model="numpy")
def chunks(n: float, computed: float, steps: float, verified: float, chunk: float) -> float:
    """c(n): the positive root of  T·i² + (S·T - I' - ⌈n⌉(I' + v·S))·i - I'·S ≥ 0,  rounded up and set right."""
    whole = math.ceil(n)
    length = computed + verified * steps
    b = steps * chunk - computed - whole * length
    root = (-b + math.sqrt(b * b + 4.0 * chunk * computed * steps)) / (2.0 * chunk)
    count = max(1.0, math.ceil(root))
    # The root may be a whole number that floats miss by a hair.
    if count > 1.0 and (count - 1.0 + steps) * (chunk - computed / (count - 1.0)) >= whole * length:
        return count - 1.0
    if (count + steps) * (chunk - computed / count) < whole * length:
        return count + 1.0
    return count


@njit(cache=True, error_model="numpy")
def _iteration_work(case: Floats, count: float) -> tuple[float, float]:
    """(w_p, δ) of the form iterations with ``count`` prefill iterations."""
    beta, gamma, computed, context = case[2], case[3], case[4], case[5]
    output, steps, verified, prefills = case[6], case[7], case[8], case[9]
    prefill = 0.0
    if prefills > 0.0:
        prefill = beta * computed + gamma * ((context - computed) * count + computed * (count + 1.0) / 2.0)
    decode = beta * verified * steps + gamma * steps * (context + (output + 1.0) / 2.0)
    return prefill, (prefill + decode) / (prefills * count + steps)


@njit(cache=True, error_model="numpy")
def _shared_step(case: Floats) -> float:
    """What one more request adds to T(n) of the form phases."""
    beta, gamma, computed, context = case[2], case[3], case[4], case[5]
    output, steps, verified = case[6], case[7], case[8]
    return float(beta * (computed + verified * steps) / (steps + 1.0) + gamma * (context + output / 2.0))


@njit(cache=True, error_model="numpy")
def phase_times(case: Floats, n: float) -> tuple[float, float]:
    """(prefill, service) time with ``n`` requests in service, s. ``case`` is a row in the order of CASE_FIELDS."""
    alpha, beta, gamma, computed, context = case[1], case[2], case[3], case[4], case[5]
    output, steps, verified, prefills = case[6], case[7], case[8], case[9]
    if case[0] == 0.0:
        count = chunks(n, computed, steps, verified, case[10]) if prefills > 0.0 else 0.0
        own, delta = _iteration_work(case, count)
        return count * max(0.0, alpha + (n - 1.0) * delta) + own, (count + steps) * (alpha + n * delta)
    iteration = alpha + n * _shared_step(case)
    prefill = 0.0
    if prefills > 0.0 and context > 0.0:
        prefill = iteration + beta * computed + gamma * context
    decode = iteration + beta * verified + gamma * (context + output / 2.0)
    return prefill, prefill + steps * decode


@njit(cache=True, error_model="numpy")
def service_time(case: Floats, n: float) -> float:
    """τ(n), s."""
    return phase_times(case, n)[1]


@njit(cache=True, error_model="numpy")
def fill_service_times(case: Floats, per_request: Floats) -> int:
    """Write 1/μ_n = τ(n)/n for n = 1..N at ``per_request[n]`` and return N; ``per_request[0]``: 1 where it never rises."""
    limit = _fill(case, per_request)
    per_request[0] = 1.0
    for n in range(2, limit + 1):
        if per_request[n] > per_request[n - 1]:
            per_request[0] = 0.0
    return limit


@njit(cache=True, error_model="numpy")
def _fill(case: Floats, per_request: Floats) -> int:
    limit = int(case[11])
    alpha, computed, steps, verified = case[1], case[4], case[7], case[8]
    if case[0] == 0.0 and case[9] > 0.0:
        # c(n) seldom changes from one n to the next, so δ is made once for each of its values.
        n = 1
        while n <= limit:
            count = chunks(float(n), computed, steps, verified, case[10])
            delta = _iteration_work(case, count)[1]
            length = computed + verified * steps
            same = (count + steps) * (case[10] - computed / count) / length if length > 0.0 else _ENDLESS
            last = max(n, int(min(float(limit), same)))
            for m in range(n, last + 1):
                per_request[m] = max(_INSTANT_S, (count + steps) * (alpha / m + delta))
            n = last + 1
        return limit
    constant, slope = service_time(case, 0.0), service_time(case, 1.0) - service_time(case, 0.0)
    for m in range(1, limit + 1):
        per_request[m] = max(_INSTANT_S, constant / m + slope)
    return limit
