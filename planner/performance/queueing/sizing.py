"""The largest rate at which every promise holds, for many questions at once, and latencies at a given rate.

One function of the arrival rate λ tells how far every promise and limit is broken; it does not fall as λ rises, and its
root between λ_min = 0.001·μ_1 and λ_max = 0.999·μ_N is the answer: where it is below 0 everywhere λ_max, where it is above 0
everywhere none (the published rule). The root is found by false position with halving (Illinois), which keeps a bracket.

Means are the published ones: serv = n_s/X, prefill at the mean number in service n_s, ITL = (serv - prefill)/O,
TTFT = wait + prefill + ITL, E2E = wait + serv.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner.performance.queueing.cases import Answers, Cases
from planner.performance.queueing.chain import arrivals_meet, occupancy
from planner.performance.queueing.iterations import fill_service_times, phase_times
from planner.performance.queueing.tails import E2E, ITL, TTFT, fill_paces, mean_wait, percentile, tail

__all__ = ["latencies_at", "size_cases"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LOWEST, _HIGHEST = 1e-3, 0.999
_PRECISION = 1e-8
_STEPS = 100
_HALVED = 4
_GUESSES = 6
_STRETCH = 1.02
_LEAST_SHARE = 1e-30


@njit(cache=True, error_model="numpy")
def _means(
    case: Floats, arrival: float, per_request: Floats, met: Floats
) -> tuple[float, float, float, float, float, float]:
    """(throughput, TTFT, ITL, E2E, in service, waiting) at an arrival rate; ``met`` is scratch for bursty arrivals."""
    limit, queue = met.size - 1, int(case[12])
    rate, inside, waiting = occupancy(arrival, per_request, limit, queue)
    service = inside / rate
    wait = waiting / rate
    if case[13] != 1.0:
        refused, ratio = arrivals_meet(arrival, per_request, queue, case[13], met)
        bursty, served = mean_wait(met, ratio, queue, per_request[limit]), arrival * (1.0 - refused)
        wait = _no_help(wait, bursty, case[13])
        rate = -_no_help(-rate, -served, case[13])
        waiting = wait * rate
    prefill = min(service, phase_times(case, inside)[0])
    itl = (service - prefill) / case[6] if case[6] > 0.0 else 0.0
    return rate, wait + prefill + itl, itl, wait + service, inside, waiting


@njit(cache=True, error_model="numpy")
def _shares_late(
    case: Floats, arrival: float, per_request: Floats, met: Floats, paces: Floats, late: Floats
) -> None:
    """Write the share of accepted requests that break each promise, by kind of latency."""
    limit, queue, spread = met.size - 1, int(case[12]), case[13]
    for pass_ in range(1 if spread == 1.0 else 2):
        _, ratio = arrivals_meet(arrival, per_request, queue, spread if pass_ else 1.0, met)
        waits = (ratio, queue, per_request[limit])
        for kind in range(3):
            if case[15 + kind] < math.inf:
                share = tail(paces, kind, case[15 + kind], met, waits)
                late[kind] = _no_help(late[kind], share, spread) if pass_ else share


@njit(cache=True, error_model="numpy")
def _no_help(poisson: float, found: float, spread: float) -> float:
    """What bursts make of a figure that is bad when it is large: never less than under Poisson, calm never more.

    Where even the last state is likely, the approximation of chain.py may turn round.
    """
    return max(poisson, found) if spread < 1.0 else min(poisson, found)


@njit(cache=True, error_model="numpy")
def _broken(
    case: Floats, arrival: float, per_request: Floats, met: Floats, paces: Floats
) -> tuple[float, int]:
    """By how much the most broken promise or limit is broken (below 0: kept), and which it is."""
    _, ttft, itl, e2e, inside, waiting = _means(case, arrival, per_request, met)
    worst, which = inside / case[18] - 1.0, 4
    if waiting / case[19] - 1.0 > worst:
        worst, which = waiting / case[19] - 1.0, 5
    if case[14] == 0.0:
        for kind, found in ((TTFT, ttft), (ITL, itl), (E2E, e2e)):
            over = found / case[15 + kind] - 1.0
            if over > worst:
                worst, which = over, kind + 1
        return worst, which
    late = np.zeros(3)
    _shares_late(case, arrival, per_request, met, paces, late)
    for kind in range(3):
        # Tails fall by orders of magnitude, their logarithms nearly along a line.
        over = math.log(max(late[kind], _LEAST_SHARE) / (1.0 - case[14]))
        if late[kind] > 0.0 and over > worst:
            worst, which = over, kind + 1
    return worst, which


@njit(cache=True, error_model="numpy")
def _fluid_guess(case: Floats, per_request: Floats, limit: int) -> float:
    """λ at which promises break where requests come evenly, req/s: a start for the search, no bound."""
    low, high = 0.0, min(float(limit), case[18])
    for _ in range(_GUESSES):
        n = 0.5 * (low + high)
        prefill, service = phase_times(case, n)
        itl = max(0.0, service - prefill) / case[6] if case[6] > 0.0 else 0.0
        if prefill + itl > case[15] or itl > case[16] or service > case[17]:
            high = n
        else:
            low = n
    n = max(1.0, min(0.98 * limit, high))
    return float(n / phase_times(case, n)[1])


@njit(cache=True, error_model="numpy")
def _largest_rate(case: Floats, per_request: Floats, met: Floats, paces: Floats) -> tuple[float, int]:
    """(λ*, what bounds it); a bound below 0 says that it is broken even at λ_min, which is returned."""
    limit = met.size - 1
    top = _HIGHEST / per_request[limit]
    bottom = min(_LOWEST / per_request[1], top)
    low = high = min(top, max(bottom, _fluid_guess(case, per_request, limit)))
    over, bound = _broken(case, low, per_request, met, paces)
    at_low = at_high = over
    stretch = _STRETCH
    # A bracket grows from the guess; its ends are the ends of the range of rates at last.
    while over > 0.0 and low > bottom:
        high, at_high = low, over
        low = max(bottom, low / stretch)
        over, which = _broken(case, low, per_request, met, paces)
        at_low, stretch = over, stretch * stretch
        bound = which if over > 0.0 else bound
    if over > 0.0:
        return bottom, -bound
    while at_high <= 0.0 and high < top:
        low, at_low = high, at_high
        high = min(top, high * stretch)
        at_high, bound = _broken(case, high, per_request, met, paces)
        stretch *= stretch
    if at_high <= 0.0:
        return top, 0
    return _root(case, per_request, met, paces, (low, at_low, high, at_high, bound))


@njit(cache=True, error_model="numpy")
def _root(
    case: Floats,
    per_request: Floats,
    met: Floats,
    paces: Floats,
    bracket: tuple[float, float, float, float, int],
) -> tuple[float, int]:
    """The last rate of a bracket at which nothing is broken, and what breaks above it."""
    low, at_low, high, at_high, bound = bracket
    side = 0
    for step in range(1, _STEPS + 1):
        if high - low <= _PRECISION * high:
            break
        # False position for the smooth part; every third step halves, so that jumps and tails cannot slow it down.
        middle = low + (high - low) * (-at_low) / (at_high - at_low)
        if step % _HALVED == 0 or not low < middle < high or math.isinf(at_high):
            middle = 0.5 * (low + high)
        over, which = _broken(case, middle, per_request, met, paces)
        if over > 0.0:
            high, at_high, bound = middle, over, which
            if side == 1:
                at_low *= 0.5
            side = 1
        else:
            low, at_low = middle, over
            if side == -1:
                at_high *= 0.5
            side = -1
    return low, bound


@njit(cache=True, error_model="numpy")
def _latencies(
    case: Floats, arrival: float, per_request: Floats, met: Floats, paces: Floats
) -> tuple[float, float, float, float, float, float]:
    """As :func:`_means`, latencies at the level of the case."""
    rate, ttft, itl, e2e, inside, waiting = _means(case, arrival, per_request, met)
    if case[14] > 0.0:
        limit, queue, spread = met.size - 1, int(case[12]), case[13]
        for pass_ in range(1 if spread == 1.0 else 2):
            _, ratio = arrivals_meet(arrival, per_request, queue, spread if pass_ else 1.0, met)
            waits = (ratio, queue, per_request[limit])
            found = (
                percentile(paces, TTFT, case[14], met, waits),
                percentile(paces, ITL, case[14], met, waits),
                percentile(paces, E2E, case[14], met, waits),
            )
            ttft = _no_help(ttft, found[0], spread) if pass_ else found[0]
            itl = _no_help(itl, found[1], spread) if pass_ else found[1]
            e2e = _no_help(e2e, found[2], spread) if pass_ else found[2]
    return rate, ttft, itl, e2e, inside, waiting


@njit(cache=True, error_model="numpy")
def _size_all(table: Floats, out: Floats, bounds: Ints) -> None:
    most = int(table[:, 11].max())
    per_request, scratch = np.empty(most + 1), np.empty(most + 1)
    pace_scratch = np.empty((3, most + 1))
    for row in range(table.shape[0]):
        case = table[row]
        limit = fill_service_times(case, per_request)
        met = scratch[: limit + 1]
        if case[14] > 0.0:
            fill_paces(case, limit, pace_scratch)
        arrival, bound = _largest_rate(case, per_request, met, pace_scratch)
        rate, ttft, itl, e2e, inside, waiting = _latencies(case, arrival, per_request, met, pace_scratch)
        found = (rate if bound >= 0 else 0.0, arrival, ttft, itl, e2e, inside, waiting)
        for column in range(7):
            out[row, column] = found[column]
        bounds[row] = bound


@njit(cache=True, error_model="numpy")
def _latencies_all(table: Floats, arrivals: Floats, out: Floats) -> None:
    most = int(table[:, 11].max())
    per_request, scratch = np.empty(most + 1), np.empty(most + 1)
    pace_scratch = np.empty((3, most + 1))
    for row in range(table.shape[0]):
        case = table[row]
        limit = fill_service_times(case, per_request)
        met = scratch[: limit + 1]
        if case[14] > 0.0:
            fill_paces(case, limit, pace_scratch)
        rate, ttft, itl, e2e, inside, waiting = _latencies(
            case, arrivals[row], per_request, met, pace_scratch
        )
        found = (rate, arrivals[row], ttft, itl, e2e, inside, waiting)
        for column in range(7):
            out[row, column] = found[column]


def size_cases(cases: Cases) -> Answers:
    """The largest rate of each case at which its promises and limits hold.

    Args:
        cases: columns of equal length.

    Returns:
        Columns of that length; ``bound`` 0: only the capacity bounds it, above 0: what does, below 0: what is broken at
        every rate.
    """
    table = _table(cases)
    out, bounds = np.zeros((len(table), 7)), np.zeros(len(table), dtype=np.int64)
    if len(table):
        _size_all(table, out, bounds)
    return Answers._make((*out.T, bounds))


def latencies_at(cases: Cases, arrival_rps: Floats) -> Answers:
    """What each case shows when requests arrive at these rates (req/s, above 0), promises aside."""
    table = _table(cases)
    out = np.zeros((len(table), 7))
    if len(table):
        _latencies_all(table, np.ascontiguousarray(arrival_rps, dtype=np.float64), out)
    return Answers._make((*out.T, np.zeros(len(table), dtype=np.int64)))


def _table(cases: Cases) -> Floats:
    return np.ascontiguousarray(np.column_stack(cases))
