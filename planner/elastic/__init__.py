"""What is known of elastic expert-parallel deployments: versions, sizes, and the time that changing size takes."""

from __future__ import annotations

from planner.elastic.estimating import ResizeQuestion, estimate_resize
from planner.elastic.preflight import PreflightFacts, PreflightQuestion, preflight, refusal_text
from planner.elastic.rates import measured_sizes, rate_at
from planner.elastic.sizes import Room, floor_ranks, judge_size, largest_ranks, reachable_sizes
from planner.elastic.stages import PUBLISHED, RESTARTED, StageSeconds, fit_stages, published_stages
from planner.elastic.versions import Traits, mode_of, traits_of

__all__ = [
    "PUBLISHED",
    "RESTARTED",
    "PreflightFacts",
    "PreflightQuestion",
    "ResizeQuestion",
    "Room",
    "StageSeconds",
    "Traits",
    "estimate_resize",
    "fit_stages",
    "floor_ranks",
    "judge_size",
    "largest_ranks",
    "measured_sizes",
    "mode_of",
    "preflight",
    "published_stages",
    "rate_at",
    "reachable_sizes",
    "refusal_text",
    "traits_of",
]
