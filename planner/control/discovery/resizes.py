"""The record of an elastic deployment's last resize -> what is observed of it."""

from __future__ import annotations

from pydantic import ValidationError

from models.observation import Finding, ResizeObservation
from models.resize_operation import OperationPhase, ResizeOperation
from planner.control.cluster.reading import Object
from planner.control.cluster.resize_records import record_of

__all__ = ["resize_of"]


def resize_of(lease: Object | None, subject: str, findings: list[Finding]) -> ResizeObservation | None:
    """The last resize; None: there was none. A record that cannot be read may be a resize that runs.

    Args:
        lease: that holds the record; None: there is none.
        subject: whose it is, for findings.
        findings: where to say what is wrong.
    """
    try:
        operation = record_of(lease)
    except ValidationError as cause:
        problem = f"the record of its resize cannot be read ({cause.error_count()} errors)"
        remedy = "see what the deployment does, then delete the Lease"
        findings.append(Finding(subject=subject, problem=problem, remedy=remedy))
        return ResizeObservation()
    if operation is None:
        return None
    return ResizeObservation(
        phase=operation.phase,
        since_s=operation.since_s,
        from_ranks=operation.from_ranks,
        to_ranks=operation.to_ranks,
        ranks=_ranks(operation),
        resizing_until_s=operation.settled_s,
    )


def _ranks(operation: ResizeOperation) -> int | None:
    """Ranks that serve once it is over."""
    return (
        operation.serving_ranks
        if operation.over and operation.phase is not OperationPhase.NEEDS_PEOPLE
        else None
    )
