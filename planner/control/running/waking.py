"""Between two cycles: services at zero wake as soon as somebody waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from models.cycle_record import CycleKind, CycleRecord
from models.observation import Observation, TrafficObservation, VariantObservation
from planner.control.analysis.identity import VariantRef, ref_of
from planner.control.deciding.contract import Decided
from planner.control.deciding.people import PeopleSay, respected
from planner.control.deciding.waking import asleep, wake
from planner.control.protocols import ClusterReading, Decision, Inventory
from planner.control.running.loop import Loop, written_by
from planner.control.running.phases import Phases
from planner.control.running.recounting import CycleFacts, decision_row, record_of
from planner.control.running.sharding import ours_of

__all__ = ["Waking"]

_SHARE: Final = 9.0
"""Looks at queues take a tenth of the time at most."""
_AGAIN_S: Final = 30.0
"""A wake that nothing came of is tried again after so long."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What routers held at a moment."""

    at_s: float
    traffic: tuple[TrafficObservation, ...]


@dataclass(slots=True)
class Waking:
    """Looks at the queues of services that sleep, and of no others.

    Clusters are not asked for that: which services sleep, and what is free, is from the last cycle, and looked at again
    before anything is woken.
    """

    _seen: ClusterReading = field(default_factory=ClusterReading)
    _sleeping: tuple[VariantObservation, ...] = ()
    _next_s: float = float("-inf")
    _tried_s: dict[VariantRef, float] = field(default_factory=dict)

    def saw(self, observation: Observation | None) -> None:
        """What the last cycle saw."""
        if observation is None:
            return
        inventory = Inventory(pools=observation.pools, quotas=observation.quotas)
        self._seen = ClusterReading(variants=observation.variants, inventory=inventory)
        self._sleeping = tuple(each for ours in asleep(observation.variants).values() for each in ours)

    def step(self, loop: Loop) -> CycleRecord | None:
        """Wake whoever is waited for; the record of it, None: nobody was woken."""
        if not self._sleeping:
            return None
        parts, settings = loop.parts, loop.settings
        if parts.clock.monotonic_s() < self._next_s:
            return None
        phases = Phases(parts.clock)
        now_s = parts.clock.unix_s()
        with phases.of("observe"):
            traffic = parts.eyes.queues(self._sleeping, now_s)
        # A source that knows no short way would be busy with nothing else.
        self._next_s = parts.clock.monotonic_s() + _SHARE * phases.total_s
        with phases.of("decide"):
            wishes = [
                each
                for each in wake(self._seen, traffic, settings)
                if self._is_due(each, parts.clock.monotonic_s())
            ]
        if not any(each.desired for each in wishes):
            return None
        with loop.lock:
            return self._woken(loop, wishes, phases, _Look(now_s, traffic))

    def _is_due(self, decision: Decision, now_s: float) -> bool:
        return now_s - self._tried_s.get(ref_of(decision.variant), float("-inf")) >= _AGAIN_S

    def _woken(
        self, loop: Loop, wishes: Sequence[Decision], phases: Phases, look: _Look
    ) -> CycleRecord | None:
        parts, settings, now_s = loop.parts, loop.settings, look.at_s
        with phases.of("check"):
            say = PeopleSay(settings=settings, now_s=now_s, hands=loop.memory.hands.notes)
            fresh = ours_of(parts.eyes.clusters(now_s), settings.sharding)
            decided = Decided(decisions=tuple(wishes), constrained=settings.constrained)
            decided = parts.deciding.revalidate(decided, fresh)
            decided = replace(decided, decisions=respected(decided.decisions, say))
        for each in decided.decisions:
            self._tried_s[ref_of(each.variant)] = parts.clock.monotonic_s()
        if not any(each.desired > (each.variant.wanted or 0) for each in decided.decisions):
            return None
        if not parts.election.leading:
            return None
        with phases.of("act"):
            before = written_by(parts.actuators)
            outcomes = parts.actuators.act(decided.decisions, dry_run=not settings.act)
            writes = written_by(parts.actuators) - before
        rows = [decision_row(each, 1) for each in decided.decisions]
        parts.meters.count("wakings_total", sum(row.changes for row in rows))
        loop.woke([ref_of(each.variant) for each in decided.decisions if each.desired], rows)
        observation = Observation(
            at_s=now_s,
            variants=tuple(each.variant for each in decided.decisions),
            traffic=look.traffic,
        )
        facts = CycleFacts(
            number=loop.number,
            who=parts.who,
            leader=True,
            trigger="requests wait for a service at zero",
            settings=settings,
            observation=observation,
            decided=decided,
            outcomes=outcomes,
            seconds=phases.seconds,
            dry_run=not settings.act,
            writes=writes,
        )
        changed = [ref_of(each.variant) for each in decided.decisions]
        record = record_of(facts, CycleKind.WOKEN, rows, changed=changed, previous=loop.previous)
        loop.keep(record)
        return record
