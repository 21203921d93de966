"""A controller that runs: cycles on time and on news, elections beside them, and an end that leaves nothing half done."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Final

from models.controller_status import ControllerStatus
from models.cycle_record import CycleRecord
from models.observation import Finding
from planner.control.cluster import Api, ClusterFault
from planner.control.running.loop import Loop, Parts
from planner.control.running.phases import place_of
from planner.control.running.serving import StatusServer, serve
from planner.control.running.triggering import Bell, Watches
from planner.control.running.waking import Waking

__all__ = ["Controller"]

_LOG: Final = logging.getLogger("planner.control.running")
_STILL: Final = 3
"""Cycles or renewals that may be missed before a probe says that we are stuck."""


@dataclass(slots=True)
class Controller:
    """Runs until it is stopped.

    Args:
        parts: who it works with.
        loop: of cycles.
        apis: of the clusters, to watch; reading alone.
        waking: looks after services at zero; None: nobody does between cycles.
        told: is given every record, as of a dry run that prints.
    """

    parts: Parts
    loop: Loop
    apis: tuple[Api, ...] = ()
    waking: Waking | None = None
    told: Callable[[CycleRecord], None] = lambda _: None
    bell: Bell = field(default_factory=Bell)
    _stop: Event = field(default_factory=Event)
    _led: bool = False
    _elected_s: float = 0.0
    _lease_finding: Finding | None = None
    _watch_findings: dict[str, Finding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Let whoever waits know of an end."""
        self.loop.stopping = self._stop.is_set
        self.parts.eyes.stopping = self._stop.is_set

    def run(self, *, serving: bool = True) -> None:
        """Cycles until :meth:`stop`; then the lead is given back.

        Raises:
            TemporaryError: the port of its server is taken.
            ConfigurationError: its server cannot be made.
        """
        clock = self.parts.clock
        self._elected_s = clock.monotonic_s()
        server = serve(self.loop.settings.server, self, clock) if serving else None
        self._log_start(server)
        watches = Watches(
            self.apis, self.bell.ring, self._unwatched, self.loop.settings.namespaces, self.parts.live.where
        )
        try:
            self.elect()
            self.bell.answered()
            watches.start()
            Thread(target=self._elect, name="election", daemon=True).start()
            if self.waking is not None:
                Thread(target=self._wake, name="waking", daemon=True).start()
            self._cycles()
        finally:
            watches.stop()
            self.end()
            if server is not None:
                server.stop()

    def stop(self) -> None:
        """End after the cycle that runs now; safe to call from a signal."""
        self._stop.set()
        self.bell.ring("stop")

    def end(self) -> None:
        """Give back the lead and let go of everything; replicas and what follows them stay as they are."""
        self._stop.set()
        self.loop.keep_memory()
        self.parts.actuators.lead(leading=False)
        self.parts.election.release()
        self.parts.actuators.close()
        self.parts.eyes.close()
        _LOG.info("event=controller_ended controller=%s cycles=%d", self.parts.who, self.loop.number)

    def once(self) -> CycleRecord | None:
        """One cycle; None: another controller leads, and has not ended within the length of its lease."""
        clock, lease = self.parts.clock, self.loop.settings.lease
        until_s = clock.monotonic_s() + lease.lease_s + 2 * lease.retry_s
        self.elect()
        while not self.parts.election.leading and clock.monotonic_s() < until_s and not self._stop.is_set():
            clock.sleep(lease.retry_s)
            self.elect()
        return self.cycle(("once",)) if self.parts.election.leading else None

    def elect(self) -> bool:
        """One step of the election, and what follows from its outcome; whether we lead."""
        election, meters = self.parts.election, self.parts.meters
        self._lease_finding = election.step()
        self._elected_s = self.parts.clock.monotonic_s()
        leads = election.leading
        meters.set("leader", leads)
        if leads is not self._led:
            self._led = leads
            if leads:
                self.loop.begin_leading()
            self.parts.actuators.lead(leading=leads)
            meters.count("leader_changes_total", float(leads))
            _LOG.warning(
                "event=%s controller=%s holder=%s",
                "leads" if leads else "follows",
                self.parts.who,
                election.holder,
            )
            self.bell.ring("it leads now" if leads else "another one leads")
        return leads

    def cycle(self, reasons: tuple[str, ...]) -> CycleRecord:
        """One cycle, started by these reasons."""
        for reason in reasons:
            self.parts.meters.count("triggers_total", kind=reason.partition(" ")[0])
        record = self.loop.turn(", ".join(reasons)[:500])
        if self.waking is not None:
            self.waking.saw(self.loop.observation)
        report = record.report
        _LOG.info(
            "event=cycle number=%d kind=%s variants=%d replicas=%d desired=%d failed=%d complete=%s seconds=%.3f",
            record.number, record.kind, report.variants, report.replicas_before, report.replicas_after, report.failed,
            report.complete, sum(report.seconds.values()),
        )  # fmt: skip
        self.told(record)
        return record

    def _cycles(self) -> None:
        """Cycles on time, or sooner on news but never at once after the last."""
        clock = self.parts.clock
        reasons: tuple[str, ...] = ("start",)
        while not self._stop.is_set():
            settings = self.loop.settings
            began_s = clock.monotonic_s()
            if self.parts.election.leading:
                self.cycle(reasons)
            left_s = settings.cycle_s - (clock.monotonic_s() - began_s)
            rung = self.bell.wait(left_s)
            early_s = settings.trigger_s - (clock.monotonic_s() - began_s)
            if rung and not self._stop.is_set() and early_s > 0:
                self._stop.wait(early_s)
            reasons = self.bell.answered() or ("timer",)

    def _elect(self) -> None:
        while not self._stop.is_set():
            try:
                self.elect()
            except Exception as cause:
                # Nothing may end the election: whoever does not renew does not lead.
                _LOG.error("event=election_failed error=%s", place_of(cause))
            self._stop.wait(self.loop.settings.lease.retry_s)

    def _wake(self) -> None:
        waking = self.waking
        while waking is not None and not self._stop.is_set():
            settings = self.loop.settings
            try:
                if settings.waking.enabled and self.parts.election.leading:
                    record = waking.step(self.loop)
                    if record is not None:
                        self.told(record)
                        self.bell.ring("a service woke")
            except Exception as cause:
                # The next look is in a moment.
                _LOG.error("event=waking_failed error=%s", place_of(cause))
            self._stop.wait(settings.waking.every_s)

    def _unwatched(self, subject: str, fault: ClusterFault) -> None:
        problem = f"{fault.message}; news from there wait for the next cycle"
        self._watch_findings[subject] = Finding(subject=subject, problem=problem[:1000], remedy=fault.remedy)

    def _log_start(self, server: StatusServer | None) -> None:
        settings = self.loop.settings
        where = "nowhere" if server is None else f"{server.server_address[0]!s}:{server.server_address[1]}"
        _LOG.info(
            "event=controller_started controller=%s act=%s policy=%s actuators=%s listens=%s",
            self.parts.who, settings.act, settings.rules.policy, ",".join(self.parts.actuators.names), where,
        )  # fmt: skip

    def metrics(self, cluster: str | None) -> bytes:
        """See :class:`planner.control.running.serving.Served`; whoever does not lead exports no desired replicas."""
        leads = self.parts.election.leading
        self.parts.meters.set("leader", leads)
        desired = self.parts.actuators.exposition(cluster) if leads else b""
        return self.parts.meters.exposition() + desired

    def healthy(self) -> tuple[bool, str]:
        """See :class:`planner.control.running.serving.Served`."""
        settings, now_s = self.loop.settings, self.parts.clock.monotonic_s()
        if now_s - self._elected_s > _STILL * settings.lease.lease_s:
            return False, "the election is stuck"
        ended_s = self.loop.ended_steady_s
        if self.parts.election.leading and ended_s is not None:
            late_s = now_s - ended_s
            if late_s > _STILL * settings.cycle_s + settings.timeout_s:
                return False, f"no cycle ended for {late_s:.0f} s"
        return True, "alive"

    def ready(self) -> tuple[bool, str]:
        """See :class:`planner.control.running.serving.Served`."""
        if not self.parts.election.leading:
            return True, f"{self.parts.election.holder or 'nobody'} leads"
        if self.loop.ended_s is None:
            return False, "the first cycle has not ended"
        return True, "leads"

    def status(self) -> str:
        """See :class:`planner.control.running.serving.Served`."""
        return self.standing().canonical_json()

    def standing(self) -> ControllerStatus:
        """Who leads, and what was decided last."""
        parts, loop = self.parts, self.loop
        last = parts.records.last
        findings = (*loop.findings, *self._watch_findings.values())
        if self._lease_finding is not None:
            findings = (*findings, self._lease_finding)
        return ControllerStatus(
            controller=parts.who,
            at_s=parts.clock.unix_s(),
            leader=parts.election.leading,
            holder=parts.election.holder,
            act=loop.settings.act,
            cycles=loop.number,
            last_cycle_s=loop.ended_s,
            settings=loop.settings.fingerprint,
            decisions=tuple(loop.rows.values()),
            findings=tuple(dict.fromkeys(findings)),
            report=loop.report,
            last_record=last[-1].fingerprint if last else None,
        )

    def refused(self, why: str) -> None:
        """See :class:`planner.control.running.serving.Served`."""
        self.parts.meters.count("requests_refused_total", reason=why)
