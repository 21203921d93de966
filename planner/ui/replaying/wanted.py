"""What is asked of a replay and what comes back, for a page and for the process that plays it."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

from models.replay import Replay
from models.scenario import Scenario
from models.value import Value
from planner.ui.jobs import Task
from planner.ui.replaying.traffic import Traffic
from planner.ui.workspace import How

__all__ = ["FOLDERS", "Played", "Wanted", "replay_task"]

FOLDERS: Final = "replays"
"""Folder below that of workspaces in which tables of replays lie."""


class Wanted(Value):
    """What is to be replayed, and how."""

    traffic: Traffic = Field(description="what comes")
    policies: tuple[str, ...] = Field(min_length=1, description="names of planner.replaying.POLICIES")
    start: str = Field("plan", description="replicas at the start: plan, now, least")
    every_variant: bool = Field(False, description="every policy may start every variant")
    seed: int = Field(0, ge=0, description="of all chance")


class Played(Value):
    """Runs as far as they went."""

    told: Replay = Field(description="figures of all runs")
    rows: dict[str, list[dict[str, Any]]] = Field(description="of charts over time, by figure")
    targets_s: tuple[float, ...] = Field((), description="promised times to first token, s")
    saturated: float = Field(description="KV usage at which a replica is saturated")
    archive: str = Field("", description="file with all tables, below the folder of replays; empty: not yet")
    missing: tuple[str, ...] = Field((), description="policies that were not reached")


def replay_task(scenario: Scenario, how: How, wanted: Wanted) -> Task:
    """The task that replays.

    Args:
        scenario: whose fleet, planned first.
        how: it is planned.
        wanted: what is replayed.
    """
    return Task(
        "replay",
        {
            "scenario": scenario.model_dump(mode="json", exclude_defaults=True),
            "how": how.model_dump(mode="json"),
            "wanted": wanted.model_dump(mode="json"),
        },
    )
