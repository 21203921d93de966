"""What one replica can do: given figures, measured tables, and what its memory holds.

``rate`` answers one :class:`~models.performance.RatingQuestion`. Several request shapes of one
service are combined one floor up, in sizing.
"""

from planner.performance.front import rate, rate_many
from planner.performance.given import rate_given
from planner.performance.measured import MeasuredTable
from planner.performance.memory import KvFit, kv_capacity_tokens
from planner.performance.profile import read_profile, write_profile
from planner.performance.protocol import Knowledge, PerformanceSource
from planner.performance.sources import SOURCES, chosen_sources

__all__ = [
    "SOURCES",
    "Knowledge",
    "KvFit",
    "MeasuredTable",
    "PerformanceSource",
    "chosen_sources",
    "kv_capacity_tokens",
    "rate",
    "rate_given",
    "rate_many",
    "read_profile",
    "write_profile",
]
