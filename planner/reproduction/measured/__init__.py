"""Runs of a real engine, recorded request by request, against the twin that is given the same requests."""

from planner.reproduction.measured.comparing import GOALS, Comparison, Figures, Goal, compare_runs
from planner.reproduction.measured.page import NAME, data_folder, measured_vllm
from planner.reproduction.measured.runs import MEASURED_RUNS, MeasuredRun

__all__ = [
    "GOALS",
    "MEASURED_RUNS",
    "NAME",
    "Comparison",
    "Figures",
    "Goal",
    "MeasuredRun",
    "compare_runs",
    "data_folder",
    "measured_vllm",
]
