"""Times of one case at a given number in service, the range of its rates, and promises read off its parameters."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from models.queueing import QueueingParameters
from models.workload import Slo
from planner.performance.queueing.cases import Case, columns_of
from planner.performance.queueing.iterations import fill_service_times, phase_times

__all__ = ["Times", "inferred_slo", "rate_range", "times_at"]

_MS: Final = 1e-3
_LOWEST, _HIGHEST = 1e-3, 0.999


class Times(NamedTuple):
    """What a request takes while a number of requests is in service.

    Attributes:
        prefill_s: until its input is computed.
        itl_s: from one output token to the next; 0 where there is none.
        service_s: from start to end.
    """

    prefill_s: float
    itl_s: float
    service_s: float


def times_at(case: Case, in_service: float) -> Times:
    """Times with ``in_service`` requests in service (a mean may be fractional)."""
    row = np.array([column[0] for column in columns_of([case])])
    prefill, service = phase_times(row, float(in_service))
    output = float(row[6])
    return Times(prefill, (service - prefill) / output if output else 0.0, service)


def rate_range(case: Case) -> tuple[float, float]:
    """(λ_min, λ_max) = (0.001·μ_1, 0.999·μ_N), req/s: the rates that are looked at."""
    row = np.array([column[0] for column in columns_of([case])])
    per_request = np.empty(int(row[11]) + 1)
    limit = fill_service_times(row, per_request)
    return float(_LOWEST / per_request[1]), float(_HIGHEST / per_request[limit])


def inferred_slo(
    parameters: QueueingParameters, *, input_tokens: float, output_tokens: float, multiplier: float = 3.0
) -> Slo:
    """Promises that a replica keeps where an iteration takes up to ``multiplier`` times α (llm-d's autoscaler).

    TTFT = k·α + (β + γ)·I,  ITL = k·α + β + γ·(I + (O + 1)/2).

    Args:
        parameters: of the replica.
        input_tokens: mean input length.
        output_tokens: mean output length.
        multiplier: k, above 1; 3 keeps a replica below a load of 1 - 1/k.

    Raises:
        ValueError: ``multiplier`` is not above 1.
    """
    if multiplier <= 1:
        raise ValueError(f"found multiplier {multiplier:g}; allowed: above 1")
    alpha, beta, gamma = parameters.alpha_ms, parameters.beta_ms_per_token, parameters.gamma_ms_per_token
    ttft_ms = multiplier * alpha + (beta + gamma) * input_tokens
    itl_ms = multiplier * alpha + beta + gamma * (input_tokens + (output_tokens + 1) / 2)
    return Slo(ttft_s=ttft_ms * _MS, itl_s=itl_ms * _MS)
