"""Experiments by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from models.reproduction import Reproduction
from planner.errors import ConfigurationError, Finding, nearest
from planner.reproduction.elastic_slo import elastic_slo
from planner.reproduction.elastic_timings import elastic_timings
from planner.reproduction.measured import NAME as MEASURED
from planner.reproduction.measured import data_folder, measured_vllm
from planner.reproduction.wva_benchmark_page import benchmark
from planner.reproduction.wva_cluster import figure_4, figure_5, figure_6, replicas
from planner.reproduction.wva_ramps import figure_2, figure_3

__all__ = ["EXPERIMENTS", "SEEDS", "check_names", "reproduce", "runnable"]

SEEDS: Final = 5
"""Runs behind each figure, unless asked otherwise."""

EXPERIMENTS: Final[Mapping[str, Callable[[int], Reproduction]]] = {
    "wva-fig2": figure_2,
    "wva-fig3": figure_3,
    "wva-fig4": figure_4,
    "wva-fig5": figure_5,
    "wva-fig6": figure_6,
    "wva-replicas": replicas,
    "wva-benchmark": benchmark,
    "elastic-ep-slo": elastic_slo,
    "elastic-ep-timings": elastic_timings,
    MEASURED: measured_vllm,
}
"""What runs an experiment with so many seeds, by name, in the order of the page."""


def runnable() -> list[str]:
    """Names of the experiments whose data are there: recorded runs are not shipped."""
    return [name for name in EXPERIMENTS if name != MEASURED or data_folder() is not None]


def check_names(*names: str) -> None:
    """Refuse names of no experiment.

    Raises:
        ConfigurationError: names each with the nearest that there is.
    """
    known = ", ".join(EXPERIMENTS)
    findings = [
        Finding("", None, "NAME", repr(name), f"all, {known}", nearest(name, EXPERIMENTS))
        for name in names
        if name not in EXPERIMENTS
    ]
    if findings:
        raise ConfigurationError.from_findings(findings)


def reproduce(name: str, *, seeds: int = SEEDS) -> Reproduction:
    """Run one experiment.

    Args:
        name: one of :data:`EXPERIMENTS`.
        seeds: runs behind each figure, at least 1.

    Raises:
        ConfigurationError: no such experiment, or no seeds.
    """
    check_names(name)
    if seeds < 1:
        raise ConfigurationError.from_findings([Finding("", None, "--seeds", str(seeds), "at least 1")])
    return EXPERIMENTS[name](seeds)
