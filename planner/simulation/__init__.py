"""The digital twin: replays traffic against a fleet of replicas, router and autoscalers, on simulated time."""

__all__: list[str] = []
