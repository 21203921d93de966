"""Nouns: frozen values that flow through the planner. They import pydantic and the standard library only."""

from typing import Final

__all__ = ["SCHEMA"]

SCHEMA: Final = "fleetplan/1"
