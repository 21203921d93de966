"""From a pod back to the metric that asked for it, through the records of a controller."""

from planner.control.tracing.tracing import trace_pod

__all__ = ["trace_pod"]
