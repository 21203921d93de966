"""Published experiments, run again in the twin: ``fleetplan reproduce NAME|all``.

Each experiment declares every parameter in one place with its origin, runs several seeds, and answers with figures of ours
beside the published ones and with claims that hold or do not. What was tuned to a published figure says so, and is the
same everywhere else.
"""

from planner.reproduction.catalog import EXPERIMENTS, SEEDS, check_names, reproduce, runnable
from planner.reproduction.document import document

__all__ = ["EXPERIMENTS", "SEEDS", "check_names", "document", "reproduce", "runnable"]
