"""How many replicas of what, where: exact programs, the published heuristics, and what they say."""

__all__: list[str] = []
