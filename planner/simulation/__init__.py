"""The digital twin: replays traffic against a fleet of replicas, router and autoscalers, on simulated time."""
