"""The enforcer: what happens to a service's targets after the optimizer and before anything is carried out."""

from __future__ import annotations

from dataclasses import replace

from planner.saturation.published.amounts import Number
from planner.saturation.published.capacity import Reason, ServiceState, Targets, VariantState

__all__ = ["DEFAULT_COST", "cost_then_name", "is_exempt", "keep_one", "scale_to_zero_when_idle"]

DEFAULT_COST = 10.0
"""Cost that stands for a missing or non-positive one."""


def is_exempt(service: ServiceState) -> bool:
    """Whether the enforcer leaves a service alone: a variant has a minimum, or an engine is not vLLM.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/enforcer.go.
    """
    return any(variant.floor > 0 or variant.engine != "vllm" for variant in service.variants)


def scale_to_zero_when_idle(
    service: ServiceState, targets: Targets, *, completed_requests: float | None
) -> Targets:
    """Scale-to-zero on: no completed request in the retention time sends every variant to 0.

    None means that the count could not be read: then targets stay. Only completed requests count, as published, so a
    service that has just been woken may read as idle.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/enforcer.go.
    """
    if is_exempt(service) or completed_requests is None or completed_requests > 0:
        return targets
    names = [variant.name for variant in service.variants]
    return Targets(replicas=dict.fromkeys(names, 0), reasons=dict.fromkeys(names, Reason.IDLE))


def keep_one(service: ServiceState, targets: Targets) -> Targets:
    """Scale-to-zero off: a service whose targets are all 0 keeps one replica of its cheapest variant, ties by name.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/enforcer.go.
    """
    if is_exempt(service) or not service.variants or sum(targets.replicas.values()) > 0:
        return targets
    kept = min(service.variants, key=cost_then_name).name
    return replace(
        targets,
        replicas={**targets.replicas, kept: 1},
        reasons={**targets.reasons, kept: Reason.KEPT_ONE},
    )


def cost_then_name(variant: VariantState) -> tuple[Number, str]:
    """Sort key of variants, cheapest first."""
    return (variant.cost if variant.cost > 0 else DEFAULT_COST), variant.name
