"""Carry out the resize of an elastic deployment: ordered steps, one call, and a record of what is true."""

from __future__ import annotations

from planner.control.resizing.driver import advance, drive, order, resume
from planner.control.resizing.world import Engine, Ground, OperationStore, Router, World

__all__ = ["Engine", "Ground", "OperationStore", "Router", "World", "advance", "drive", "order", "resume"]
