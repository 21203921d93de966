"""What was seen of a replica under load: one point per load level, as benchmark tools and servers report it."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from models.ids import Name
from models.units import Count, Ratio, Rps, Seconds, Share
from models.value import Value
from models.variant import Parallelism

__all__ = ["Arrivals", "LatencySpread", "LoadOrigin", "LoadPoint", "LoadReport"]


class Arrivals(StrEnum):
    """How requests came: a fixed number in flight (closed), or at a rate whatever the replica does (open)."""

    CLOSED = "closed"
    OPEN = "open"


class LatencySpread(Value):
    """One latency over the requests of a point, s. A figure that the source does not state is ``None``."""

    mean_s: Seconds | None = Field(None, description="mean, s")
    p50_s: Seconds | None = Field(None, description="median, s")
    p75_s: Seconds | None = Field(None, description="75th percentile, s")
    p90_s: Seconds | None = Field(None, description="90th percentile, s")
    p95_s: Seconds | None = Field(None, description="95th percentile, s")
    p99_s: Seconds | None = Field(None, description="99th percentile, s")

    @property
    def typical_s(self) -> float | None:
        """The mean; where the source states none, the median; None: neither is stated."""
        return self.mean_s if self.mean_s is not None else self.p50_s

    def at_s(self, percentile: float | None) -> float | None:
        """The latency at a percentile (None: the mean), s; the next stated percentile above stands for it."""
        if percentile is None:
            return self.typical_s
        stated = ((50, self.p50_s), (75, self.p75_s), (90, self.p90_s), (95, self.p95_s), (99, self.p99_s))
        return next((value for at, value in stated if at >= percentile and value is not None), None)


class LoadOrigin(Value):
    """Where a point is from, and what ran there as far as the source says."""

    format: Name = Field(description="format that it was read from")
    file: str = Field(description="file as the user named it")
    place: str = Field("", description="where in the file; empty: the whole file")
    tool_version: str | None = Field(None, description="version of the tool that measured")
    llm: str | None = Field(None, description="LLM as the source names it")
    accelerator: str | None = Field(None, description="accelerator as the source names it")
    engine: Name | None = Field(None, description="inference engine")
    engine_version: str | None = Field(None, description="version of the engine as the source writes it")
    parallelism: Parallelism | None = Field(None, description="how a replica was spread; None: not said")
    replicas: Count | None = Field(None, gt=0, description="replicas that shared the load; None: not said")


class LoadPoint(Value):
    """One load level: what came, what was answered, how long it took. Rates are those of all replicas there."""

    arrivals: Arrivals = Field(description="how requests came")
    concurrency: Ratio | None = Field(
        None, gt=0, description="mean requests in flight; None: neither stated nor implied"
    )
    running: Ratio | None = Field(None, description="mean requests in the engine's batch; None: not stated")
    waiting: Ratio | None = Field(None, description="mean requests waiting in the engine; None: not stated")
    kv_usage: Share | None = Field(None, description="KV-cache usage; None: not stated")
    offered_rps: Rps | None = Field(
        None, description="rate that was asked for, req/s; None: as fast as it goes"
    )
    achieved_rps: Rps = Field(gt=0, description="requests answered well per second, req/s")
    input_tokens: Ratio = Field(gt=0, description="mean input length, tokens")
    output_tokens: Ratio = Field(gt=0, description="mean output length, tokens")
    ttft: LatencySpread | None = Field(None, description="time to first token; None: not stated")
    itl: LatencySpread | None = Field(None, description="inter-token latency; None: not stated")
    e2e: LatencySpread | None = Field(None, description="whole request; None: not stated")
    requests: Count | None = Field(None, description="requests answered well; None: not stated")
    errors: Count = Field(0, description="requests that failed or were cut off")
    duration_s: Seconds | None = Field(None, description="how long it was measured; None: not stated")
    origin: LoadOrigin = Field(description="where the point is from")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        spreads = (self.ttft, self.itl, self.e2e)
        if all(spread is None or spread.typical_s is None for spread in spreads):
            raise ValueError("states no mean and no median of any latency")
        return self

    @property
    def shape(self) -> tuple[int, int]:
        """Input and output length, rounded to tokens."""
        return round(self.input_tokens), round(self.output_tokens)

    @property
    def error_share(self) -> float:
        """Share of the requests that failed."""
        return self.errors / ((self.requests or 0) + self.errors) if self.errors else 0.0

    @property
    def stay_s(self) -> float | None:
        """Mean time in the system, s: as stated, or from TTFT and ITL; None: unknown."""
        if self.e2e is not None and self.e2e.typical_s:
            return self.e2e.typical_s
        ttft = self.ttft.typical_s if self.ttft else None
        itl = self.itl.typical_s if self.itl else None
        if ttft is None or itl is None:
            return None
        return ttft + max(0.0, self.output_tokens - 1) * itl

    @property
    def in_flight(self) -> float | None:
        """Mean requests in flight: as stated, else rate x time in the system (Little); None: unknown."""
        if self.concurrency is not None:
            return self.concurrency
        stay = self.stay_s
        return None if stay is None else self.achieved_rps * stay


class LoadReport(Value):
    """What one or several files hold: points, and what the same files say of starts and arrivals."""

    points: tuple[LoadPoint, ...] = Field(description="load levels")
    startups_s: tuple[Seconds, ...] = Field((), description="observed times from creation to ready, s")
    arrival_cv: Ratio | None = Field(
        None,
        description="coefficient of variation of gaps between arrivals; None: arrivals were not recorded",
    )
    notes: tuple[str, ...] = Field((), description="what was left out, and why")
