"""What one replica can do at one request shape: a measured point, a question, and its answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from models.explanation import Reason
from models.hardware import Accelerator
from models.ids import AcceleratorId, LlmId, Name
from models.llm import Llm, Precision
from models.saturation import SaturationThresholds
from models.units import Percentile, PositiveCount, PositiveRps, PositiveSeconds, Seconds, Tokens, Watts
from models.value import Value
from models.variant import Parallelism, Role, Variant
from models.workload import Slo

__all__ = ["MeasuredPoint", "Origin", "Rating", "RatingQuestion", "Unrated"]


class Origin(StrEnum):
    """Where a figure comes from; the two kinds are never mixed silently."""

    GIVEN = "given"
    MEASURED = "measured"
    MODELED = "modeled"


class MeasuredPoint(Value):
    """One row of a profile: one replica under a closed-loop load of ``concurrency`` requests."""

    llm: LlmId
    accelerator: AcceleratorId
    engine: Name
    engine_version: str | None = None
    precision: Precision
    kv_precision: Precision = Precision.BF16
    parallelism: Parallelism = Parallelism()
    role: Role = Role.BOTH
    input_tokens: PositiveCount
    output_tokens: PositiveCount
    concurrency: PositiveCount
    ttft_s: PositiveSeconds
    itl_s: PositiveSeconds
    rps: PositiveRps = Field(description="completed requests per second of one replica, req/s")
    power_w: Watts | None = None
    at: Percentile | Literal["mean"] | None = Field(
        None, description="statistic of the two latencies; None: the source does not say which"
    )
    row: str | None = Field(None, max_length=200, description="public id of the row at its source")
    source: Name = Field(description="code of the source in data/SOURCES.md")


class RatingQuestion(Value):
    """How much of this traffic can one replica of this variant carry inside these limits?"""

    llm: Llm
    accelerator: Accelerator
    variant: Variant
    input_tokens: PositiveCount
    output_tokens: PositiveCount
    slo: Slo
    thresholds: SaturationThresholds


class Rating(Value):
    """What one replica carries. Rates are req/s of the traffic that was asked about."""

    rated_rps: PositiveRps = Field(description="inside SLO and trigger (tau - gamma)")
    surge_rps: PositiveRps = Field(description="inside SLO up to tau; never below rated_rps")
    ttft_s: Seconds | None = Field(None, description="at the rated rate")
    itl_s: Seconds | None = Field(None, description="at the rated rate")
    kv_capacity_tokens: Tokens | None = Field(None, description="KV capacity of one replica; None: unknown")
    kv_tokens_per_rps: Tokens | None = Field(
        None, description="resident KV tokens per req/s: residence time x mean resident tokens (Little)"
    )
    power_w: Watts | None = Field(None, description="measured draw of the replica at the rated rate")
    origin: Origin
    source: str = Field(description="row, formula or field the figures come from")


class Unrated(Value):
    """Why a variant cannot serve this traffic, as data."""

    reason: Reason
    facts: dict[str, str | int | float | None] = {}
