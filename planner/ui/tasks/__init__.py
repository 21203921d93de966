"""What worker processes compute: JSON in, JSON out, one module per task.

A task is ``run(arguments, report) -> str``: it gets what JSON holds, tells how far it is, and answers with the
canonical JSON of a value of ours. A new page brings its task and its line in :data:`TASKS`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from planner.ui.tasks.protocol import Reporter, Run

__all__ = ["TASKS", "Reporter", "Run", "task"]

TASKS: Final = {
    "candidate": "planner.ui.tasks.candidate",
    "closer": "planner.ui.tasks.closer",
    "moves": "planner.ui.tasks.moves",
    "pareto": "planner.ui.tasks.pareto",
    "plan": "planner.ui.tasks.plan",
    "replay": "planner.ui.tasks.replay",
    "sensitivity": "planner.ui.tasks.sensitivity",
}
"""Kind of a task -> the module whose ``run`` does it; loaded when it is first asked for."""


def task(kind: str) -> Run:
    """The function behind a kind."""
    run: Run = import_module(TASKS[kind]).run
    return run
