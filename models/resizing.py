"""Changing the size of an elastic deployment: which sizes can be reached, and what each way there takes."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from models.elastic import ElasticDeployment, ElasticShape, ResizeMode
from models.explanation import Fact
from models.performance import Origin
from models.units import EpochSeconds, PositiveCount, Seconds
from models.value import Value

__all__ = [
    "ElasticPicture",
    "Pace",
    "Placement",
    "Preflight",
    "PreflightCheck",
    "PreflightVerdict",
    "ResizeEstimate",
    "Schedule",
    "ScheduledCall",
    "SizeLine",
    "SizeReason",
    "SizeRefusal",
    "SizeVerdict",
    "Stage",
    "StageTime",
]


class SizeReason(StrEnum):
    """Why a size cannot be reached in place."""

    LAUNCH_DOES_NOT_DIVIDE = "launch_does_not_divide"
    NOT_ELASTIC = "not_elastic"
    BELOW_FLOOR = "below_floor"
    ABOVE_MAXIMUM = "above_maximum"
    REDUNDANCY_CAP = "redundancy_cap"
    RANK_CAP_OF_VERSION = "rank_cap_of_version"
    BELOW_LAUNCH_UNSAFE = "below_launch_unsafe"
    GROWS_ONLY = "grows_only"
    ONE_RANK_ALONE = "one_rank_alone"
    WHOLE_GROUPS = "whole_groups"
    NO_ROOM_ON_NODES = "no_room_on_nodes"
    NO_ROOM_IN_FABRIC_DOMAIN = "no_room_in_fabric_domain"


class SizeRefusal(Value):
    """One reason against a size, with its facts."""

    reason: SizeReason = Field(description="why not")
    facts: dict[str, Fact] = Field({}, description="what else tells why, by name")


class SizeVerdict(Value):
    """What is to be said of one size."""

    ranks: PositiveCount = Field(description="data-parallel ranks (n)")
    redundant_experts: int | None = Field(
        None, description="copies of experts beside at this size; None: no such launch"
    )
    refusals: tuple[SizeRefusal, ...] = Field(
        (), description="everything against it; empty: it can be reached"
    )

    @property
    def reachable(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.refusals


class Stage(StrEnum):
    """What a resize goes through, in this order."""

    START_JOINERS = "start joiners"
    PREPARE_COMMUNICATION = "prepare communication"
    MOVE_WEIGHTS = "move weights"
    WARM_UP = "warm up and capture"
    ACTIVATE = "activate"


class Placement(StrEnum):
    """Whether the deployment serves during a stage."""

    PAUSED = "paused"
    BACKGROUND = "background"
    ABSENT = "absent"


class Pace(Value):
    """A time that is not known to the second."""

    expected_s: Seconds = Field(description="expected, s")
    low_s: Seconds = Field(description="at least, s")
    high_s: Seconds = Field(description="at most, s")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low_s <= self.expected_s <= self.high_s:
            raise ValueError(
                f"found {self.low_s:g} .. {self.expected_s:g} .. {self.high_s:g} s; allowed: in order"
            )
        return self

    def __add__(self, other: Pace) -> Pace:
        """One after the other, both late or both early."""
        return Pace(
            expected_s=self.expected_s + other.expected_s,
            low_s=self.low_s + other.low_s,
            high_s=self.high_s + other.high_s,
        )


class StageTime(Value):
    """One stage of one resize."""

    stage: Stage = Field(description="which")
    where: str = Field("", description="joiners or existing workers, where both do it")
    placement: Placement = Field(description="whether the deployment serves meanwhile")
    time: Pace = Field(description="how long")


class ResizeEstimate(Value):
    """What one way from one size to another takes."""

    mode: ResizeMode = Field(description="how")
    from_ranks: PositiveCount = Field(description="data-parallel ranks before")
    to_ranks: PositiveCount = Field(description="data-parallel ranks after")
    stages: tuple[StageTime, ...] = Field((), description="in order; empty where the whole was measured")
    downtime: Pace = Field(description="in-flight requests stop, new ones are refused")
    total: Pace = Field(description="from the call to its end")
    balance: Pace = Field(description="after that, until experts have moved and the whole capacity is there")
    idle_gpu_seconds: float = Field(
        ge=0,
        description="accelerator-seconds that serve nobody, expected",
        json_schema_extra={"unit": "GPU s"},
    )
    peak_gpus: PositiveCount = Field(description="accelerators held at once while it runs")
    origin: Origin = Field(description="whether its times were measured, or come from the model of stages")
    assumptions: tuple[str, ...] = Field((), description="what the times rest on, one sentence each")

    @property
    def lead_s(self) -> float:
        """From the call until the whole capacity is there, expected, s."""
        return self.total.expected_s + self.balance.expected_s

    def hindered(self, arrival_rps: float, *, aborted: float = 0.0) -> float:
        """Requests that are lost or delayed: what arrives in the downtime, and those aborted on ranks that leave."""
        return self.downtime.expected_s * arrival_rps + aborted


class PreflightVerdict(StrEnum):
    """What a check says."""

    OK = "ok"
    WARNING = "warning"
    UNKNOWN = "unknown"
    REFUSED = "refused"


class PreflightCheck(Value):
    """One thing that was looked at before a resize is ordered."""

    name: str = Field(description="what was looked at")
    verdict: PreflightVerdict = Field(description="ok, warning, unknown (nobody said), refused")
    finding: str = Field(description="one sentence")
    change: str = Field("", description="what to change, on the server's command line where it stands there")


class Preflight(Value):
    """All of them, in a fixed order."""

    checks: tuple[PreflightCheck, ...] = Field(description="one for each thing that was looked at")

    @property
    def passed(self) -> bool:
        """Whether nothing is refused; what is not known passes with a word."""
        return all(check.verdict is not PreflightVerdict.REFUSED for check in self.checks)


class SizeLine(Value):
    """One size of a deployment: whether it can be reached in place, what it carries, and every way there."""

    verdict: SizeVerdict = Field(description="what is to be said of it")
    texts: tuple[str, ...] = Field((), description="what speaks against it, in sentences")
    rated_rps: float | None = Field(None, description="what it carries, req/s; None: nothing rates it")
    ways: tuple[ResizeEstimate, ...] = Field((), description="ways there, in place first; empty: it is there")


class ElasticPicture(Value):
    """An elastic deployment with everything that is known of its sizes."""

    service: str = Field(description="service that it serves")
    variant: str = Field(description="its variant")
    pool: str | None = Field(None, description="pool that it runs in; None: it does not run")
    deployment: ElasticDeployment = Field(description="as it is stated")
    shape: ElasticShape = Field(description="what decides its sizes")
    mode: ResizeMode | None = Field(None, description="which way its resize goes; None: it has none")
    current: PositiveCount = Field(
        description="data-parallel ranks now, or as launched where it does not run"
    )
    free_gpus: tuple[int, ...] = Field((), description="free accelerators of each node of its fabric domain")
    arrival_rps: float = Field(0.0, description="requests that arrive at its service, req/s")
    lines: tuple[SizeLine, ...] = Field((), description="sizes, the smallest first")
    notes: tuple[str, ...] = Field((), description="what is to be known beside, in sentences")

    @property
    def name(self) -> str:
        """As people name it: ``service/variant@pool``."""
        return f"{self.service}/{self.variant}" + (f"@{self.pool}" if self.pool else "")

    def line(self, ranks: int) -> SizeLine | None:
        """The line of a size; None: it has none."""
        return next((each for each in self.lines if each.verdict.ranks == ranks), None)


class ScheduledCall(Value):
    """One resize that is to be called for ahead of the load."""

    call_s: EpochSeconds = Field(description="when to call, seconds of the epoch")
    needed_s: EpochSeconds = Field(description="when the capacity is needed, or may go, seconds of the epoch")
    mode: ResizeMode = Field(description="how")
    from_ranks: PositiveCount = Field(description="data-parallel ranks before")
    to_ranks: PositiveCount = Field(description="data-parallel ranks after")
    rate_rps: float = Field(ge=0, description="the most that is expected while it has this size, req/s")
    carries_rps: float = Field(ge=0, description="what it carries then, req/s")
    late_s: Seconds = Field(0.0, description="the call should have been made so long ago; 0: there is time")

    @property
    def short_rps(self) -> float:
        """What no size that can be reached carries."""
        return max(0.0, self.rate_rps - self.carries_rps)


class Schedule(Value):
    """Resizes ahead of the load, in the order of time."""

    calls: tuple[ScheduledCall, ...] = Field((), description="calls; empty: the size of now stays")
    short_rps: float = Field(
        0.0, ge=0, description="the most that no size which can be reached carries, req/s"
    )
