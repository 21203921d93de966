"""The queueing model of one replica: a birth-death queue whose service slows down as requests share iterations.

``size_cases`` finds the largest rate inside promises on means or percentiles, ``latencies_at`` what a rate costs; both
take columns, so thousands of replicas and shapes are answered in one call.
"""

from planner.performance.queueing.cases import MEAN, Answers, Case, Cases, batch_limit, columns_of
from planner.performance.queueing.sizing import Bound, latencies_at, size_cases
from planner.performance.queueing.source import QueueingSource, case_of, rate_stated
from planner.performance.queueing.times import Times, inferred_slo, rate_range, times_at

__all__ = [
    "MEAN",
    "Answers",
    "Bound",
    "Case",
    "Cases",
    "QueueingSource",
    "Times",
    "batch_limit",
    "case_of",
    "columns_of",
    "inferred_slo",
    "latencies_at",
    "rate_range",
    "rate_stated",
    "size_cases",
    "times_at",
]
