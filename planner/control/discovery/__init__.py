"""Which accelerators and variants there are. Plug-in group ``fleetplan.capacity-discovery``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from planner.clock import Clock
from planner.control.protocols import CapacityDiscovery
from planner.registry import Registry

__all__ = ["CAPACITY_DISCOVERIES", "DiscoveryFactory", "open_discovery"]

DiscoveryFactory = Callable[[Mapping[str, object], Clock], CapacityDiscovery]
"""Makes a discovery of options and a clock; refuses wrong options with a ConfigurationError that lists them all."""

CAPACITY_DISCOVERIES: Final[Registry[DiscoveryFactory]] = Registry(
    "capacity-discovery",
    {
        "file": "planner.control.discovery.file:source",
        "kubernetes": "planner.control.discovery.kubernetes:source",
    },
)


def open_discovery(name: str, options: Mapping[str, object], clock: Clock) -> CapacityDiscovery:
    """The capacity discovery of a name.

    Args:
        name: built in or of a plug-in.
        options: of that discovery.
        clock: for waits and times.

    Raises:
        ConfigurationError: there is no such discovery, what it needs is not installed, or an option is wrong.
    """
    return CAPACITY_DISCOVERIES.get(name)(options, clock)
