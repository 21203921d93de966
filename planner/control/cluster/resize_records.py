"""Records of resizes in Leases: how they are named and marked, for who writes them and for who only looks."""

from __future__ import annotations

import re
from typing import Final

from models.resize_operation import ResizeOperation
from planner.control.cluster.reading import Object, text_at

__all__ = ["MARK", "RECORD", "record_name", "record_of"]

RECORD: Final = "fleetplan.dev/resize"
"""Annotation that holds the operation."""
MARK: Final = {"fleetplan.dev/kind": "resize"}
"""Labels of these Leases, by which they are found among those of nodes and controllers."""
_PREFIX: Final = "fleetplan-resize-"
_LONGEST: Final = 200_000
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9-]+")


def record_name(workload: str) -> str:
    """The name of the Lease beside a workload."""
    return (_PREFIX + _NOT_IN_NAMES.sub("-", workload.lower()))[:253].strip("-")


def record_of(lease: Object | None) -> ResizeOperation | None:
    """The operation that a Lease holds; None: there is no Lease, or it never held one.

    Raises:
        pydantic.ValidationError: what it holds is none.
    """
    text = text_at(lease, "metadata", "annotations", RECORD, longest=_LONGEST)
    return ResizeOperation.model_validate_json(text) if text else None
