"""A plan carried out wave by wave: looked at afresh, written, waited for. It stops at the first thing that is not so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from models.applied import ApplyEvent, ApplyEventKind, ApplyReview, FieldChange, ObjectState
from planner.clock import Clock
from planner.control.carrying.clusters import Apis
from planner.control.carrying.objects import ObjectReading, counted_object, read_objects
from planner.control.carrying.review import Begun, review_of, scaled_targets, touched
from planner.control.carrying.room import Room, room_of
from planner.control.carrying.waiting import Awaited, Wait, is_over, waits_of
from planner.control.carrying.writing import free, write
from planner.control.cluster import ClusterFault
from planner.control.cluster.faults import PASSING
from planner.manifests import Route, Stage
from planner.manifests.targets import TargetKey

__all__ = ["CarryOut", "carry_out", "look"]

Note = Callable[[ApplyEvent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryOut:
    """How a plan is carried out.

    Attributes:
        apis: of the clusters.
        clock: for waits and times.
        note: is told everything that happens, before anything that depends on it is done.
        stop: whether somebody asks to stop; asked before each write and while waiting.
        poll_s: between two looks, s.
        assume_done: what no object carries out is ready, as somebody says.
        begun: what is known of the way so far.
    """

    apis: Apis
    clock: Clock
    note: Note = field(default=lambda _: None)
    stop: Callable[[], bool] = field(default=lambda: False)
    poll_s: float = 2.0
    assume_done: bool = False
    begun: Begun = field(default_factory=Begun)


def look(route: Route, how: CarryOut, *, begun: Begun | None = None) -> ApplyReview:
    """What carrying it out would do now, from fresh readings; nothing is written."""
    reading = read_objects(how.apis, scaled_targets(route))
    room = None if reading.findings else _room(route, how)
    return review_of(route, reading, room=room, begun=begun or how.begun, assume_done=how.assume_done)


def _room(route: Route, how: CarryOut) -> Room | None:
    """What is free; nobody can tell where the plan counts on nodes that are still to come."""
    adds = any(
        step.candidate is None and step.after > step.before for s in route.stages for step in s.elsewhere
    )
    return None if adds else room_of(how.apis)


def carry_out(route: Route, how: CarryOut) -> ApplyEventKind:
    """Carry a plan out, from its start or from where it was stopped.

    Before each wave all objects are read again: a count that is not the one before it, a pause, a
    scaler that nobody named, or too few free accelerators end it before anything of the wave is written.

    Returns:
        ``DONE``; ``REFUSED``: something forbids to go on; ``STOPPED``: somebody asked for it, a cluster did not answer,
        or a wait took too long. What was written stays, and the same call goes on from there.
    """
    return _Carrying(route, how).run()


class _Stopped(Exception):  # noqa: N818 - the way out of a wave, never left to travel
    """It cannot go on now."""


@dataclass(slots=True)
class _Carrying:
    route: Route
    how: CarryOut
    wave: int = 0

    def run(self) -> ApplyEventKind:
        begun = self.how.begun
        try:
            while (review := self._reviewed(begun)) is not None:
                if review.next_wave > review.waves:
                    self._free(review)
                    return self._tell(ApplyEventKind.DONE, "the clusters have what the plan says")
                self.wave = review.next_wave
                self._carry(self.route.stages[self.wave - 1], review)
                begun = Begun(self.wave)
        except _Stopped as why:
            return self._tell(ApplyEventKind.STOPPED, str(why))
        return ApplyEventKind.REFUSED

    def _reviewed(self, begun: Begun) -> ApplyReview | None:
        """A fresh review; None: something forbids to go on, and it was told."""
        review = look(self.route, self.how, begun=begun)
        if not review.refusals:
            return review
        sentences = [each.sentence for each in review.refusals]
        if review.passing:
            raise _Stopped("; ".join(sentences))
        for sentence in sentences:
            self._tell(ApplyEventKind.REFUSED, sentence)
        return None

    def _carry(self, stage: Stage, review: ApplyReview) -> None:
        """One wave: all its writes, then all its waits."""
        states = dict(self._states(review))
        self._tell(ApplyEventKind.WAVE, f"wave {self.wave} of {len(self.route.stages)}")
        for change in stage.changes:
            if change.old == change.new:
                continue
            self._unless_stopped()
            api = self.how.apis[change.target.cluster or ""]
            try:
                written = write(api, change, states[change.target.key], way_back=self.route.way_back)
            except ClusterFault as fault:
                raise self._fault(str(counted_object(change.target)), fault) from fault
            self._wrote(written.fields, str(counted_object(change.target)))
        before = self.route.stages[self.wave - 2].duration_s if self.wave > 1 else 0.0
        self._wait(waits_of(stage, before, self.route.drain_s))

    def _states(self, review: ApplyReview) -> Iterator[tuple[TargetKey, ObjectState]]:
        for state in review.states:
            named = state.object
            yield (named.cluster or "", named.namespace, named.kind, named.name), state

    def _wait(self, waits: tuple[Wait, ...]) -> None:
        """Until all of it is so; the limits of all run from now on."""
        begun_s = self.how.clock.monotonic_s()
        left = list(waits)
        while left:
            self._unless_stopped()
            targets = {wait.change.target.key: wait.change.target for wait in left}
            reading = read_objects(self.how.apis, targets.values(), counts_alone=True)
            left = [wait for wait in left if not self._is_over(wait, reading, begun_s)]
            if left:
                self.how.clock.sleep(self.how.poll_s)

    def _is_over(self, wait: Wait, reading: ObjectReading, begun_s: float) -> bool:
        grace_s, why = 0.0, ""
        state = reading.states.get(wait.change.target.key)
        if state is None:
            why = "; ".join(each.problem for each in reading.findings)
            if not reading.passing:
                raise _Stopped(f"{wait.sentence}: {why}")
        else:
            self._unless_changed(wait, state)
            try:
                over, grace_s = is_over(wait, state, self.how.apis)
            except ClusterFault as fault:
                over, why = False, fault.message
                if fault.trouble not in PASSING:
                    raise self._fault(str(state.object), fault) from fault
            if over:
                self._tell(ApplyEventKind.AWAITED, wait.sentence, named=str(state.object))
                return True
        if self.how.clock.monotonic_s() - begun_s > wait.limit_s + grace_s:
            detail = f" ({why})" if why else ""
            raise _Stopped(
                f"waited {wait.limit_s + grace_s:.0f} s in vain until {wait.sentence}{detail}; nothing later was begun"
            )
        return False

    def _unless_changed(self, wait: Wait, state: ObjectState) -> None:
        """A count that is neither the old nor the new one was written by somebody else."""
        counts = {wait.change.old, wait.change.new}
        if state.wanted is None or (wait.what is not Awaited.ASKED and state.wanted not in counts):
            found = "is gone" if state.wanted is None else f"asks for {state.wanted} replicas now"
            raise _Stopped(f"{state.object} {found}, which this plan did not write")

    def _free(self, review: ApplyReview) -> None:
        """At the end of a way back scalers get what they had before the plan."""
        states = dict(self._states(review))
        for change in touched(self.route) if self.route.way_back else ():
            self._unless_stopped()
            named = str(counted_object(change.target))
            try:
                given = free(
                    self.how.apis[change.target.cluster or ""], change.target, states[change.target.key]
                )
            except ClusterFault as fault:
                raise self._fault(named, fault) from fault
            self._wrote(given.fields, named, quiet=True)
            if given.left:
                self._tell(ApplyEventKind.NOTED, given.left, named=named)

    def _wrote(self, fields: tuple[FieldChange, ...], named: str, *, quiet: bool = False) -> None:
        for each in fields:
            self.how.note(self._event(ApplyEventKind.WROTE, str(each)).but(
                object=each.object, field=each.field, before=each.before, after=each.after
            ))  # fmt: skip
        if not fields and not quiet:
            self._tell(ApplyEventKind.KEPT, f"{named} has its count already", named=named)

    def _unless_stopped(self) -> None:
        if self.how.stop():
            raise _Stopped("somebody asked to stop")

    def _fault(self, named: str, fault: ClusterFault) -> _Stopped:
        remedy = f" ({fault.remedy})" if fault.remedy else ""
        return _Stopped(f"{named}: {fault.message}{remedy}")

    def _tell(self, kind: ApplyEventKind, message: str, *, named: str = "") -> ApplyEventKind:
        self.how.note(self._event(kind, message).but(object=named))
        return kind

    def _event(self, kind: ApplyEventKind, message: str) -> ApplyEvent:
        return ApplyEvent(at_s=self.how.clock.unix_s(), kind=kind, wave=self.wave, message=message)
