"""What a replica draws at a load: measured where somebody measured, else modeled from how busy it computes."""

from planner.performance.power.model import Draw, KnownDraw, expected_draw, known_draw

__all__ = ["Draw", "KnownDraw", "expected_draw", "known_draw"]
