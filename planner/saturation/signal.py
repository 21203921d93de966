"""What the analyzer says: the state of one replica, and the signal of all that pool together."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from models.explanation import Limited
from models.fleet import RunningReplica
from models.saturation import SaturationThresholds
from models.units import Count, Ratio
from models.value import Value

__all__ = ["ReplicaState", "SaturationSignal", "state_of"]


class ReplicaState(StrEnum):
    """Where one replica stands. ``MISSING``: a metric that would decide it is not there."""

    SATURATED = "saturated"
    NON_SATURATED = "non_saturated"
    MISSING = "missing"


def state_of(replica: RunningReplica, thresholds: SaturationThresholds) -> ReplicaState:
    """Saturated where KV-cache usage or queue has reached τ: one of the two is enough, also if the other is missing."""
    kv, queue = replica.kv_usage, replica.queue
    if (kv is not None and kv >= thresholds.tau_kv) or (queue is not None and queue >= thresholds.tau_queue):
        return ReplicaState.SATURATED
    return ReplicaState.MISSING if kv is None or queue is None else ReplicaState.NON_SATURATED


class SaturationSignal(Value):
    """The answer for the replicas of one service and role, pooled over variants.

    ``up.value`` and ``scale_in.value`` are 1 or 0: the published rule moves one replica at a time.
    """

    saturated: tuple[RunningReplica, ...] = Field((), description="the replicas at or above τ")
    non_saturated: Count = Field(0, description="replicas with both metrics below τ")
    missing: Count = Field(0, description="replicas that a missing metric leaves undecided")
    spare_kv: Ratio = Field(
        0.0, description="mean of τ_kv - usage over the non-saturated; 0 if there is none"
    )
    spare_queue: Ratio = Field(
        0.0, description="mean of τ_q - queue over the non-saturated; 0 if there is none"
    )
    usage_kv: Ratio | None = Field(None, description="mean KV usage where it is known; None: nowhere")
    usage_queue: Ratio | None = Field(None, description="mean queue where it is known; None: nowhere")
    up: Limited
    scale_in: Limited

    @property
    def scale_up(self) -> bool:
        """Whether the trigger asks for another replica."""
        return self.up.value > 0

    @property
    def scale_in_safe(self) -> bool:
        """Whether the rest could carry the load if one replica were gone."""
        return self.scale_in.value > 0
