"""All actuators of a controller as one: told what was seen, who leads and what was decided, in their order."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from models.observation import Observation, VariantObservation
from planner.control.actuators.connections import Connections
from planner.control.actuators.writing import to_release
from planner.control.protocols import Actuator, Decision, Outcome, OutcomeCode

__all__ = [
    "Actuators",
    "Exporting",
    "Hearing",
    "Leading",
    "Prepared",
    "Preparing",
    "Releasing",
    "Seeing",
    "held_back",
]


@runtime_checkable
class Seeing(Protocol):
    """An actuator that wants to know what was seen; it is told before every round of decisions."""

    def saw(self, observation: Observation) -> None:
        """What was seen in this cycle."""


@runtime_checkable
class Leading(Protocol):
    """An actuator that says nothing while another controller leads."""

    def lead(self, *, leading: bool) -> None:
        """Whether this controller leads, from now on."""


@runtime_checkable
class Exporting(Protocol):
    """An actuator that has series to be scraped."""

    def exposition(self, cluster: str | None = None) -> bytes:
        """Its series as Prometheus reads them.

        Args:
            cluster: series of this cluster alone; None: of all.
        """


@dataclass(frozen=True, slots=True)
class Prepared:
    """Decisions as the actuators behind may carry them out now, in the order they were given, and what is said of them."""

    decisions: tuple[Decision, ...]
    outcomes: tuple[Outcome, ...] = ()


@runtime_checkable
class Preparing(Protocol):
    """An actuator that does something first, and meanwhile holds decisions back from those behind it."""

    def prepare(self, decisions: Sequence[Decision], *, dry_run: bool) -> Prepared:
        """What may be carried out now."""


@runtime_checkable
class Hearing(Protocol):
    """An actuator that wants to know how those before it fared."""

    def heard(self, outcomes: Sequence[Outcome]) -> None:
        """What came of this round so far."""


@runtime_checkable
class Releasing(Protocol):
    """An actuator that holds something in clusters, and can give it back."""

    def release(self, variants: Sequence[VariantObservation], *, dry_run: bool) -> Sequence[Outcome]:
        """Give back what is held of these variants; an outcome for each where something was held."""


class Actuators:
    """Several actuators in order. Nothing that one of them does stops the others, or raises.

    Args:
        actuators: by name, in order.
        connections: to the clusters, whose writes are counted.
    """

    def __init__(self, actuators: Mapping[str, Actuator], connections: Connections) -> None:
        self._actuators = dict(actuators)
        self._connections = connections

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(self._actuators)

    @property
    def writes(self) -> Mapping[str, int]:
        """Writes to clusters so far by what was written (``patch deployments/scale``); dry runs are not among them."""
        total: Counter[str] = Counter()
        for api in self._connections.by_name.values():
            total.update(api.tally.writes)
        return dict(sorted(total.items()))

    def saw(self, observation: Observation) -> None:
        """Tell what was seen in this cycle; before :meth:`act`."""
        for each in self._actuators.values():
            if isinstance(each, Seeing):
                with contextlib.suppress(Exception):
                    each.saw(observation)

    def lead(self, *, leading: bool) -> None:
        """Tell whether this controller leads."""
        for each in self._actuators.values():
            if isinstance(each, Leading):
                each.lead(leading=leading)

    def act(self, decisions: Sequence[Decision], *, dry_run: bool) -> tuple[Outcome, ...]:
        """Carry decisions out, or tell what would be done: an outcome of each actuator for each decision that is its own.

        Args:
            decisions: one for each variant at most.
            dry_run: nothing is written.
        """
        outcomes: list[Outcome] = []
        now = tuple(decisions)
        for name, each in self._actuators.items():
            try:
                if isinstance(each, Hearing):
                    each.heard(outcomes)
                if isinstance(each, Preparing):
                    prepared = each.prepare(now, dry_run=dry_run)
                    now, found = prepared.decisions, prepared.outcomes
                else:
                    found = tuple(each.act(now, dry_run=dry_run))
            except Exception as cause:
                found = tuple(_broken(decision, name, cause) for decision in now)
                # Nobody knows whether what it was to do first is done.
                now = tuple(map(held_back, now)) if isinstance(each, Preparing) else now
            outcomes += (_signed(one, name) for one in found if _says_something(one))
        return tuple(outcomes)

    def release(self, variants: Sequence[VariantObservation], *, dry_run: bool) -> tuple[Outcome, ...]:
        """Give back everything that is held of these variants, the last actuator first."""
        outcomes: list[Outcome] = []
        for name, each in reversed(self._actuators.items()):
            if not isinstance(each, Releasing):
                continue
            try:
                found = each.release(variants, dry_run=dry_run)
            except Exception as cause:
                found = [_broken(to_release(one), name, cause) for one in variants]
            outcomes += (_signed(one, name) for one in found if _says_something(one))
        return tuple(outcomes)

    def exposition(self, cluster: str | None = None) -> bytes:
        """Series of all of them as Prometheus reads them."""
        parts = (each.exposition(cluster) for each in self._actuators.values() if isinstance(each, Exporting))
        return b"".join(parts)

    def close(self) -> None:
        """Let go of whatever they hold open; what they hold in clusters stays."""
        for each in self._actuators.values():
            close = getattr(each, "close", None)
            if callable(close):
                with contextlib.suppress(Exception):
                    close()


def _broken(decision: Decision, name: str, cause: Exception) -> Outcome:
    """What is said of an actuator that raised; its words may hold what nobody may read."""
    problem = f"the actuator {name} broke ({type(cause).__name__})"
    return Outcome(decision=decision, applied=False, changed=False, message=problem, code=OutcomeCode.FAILED)


def held_back(decision: Decision) -> Decision:
    """The decision without what it would take away."""
    wanted = decision.variant.wanted
    return decision if wanted is None or decision.desired >= wanted else replace(decision, desired=wanted)


def _says_something(outcome: Outcome) -> bool:
    """Whether it is about a decision that is a thing of its actuator, or says why it is not."""
    return outcome.code is not OutcomeCode.LEFT or bool(outcome.message)


def _signed(outcome: Outcome, name: str) -> Outcome:
    return outcome if outcome.actuator else replace(outcome, actuator=name)
