"""What calibration writes: a profile of queueing parameters, measured rows, or thresholds that a scenario includes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import yaml

from models.calibration import Calibration, ThresholdProposal
from models.load import LoadPoint
from models.performance import MeasuredPoint
from models.queueing_profile import QueueingProfile

__all__ = ["PROFILE_HEAD", "THRESHOLDS_HEAD", "measured_rows", "profile_text", "thresholds_text"]

PROFILE_HEAD: Final = "# Queueing parameters fitted by fleetplan calibrate"
THRESHOLDS_HEAD: Final = "# Thresholds proposed by fleetplan calibrate"


def profile_text(found: Iterable[Calibration]) -> str:
    """A YAML file that a scenario names under ``profiles:``."""
    rows = [_row(each.profile) for each in found]
    head = f"{PROFILE_HEAD}: name this file under profiles: of a scenario, and queueing under performance.sources:.\n"
    return head + yaml.safe_dump({"queueing": rows}, sort_keys=False, allow_unicode=True, width=110)


def _row(profile: QueueingProfile) -> dict[str, Any]:
    """The fields that are not their default: what a person wants to read."""
    return profile.model_dump(mode="json", exclude_defaults=True) | {
        "precision": str(profile.precision),
        "parameters": profile.parameters.model_dump(mode="json", exclude_none=True),
    }


def measured_rows(points: Sequence[LoadPoint], known: QueueingProfile, *, source: str) -> list[MeasuredPoint]:
    """Points as rows of a profile table; points without both latencies are left out."""
    rows = []
    for point in points:
        itl = point.itl.typical_s if point.itl else None
        ttft = point.ttft.typical_s if point.ttft else None
        if not itl or not ttft or point.in_flight is None:
            continue
        replicas = point.origin.replicas or 1
        is_mean = all(spread is None or spread.mean_s is not None for spread in (point.itl, point.ttft))
        stay = ttft + (point.output_tokens - 1) * itl
        rows.append(
            MeasuredPoint(
                llm=known.llm,
                accelerator=known.accelerator,
                engine=known.engine or "vllm",
                engine_version=known.engine_version,
                precision=known.precision,
                kv_precision=known.kv_precision,
                parallelism=known.parallelism,
                input_tokens=round(point.input_tokens),
                output_tokens=max(1, round(point.output_tokens)),
                concurrency=max(1, math.ceil(max(point.in_flight, point.achieved_rps * stay) / replicas)),
                ttft_s=ttft,
                itl_s=itl,
                rps=point.achieved_rps / replicas,
                at="mean" if is_mean else 50.0,
                row=point.origin.place[:200] or None,
                source=source,
            )
        )
    return rows


def thresholds_text(found: Sequence[ThresholdProposal], *, service: str | None) -> str:
    """A YAML file that a scenario includes: the most careful of the proposals, and beside it each of them as a comment.

    Args:
        found: proposals of the variants of one service.
        service: whose; None: the default of every service.
    """
    careful = min(found, key=lambda each: each.thresholds.tau_kv - each.thresholds.gamma_kv)
    queue = min(found, key=lambda each: each.thresholds.tau_queue - each.thresholds.gamma_queue)
    thresholds = {
        "tau_kv": careful.thresholds.tau_kv,
        "gamma_kv": careful.thresholds.gamma_kv,
        "tau_queue": queue.thresholds.tau_queue,
        "gamma_queue": queue.thresholds.gamma_queue,
    }
    body = {
        "thresholds": thresholds,
        "headroom": {"relative": max(each.headroom.relative or 0.0 for each in found)},
    }
    document = {"defaults": {"service": body}} if service is None else {"services": {service: body}}
    lines = [
        f"{THRESHOLDS_HEAD}: name this file under include: of a scenario.",
        *(_comment(each) for each in found),
    ]
    return "\n".join(lines) + "\n" + yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _comment(each: ThresholdProposal) -> str:
    where = f" on {each.accelerator}" if each.accelerator else ""
    values = each.thresholds
    return (
        f"# {each.variant}{where}, {each.input_tokens:.0f}/{each.output_tokens:.0f} tokens: tau_kv {values.tau_kv:g}, "
        f"gamma_kv {values.gamma_kv:g}, tau_queue {values.tau_queue:g}, gamma_queue {values.gamma_queue:g}, "
        f"headroom {each.headroom.relative or 0:g}, {each.knee_rps:.3g} req/s at the knee ({each.limited_by})"
    )
