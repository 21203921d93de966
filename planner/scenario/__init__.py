"""Scenario files: what people write, read with every problem named at once."""

from planner.scenario.dumping import dump_scenario
from planner.scenario.loading import check_scenario, load_scenario, parse_scenario
from planner.scenario.schema import KINDS, schema

__all__ = ["KINDS", "check_scenario", "dump_scenario", "load_scenario", "parse_scenario", "schema"]
