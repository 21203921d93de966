"""What is to be carried out: an answer and its waves, there or back; carried out with a record and a way back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from models.applied import ApplyEvent, ApplyEventKind, Undo
from models.plan import Plan
from models.report import Report
from planner.control.carrying.carrying import CarryOut, carry_out
from planner.control.carrying.records import Recorder, begun_of
from planner.control.carrying.review import Begun
from planner.errors import SafetyGateError
from planner.manifests import Route, route_of
from planner.rolling import plan_way_back

__all__ = ["Applied", "Order", "apply_order", "begun_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be carried out.

    Attributes:
        report: the answer.
        plan: its waves.
        back: from the end of these waves to what ran before.
        cluster: whose objects alone; None: all.
        begun: it may be on its way already.
    """

    report: Report
    plan: Plan
    back: bool = False
    begun: bool = False
    cluster: str | None = None

    @classmethod
    def undoing(cls, undo: Undo) -> Order:
        """What leads back."""
        return cls(report=undo.report, plan=undo.plan, back=True, begun=True, cluster=undo.cluster)

    def route(self) -> Route:
        """The stages as counts of objects.

        Raises:
            ConfigurationError: no variant has an object, one is named wrongly, or none is in the cluster.
            SafetyGateError: the plan breaks rules.
        """
        broken = self.report.answer.assessment.violations if self.report.answer.assessment else ()
        if broken and not self.back:
            sentences = "; ".join(each.text for each in broken[:5])
            raise SafetyGateError(f"the plan breaks rules and is not carried out: {sentences}")
        problem = self.report.problem
        if self.back:
            route = route_of(problem, plan_way_back(self.report, self.plan), undone=self.plan)
        else:
            route = route_of(problem, self.plan)
        return route if self.cluster is None else route.in_cluster(self.cluster)


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of it.

    Attributes:
        ended: done, refused or stopped.
        record: the audit record.
        undo: the file that leads back; None: nothing was begun, or this was the way back.
    """

    ended: ApplyEventKind
    record: Path
    undo: Path | None = None


def begun_in(order: Order, folder: Path, *, somewhere: bool = False) -> Begun:
    """What is known of the way so far.

    Args:
        order: what is to be carried out.
        folder: of records.
        somewhere: somebody says that the cluster is on the way, whatever records say.
    """
    known = begun_of(folder, order.route())
    return Begun(known.done, some=True) if somewhere or order.begun else known


def apply_order(order: Order, how: CarryOut, folder: Path, *, why: str = "") -> Applied:
    """Carry it out, with an audit record in a folder, and beside it a file that leads back.

    Args:
        order: what.
        how: clusters, clock, and who is told; the record is written before anybody is.
        folder: of records.
        why: a reason that people gave, for the record.

    Raises:
        ConfigurationError: nothing can be written there.
        SafetyGateError: the plan breaks rules.
    """
    route = order.route()
    recorder = Recorder(folder, route, how.clock)
    begun = False

    def note(event: ApplyEvent) -> None:
        nonlocal begun
        if event.kind is ApplyEventKind.WAVE and not order.back:
            waves = order.plan.waves[: event.wave]
            recorder.keep_undo(order.report, order.plan.but(waves=waves, stuck=None), cluster=order.cluster)
            begun = True
        recorder.note(event)
        how.note(event)

    try:
        how.note(recorder.begin(why=why))
        ended = carry_out(route, replace(how, note=note))
    finally:
        recorder.close()
    return Applied(ended, recorder.path, recorder.undo_path if begun else None)
