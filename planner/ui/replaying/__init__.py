"""Replay: traffic, policies, and what came of them in the digital twin, beside each other."""

__all__: list[str] = []
