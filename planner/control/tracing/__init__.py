"""Records of a controller read backward: from a pod to the metric that asked for it, and as a history."""

from planner.control.tracing.history import Moment, history_of
from planner.control.tracing.tracing import trace_pod

__all__ = ["Moment", "history_of", "trace_pod"]
