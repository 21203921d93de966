"""What autoscalers are told: bounds of analyzers, and the objects that people write for a cluster's own autoscalers."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from models.ids import Name
from models.units import Count, PositiveCount, PositiveSeconds, Ratio, Seconds, Share
from models.value import Value

__all__ = [
    "Fallback",
    "FallbackBehavior",
    "HpaBehavior",
    "HpaMetric",
    "HpaSpec",
    "KedaSpec",
    "KpaSpec",
    "MetricSource",
    "PolicySelect",
    "PolicyType",
    "ScalingBounds",
    "ScalingPolicy",
    "ScalingRules",
    "TargetType",
]


class ScalingBounds(Value):
    """Utilization at which capacity is missing, and below which some may go (llm-d's token analyzer, as shipped)."""

    up: Share = Field(0.85, gt=0, description="demand / capacity above which capacity is missing")
    down: Share = Field(0.70, gt=0, description="demand / capacity that is left after replicas went")

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.down >= self.up:
            raise ValueError(f"down {self.down:g} must be less than up {self.up:g}")
        return self


class PolicyType(StrEnum):
    """What a scaling policy counts."""

    PODS = "Pods"
    PERCENT = "Percent"


class PolicySelect(StrEnum):
    """Which of several policies holds."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


class ScalingPolicy(Value):
    """How much may change within a period (autoscaling/v2 HPAScalingPolicy)."""

    type: PolicyType = Field(description="pods, or percent of the replicas at the start of the period")
    value: PositiveCount = Field(description="pods or percent")
    period_s: PositiveSeconds = Field(le=1800, description="length of the period, s")


class ScalingRules(Value):
    """One direction of a behavior (autoscaling/v2 HPAScalingRules)."""

    stabilization_s: Seconds | None = Field(
        None, le=3600, description="window of recommendations looked back on, s; None: 0 up, 300 down"
    )
    policies: tuple[ScalingPolicy, ...] = Field(
        (), description="limits of change; empty: 4 pods or 100 % per 15 s up, 100 % per 15 s down"
    )
    select: PolicySelect = Field(PolicySelect.MAX, description="which policy holds")
    tolerance: Ratio | None = Field(
        None, description="distance of the ratio to 1 that changes nothing; None: the controller's own"
    )


class HpaBehavior(Value):
    """Both directions (autoscaling/v2 HorizontalPodAutoscalerBehavior)."""

    up: ScalingRules = Field(ScalingRules(), description="when scaling up")
    down: ScalingRules = Field(ScalingRules(), description="when scaling down")


class MetricSource(StrEnum):
    """Whose figure a metric is."""

    PODS = "Pods"
    """One figure per pod."""
    EXTERNAL = "External"
    """One figure (or the sum of several series) for the whole target."""


class TargetType(StrEnum):
    """How a figure is compared with its target."""

    AVERAGE_VALUE = "AverageValue"
    VALUE = "Value"


class HpaMetric(Value):
    """One metric of an HPA (autoscaling/v2 MetricSpec)."""

    name: Name = Field(description="metric, e.g. kv_usage, waiting, queue")
    source: MetricSource = Field(description="per pod, or one figure for the whole target")
    target_type: TargetType = Field(
        TargetType.AVERAGE_VALUE, description="per pod (AverageValue) or as it is (Value; External only)"
    )
    target: float = Field(gt=0, allow_inf_nan=False, description="target in the unit of the metric")

    @model_validator(mode="after")
    def _pods_are_averaged(self) -> Self:
        if self.source is MetricSource.PODS and self.target_type is not TargetType.AVERAGE_VALUE:
            raise ValueError(f"metric {self.name}: source Pods allows target_type AverageValue only")
        return self


class HpaSpec(Value):
    """A HorizontalPodAutoscaler of one target (autoscaling/v2)."""

    min_replicas: Count = Field(1, description="least replicas; 0 needs the scale-to-zero gate")
    max_replicas: PositiveCount = Field(description="most replicas")
    metrics: tuple[HpaMetric, ...] = Field(min_length=1, description="the largest answer of all holds")
    behavior: HpaBehavior | None = Field(
        None, description="windows and policies; None: twice the replicas or 4 at most, 300 s down"
    )
    tolerance: Ratio = Field(0.1, description="distance of the ratio to 1 that changes nothing")
    sync_s: PositiveSeconds = Field(15.0, description="time between two decisions, s")
    scale_to_zero_gate: bool = Field(False, description="feature gate HPAScaleToZero")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        faults = []
        if self.min_replicas > self.max_replicas:
            faults.append(f"min_replicas {self.min_replicas} above max_replicas {self.max_replicas}")
        if self.min_replicas == 0 and not self.scale_to_zero_gate:
            faults.append("min_replicas 0 needs scale_to_zero_gate")
        if self.min_replicas == 0 and all(m.source is MetricSource.PODS for m in self.metrics):
            faults.append("min_replicas 0 needs a metric of source External, which exists without pods")
        if faults:
            raise ValueError("; ".join(faults))
        return self


class FallbackBehavior(StrEnum):
    """What a fallback makes of its replicas."""

    STATIC = "static"
    CURRENT = "currentReplicas"
    CURRENT_IF_HIGHER = "currentReplicasIfHigher"
    CURRENT_IF_LOWER = "currentReplicasIfLower"


class Fallback(Value):
    """Replicas that KEDA falls back to when a trigger fails again and again."""

    failure_threshold: PositiveCount = Field(3, description="failures in a row after which it holds")
    replicas: Count = Field(description="replicas it asks for")
    behavior: FallbackBehavior = Field(FallbackBehavior.STATIC, description="these, or the current ones")


class KedaSpec(Value):
    """A KEDA ScaledObject: one part wakes and puts to sleep, the other is an HPA that KEDA makes."""

    min_replicas: Count = Field(0, description="minReplicaCount")
    max_replicas: PositiveCount = Field(100, description="maxReplicaCount")
    idle_replicas: Count | None = Field(None, description="idleReplicaCount; None: not used")
    triggers: tuple[HpaMetric, ...] = Field(min_length=1, description="metrics of source External")
    activations: dict[Name, float] = Field(
        {}, description="activationThreshold by metric; active above it; not listed: 0"
    )
    polling_s: PositiveSeconds = Field(30.0, description="pollingInterval, s")
    cooldown_s: Seconds = Field(300.0, description="cooldownPeriod before zero or idle, s")
    initial_cooldown_s: Seconds = Field(0.0, description="initialCooldownPeriod after creation, s")
    fallback: Fallback | None = Field(None, description="None: a failing trigger changes nothing")
    behavior: HpaBehavior | None = Field(None, description="of the HPA that KEDA makes; None: as there")
    sync_s: PositiveSeconds = Field(15.0, description="time between two decisions of that HPA, s")
    tolerance: Ratio = Field(0.1, description="tolerance of that HPA")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        faults = []
        if self.min_replicas > self.max_replicas:
            faults.append(f"min_replicas {self.min_replicas} above max_replicas {self.max_replicas}")
        if self.idle_replicas is not None and self.idle_replicas >= self.min_replicas:
            faults.append(f"idle_replicas {self.idle_replicas} must be less than min_replicas")
        faults += [
            f"trigger {trigger.name}: source {trigger.source} where External is needed"
            for trigger in self.triggers
            if trigger.source is not MetricSource.EXTERNAL
        ]
        unknown = sorted(set(self.activations) - {trigger.name for trigger in self.triggers})
        faults += [f"activation of {name}, which is no trigger" for name in unknown]
        if faults:
            raise ValueError("; ".join(faults))
        return self


class KpaSpec(Value):
    """Knative's pod autoscaler (KPA); defaults as its config map has them."""

    metric: Name = Field("concurrency", description="concurrency or rps, summed over the service")
    target: float = Field(100.0, gt=0, allow_inf_nan=False, description="per replica at full use")
    target_utilization: Share = Field(0.7, gt=0, description="share of the target that is aimed at")
    stable_window_s: PositiveSeconds = Field(60.0, ge=6, le=3600, description="stable window, s")
    panic_window_share: Share = Field(0.1, ge=0.01, description="panic window / stable window")
    panic_threshold: Ratio = Field(2.0, ge=1.1, le=10, description="wanted / ready at which panic begins")
    max_scale_up_rate: Ratio = Field(1000.0, gt=1, description="most growth in one decision, factor")
    max_scale_down_rate: Ratio = Field(2.0, gt=1, description="most shrinking in one decision, divisor")
    scale_down_delay_s: Seconds = Field(0.0, le=3600, description="how long a lower count must hold, s")
    scale_to_zero: bool = Field(True, description="enable-scale-to-zero")
    scale_to_zero_grace_s: PositiveSeconds = Field(30.0, description="scale-to-zero-grace-period, s")
    pod_retention_s: Seconds = Field(0.0, le=3600, description="scale-to-zero-pod-retention-period, s")
    min_replicas: Count = Field(0, description="min-scale")
    max_replicas: Count = Field(0, description="max-scale; 0: no limit")
    activation_replicas: PositiveCount = Field(1, description="activation-scale: least replicas above zero")
    tick_s: PositiveSeconds = Field(2.0, description="time between two decisions, s")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max_replicas and self.min_replicas > self.max_replicas:
            raise ValueError(f"min_replicas {self.min_replicas} above max_replicas {self.max_replicas}")
        return self
