"""An actuator: appends each change of a count to a file, for whoever carries it out elsewhere.

An actuator never raises for what it cannot do: it says so in the outcome, and the others go on. In a dry run it tells what it
would write. It writes a change once, not in every cycle.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from models.value import Value
from planner.control.actuators import Connections
from planner.control.options import options_of
from planner.control.protocols import Decision, Difference, Outcome, OutcomeCode


class Options(Value):
    """Options of the actuator."""

    path: Path = Field(description="file that lines are appended to")


class Journal:
    """Writes lines."""

    def __init__(self, options: Options, connections: Connections) -> None:
        self._path = options.path
        self._clock = connections.clock
        self._written: dict[tuple[str | None, str, str], int] = {}

    def act(self, decisions: Sequence[Decision], *, dry_run: bool) -> Sequence[Outcome]:
        """One outcome for each decision."""
        return [self._one(each, dry_run=dry_run) for each in decisions]

    def _one(self, decision: Decision, *, dry_run: bool) -> Outcome:
        variant = decision.variant
        key = (variant.cluster, variant.namespace, variant.name)
        before = self._written.get(key, variant.wanted or 0)
        if decision.desired == before:
            return Outcome(decision=decision, applied=True, changed=False, code=OutcomeCode.SAME)
        change = Difference(
            object=f"{variant.namespace}/{variant.name}",
            field="replicas",
            before=str(before),
            after=str(decision.desired),
        )
        if dry_run:
            code, message = OutcomeCode.WOULD, str(change)
            return Outcome(
                decision=decision,
                applied=False,
                changed=False,
                code=code,
                message=message,
                differences=(change,),
            )
        line = {
            "at_s": self._clock.unix_s(), "variant": change.object, "replicas": decision.desired, "reason": decision.reason,
        }  # fmt: skip
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(line)}\n")
        except OSError as cause:
            message = f"{self._path} cannot be written: {cause.strerror}"
            return Outcome(
                decision=decision, applied=False, changed=False, code=OutcomeCode.FAILED, message=message
            )
        self._written[key] = decision.desired
        return Outcome(
            decision=decision, applied=True, changed=True, message=str(change), differences=(change,)
        )


def actuator(options: Mapping[str, object], connections: Connections) -> Journal:
    """The factory that the entry point names."""
    return Journal(options_of(Options, "journal", options), connections)
