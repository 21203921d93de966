"""Inferno's system description (llm-inferno/sample-data, JSON) -> a scenario."""

from planner.importers.inferno.scenario import import_inferno

__all__ = ["import_inferno"]
