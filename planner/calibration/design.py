"""What the queueing model says of a load level, as lines: latencies are linear in alpha, beta and gamma."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.load import Arrivals, LoadPoint
from models.queueing import QueueingForm, QueueingParameters
from planner.calibration.usable import batch_seen
from planner.performance.queueing.cases import Case, columns_of
from planner.performance.queueing.iterations import phase_times

__all__ = ["PARAMETERS", "Design", "Load", "design_of", "loads_of"]

Floats = NDArray[np.float64]

PARAMETERS: Final = ("alpha_ms", "beta_ms_per_token", "gamma_ms_per_token")


@dataclass(frozen=True, slots=True)
class Load:
    """Where latencies are asked for: lengths in tokens, time waited in s.

    ``batch`` is what a request sees while it is served, ``mean_batch`` the mean over time: the published
    model takes the former for the service time and the latter for the prefill.
    """

    batch: float
    mean_batch: float
    input_tokens: float
    output_tokens: float
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Design:
    """Latencies by parameter: ``itl @ theta`` is in s for theta in ms, ms/token, ms/token.

    Attributes:
        itl: of shape (loads, 3).
        ttft: of shape (loads, 3), without the time waited.
        service: time in service, of shape (loads, 3).
        waited_s: of shape (loads,).
        batch: of shape (loads,).
    """

    itl: Floats
    ttft: Floats
    service: Floats
    waited_s: Floats
    batch: Floats


def loads_of(points: Sequence[LoadPoint]) -> tuple[Load, ...]:
    """Loads of points whose batch is known; what waits in the engine waits for waiting/rate (Little)."""
    return tuple(
        Load(
            batch=max(1.0, batch_seen(point) or 1.0),
            mean_batch=max(1.0, (batch_seen(point) or 1.0) - (point.arrivals is Arrivals.OPEN)),
            input_tokens=point.input_tokens,
            output_tokens=point.output_tokens,
            waited_s=(point.waiting or 0.0) / point.achieved_rps,
        )
        for point in points
    )


def design_of(loads: Sequence[Load], *, form: QueueingForm, chunk_tokens: int) -> Design:
    """The lines of loads: TTFT = prefill + ITL and ITL = (service - prefill)/output, as the queueing model has them.

    Args:
        loads: load levels.
        form: which published form.
        chunk_tokens: tokens of one iteration.
    """
    shapes = [(load.input_tokens, load.output_tokens) for load in loads]
    tables = [_table(shapes, _unit(name, form=form, chunk_tokens=chunk_tokens)) for name in PARAMETERS]
    prefill, service = np.empty((len(loads), 3)), np.empty((len(loads), 3))
    for column, table in enumerate(tables):
        for row, load in enumerate(loads):
            prefill[row, column] = phase_times(table[row], load.mean_batch)[0]
            service[row, column] = phase_times(table[row], load.batch)[1]
    output = np.array([load.output_tokens for load in loads])
    itl = (service - prefill) / output[:, None]
    return Design(
        itl=itl,
        ttft=prefill + itl,
        service=service,
        waited_s=np.array([load.waited_s for load in loads]),
        batch=np.array([load.batch for load in loads]),
    )


def _unit(name: str, *, form: QueueingForm, chunk_tokens: int) -> QueueingParameters:
    """Parameters of which one is 1 and the others are 0."""
    alpha, beta, gamma = (float(name == each) for each in PARAMETERS)
    return QueueingParameters(
        form=form, alpha_ms=alpha, beta_ms_per_token=beta, gamma_ms_per_token=gamma, chunk_tokens=chunk_tokens
    )


def _table(shapes: Sequence[tuple[float, float]], parameters: QueueingParameters) -> Floats:
    cases = [Case(parameters=parameters, input_tokens=i, output_tokens=o) for i, o in shapes]
    return np.column_stack(columns_of(cases))
