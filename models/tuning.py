"""What the online tuner keeps between observations, what it is told, and what it did with it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from models.queueing import QueueingParameters
from models.units import Count, PositiveSeconds, Ratio, Rps, Seconds, Share
from models.value import Value

__all__ = ["TunerObservation", "TunerSettings", "TunerState", "TunerStep", "TunerVerdict"]

Triple = Annotated[tuple[float, float, float], Field(description="of alpha, beta and gamma")]


class TunerVerdict(StrEnum):
    """What became of an observation."""

    ACCEPTED = "accepted"
    BOUNDED = "bounded"
    OUTLIER = "outlier"
    TRANSIENT = "transient"
    UNUSABLE = "unusable"


class TunerSettings(Value):
    """How fast the tuner follows, and what it refuses."""

    drift: Share = Field(
        0.05, gt=0, description="standard deviation of a parameter's change per step, as a share of it"
    )
    noise: Share = Field(
        0.05, gt=0, description="half-width of 95 % of the observations, as a share of what is modeled"
    )
    gate: Share = Field(
        0.95,
        gt=0.5,
        lt=1,
        description="probability that an observation of a right model passes the innovation gate",
    )
    transient_s: Seconds = Field(
        120.0, description="after a change of the replica count nothing is learned for so long, s"
    )
    widest: Ratio = Field(
        100.0, gt=1, description="a parameter stays within the start divided and multiplied by this"
    )
    patience: Count = Field(
        10,
        gt=0,
        description="outliers in a row after which the parameters are taken to have changed and are learned anew",
    )


class TunerObservation(Value):
    """What one replica did over a short while. Latencies that were not seen are ``None``."""

    at_s: float = Field(description="time of the observation, s, on any clock that only goes forward")
    arrival_rps: Rps = Field(description="requests that arrived per second at this replica")
    input_tokens: Ratio = Field(description="mean input length, tokens")
    output_tokens: Ratio = Field(description="mean output length, tokens")
    ttft_s: PositiveSeconds | None = Field(None, description="mean time to first token, s")
    itl_s: PositiveSeconds | None = Field(None, description="mean inter-token latency, s")
    in_service: Ratio | None = Field(None, description="mean requests in the batch; None: from the rate")


class TunerState(Value):
    """Parameters as they are believed, how sure that is, and where they started."""

    parameters: QueueingParameters = Field(description="as believed now")
    start: QueueingParameters = Field(description="as at the start; bounds are around these")
    covariance: tuple[Triple, Triple, Triple] = Field(
        description="of ln alpha, ln beta, ln gamma; relative, without unit"
    )
    changed_at_s: float | None = Field(
        None, description="when the replica count changed last, s; None: never"
    )
    outliers_in_a_row: Count = Field(0, description="observations refused since the last accepted one")
    accepted: Count = Field(0, description="observations accepted so far")

    @model_validator(mode="after")
    def _is_a_variance(self) -> Self:
        if any(self.covariance[k][k] < 0 for k in range(3)):
            raise ValueError("found a negative variance; allowed: variances of at least 0")
        return self


class TunerStep(Value):
    """The next state, and what became of the observation."""

    state: TunerState = Field(description="to go on with")
    verdict: TunerVerdict = Field(description="what became of the observation")
    surprise: Ratio | None = Field(None, description="normalized innovation squared; None: not computed")
    gate: Ratio | None = Field(None, description="largest surprise that passes; None: not computed")
    modeled_ttft_s: Seconds | None = Field(None, description="what the parameters before said, s")
    modeled_itl_s: Seconds | None = Field(None, description="what the parameters before said, s")
