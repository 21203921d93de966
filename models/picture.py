"""One variant at one request shape, looked at from all sides: memory, capacity, and latency over load."""

from __future__ import annotations

from pydantic import Field

from models.performance import Origin, Rating, RatingQuestion, Unrated
from models.units import Bytes, Count, PositiveRps, Ratio, Seconds, Tokens
from models.value import Value

__all__ = ["LoadRow", "MemoryPicture", "SourceAnswer", "VariantPicture"]


class MemoryPicture(Value):
    """How the memory of the fullest accelerator of a replica is used, bytes per accelerator."""

    memory_bytes: Bytes = Field(description="all of it, bytes")
    weight_bytes: Bytes = Field(description="weights, bytes")
    reserve_bytes: Bytes = Field(description="activations, graphs and runtime, bytes")
    kv_bytes: Bytes = Field(description="KV cache, bytes")
    unused_bytes: Bytes = Field(description="left to others by the engine's memory utilization, bytes")
    missing_bytes: Bytes = Field(description="0: it fits; else what is lacking, bytes")
    kv_tokens: Tokens | None = Field(
        None, description="KV capacity of the replica, tokens; None: unknown, or no cache"
    )
    requests: Count | None = Field(None, description="requests of this shape whose mean length fits at once")


class LoadRow(Value):
    """Latencies at one load."""

    in_flight: Ratio = Field(description="requests in flight")
    rps: PositiveRps = Field(description="requests answered per second")
    ttft_s: Seconds | None = Field(None, description="time to first token, s")
    itl_s: Seconds | None = Field(None, description="inter-token latency, s")
    keeps: bool = Field(description="whether every promise is kept")
    origin: Origin = Field(description="measured or modeled")
    source: str = Field(description="where the row is from")


class SourceAnswer(Value):
    """What one source says."""

    source: str = Field(description="name of the source")
    answer: Rating | Unrated = Field(description="its rating, or why it has none")


class VariantPicture(Value):
    """All that is known of a variant at a request shape."""

    question: RatingQuestion = Field(description="what was asked")
    memory: MemoryPicture | None = Field(None, description="None: the LLM states no figures to reckon with")
    answer: Rating | Unrated = Field(description="what planning would use")
    answers: tuple[SourceAnswer, ...] = Field((), description="what each source says alone")
    loads: tuple[LoadRow, ...] = Field((), description="latency over load, by source, then by load")
