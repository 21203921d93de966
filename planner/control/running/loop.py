"""One cycle: observe, decide, ask people, look again, act, write down. Whatever fails, replicas are held."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Final

from models.controller import ControllerSettings
from models.cycle_record import CycleKind, CycleRecord, CycleReport, VariantDecision
from models.observation import Finding, Observation
from planner.clock import Clock
from planner.collecting import collection_paused
from planner.control.actuators import Actuators
from planner.control.analysis.identity import VariantRef, ref_of
from planner.control.deciding.contract import Decided, Deciding
from planner.control.deciding.people import PeopleSay, respected
from planner.control.deciding.people_hands import Edit, hands_after
from planner.control.deciding.people_nodes import (
    Leaving,
    Surge,
    leaving_nodes,
    moved,
    without_leaving,
)
from planner.control.protocols import Decision, Outcome
from planner.control.running.arriving import not_taken_back, sent_after
from planner.control.running.changing import changed_variants, is_told
from planner.control.running.cycle_meters import CycleMeters
from planner.control.running.events import Events
from planner.control.running.gaps import Gaps, counted_anew
from planner.control.running.guarding import (
    Footing,
    as_they_are,
    guarded,
    held_after_failure,
    held_as_decided,
    held_too_late,
    stay_awake,
    with_conditions,
)
from planner.control.running.holding import Notes
from planner.control.running.leading import Election
from planner.control.running.live import LiveConfiguration
from planner.control.running.memory import LoopMemory
from planner.control.running.metering import Meters
from planner.control.running.observing import Eyes, Sight
from planner.control.running.phases import Phases, place_of
from planner.control.running.recording import Records
from planner.control.running.recounting import CycleFacts, decision_row, record_of
from planner.control.running.sharding import ours_of, share_of

__all__ = ["Loop", "Parts", "written_by"]

_LOG: Final = logging.getLogger(__name__)
_STATE_S: Final = 60.0
"""What is remembered of a large fleet takes longer to write than its record."""
_LEASES: Final = " leases.coordination.k8s.io"


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Who the loop works with.

    Attributes:
        who: a name that no other controller has.
        clock: for times and limits.
        live: the settings as they are now.
        eyes: look at clusters and metrics.
        deciding: decides.
        actuators: carry decisions out.
        election: says whether we lead.
        records: keep what was decided.
        meters: our own figures.
        events: tell Kubernetes; None: nobody is told.
        notes: write down what people set by hand; None: nothing is written.
    """

    who: str
    clock: Clock
    live: LiveConfiguration
    eyes: Eyes
    deciding: Deciding
    actuators: Actuators
    election: Election
    records: Records
    meters: Meters
    events: Events | None = None
    notes: Notes | None = None


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a cycle came to, before it is looked at again."""

    decided: Decided
    proposed: Mapping[VariantRef, int]
    raised: Mapping[VariantRef, Surge]
    memory: LoopMemory
    failed: bool = False


@dataclass(slots=True)
class Loop:
    """Runs cycles, one at a time.

    Args:
        parts: who it works with.
        memory: of the controller before.
        stopping: says that the controller ends, hence begins nothing any more.
    """

    parts: Parts
    stopping: Callable[[], bool] = lambda: False
    memory: LoopMemory = field(default_factory=LoopMemory)
    lock: RLock = field(default_factory=RLock)
    number: int = 0
    rows: Mapping[VariantRef, VariantDecision] = field(default_factory=dict)
    observation: Observation | None = None
    findings: tuple[Finding, ...] = ()
    report: CycleReport = field(default_factory=CycleReport)
    ended_s: float | None = None
    ended_steady_s: float | None = None
    _gaps: Gaps = field(init=False)
    _written_s: float = float("-inf")
    _kept_s: float = float("-inf")
    _begins: bool = False
    previous: str | None = None

    def __post_init__(self) -> None:
        """Count the time since whatever is remembered."""
        self._gaps = Gaps(self.parts.clock)
        self._gaps.after_restart(self.memory.at_s)

    def turn(self, trigger: str = "timer") -> CycleRecord:
        """One cycle. It never raises: a fault of ours is a record of the kind FAILED, and replicas are held."""
        # Of a large fleet everything that is made stays until the end, and the collector would go through it again and again.
        with self.lock, collection_paused():
            if self._begins:
                self._forget()
            self.number += 1
            try:
                record = self._turn(trigger)
            except Exception as cause:
                # A fault of ours: nothing was decided, and whatever follows the gauge holds still.
                _LOG.error("event=cycle_broke number=%d error=%s", self.number, place_of(cause))
                record = self._broken(trigger, cause)
            self.ended_s, self.ended_steady_s = self.parts.clock.unix_s(), self.parts.clock.monotonic_s()
            self.parts.meters.set("last_cycle_timestamp_seconds", self.ended_s)
            return record

    def _too_late(self, phases: Phases, settings: ControllerSettings) -> Finding:
        self.parts.meters.count("late_cycles_total")
        problem = f"the cycle took {phases.total_s:.1f} s and may take {settings.timeout_s:g} s; nothing was changed"
        return Finding(subject="controller", problem=problem, remedy="a longer timeout_s, or more shards")

    def _broken(self, trigger: str, cause: Exception) -> CycleRecord:
        problem = f"the cycle broke ({type(cause).__name__}); replicas are held"
        finding = Finding(subject="controller", problem=problem, remedy="a fault of ours; its log tells more")
        self.parts.meters.count("cycles_total", kind=str(CycleKind.FAILED))
        record = CycleRecord(
            number=self.number,
            at_s=self.parts.clock.unix_s(),
            kind=CycleKind.FAILED,
            controller=self.parts.who,
            leader=self.parts.election.leading,
            dry_run=not self.settings.act,
            trigger=trigger[:500],
            findings=(finding,),
            report=CycleReport(complete=False),
            previous=self.previous,
        )
        if self._new_findings(record):
            self.keep(record)
        self.findings, self.report = record.findings, record.report
        return record

    @property
    def settings(self) -> ControllerSettings:
        """As they are now."""
        return self.parts.live.settings

    def _turn(self, trigger: str) -> CycleRecord:
        parts = self.parts
        phases = Phases(parts.clock)
        with phases.of("observe"):
            config_findings = parts.live.refresh()
            settings = parts.live.settings
            now_s = parts.clock.unix_s()
            gap = self._gaps.noticed(settings.cycle_s)
            if gap is not None:
                self.memory = counted_anew(self.memory, gap.off_s)
            sight = parts.eyes.look(now_s)
            observation = share_of(sight.observation, settings.sharding)
        with phases.of("people"):
            edits, memory, people_findings = self._people(observation, settings)
        with phases.of("decide"):
            judged = self._judged(sight, observation, settings, memory, now_s)
        with phases.of("check"):
            judged = self._checked(judged, settings, Footing(observation.complete, sight.unseen, self.rows))
        late = phases.total_s > settings.timeout_s
        leads = parts.election.leading and not self.stopping()
        with phases.of("act"):
            before = written_by(parts.actuators)
            outcomes = () if late or not leads else self._act(judged.decided, observation, settings)
            writes = written_by(parts.actuators) - before
        findings = [*config_findings, *people_findings, *judged.decided.findings]
        findings += [gap.finding] if gap is not None else []
        if late:
            judged = replace(judged, decided=held_too_late(judged.decided), raised=self.memory.surged)
            findings.append(self._too_late(phases, settings))
        facts = CycleFacts(
            number=self.number,
            who=parts.who,
            leader=leads,
            trigger=trigger,
            settings=settings,
            observation=observation,
            decided=judged.decided,
            proposed=judged.proposed,
            outcomes=outcomes,
            findings=tuple(findings),
            seconds=phases.seconds,
            dry_run=not settings.act,
            writes=writes,
        )
        self._remember(judged, outcomes)
        return self._written(facts, failed=judged.failed or late, edits=edits)

    def _people(
        self, observation: Observation, settings: ControllerSettings
    ) -> tuple[tuple[Edit, ...], LoopMemory, tuple[Finding, ...]]:
        """What people did since the last cycle, written down where that is possible."""
        memory, notes = self.memory, self.parts.notes
        hands, edits, _ = hands_after(observation.variants, memory.hands, ours=memory.ours)
        if not settings.respect_manual:
            edits = ()
        findings: tuple[Finding, ...] = ()
        if edits:
            failed, findings = edits, ()
            if notes is not None and settings.act and self.parts.election.leading:
                failed, findings = notes.write(edits)
            hands = hands.could_not_note(failed)
        return edits, replace(memory, hands=hands), findings

    def _judged(
        self,
        sight: Sight,
        observation: Observation,
        settings: ControllerSettings,
        memory: LoopMemory,
        now_s: float,
    ) -> _Judged:
        leaving = leaving_nodes(observation.pools, settings, now_s)
        try:
            decided, state = self.parts.deciding.decide(
                without_leaving(observation, leaving), state=memory.deciding, settings=settings, now_s=now_s
            )
            failed = False
        except Exception as cause:
            # A policy of others may raise whatever it likes; its words may hold what nobody may read.
            _LOG.error("event=deciding_broke error=%s", place_of(cause))
            decided, state, failed = held_after_failure(observation, self.rows, cause), memory.deciding, True
        decided = replace(decided, findings=(*decided.findings, *leaving.findings))
        proposed = {ref_of(each.variant): each.desired for each in decided.decisions}
        decisions, raised = self._people_first(decided.decisions, leaving, memory, settings, now_s)
        held = guarded(decisions, Footing(observation.complete, sight.unseen, self.rows))
        return _Judged(
            replace(decided, decisions=held), proposed, raised, replace(memory, deciding=state), failed
        )

    def _people_first(
        self,
        decisions: Sequence[Decision],
        leaving: Leaving,
        memory: LoopMemory,
        settings: ControllerSettings,
        now_s: float,
    ) -> tuple[tuple[Decision, ...], Mapping[VariantRef, Surge]]:
        """Nodes that leave, then people, who have the last word; what they hold is not raised."""
        chooses = "draining" in self.parts.actuators.names
        decisions = stay_awake(not_taken_back(decisions, memory.sent, now_s), memory.woken, now_s)
        wishes, raised = moved(decisions, leaving, memory.surged, chooses_victims=chooses)
        say = PeopleSay(settings=settings, now_s=now_s, hands=memory.hands.notes)
        kept = respected(wishes, say)
        stay = {
            ref_of(each.variant)
            for each, wish in zip(kept, wishes, strict=True)
            if each.desired == wish.desired
        }
        before = {ref: extra for ref, extra in memory.surged.items() if ref not in stay}
        return kept, before | {ref: extra for ref, extra in raised.items() if ref in stay}

    def _checked(self, judged: _Judged, settings: ControllerSettings, footing: Footing) -> _Judged:
        """Decisions against what the clusters say now, where anything is to change; pauses of the meantime count too."""
        if not any(
            each.variant.wanted is not None and each.desired != each.variant.wanted
            for each in judged.decided.decisions
        ):
            return judged
        now_s = self.parts.clock.unix_s()
        fresh = ours_of(self.parts.eyes.clusters(now_s), settings.sharding)
        try:
            decided = self.parts.deciding.revalidate(judged.decided, fresh)
        except Exception as cause:
            decided = held_as_decided(judged.decided, cause)
        say = PeopleSay(settings=settings, now_s=now_s, hands=judged.memory.hands.notes)
        kept = guarded(respected(as_they_are(decided.decisions, fresh), say), footing)
        final = {ref_of(each.variant): each.desired for each in kept}
        stay = {
            ref for each in judged.decided.decisions if final.get(ref := ref_of(each.variant)) == each.desired
        }
        before = {ref: extra for ref, extra in self.memory.surged.items() if ref not in stay}
        raised = before | {ref: extra for ref, extra in judged.raised.items() if ref in stay}
        return replace(judged, decided=replace(decided, decisions=kept), raised=raised)

    def _act(
        self, decided: Decided, observation: Observation, settings: ControllerSettings
    ) -> tuple[Outcome, ...]:
        actuators = self.parts.actuators
        actuators.saw(observation)
        decisions = tuple(with_conditions(each, decided) for each in decided.decisions)
        outcomes = actuators.act(decisions, dry_run=not settings.act)
        for name, amount in actuators.writes.items():
            self.parts.meters.set("api_writes_total", amount, write=name)
        for each in outcomes:
            self.parts.meters.count("outcomes_total", actuator=each.actuator, code=str(each.code))
        return outcomes

    def _remember(self, judged: _Judged, outcomes: Sequence[Outcome]) -> None:
        counts = {
            ref_of(each.decision.variant): each.decision.desired
            for each in outcomes
            if each.actuator == "scale" and each.applied and not str(each.code).startswith("would")
        }
        memory = judged.memory
        sleeping = {ref_of(each.variant) for each in judged.decided.decisions if not each.variant.wanted}
        self.memory = replace(
            memory,
            hands=memory.hands.wrote(counts),
            surged=judged.raised,
            sent=sent_after(
                judged.decided.decisions,
                memory.sent,
                {ref: surge.extra for ref, surge in judged.raised.items()},
                self.parts.clock.unix_s(),
            ),
            ours=tuple(sorted(counts)),
            woken={ref: at_s for ref, at_s in memory.woken.items() if ref in sleeping},
        )

    def _written(self, facts: CycleFacts, *, failed: bool, edits: Sequence[Edit]) -> CycleRecord:
        """The record of the cycle, kept where it says anything new."""
        rows = {
            ref_of(each.variant): decision_row(each, facts.proposed.get(ref_of(each.variant)))
            for each in facts.decided.decisions
        }
        changed = changed_variants(self.rows, rows) | {
            ref_of(each.decision.variant) for each in facts.outcomes if each.changed and each.applied
        }
        now_s = self.parts.clock.monotonic_s()
        due = now_s - self._written_s >= facts.settings.records.heartbeat_s
        kind = CycleKind.FAILED if failed else CycleKind.DECIDED if changed or edits else CycleKind.HEARTBEAT
        record = record_of(facts, kind, tuple(rows.values()), changed=changed, previous=self.previous)
        CycleMeters(self.parts.meters, self.parts.live).tell(
            facts, rows, changed=changed, kind=kind, before=self.findings
        )
        if facts.leader and not failed and self.parts.events is not None and facts.settings.act:
            told = [
                (each.variant, row)
                for each in facts.decided.decisions
                if is_told(self.rows.get(ref := ref_of(each.variant)), row := rows[ref])
            ]
            record = record.model_copy(update={"findings": (*record.findings, *self.parts.events.tell(told))})
        new_fault = kind is CycleKind.FAILED and self._new_findings(record)
        if facts.leader and (kind is CycleKind.DECIDED or new_fault or due):
            self.keep(record)
        self.rows, self.observation, self.findings = rows, facts.observation, record.findings
        self.report = record.report
        return record

    def woke(self, refs: Sequence[VariantRef], rows: Sequence[VariantDecision]) -> None:
        """Note what was woken between two cycles: it stays so until its replica is there."""
        now_s = self.parts.clock.unix_s()
        with self.lock:
            self.memory = replace(self.memory, woken={**self.memory.woken, **dict.fromkeys(refs, now_s)})
            self.rows = {**self.rows, **{VariantRef(*row.key): row for row in rows}}

    def keep(self, record: CycleRecord) -> None:
        """Write a record, and what is remembered."""
        records, now_s = self.parts.records, self.parts.clock.monotonic_s()
        records.write(record)
        if now_s - self._kept_s >= _STATE_S:
            self.keep_memory()
        self.parts.meters.set("record_failures_total", records.failures)
        self.previous, self._written_s = record.fingerprint, now_s

    def begin_leading(self) -> None:
        """Begin the next cycle without what others may have changed meanwhile: counts that they wrote are not set by hand.

        It waits for nobody: a cycle that is under way must not keep the lead from being renewed.
        """
        self._begins = True

    def _forget(self) -> None:
        """Whoever led in this process before forgets everything; whoever starts keeps what deciding remembers."""
        known, self._begins = self.memory, False
        self.memory = (
            LoopMemory() if self.number else LoopMemory(deciding=known.deciding, surged=known.surged)
        )
        self.rows = {}

    def keep_memory(self) -> None:
        """Keep what is remembered for the next start; one that never ran a cycle has nothing to say."""
        with self.lock:
            if self.number:
                self.parts.records.keep_state(replace(self.memory, at_s=self.parts.clock.unix_s()).to_json())
                self._kept_s = self.parts.clock.monotonic_s()

    def _new_findings(self, record: CycleRecord) -> bool:
        return bool({each.subject for each in record.findings} - {each.subject for each in self.findings})


def written_by(actuators: Actuators) -> int:
    """Writes to clusters so far, without those of the election, which goes on beside."""
    return sum(amount for what, amount in actuators.writes.items() if not what.endswith(_LEASES))
