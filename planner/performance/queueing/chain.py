"""The birth-death queue: λ in every state, μ_min(n,N) out of state n, n = 0..K with K = N + Q.

p_{n+1} = p_n·λ/μ_min(n+1,N). Terms are kept relative and scaled down whenever they grow beyond 1e200, so K in the
thousands neither overflows nor underflows where it matters; states beyond N are a geometric series.

Arrivals that come in bursts (coefficient of variation CV ≠ 1) meet states by q_{n+1} = q_n·(λ/μ_min(n+1,N))^(1/z) with
z = (1 + CV²)/2, the peakedness of a renewal stream at exponential service. That is Hayward's approximation (N/z
servers under a load of a/z; Fredericks 1980) without rounding N/z: the spread around the mean grows by z as for infinitely
many servers, and the tail decays by (1 - ρ)/z per state as in heavy traffic (Kingman 1962 with c_s = 1). At CV = 1 it is
the queue itself.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["arrivals_meet", "occupancy", "series"]

Floats = NDArray[np.float64]

_HUGE: Final = 1e200
_NOTHING: Final = 1e-22
_NEARLY_FLAT: Final = 1e-3


@njit(cache=True, error_model="numpy")
def _falling(rho: float, terms: int) -> tuple[float, float]:
    """(Σ ρ^j, Σ j·ρ^j) for j = 1..terms and ρ ≤ 1."""
    total = first = 0.0
    if abs(1.0 - rho) * terms < _NEARLY_FLAT:
        # The closed form of the second sum would lose its digits.
        power = 1.0
        for j in range(1, terms + 1):
            power *= rho
            total += power
            first += j * power
        return total, first
    total = -rho * math.expm1(terms * math.log(rho)) / (1.0 - rho)
    return total, (total - terms * rho**terms * rho) / (1.0 - rho)


@njit(cache=True, error_model="numpy")
def series(rho: float, terms: int) -> tuple[float, float, float]:
    """(s, s·Σ ρ^j, s·Σ j·ρ^j) for j = 1..terms, with a scale s that keeps both sums finite: 1, or ρ^-terms beyond 1."""
    if terms == 0:
        return 1.0, 0.0, 0.0
    if rho <= 1.0:
        total, first = _falling(rho, terms)
        return 1.0, total, first
    total, first = _falling(1.0 / rho, terms)
    return rho ** (-terms), total * rho, (terms + 1) * total * rho - first * rho


@njit(cache=True, error_model="numpy")
def occupancy(arrival: float, per_request: Floats, limit: int, queue: int) -> tuple[float, float, float]:
    """(throughput, mean in service, mean waiting) at an arrival rate: req/s, requests, requests.

    ``per_request`` as :func:`~planner.performance.queueing.iterations.fill_service_times` writes it.
    """
    term = total = 1.0
    weighted = 0.0
    n = 1
    falls = per_request[0] > 0.0
    # Four states at a time: within a group products do not wait for one another.
    while n + 3 <= limit:
        one = arrival * per_request[n]
        two = one * (arrival * per_request[n + 1])
        third = arrival * per_request[n + 2]
        three, four = two * third, two * (third * (arrival * per_request[n + 3]))
        group = (one + two) + (three + four)
        total += term * group
        weighted += term * (n * group + (two + 2.0 * three + 3.0 * four))
        term *= four
        n += 4
        if term > _HUGE:
            term, total, weighted = term / _HUGE, total / _HUGE, weighted / _HUGE
        if falls and term < _NOTHING * total and arrival * per_request[n - 1] < 1.0:
            # Each further state is less likely by at least this ratio.
            return arrival, weighted / total, 0.0
    while n <= limit:
        term *= arrival * per_request[n]
        total += term
        weighted += n * term
        n += 1
    rho = arrival * per_request[limit]
    scale, beyond, waiting = series(rho, queue)
    total = total * scale + term * beyond
    weighted = weighted * scale + term * beyond * limit
    refused = term * (1.0 if rho > 1.0 else rho**queue) / total
    return arrival * (1.0 - refused), weighted / total, term * waiting / total


@njit(cache=True, error_model="numpy")
def arrivals_meet(
    arrival: float, per_request: Floats, queue: int, spread: float, met: Floats
) -> tuple[float, float]:
    """Write what accepted arrivals meet: ``met[n]``, n = 0..N, the chance of n requests before them, summing to 1.

    ``met[N]`` is all that wait: N or more. Given that, j more are before them with a chance in proportion to r^j,
    j = 0..Q-1.

    Returns:
        The share of arrivals that is refused, and r.
    """
    limit = met.size - 1
    poisson = spread == 1.0
    met[0] = term = total = 1.0
    for n in range(1, limit + 1):
        ratio = arrival * per_request[n]
        term *= ratio if poisson else ratio**spread
        met[n] = term
        total += term
        if term > _HUGE:
            for m in range(n + 1):
                met[m] /= _HUGE
            term /= _HUGE
            total /= _HUGE
    ratio = arrival * per_request[limit]
    ratio = ratio if poisson else ratio**spread
    at_limit = term
    total -= at_limit
    scale, beyond, _ = series(ratio, queue)
    waits = at_limit * beyond / ratio
    accepted = total * scale + waits
    refused = at_limit * (1.0 if ratio > 1.0 else ratio**queue)
    for n in range(limit):
        met[n] *= scale / accepted
    met[limit] = waits / accepted
    return refused / (accepted + refused), ratio
