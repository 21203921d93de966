"""Endpoint pickers (EPP) of services at their cap: requests wait where priority counts, or are refused early, and not in engines.

At the cap no replica can be added, so what is admitted beyond capacity costs everybody their promises. Priorities of
InferenceObjectives take effect at once; the EndpointPickerConfig is read by the picker at its start. Former values are kept
in annotations of the objects themselves, so a restart of the controller forgets nothing, and are put back when there has been
room for a while. What somebody changed since is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from models.observation import VariantObservation
from planner.clock import Clock
from planner.control.actuators.connections import Connections
from planner.control.actuators.epp_options import EppOptions, EppService
from planner.control.actuators.epp_writing import Done, Writer
from planner.control.actuators.writing import to_release
from planner.control.cluster import Api
from planner.control.options import options_of
from planner.control.protocols import SHORT, Decision, Outcome, OutcomeCode
from planner.errors import ConfigurationError, Finding

__all__ = ["EppActuator", "Standing", "actuator", "standing_of"]

_CAPPED: Final = frozenset({"ResourceConstrained"})
_Key = tuple[str | None, str]


class Standing(StrEnum):
    """Whether a service has all the replicas that it asks for."""

    CAPPED = "capped"
    ROOM = "room"
    UNKNOWN = "unknown"


def standing_of(decisions: Sequence[Decision]) -> Standing:
    """Where the decisions of one service leave it; unknown where metrics are missing or people paused it."""
    if any(each.variant.paused for each in decisions):
        return Standing.UNKNOWN
    if any(_short(each) > 0 or each.reason in _CAPPED for each in decisions):
        return Standing.CAPPED
    blind = any(
        condition.type == "MetricsAvailable" and not condition.status
        for each in decisions
        for condition in each.variant.conditions
    )
    return Standing.UNKNOWN if blind or not decisions else Standing.ROOM


def _short(decision: Decision) -> float:
    found = decision.facts.get(SHORT, 0)
    return found if isinstance(found, int | float) else 0


@dataclass(slots=True)
class _Memory:
    """How long a service has been where it is."""

    standing: Standing
    since_s: float
    clean: bool = False


@dataclass(slots=True)
class EppActuator:
    """Tells endpoint pickers what holds at the cap, and puts it back.

    Args:
        apis: of the clusters by name; None: the only one.
        options: services, and what is set for them.
        clock: for how long a service has been at its cap.

    Raises:
        ConfigurationError: a service names a cluster that there is not.
    """

    apis: Mapping[str | None, Api]
    options: EppOptions
    clock: Clock
    _memories: dict[_Key, _Memory] = field(default_factory=dict)

    def __post_init__(self) -> None:
        strange = sorted(
            {str(each.cluster) for each in self.options.services if each.cluster not in self.apis}
        )
        if strange:
            known = ", ".join(sorted(str(name) for name in self.apis if name is not None)) or "none by name"
            raise ConfigurationError.from_findings(
                Finding("", None, "epp.services", f"the cluster {name!r}", known) for name in strange
            )

    def act(self, decisions: Sequence[Decision], *, dry_run: bool) -> Sequence[Outcome]:
        """See :class:`planner.control.protocols.Actuator`; the first decision of a service carries what was done for it."""
        return self._by_service(decisions, lambda one, mine: self._tend(one, mine, dry_run=dry_run))

    def release(self, variants: Sequence[VariantObservation], *, dry_run: bool) -> Sequence[Outcome]:
        """Put back what is set for the services of these variants, at once."""
        decisions = [to_release(each) for each in variants]
        outcomes = self._by_service(decisions, lambda one, _: self._writer(one, dry_run=dry_run).release())
        return [each for each in outcomes if each.message]

    def _by_service(
        self, decisions: Sequence[Decision], tend: Callable[[EppService, Sequence[Decision]], Done | None]
    ) -> list[Outcome]:
        by_service: dict[_Key, list[Decision]] = {}
        for each in decisions:
            by_service.setdefault((each.variant.cluster, each.variant.service), []).append(each)
        done = {
            key: tend(each, mine)
            for each in self.options.services
            if (mine := by_service.get(key := (each.cluster, each.service)))
        }
        outcomes = []
        for each in decisions:
            found = done.pop((each.variant.cluster, each.variant.service), None)
            left = Outcome(decision=each, applied=True, changed=False, code=OutcomeCode.LEFT)
            outcomes.append(left if found is None else found.outcome_of(each))
        return outcomes

    def _tend(self, service: EppService, decisions: Sequence[Decision], *, dry_run: bool) -> Done | None:
        """What was done; None: there is nothing to do now."""
        standing = standing_of(decisions)
        if standing is Standing.UNKNOWN:
            return None
        memory, lasted_s = self._remembered((service.cluster, service.service), standing)
        if standing is Standing.CAPPED:
            memory.clean = False
            due = lasted_s >= self.options.after_s
            return self._writer(service, dry_run=dry_run).engage() if due else None
        if memory.clean or lasted_s < self.options.room_s:
            return None
        done = self._writer(service, dry_run=dry_run).release()
        memory.clean = done.trouble is None and (done.changed or not done.differences)
        return done

    def _writer(self, service: EppService, *, dry_run: bool) -> Writer:
        return Writer(self.apis[service.cluster], service, dry_run=dry_run)

    def _remembered(self, key: _Key, standing: Standing) -> tuple[_Memory, float]:
        now_s = self.clock.monotonic_s()
        memory = self._memories.get(key)
        if memory is None:
            memory = self._memories[key] = _Memory(standing, now_s)
        if memory.standing is not standing:
            memory.standing, memory.since_s = standing, now_s
        return memory, now_s - memory.since_s


def actuator(options: Mapping[str, object], connections: Connections) -> EppActuator:
    """Make the actuator of these options.

    Raises:
        ConfigurationError: lists everything that is wrong with them.
    """
    return EppActuator(connections.by_name, options_of(EppOptions, "epp", options), connections.clock)
