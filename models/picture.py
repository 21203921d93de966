"""One variant at one request shape, looked at from all sides: memory, capacity, and latency over load."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from models.explanation import Rejection
from models.ids import PoolId, ServiceId
from models.performance import Origin, Rating, RatingQuestion, Unrated
from models.problem import Candidate, CostUnit
from models.units import Bytes, Count, Percentile, PositiveRps, Ratio, Seconds, TokenCount, Tokens, Watts
from models.value import Value

__all__ = [
    "CandidatePicture",
    "LoadCurve",
    "LoadPoint",
    "LoadRow",
    "MemoryPicture",
    "PlacePicture",
    "SourceAnswer",
    "VariantPicture",
]


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


class LoadPoint(Value):
    """What one replica shows at one rate. A role that makes no first token, or none after it, shows no such latency."""

    rps: PositiveRps = Field(description="requests answered per second")
    in_flight: Ratio = Field(description="requests in flight, mean")
    waiting: Ratio | None = Field(None, description="of these so many wait, mean; None: not told apart")
    ttft_s: Seconds | None = Field(None, description="time to first token, s")
    itl_s: Seconds | None = Field(None, description="inter-token latency, s")
    e2e_s: Seconds | None = Field(None, description="whole request, s; None for a replica of one phase")
    kv_share: Ratio | None = Field(
        None, description="KV cache in use, 1 = all of it; None: the capacity is unknown"
    )


class LoadCurve(Value):
    """Latencies over load as one source tells them."""

    origin: Origin = Field(description="measured or modeled")
    source: str = Field(description="where the points are from")
    at: Percentile | Literal["mean"] | None = Field(
        None, description="statistic of the latencies; None: the source does not say which"
    )
    joined: bool = Field(True, description="False: nothing is known between the points")
    points: tuple[LoadPoint, ...] = Field(min_length=1, description="by rising rate")
    low: tuple[LoadPoint, ...] = Field(
        (), description="lower edge of the band, by rising rate; empty: no band"
    )
    high: tuple[LoadPoint, ...] = Field(
        (), description="upper edge of the band, by rising rate; empty: no band"
    )
    band: str = Field("", description="what the band says; empty: no band")


class PlacePicture(Value):
    """The variant in one pool: what a replica carries, costs and draws there, or why it is no candidate."""

    pool: PoolId = Field(description="the pool")
    candidates: tuple[Candidate, ...] = Field(
        (), description="one per fabric domain; empty: no candidate here"
    )
    rejections: tuple[Rejection, ...] = Field((), description="why not, or why not for some request shapes")
    cost: Ratio | None = Field(None, description="of one replica; None: unknown")
    cost_unit: CostUnit = Field(CostUnit.USD_PER_H, description="unit of the cost")
    cost_source: str = Field("", description="where the cost is from")
    power_w: Watts | None = Field(None, description="draw of one replica, W; None: unknown")
    power_source: str = Field("", description="where the draw is from")


class CandidatePicture(Value):
    """A variant of a scenario with all that is known of it."""

    service: ServiceId = Field(description="service that it serves")
    picture: VariantPicture = Field(description="at one request shape")
    unasked: tuple[SourceAnswer, ...] = Field(
        (), description="what other sources say, which the scenario does not ask"
    )
    curves: tuple[LoadCurve, ...] = Field((), description="latency over load, measured ones first")
    places: tuple[PlacePicture, ...] = Field(
        (), description="pools that it may use or runs in, sorted by name"
    )
    nowhere: tuple[Rejection, ...] = Field((), description="why there is no pool for it")
    nearest: tuple[TokenCount, TokenCount] | None = Field(
        None,
        description="input and output length of the nearest measured shape, tokens; None: none was measured",
    )
    codes: dict[str, str] = Field(
        {}, description="source code of figures of the catalog, by ``accelerator.FIELD`` or ``llm.FIELD``"
    )
