"""What a calibration found: fitted parameters, each point beside what they say of it, and proposed thresholds."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from models.ids import Name
from models.queueing_profile import QueueingProfile
from models.saturation import Headroom, SaturationThresholds
from models.units import Count, PositiveRps, Ratio, Seconds
from models.value import Value

__all__ = ["Calibration", "FittedPoint", "LeftOut", "LimitedBy", "ThresholdProposal"]


class LeftOut(StrEnum):
    """Why a point was not fitted."""

    ERRORS = "errors"
    KV_FULL = "kv_full"
    QUEUE = "queue"
    BEYOND_BATCH = "beyond_batch"
    PAST_PEAK = "past_peak"
    NO_LOAD = "no_load"


class FittedPoint(Value):
    """One load level: what was seen, and what the fitted parameters say."""

    place: str = Field(description="file and place of the point")
    input_tokens: Ratio = Field(description="mean input length, tokens")
    output_tokens: Ratio = Field(description="mean output length, tokens")
    in_service: Ratio | None = Field(None, description="requests in the batch; None: unknown")
    itl_s: Seconds | None = Field(None, description="inter-token latency seen, s")
    itl_fitted_s: Seconds | None = Field(None, description="inter-token latency of the fit, s")
    ttft_s: Seconds | None = Field(None, description="time to first token seen, s")
    ttft_fitted_s: Seconds | None = Field(None, description="time to first token of the fit, s")
    rps: PositiveRps = Field(description="requests answered per second, seen")
    rps_fitted: PositiveRps | None = Field(None, description="requests answered per second of the fit")
    left_out: LeftOut | None = Field(None, description="why it was not fitted; None: it was")
    outlier: bool = Field(False, description="fitted, and so far off that it hardly counted")


class Calibration(Value):
    """Queueing parameters of one LLM on one accelerator type, and how they came about."""

    profile: QueueingProfile = Field(description="parameters with what they are known for, and how well")
    points: tuple[FittedPoint, ...] = Field(description="every point, those that were left out too")
    condition: Ratio = Field(
        description="largest over smallest singular value of the scaled Jacobian: how far the data tell the parameters apart"
    )
    ttft_was_used: bool = Field(description="whether times to first token were fitted")
    notes: tuple[str, ...] = Field((), description="what a reader should know before using the parameters")


class LimitedBy(StrEnum):
    """What a replica runs into first as load grows."""

    SLO = "slo"
    THROUGHPUT = "throughput"
    ERRORS = "errors"
    NOTHING_SEEN = "nothing_seen"


class ThresholdProposal(Value):
    """Thresholds for one variant on one accelerator type, from a load sweep."""

    variant: Name = Field(description="variant, or LLM and accelerator where nobody named one")
    accelerator: str | None = Field(None, description="accelerator as the reports name it; None: not said")
    input_tokens: Ratio = Field(description="mean input length of the sweep, tokens")
    output_tokens: Ratio = Field(description="mean output length of the sweep, tokens")
    thresholds: SaturationThresholds = Field(description="proposed tau and gamma")
    headroom: Headroom = Field(description="proposed delta")
    limited_by: LimitedBy = Field(description="what the knee is")
    knee_rps: PositiveRps = Field(description="rate at the knee, req/s of one replica")
    last_good: Count = Field(description="number of the last good point, from 0")
    burst: Ratio = Field(description="share by which the load may grow while a replica starts")
    startup_s: Seconds = Field(description="time from request to ready that was reckoned with, s")
    arrival_cv: Ratio = Field(
        description="coefficient of variation of gaps between arrivals that was reckoned with"
    )
    notes: tuple[str, ...] = Field((), description="what was assumed, and what would sharpen the figures")
