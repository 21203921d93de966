"""A rule that does not hold."""

from __future__ import annotations

from pydantic import Field

from models.ids import Name
from models.value import Value

__all__ = ["Violation"]


class Violation(Value):
    """One rule that does not hold, by how much."""

    family: Name = Field(description="family of the design's table, e.g. gpus, power, survive")
    key: tuple[str, ...] = Field(description="which row: service, pool, node, domain ...")
    found: float = Field(description="what the solution has, in ``unit``")
    allowed: float = Field(description="what may be, in ``unit``")
    unit: str = Field(description="unit of found and allowed")
    text: str = Field(description="one plain sentence")
