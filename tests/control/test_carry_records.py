"""Records of what was carried out: they say what happened, where to go on, and what leads back."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from models.applied import ApplyEvent, ApplyEventKind
from models.report import Violation
from planner.cli.undo_files import read_undo
from planner.clock import FakeClock
from planner.control.carrying import Applied, Begun, CarryOut, Order, apply_order, begun_in, look, read_events
from planner.control.cluster.faults import ClusterFault, Trouble
from planner.control.cluster.transport import Answer, Call
from planner.errors import ConfigurationError, SafetyGateError
from tests.builders import a_candidate
from tests.live_objects import LiveCluster, objects_of
from tests.rollouts import a_plan, a_report_of, an_object, one_variant

SMALL, NEW = "chat/small@east", "chat/new@west"


def an_order() -> Order:
    """Two more of ``chat-new``, then two fewer of ``chat-small``."""
    other = a_candidate(variant="new", pool="west", current=1, startup_s=60.0, object=an_object("chat-new"))
    problem = one_variant(3, other)
    plan = a_plan(problem, {NEW: 3}, {SMALL: 1})
    return Order(report=a_report_of(problem, {SMALL: 1, NEW: 3}), plan=plan)


class Site:
    """A cluster, a folder of records, and an order that is carried out there."""

    def __init__(self, folder: Path, order: Order) -> None:
        self.folder, self.order, self.clock = folder, order, FakeClock(1.8e9)
        self.cluster = LiveCluster(objects_of(order.route()), self.clock)
        self.events: list[ApplyEvent] = []

    def how(self, order: Order, stop: Callable[[], bool] = lambda: False) -> CarryOut:
        begun = begun_in(order, self.folder)
        return CarryOut(
            apis={"": self.cluster.api}, clock=self.clock, note=self.events.append, stop=stop, begun=begun
        )

    def apply(
        self, order: Order | None = None, stop: Callable[[], bool] = lambda: False, why: str = ""
    ) -> Applied:
        self.clock.advance(1.0)  # records are named by the moment at which they begin
        mine = order or self.order
        return apply_order(mine, self.how(mine, stop), self.folder, why=why)

    def counts(self) -> tuple[int, int]:
        return self.cluster.wanted("chat-small"), self.cluster.wanted("chat-new")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "applied", an_order())


def test_a_record_says_who_what_and_every_field_for_its_owner_alone(site: Site) -> None:
    done = site.apply(why="cheaper")
    assert done.ended is ApplyEventKind.DONE
    events = read_events(done.record)
    assert events == tuple(site.events)
    assert (events[0].message, events[0].facts["solution"]) == ("cheaper", site.order.plan.derived_from)
    written = [(each.object, each.before, each.after) for each in events if each.kind is ApplyEventKind.WROTE]
    assert written == [("Deployment llm/chat-new", "1", "3"), ("Deployment llm/chat-small", "3", "1")]
    assert stat.S_IMODE(done.record.stat().st_mode) == 0o600
    assert stat.S_IMODE(site.folder.stat().st_mode) == 0o700


def test_what_was_stopped_is_known_and_gone_on_with(site: Site) -> None:
    assert begun_in(site.order, site.folder) == Begun()
    stopped = site.apply(stop=lambda: site.counts()[1] == 3)
    assert stopped.ended is ApplyEventKind.STOPPED
    assert begun_in(site.order, site.folder) == Begun(0, some=True)
    assert site.apply().ended is ApplyEventKind.DONE
    assert site.counts() == (1, 3)
    # Over is over: from now on another count is somebody else's.
    assert begun_in(site.order, site.folder) == Begun()


def test_a_record_that_was_cut_is_one_that_was_stopped(site: Site) -> None:
    done = site.apply(stop=lambda: site.counts()[0] == 1)
    text = done.record.read_text(encoding="utf-8").splitlines()
    done.record.write_text("\n".join(text[:-1]) + '\n{"at_s": 1, "ki', encoding="utf-8")
    assert begun_in(site.order, site.folder) == Begun(1, some=True)
    assert site.apply().ended is ApplyEventKind.DONE


def test_the_undo_file_leads_back_from_wherever_it_was_stopped(site: Site) -> None:
    stopped = site.apply(stop=lambda: site.counts()[1] == 3)
    assert stopped.undo is not None
    undo = read_undo(stopped.undo)
    assert undo is not None
    assert len(undo.plan.waves) == 1
    back = site.apply(Order.undoing(undo))
    assert (back.ended, back.undo) == (ApplyEventKind.DONE, None)
    assert site.counts() == (3, 1)


def test_an_undo_file_that_was_changed_is_refused(site: Site) -> None:
    done = site.apply()
    assert done.undo is not None
    document = json.loads(done.undo.read_text(encoding="utf-8"))
    document["undo"]["begun_s"] = 1.0
    done.undo.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="it was changed"):
        read_undo(done.undo)
    plain = site.folder / "other.json"
    plain.write_text("{}", encoding="utf-8")
    assert read_undo(plain) is None


def test_a_refused_attempt_is_on_record_and_has_no_undo(site: Site) -> None:
    site.cluster.set("Deployment", "chat-small", {"spec": {"replicas": 5}})
    refused = site.apply()
    assert (refused.ended, refused.undo) == (ApplyEventKind.REFUSED, None)
    assert [each.kind for each in read_events(refused.record)] == [
        ApplyEventKind.BEGUN,
        ApplyEventKind.REFUSED,
    ]


def test_a_plan_that_breaks_rules_is_not_carried_out(site: Site) -> None:
    broken = Violation(
        family="gpus", key=("east",), found=18, allowed=16, unit="GPU", text="east holds 18 of 16"
    )
    judged = site.order.report.answer.but(assessment=_assessed(broken))
    order = Order(report=site.order.report.but(answer=judged), plan=site.order.plan)
    with pytest.raises(SafetyGateError, match="east holds 18 of 16"):
        site.apply(order)
    assert not site.folder.exists()


def _assessed(broken: Violation) -> dict[str, object]:
    return {
        "violations": (broken,), "unserved_rps": 0.0, "unserved_share_worst": 0.0, "cost": 0.0, "switching_cost": 0.0,
        "power_w": None, "changes": 0, "gpus_used": {}, "nodes_added": {}, "services": (), "candidates": (), "rows": (),
    }  # fmt: skip


def test_a_cluster_that_is_away_is_asked_once_and_not_for_every_object(site: Site) -> None:
    asked: list[str] = []

    def away(cluster: LiveCluster, call: Call) -> Answer | None:
        asked.append(call.path)
        raise (
            ClusterFault(Trouble.DENIED, "no")
            if "nodes" in call.path
            else ClusterFault(Trouble.CREDENTIALS, "no")
        )

    site.cluster.meddle = away
    review = look(site.order.route(), site.how(site.order))
    assert len(review.refusals) == 2
    assert not review.passing
    asked.clear()

    def silent(cluster: LiveCluster, call: Call) -> Answer | None:
        asked.append(call.path)
        raise ClusterFault(Trouble.TIMEOUT, "it took too long")

    site.cluster.meddle = silent
    review = look(site.order.route(), site.how(site.order))
    assert len({path for path in asked if "deployments" in path}) == 1
    assert review.passing


def test_a_folder_that_cannot_be_written_is_said_before_anything_is_done(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="a folder that we may write"):
        apply_order(site.order, site.how(site.order), tmp_path / "file" / "applied")
    assert site.counts() == (3, 1)
