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
from planner.reproduction.wva_cluster import figure_4, figure_5, figure_6, replicas
from planner.reproduction.wva_ramps import figure_2, figure_3

__all__ = ["EXPERIMENTS", "SEEDS", "reproduce", "runnable"]

SEEDS: Final = 5
"""Runs behind each figure, unless asked otherwise."""

EXPERIMENTS: Final[Mapping[str, Callable[[int], Reproduction]]] = {
    "wva-fig2": figure_2,
    "wva-fig3": figure_3,
    "wva-fig4": figure_4,
    "wva-fig5": figure_5,
    "wva-fig6": figure_6,
    "wva-replicas": replicas,
    "elastic-ep-slo": elastic_slo,
    "elastic-ep-timings": elastic_timings,
    MEASURED: measured_vllm,
}
"""What runs an experiment with so many seeds, by name, in the order of the page."""


def runnable() -> list[str]:
    """Names of the experiments whose data are there: recorded runs are not shipped."""
    return [name for name in EXPERIMENTS if name != MEASURED or data_folder() is not None]


def reproduce(name: str, *, seeds: int = SEEDS) -> Reproduction:
    """Run one experiment.

    Args:
        name: one of :data:`EXPERIMENTS`.
        seeds: runs behind each figure, at least 1.

    Raises:
        ConfigurationError: no such experiment, or no seeds.
    """
    findings = []
    if name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        findings.append(Finding("", None, "NAME", repr(name), f"all, {known}", nearest(name, EXPERIMENTS)))
    if seeds < 1:
        findings.append(Finding("", None, "--seeds", str(seeds), "at least 1"))
    if findings:
        raise ConfigurationError.from_findings(findings)
    return EXPERIMENTS[name](seeds)
