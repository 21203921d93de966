"""What one replica can do at one request shape: a measured point, a question, and its answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from models.explanation import Reason
from models.hardware import Accelerator
from models.ids import AcceleratorId, LlmId, Name
from models.llm import Llm, Precision
from models.saturation import SaturationThresholds
from models.units import (
    Percentile,
    PositiveCount,
    PositiveRps,
    PositiveSeconds,
    Ratio,
    Rps,
    Seconds,
    Share,
    TokenCount,
    Tokens,
    Watts,
)
from models.value import Value
from models.variant import Parallelism, Role, Variant
from models.workload import Slo

__all__ = [
    "Interval",
    "MeasuredPoint",
    "Origin",
    "PerformanceChoice",
    "Rating",
    "RatingQuestion",
    "Rows",
    "Unrated",
]

_OPEN: Final = frozenset({Reason.NO_MEASUREMENT, Reason.PERCENTILE_NOT_MEASURED})


class Origin(StrEnum):
    """Where a figure comes from; the two kinds are never mixed silently."""

    GIVEN = "given"
    MEASURED = "measured"
    MODELED = "modeled"


class MeasuredPoint(Value):
    """One row of a profile: one replica under a closed-loop load of ``concurrency`` requests."""

    llm: LlmId = Field(description="LLM that was served")
    accelerator: AcceleratorId = Field(description="accelerator type it ran on")
    engine: Name = Field(description="inference engine, e.g. vllm, sglang, trtllm")
    engine_version: str | None = Field(
        None, description="version of the engine as the source writes it; None: not said"
    )
    precision: Precision = Field(description="precision of the weights")
    kv_precision: Precision = Field(Precision.BF16, description="precision of the KV cache")
    parallelism: Parallelism = Field(
        Parallelism(), description="how the replica was spread over accelerators"
    )
    role: Role = Field(Role.BOTH, description="phase that was measured")
    input_tokens: TokenCount = Field(description="input length of every request, tokens")
    output_tokens: TokenCount = Field(description="output length of every request, tokens")
    concurrency: PositiveCount = Field(description="requests in flight at any time")
    ttft_s: PositiveSeconds = Field(description="time to first token, s")
    itl_s: PositiveSeconds = Field(description="inter-token latency, s")
    rps: PositiveRps = Field(le=1e7, description="completed requests per second of one replica, req/s")
    power_w: Watts | None = Field(None, description="draw of the whole replica, W; None: not measured")
    at: Percentile | Literal["mean"] | None = Field(
        None, description="statistic of the two latencies; None: the source does not say which"
    )
    row: str | None = Field(None, max_length=200, description="public id of the row at its source")
    source: Name = Field(description="code of the source in data/SOURCES.md")


class RatingQuestion(Value):
    """How much of this traffic can one replica of this variant carry inside these limits?"""

    llm: Llm = Field(description="LLM to serve")
    accelerator: Accelerator = Field(description="accelerator type it would run on")
    variant: Variant = Field(description="how it would be served")
    input_tokens: TokenCount = Field(description="input length, tokens")
    output_tokens: TokenCount = Field(description="output length, tokens")
    cached_share: Share = Field(0.0, description="share of the input that is found in the prefix cache")
    arrival_cv: Ratio = Field(
        1.0, le=20, description="coefficient of variation of the times between arrivals; 1: Poisson"
    )
    slo: Slo = Field(description="latency promises to keep")
    thresholds: SaturationThresholds = Field(description="saturation thresholds to stay below")

    @property
    def precision(self) -> Precision:
        """Of the weights, as they are served."""
        return self.variant.quantization.weights or self.llm.precision


class Rows(StrEnum):
    """How measured rows are read: between them inside their hull, or each only for what it proves."""

    INTERPOLATED = "interpolated"
    COVERING = "covering"


class PerformanceChoice(Value):
    """Which sources say what one replica can do, in which order, and how careful to be with modeled figures."""

    sources: tuple[Name, ...] = Field(
        ("measured", "queueing", "roofline"),
        description="who is asked after given figures, in this order; the first that knows answers",
    )
    rows: Rows = Field(
        Rows.INTERPOLATED,
        description="covering: a row answers for shapes that are no larger; interpolated: between rows, inside their hull",
    )
    pessimism: Share = Field(
        0.9,
        ge=0.5,
        lt=1,
        description="share of measured runs that did at least as well as a modeled rate says; 0.5: the median",
    )
    profiles: tuple[Name, ...] = Field(
        (), description="names of profile tables that may be used; empty: every one"
    )

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if not self.sources:
            raise ValueError("found no source; allowed: at least one")
        again = next((name for name in self.sources if self.sources.count(name) > 1), None)
        if again is not None:
            raise ValueError(f"found {again!r} twice; allowed: each source once")
        return self


class Interval(Value):
    """Where a modeled rate lies with this probability, from the residuals of measured runs."""

    low_rps: Rps = Field(description="lower end, req/s")
    high_rps: Rps = Field(description="upper end, req/s")
    probability: Share = Field(description="share of measured runs that lay inside")


class Rating(Value):
    """What one replica carries. Rates are req/s of the traffic that was asked about."""

    rated_rps: PositiveRps = Field(description="inside SLO and trigger (tau - gamma)")
    surge_rps: PositiveRps = Field(description="inside SLO up to tau; never below rated_rps")
    ttft_s: Seconds | None = Field(None, description="at the rated rate")
    itl_s: Seconds | None = Field(None, description="at the rated rate")
    kv_capacity_tokens: Tokens | None = Field(None, description="KV capacity of one replica; None: unknown")
    kv_tokens_per_rps: Tokens | None = Field(
        None,
        description="resident KV tokens per req/s: residence time x mean resident tokens (Little)",
        json_schema_extra={"unit": "token/(req/s)"},
    )
    power_w: Watts | None = Field(None, description="draw of the replica at the rated rate; None: unknown")
    power_source: str | None = Field(
        None, description="where power_w is from, if not from where the rates are; None: the same"
    )
    origin: Origin = Field(description="whether the figures were given, measured or modeled")
    source: str = Field(description="row, formula or field the figures come from")
    interval: Interval | None = Field(None, description="of a modeled rate at the median; None: not modeled")
    distance: Ratio | None = Field(
        None,
        description="largest |ln(asked / measured)| over lengths and concurrency to the nearest row; None: no row",
    )


class Unrated(Value):
    """Why a variant cannot serve this traffic, as data."""

    reason: Reason = Field(description="the first reason that holds")
    facts: dict[str, str | int | float | None] = Field(
        {}, description="what else tells why, by name; the unit is in the name"
    )
    is_open: bool = Field(False, description="this source cannot tell, another one may")

    @property
    def may_be_known_elsewhere(self) -> bool:
        """Whether the next source is worth asking: nothing here says that the variant cannot do it."""
        return self.is_open or self.reason in _OPEN
