"""Scenarios that come with fleetplan, to begin with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from models.scenario import Scenario
from planner.catalog import catalog_root
from planner.scenario import load_scenario
from planner.ui.launch import SCENARIO_VARIABLE

__all__ = ["example", "examples", "first_scenario"]

_FIRST: Final = "02-contention"


@cache
def examples() -> Mapping[str, Path]:
    """Files of the scenarios by their names, in the order of their numbers."""
    return {path.stem: path for path in sorted((catalog_root() / "scenarios").glob("*.yaml"))}


def example(name: str) -> Scenario:
    """A scenario that comes with fleetplan."""
    return load_scenario(examples()[name])


def first_scenario() -> Scenario:
    """What a first visit shows: the file that the app was started with, or services that contend for fast GPUs."""
    given = os.environ.get(SCENARIO_VARIABLE)
    return load_scenario(given) if given else example(_FIRST)
