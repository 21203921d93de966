"""Kubernetes APIs, one or several: a thin typed layer over what the ``kubernetes`` client connects to."""

from planner.control.cluster.api import FIELD_MANAGER, Api, Limits, Listing, Scaled
from planner.control.cluster.connecting import ClusterOptions, connect, connect_all, of_each
from planner.control.cluster.faults import ClusterFault, Rule, Trouble
from planner.control.cluster.kinds import Kind
from planner.control.cluster.memory import MemoryCluster
from planner.control.cluster.watching import Change, ChangeKind, follow

__all__ = [
    "FIELD_MANAGER",
    "Api",
    "Change",
    "ChangeKind",
    "ClusterFault",
    "ClusterOptions",
    "Kind",
    "Limits",
    "Listing",
    "MemoryCluster",
    "Rule",
    "Scaled",
    "Trouble",
    "connect",
    "connect_all",
    "follow",
    "of_each",
]
