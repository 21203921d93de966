"""Rates of one replica by request shape, as grids of other tools state them."""

from __future__ import annotations

from pydantic import Field

from models.units import Rps, TokenCount
from models.value import Value

__all__ = ["ShapeRate"]


class ShapeRate(Value):
    """What one replica carries of requests of one shape, inside the promises; 0: it carries none."""

    input_tokens: TokenCount = Field(le=10**8, description="input length, tokens")
    output_tokens: TokenCount = Field(le=10**8, description="output length, tokens")
    rated_rps: Rps = Field(le=1e7, description="largest rate inside the promises, req/s; 0: none")
