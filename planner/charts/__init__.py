"""Drawings: values of ours in, an Altair chart out; the app, reports and commands show the same ones.

Every chart is a function of values. Only this package and the app name Altair; it is an extra
(``plots``, ``ui``), so callers import these modules when they draw.
"""

from planner.charts.saving import save_chart
from planner.charts.style import COLORS, styled

__all__ = ["COLORS", "save_chart", "styled"]
