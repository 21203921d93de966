"""Parameters of the queueing model of one replica: how long an iteration takes, and how many requests share it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, Field, model_validator

from models.units import Count, PositiveCount, Ratio, Share, TokenCount, parse_quantity
from models.value import Value

__all__ = [
    "FitInterval",
    "FitQuality",
    "QueueingForm",
    "QueueingParameters",
    "Speculation",
]

_MOST_MS: Final = 1e6

_MS: Final = {"": 1.0, "ms": 1.0, "us": 1e-3, "µs": 1e-3, "s": 1e3}
_MS_PER_TOKEN: Final = {"": 1.0} | {
    f"{unit}/{token}": scale for unit, scale in _MS.items() if unit for token in ("token", "tok")
}

Milliseconds = Annotated[
    float,
    BeforeValidator(lambda raw: parse_quantity(raw, _MS), json_schema_input_type=float | str),
    Field(ge=0, le=_MOST_MS, allow_inf_nan=False, json_schema_extra={"unit": "ms"}),
]
MillisecondsPerToken = Annotated[
    float,
    BeforeValidator(lambda raw: parse_quantity(raw, _MS_PER_TOKEN), json_schema_input_type=float | str),
    Field(ge=0, le=_MOST_MS, allow_inf_nan=False, json_schema_extra={"unit": "ms/token"}),
]


class QueueingForm(StrEnum):
    """How the three parameters become the time of an iteration."""

    ITERATIONS = "iterations"
    """Prefill in chunks that share iterations with decoding (llm-inferno/queue-analysis, 2026)."""
    PHASES = "phases"
    """One prefill step, then one decode step per token (queue model of llm-d's autoscaler, 2026-03)."""


class FitInterval(Value):
    """Where a fitted parameter lies, in the unit of the parameter."""

    low: float = Field(ge=0, description="lower end")
    high: float = Field(ge=0, description="upper end")
    level: Share = Field(0.95, description="share of repeated fits that lie between the ends")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"found low {self.low:g} above high {self.high:g}")
        return self


class FitQuality(Value):
    """How well fitted parameters reproduce what was measured. Errors are mean absolute relative errors."""

    points: PositiveCount = Field(description="measured loads that the parameters were fitted on")
    ttft_error: Ratio | None = Field(None, description="of the mean time to first token; None: not fitted")
    itl_error: Ratio | None = Field(None, description="of the mean inter-token latency; None: not fitted")
    rps_error: Ratio | None = Field(None, description="of completed requests per second; None: not fitted")
    alpha_ms: FitInterval | None = Field(
        None, description="interval of alpha_ms; None: not known", json_schema_extra={"unit": "ms"}
    )
    beta_ms_per_token: FitInterval | None = Field(
        None, description="interval of beta_ms_per_token; None: not known"
    )
    gamma_ms_per_token: FitInterval | None = Field(
        None, description="interval of gamma_ms_per_token; None: not known"
    )


class QueueingParameters(Value):
    """Iteration time of one replica: alpha per iteration, beta per computed token, gamma per token that an iteration reads.

    Source: llm-inferno/queue-analysis @cfadd1cb and llm-d's autoscaler @4fcefe6b; milliseconds, as published there.
    """

    form: QueueingForm = Field(
        QueueingForm.ITERATIONS, description="iterations: prefill in chunks; phases: one prefill step"
    )
    alpha_ms: Milliseconds = Field(description="time of an iteration with nothing in it, ms")
    beta_ms_per_token: MillisecondsPerToken = Field(description="time per token that is computed, ms")
    gamma_ms_per_token: MillisecondsPerToken = Field(
        description="time per token that an iteration reads from the KV cache, ms"
    )
    max_batch: PositiveCount = Field(
        256, le=10**5, description="requests in service at once (max_num_seqs of vLLM)"
    )
    at_tokens: TokenCount | None = Field(
        None,
        le=10**8,
        description="output length that max_batch holds for, tokens; with others it is in inverse proportion; "
        "None: for every length",
    )
    max_queue: Count = Field(100, le=10**5, description="requests that may wait; more are refused")
    chunk_tokens: TokenCount = Field(
        8192, le=10**7, description="tokens of one iteration (max_num_batched_tokens of vLLM)"
    )

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        if self.alpha_ms + self.beta_ms_per_token + self.gamma_ms_per_token == 0:
            raise ValueError("found alpha, beta and gamma all 0; allowed: at least one above 0")
        return self


class Speculation(Value):
    """Speculative decoding: a draft of some tokens, verified in one iteration (arXiv 2211.17192)."""

    draft_tokens: TokenCount = Field(
        le=64, description="tokens drafted per iteration (num_speculative_tokens of vLLM)"
    )
    acceptance: Share = Field(description="share of drafted tokens that are accepted, each alike")
    draft_cost: Ratio = Field(
        0.0, le=10, description="time of one drafted token as a share of alpha (0: n-gram look-up)"
    )

    @property
    def tokens_per_iteration(self) -> float:
        """Tokens that one iteration yields on average: (1 - a^(d+1)) / (1 - a)  (arXiv 2211.17192, equation 1)."""
        return sum(self.acceptance**drafted for drafted in range(self.draft_tokens + 1))
