"""Who carries decisions out: a gauge, scalers, replica counts, files. Plug-in group ``fleetplan.actuation``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from planner.control.actuators.connections import Connections
from planner.control.actuators.fleet import (
    Actuators,
    Exporting,
    Hearing,
    Leading,
    Prepared,
    Preparing,
    Releasing,
    Seeing,
)
from planner.control.protocols import Actuator
from planner.errors import ConfigurationError, Finding
from planner.registry import Registry

__all__ = [
    "ACTUATORS",
    "ActuatorFactory",
    "Actuators",
    "Connections",
    "Exporting",
    "Hearing",
    "Leading",
    "Prepared",
    "Preparing",
    "Releasing",
    "Seeing",
    "actuators_from",
    "open_actuator",
]

ActuatorFactory = Callable[[Mapping[str, object], Connections], Actuator]
"""Makes an actuator of options and connections; refuses wrong options with a ConfigurationError that lists them all."""

ACTUATORS: Final[Registry[ActuatorFactory]] = Registry(
    "actuation",
    {
        "draining": "planner.control.actuators.drainer:actuator",
        "epp": "planner.control.actuators.epp:actuator",
        "files": "planner.control.actuators.files:actuator",
        "gauge": "planner.control.actuators.gauge:actuator",
        "hpa": "planner.control.actuators.hpa:actuator",
        "keda": "planner.control.actuators.keda:actuator",
        "scale": "planner.control.actuators.scale:actuator",
        "variantautoscaling": "planner.control.actuators.variantautoscaling:actuator",
    },
)


def open_actuator(name: str, options: Mapping[str, object], connections: Connections) -> Actuator:
    """The actuator of a name.

    Args:
        name: built in or of a plug-in.
        options: of that actuator.
        connections: to the clusters.

    Raises:
        ConfigurationError: there is no such actuator, what it needs is not installed, or an option is wrong.
    """
    return ACTUATORS.get(name)(options, connections)


def actuators_from(wanted: Iterable[tuple[str, Mapping[str, object]]], connections: Connections) -> Actuators:
    """Several actuators as one, in this order.

    Args:
        wanted: names, each with its options.
        connections: to the clusters.

    Raises:
        ConfigurationError: says everything that is wrong with any of them.
    """
    findings: list[Finding] = []
    opened: dict[str, Actuator] = {}
    for name, options in wanted:
        if name in opened:
            findings.append(Finding("", None, "actuators", f"{name!r} more than once", "each of them once"))
            continue
        try:
            opened[name] = open_actuator(name, options, connections)
        except ConfigurationError as error:
            findings += error.findings or [Finding("", None, f"actuators.{name}", str(error))]
    if findings:
        raise ConfigurationError.from_findings(findings)
    return Actuators(opened, connections)
