"""The queueing model of one replica: a birth-death queue whose service slows down as requests share iterations.

Here is what needs no compiler. ``sizing.size_cases`` finds the largest rate inside promises on means or percentiles,
``sizing.latencies_at`` what a rate costs; both take columns, so thousands of replicas and shapes are answered in one
call. ``times`` has one case's times and range of rates.
"""

from planner.performance.queueing.cases import MEAN, Answers, Bound, Case, Cases, batch_limit, columns_of
from planner.performance.queueing.source import QueueingSource, case_of, rate_stated

__all__ = [
    "MEAN",
    "Answers",
    "Bound",
    "Case",
    "Cases",
    "QueueingSource",
    "batch_limit",
    "case_of",
    "columns_of",
    "rate_stated",
]
