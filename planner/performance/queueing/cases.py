"""Questions to the queueing model as columns of numbers: one row per replica and request shape.

Times are seconds, lengths tokens, rates req/s. Everything that the kernels read is here, so that thousands of
questions are answered in one call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.queueing import QueueingForm, QueueingParameters, Speculation
from models.variant import Role

__all__ = ["CASE_FIELDS", "MEAN", "Answers", "Bound", "Case", "Cases", "batch_limit", "columns_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MEAN: Final = 0.0
"""Level that stands for the mean; others are shares such as 0.95."""

_MS: Final = 1e-3
_NO_LIMIT: Final = math.inf
_FORMS: Final = {QueueingForm.ITERATIONS: 0.0, QueueingForm.PHASES: 1.0}


class Bound(IntEnum):
    """What keeps a rate from being larger. Negative of it: broken even at the lowest rate."""

    NONE = 0
    TTFT = 1
    ITL = 2
    E2E = 3
    IN_SERVICE = 4
    WAITING = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question: parameters of a replica, a request shape, how requests arrive, and what must hold.

    Attributes:
        parameters: of the replica.
        input_tokens: mean input length.
        output_tokens: mean output length.
        role: phases that the replica serves.
        cached_share: share of the input that is found in the prefix cache, 0..1.
        speculation: drafting; None: none.
        arrival_cv: coefficient of variation of the times between arrivals; 1: Poisson.
        level: 0 for the mean, else the share of requests that keep the promise, e.g. 0.95.
        ttft_s: promise; infinite: none.
        itl_s: promise; infinite: none.
        e2e_s: promise; infinite: none.
        max_in_service: bound on the mean number in service (KV cache); infinite: none.
        max_waiting: bound on the mean number that wait; infinite: none.
        batch: requests in service at once at most beside the parameters' own limit (memory); None: no other.
    """

    parameters: QueueingParameters
    input_tokens: float
    output_tokens: float
    role: Role = Role.BOTH
    cached_share: float = 0.0
    speculation: Speculation | None = None
    arrival_cv: float = 1.0
    level: float = MEAN
    ttft_s: float = _NO_LIMIT
    itl_s: float = _NO_LIMIT
    e2e_s: float = _NO_LIMIT
    max_in_service: float = _NO_LIMIT
    max_waiting: float = _NO_LIMIT
    batch: int | None = field(default=None)


CASE_FIELDS: Final = (
    "form", "alpha_s", "beta_s", "gamma_s", "computed", "context", "output", "steps", "verified", "prefills",
    "chunk", "batch", "queue", "spread", "level", "ttft_s", "itl_s", "e2e_s", "max_in_service", "max_waiting",
)  # fmt: skip


class Cases(NamedTuple):
    """Columns by case, in the order of :data:`CASE_FIELDS`.

    Attributes:
        form: 0 iterations, 1 phases.
        alpha_s: of an iteration, drafting included.
        beta_s: per computed token.
        gamma_s: per token read for one computed.
        computed: input tokens that are computed (not found in the prefix cache).
        context: input tokens that later ones attend to.
        output: output tokens of a request that this replica makes (prefill: 0).
        steps: decoding iterations of a request.
        verified: tokens computed per request and decoding iteration.
        prefills: 1 where the replica prefills, 0 where it does not.
        chunk: tokens of one iteration.
        batch: N, requests in service at once.
        queue: Q, requests that may wait.
        spread: 1/z, z = (1 + CV²)/2.
        level: 0 mean, else share.
        ttft_s: promise or infinite.
        itl_s: promise or infinite.
        e2e_s: promise or infinite.
        max_in_service: bound or infinite.
        max_waiting: bound or infinite.
    """

    form: Floats
    alpha_s: Floats
    beta_s: Floats
    gamma_s: Floats
    computed: Floats
    context: Floats
    output: Floats
    steps: Floats
    verified: Floats
    prefills: Floats
    chunk: Floats
    batch: Floats
    queue: Floats
    spread: Floats
    level: Floats
    ttft_s: Floats
    itl_s: Floats
    e2e_s: Floats
    max_in_service: Floats
    max_waiting: Floats


class Answers(NamedTuple):
    """Columns by case. Where ``bound`` tells that nothing keeps the promises, rates are 0 and latencies those at λ_min.

    Attributes:
        rate_rps: completed requests at the largest arrival rate that keeps everything.
        arrival_rps: that arrival rate.
        ttft_s: at that rate, at the level that was asked for.
        itl_s: the same.
        e2e_s: the same.
        in_service: mean number in service at that rate.
        waiting: mean number that wait at that rate.
        bound: what stops the rate there, as a value of :class:`Bound`.
    """

    rate_rps: Floats
    arrival_rps: Floats
    ttft_s: Floats
    itl_s: Floats
    e2e_s: Floats
    in_service: Floats
    waiting: Floats
    bound: Ints


def batch_limit(parameters: QueueingParameters, output_tokens: float) -> int:
    """Requests in service at once: N = max_batch, or max(1, ⌊max_batch·at_tokens/O⌋) where it holds at one length."""
    if parameters.at_tokens is None:
        return parameters.max_batch
    return max(1, int(parameters.max_batch * parameters.at_tokens // output_tokens))


def columns_of(cases: Sequence[Case]) -> Cases:
    """Columns of several questions."""
    table = np.array([_row(case) for case in cases], dtype=np.float64).reshape(len(cases), len(CASE_FIELDS))
    return Cases(*np.ascontiguousarray(table.T))


def _row(case: Case) -> tuple[float, ...]:
    known = case.parameters
    decodes, prefills = case.role is not Role.PREFILL, case.role is not Role.DECODE
    drafted = case.speculation if decodes else None
    output = case.output_tokens if decodes else 0.0
    batch = batch_limit(known, case.output_tokens)
    return (
        _FORMS[known.form],
        known.alpha_ms * _MS * (1.0 if drafted is None else 1.0 + drafted.draft_cost * drafted.draft_tokens),
        known.beta_ms_per_token * _MS,
        known.gamma_ms_per_token * _MS,
        case.input_tokens * (1.0 - case.cached_share) if prefills else 0.0,
        case.input_tokens,
        output,
        output / (1.0 if drafted is None else drafted.tokens_per_iteration),
        1.0 if drafted is None else 1.0 + drafted.draft_tokens,
        float(prefills),
        float(known.chunk_tokens),
        float(batch if case.batch is None else max(1, min(batch, case.batch))),
        float(known.max_queue),
        2.0 / (1.0 + case.arrival_cv**2),
        case.level,
        case.ttft_s,
        case.itl_s,
        case.e2e_s,
        case.max_in_service,
        case.max_waiting,
    )
