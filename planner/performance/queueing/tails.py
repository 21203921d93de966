"""Percentiles: how many requests wait, prefill, decode or stay longer than a promise.

A request that is accepted meets n others (chain.py). With n < N it starts at once as one of n + 1 in service; with
n ≥ N it waits for n - N + 1 departures, each after an exponential time of rate μ_N, so its wait is Erlang, and it starts as
one of N. The number in service then sets its pace:

* TTFT is the wait, its prefill and its first decoding step, at the number in service when it starts;
* ITL is the gap between tokens at that number. In balance a share of all tokens made in state n + 1 equals the share of
  arrivals that meet n, so the distribution over arrivals is that over tokens;
* E2E is the wait and the service time τ. While a request of the stated lengths is served the number in service moves
  towards its mean; the average over such a stay has 2/3 of the variance of a single look (infinitely many servers and
  fixed service times, where the autocorrelation falls linearly to 0 over one stay), so deviations from the mean count
  √(2/3) of themselves.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner.performance.queueing.chain import series
from planner.performance.queueing.iterations import phase_times

__all__ = ["E2E", "ITL", "TTFT", "fill_paces", "mean_wait", "percentile", "tail"]

Floats = NDArray[np.float64]

TTFT, ITL, E2E = 0, 1, 2
"""Which latency: a row of paces."""

_DAMPING = math.sqrt(2.0 / 3.0)
_MOST_EVENTS = 600.0
_RESOLUTION = 1e-7


@njit(cache=True, error_model="numpy")
def fill_paces(case: Floats, limit: int, paces: Floats) -> None:
    """Write the latencies of a request that starts as one of n = 1..``limit`` at once: ``paces[kind, n]``, s."""
    for n in range(1, limit + 1):
        prefill, service = phase_times(case, float(n))
        itl = max(0.0, service - prefill) / case[6] if case[6] > 0.0 else 0.0
        paces[TTFT, n] = prefill + itl
        paces[ITL, n] = itl
        paces[E2E, n] = service


@njit(cache=True, error_model="numpy")
def mean_wait(met: Floats, ratio: float, queue: int, departure: float) -> float:
    """Mean wait of accepted requests, s; ``departure`` is 1/μ_N."""
    if queue == 0:
        return 0.0
    _, total, first = series(ratio, queue)
    return float(met[met.size - 1] * departure * first / total)


@njit(cache=True, error_model="numpy")
def _wait_tail(t: float, ratio: float, queue: int, departure: float) -> float:
    """Share of those who wait that wait longer than ``t``:  Σ_j r^j·P(Erlang(j+1, μ_N) > t) / Σ_j r^j,  j = 0..Q-1.

    P(Erlang(j+1, μ) > t) = P(Poisson(μt) ≤ j), so the sum is Σ_i P(Poisson(μt) = i)·Σ_{j≥i} r^j.
    """
    if t <= 0.0:
        return 1.0
    events = t / departure
    if events > _MOST_EVENTS or queue * abs(math.log(ratio)) > _MOST_EVENTS:
        return _far_wait_tail(events, ratio, queue)
    whole, power = series(ratio, queue)[1] / ratio, ratio**queue
    chance, before, found = math.exp(-events), 1.0, 0.0
    for i in range(queue):
        # Σ_{j≥i} r^j = r^i·(1 - r^(Q-i))/(1 - r); what is taken away is the part beyond Q.
        rest = float(queue - i) if ratio == 1.0 else (before - power) / (1.0 - ratio)
        found += chance * rest
        before *= ratio
        chance *= events / (i + 1)
    return min(1.0, max(0.0, found / (float(queue) if ratio == 1.0 else whole)))


@njit(cache=True, error_model="numpy")
def _far_wait_tail(events: float, ratio: float, queue: int) -> float:
    """As :func:`_wait_tail` by logarithms, where exp(-μt) or r^Q leave the range of floats."""
    falling = min(ratio, 1.0 / ratio)
    logarithm = -events
    found = 0.0
    for i in range(queue):
        # Σ_{j≥i} r^j as a share of r^i, or of r^(Q-1) where r > 1.
        rest = (
            float(queue - i)
            if falling == 1.0
            else -math.expm1((queue - i) * math.log(falling)) / (1.0 - falling)
        )
        found += math.exp(logarithm) * rest * (ratio**i if ratio < 1.0 else 1.0)
        logarithm += math.log(events / (i + 1))
    whole = float(queue) if falling == 1.0 else -math.expm1(queue * math.log(falling)) / (1.0 - falling)
    return min(1.0, max(0.0, found / whole))


@njit(cache=True, error_model="numpy")
def _pace(paces: Floats, kind: int, n: int, mean: float, limit: int) -> float:
    """Latency without the wait of a request that starts as one of ``n``; those that start meet ``mean`` on average."""
    if kind != E2E:
        return float(paces[kind, n])
    at = min(float(limit), max(1.0, mean + _DAMPING * (n - mean)))
    low = min(limit - 1, int(at)) if limit > 1 else 1
    high = min(limit, low + 1)
    return float(paces[E2E, low] + (at - low) * (paces[E2E, high] - paces[E2E, low]))


@njit(cache=True, error_model="numpy")
def tail(paces: Floats, kind: int, t: float, met: Floats, waits: tuple[float, int, float]) -> float:
    """Share of accepted requests whose latency of ``kind`` exceeds ``t`` seconds; ``waits`` = (r, Q, 1/μ_N)."""
    limit = met.size - 1
    mean = 0.0
    for n in range(limit + 1):
        mean += met[n] * min(n + 1, limit)
    found = 0.0
    for n in range(limit):
        if met[n] > 0.0 and _pace(paces, kind, n + 1, mean, limit) > t:
            found += met[n]
    if met[limit] > 0.0:
        full = paces[kind, limit]
        if kind == ITL:
            found += met[limit] if full > t else 0.0
        else:
            found += met[limit] * _wait_tail(t - full, waits[0], waits[1], waits[2])
    return float(found)


@njit(cache=True, error_model="numpy")
def percentile(paces: Floats, kind: int, level: float, met: Floats, waits: tuple[float, int, float]) -> float:
    """The latency of ``kind`` that a share ``level`` of accepted requests keeps, s."""
    allowed = 1.0 - level
    limit = met.size - 1
    guess = _discrete(paces, kind, allowed, met)
    if (
        guess > 0.0
        and tail(paces, kind, guess, met, waits) <= allowed
        and tail(paces, kind, guess * (1.0 - 1e-9), met, waits) > allowed
    ):
        return guess
    low, high = 0.0, max(paces[kind, limit], 1e-9)
    while tail(paces, kind, high, met, waits) > allowed:
        low, high = high, high * 2.0 + waits[2]
    while high - low > _RESOLUTION * high:
        middle = 0.5 * (low + high)
        if tail(paces, kind, middle, met, waits) > allowed:
            low = middle
        else:
            high = middle
    return float(high)


@njit(cache=True, error_model="numpy")
def _discrete(paces: Floats, kind: int, allowed: float, met: Floats) -> float:
    """The percentile if it is the pace of a request that has not waited; 0: it is not."""
    limit = met.size - 1
    beyond = met[limit]
    if beyond > allowed and kind != ITL:
        return 0.0
    mean = 0.0
    for n in range(limit + 1):
        mean += met[n] * min(n + 1, limit)
    if beyond > allowed:
        return float(paces[ITL, limit])
    for n in range(limit - 1, -1, -1):
        beyond += met[n]
        if beyond > allowed:
            return _pace(paces, kind, n + 1, mean, limit)
    return 0.0
