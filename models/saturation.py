"""How close a replica is to its limits, and how much is kept free."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from models.units import Count, Ratio, Rps, Share, Tokens
from models.value import Value

__all__ = ["Headroom", "SaturationThresholds"]


class SaturationThresholds(Value):
    """τ and γ of one service (arXiv 2603.09730; defaults as llm-d's autoscaler ships them).

    A replica is saturated at τ. Scale-up starts when the mean distance to τ falls below γ, so a
    replica is rated at τ - γ.
    """

    tau_kv: Share = Field(0.80, gt=0, description="KV-cache usage at which a replica is saturated")
    tau_queue: Ratio = Field(5.0, description="waiting requests at which a replica is saturated")
    gamma_kv: Share = Field(0.10, description="KV distance to tau_kv below which scale-up starts")
    gamma_queue: Ratio = Field(3.0, description="queue distance to tau_queue below which scale-up starts")
    min_non_saturated_for_scale_in: Count = Field(
        2, description="no scale-in starts while fewer replicas are non-saturated"
    )

    @model_validator(mode="after")
    def _trigger_below_threshold(self) -> Self:
        if self.gamma_kv >= self.tau_kv:
            raise ValueError(f"gamma_kv {self.gamma_kv} must be less than tau_kv {self.tau_kv}")
        if self.gamma_queue > self.tau_queue:
            raise ValueError(f"gamma_queue {self.gamma_queue} must not exceed tau_queue {self.tau_queue}")
        return self


class Headroom(Value):
    """δ: capacity kept free above the load, in at most one of three ways; all ``None``: nothing is kept."""

    relative: Ratio | None = Field(None, description="share of the load, e.g. 0.2 keeps room for 20 % more")
    burst_rps: Rps | None = Field(None, description="room for so many more requests per second, req/s")
    kv_tokens: Tokens | None = Field(None, description="KV-cache tokens below tau_kv that stay free")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if sum(way is not None for way in (self.relative, self.burst_rps, self.kv_tokens)) > 1:
            raise ValueError("give headroom in one way only: relative, burst_rps or kv_tokens")
        return self
