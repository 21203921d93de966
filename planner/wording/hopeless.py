"""Services that nothing can serve, and the first reasons why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from models.explanation import Reason, Rejection
from models.ids import ServiceId
from models.problem import PATHS, CostUnit, DemandBucket, Problem
from models.variant import Role
from planner.wording.numbers import number
from planner.wording.reasons import reason_sentence

__all__ = [
    "REASONS_SHOWN",
    "hopeless_sentence",
    "hopeless_shape_sentence",
    "refusal_sentences",
    "rejection_sentence",
]

REASONS_SHOWN: Final = 3
"""Rejected variants of one service that are told of; more are counted."""


def hopeless_sentence(service: ServiceId, missing: Sequence[Role]) -> str:
    """That nothing can serve a service; which roles are missing where others are there."""
    if {*missing} in [{*roles} for roles in PATHS.values()]:
        return f"No variant can serve {service}:"
    return f"No variant can serve {service}, since none can be its {' and its '.join(missing)}:"


def hopeless_shape_sentence(service: ServiceId, bucket: DemandBucket) -> str:
    """That nothing carries requests of one shape."""
    shape = f"{number(bucket.input_tokens)} input × {number(bucket.output_tokens)} output tokens"
    return f"No variant can serve the requests of {shape} of {service}:"


def refusal_sentences(problem: Problem, service: ServiceId, bucket: str | None = None) -> list[str]:
    """The first reasons why variants of a service are no candidates; of a variant and a reason one place is enough.

    That a pool has other accelerators than a variant needs is said last: it is true of most pools.

    Args:
        problem: with its rejections.
        service: that nothing can serve, wholly or in part.
        bucket: the shape that nothing carries; None: all of the service.
    """
    own = [
        each
        for each in problem.rejected
        if each.service == service and (bucket is None or each.facts.get("bucket") == bucket)
    ]
    own.sort(key=lambda each: each.reason is Reason.NO_POOL_WITH_ACCELERATOR)
    first: dict[tuple[str, Reason], Rejection] = {}
    for each in own:
        first.setdefault((each.variant, each.reason), each)
    told = [rejection_sentence(each) for each in first.values()]
    more = len(told) - REASONS_SHOWN
    return [*told[:REASONS_SHOWN], *([f"and {more} more"] if more > 0 else [])] or ["it has no variant"]


def rejection_sentence(rejection: Rejection, cost_unit: CostUnit = CostUnit.RELATIVE) -> str:
    """A variant, where, and the first reason why it is out."""
    pool = "" if rejection.pool is None else f" @ {rejection.pool}"
    return f"{rejection.variant}{pool}: {reason_sentence(rejection.reason, rejection.facts, cost_unit)}"
