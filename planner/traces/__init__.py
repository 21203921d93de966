"""Traffic to replay: readers of traces and generators of synthetic ones, streaming.

``open_trace`` takes a file (Azure, BurstGPT, Mooncake, ServeGen, any table with an arrival and lengths, packed or not) or a
line such as ``poisson:rate=5,duration=10m,input=512,output=128``; what it gives can be iterated again and again.
"""

from planner.traces.badrows import BadRows, OnBadRow
from planner.traces.changing import Change
from planner.traces.requests import RequestChunk, Trace
from planner.traces.source import HowRead, TraceFile, open_trace, open_traces

__all__ = [
    "BadRows",
    "Change",
    "HowRead",
    "OnBadRow",
    "RequestChunk",
    "Trace",
    "TraceFile",
    "open_trace",
    "open_traces",
]
