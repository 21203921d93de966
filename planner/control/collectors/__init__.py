"""Where metrics are from: Prometheus, pages of engines, files, what engines push. Plug-in group ``fleetplan.metrics-source``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from planner.clock import Clock
from planner.control.protocols import MetricsSource
from planner.registry import Registry

__all__ = ["METRICS_SOURCES", "SourceFactory", "open_source"]

SourceFactory = Callable[[Mapping[str, object], Clock], MetricsSource]
"""Makes a source of options and a clock; refuses wrong options with a ConfigurationError that lists them all."""

METRICS_SOURCES: Final[Registry[SourceFactory]] = Registry(
    "metrics-source",
    {
        "endpoints": "planner.control.collectors.endpoints:source",
        "files": "planner.control.collectors.files:source",
        "prometheus": "planner.control.collectors.prometheus:source",
        "push": "planner.control.collectors.push:source",
    },
)


def open_source(name: str, options: Mapping[str, object], clock: Clock) -> MetricsSource:
    """The metrics source of a name.

    Args:
        name: built in or of a plug-in.
        options: of that source.
        clock: for waits and times.

    Raises:
        ConfigurationError: there is no such source, what it needs is not installed, or an option is wrong.
    """
    return METRICS_SOURCES.get(name)(options, clock)
