"""Editing a scenario in tables: rows of its parts, and the scenario with edited rows."""

__all__: list[str] = []
