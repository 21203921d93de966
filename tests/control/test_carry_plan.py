"""A plan carried out on a cluster in memory: in waves, from fresh state, with waits; stopped, gone on with, undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from models.applied import ApplyEvent, ApplyEventKind
from planner.clock import FakeClock
from planner.control.carrying import Begun, CarryOut, Watch, carry_out, drift_of, gauge_text, look
from planner.control.carrying.objects import read_objects
from planner.control.carrying.review import scaled_targets
from planner.control.cluster.faults import ClusterFault, Trouble
from planner.control.cluster.transport import Answer, Call
from planner.control.discovery.scalers import PINNED
from planner.manifests import Route
from planner.manifests.orders import FORMER_BOUNDS, FORMER_PAUSE, PAUSED
from tests.builders import a_candidate
from tests.kube_objects import a_namespace, a_node, a_scaled_object, an_hpa
from tests.live_objects import LiveCluster, a_workload, objects_of
from tests.rollouts import a_route, a_way_back, an_object, one_variant

CHAT = "chat/small@east"


class Run:
    """A cluster and everything that was told while a plan was carried out on it."""

    def __init__(self, route: Route, objects: list[dict[str, Any]] | None = None, **more: Any) -> None:
        self.route, self.clock = route, FakeClock(1e9)
        self.cluster = LiveCluster(objects_of(route) if objects is None else objects, self.clock, **more)
        self.events: list[ApplyEvent] = []
        self.stop: Callable[[], bool] = lambda: False

    def how(self, **more: Any) -> CarryOut:
        return CarryOut(
            apis={"": self.cluster.api},
            clock=self.clock,
            note=self.events.append,
            stop=self._stops,
            **more,
        )

    def _stops(self) -> bool:
        return self.stop()

    def go(self, route: Route | None = None, **more: Any) -> ApplyEventKind:
        return carry_out(route or self.route, self.how(**more))

    def said(self, kind: ApplyEventKind) -> str:
        return "\n".join(event.message for event in self.events if event.kind is kind)

    def counts(self) -> dict[str, int]:
        return {
            target.object.name: self.cluster.wanted(target.object.name)
            for target in scaled_targets(self.route)
        }


def two_variants(*waves: dict[str, int], back: bool = False) -> Route:
    """Service ``chat`` on two Deployments: ``chat-small`` with three replicas, ``chat-new`` with one."""
    other = a_candidate(variant="new", pool="west", current=1, startup_s=60.0, object=an_object("chat-new"))
    made = a_way_back if back else a_route
    return made(one_variant(3, other), *waves)


SWAP = ({"chat/new@west": 3}, {CHAT: 1})
"""First what comes, then what goes."""


def test_a_wave_begins_when_all_of_the_wave_before_is_ready() -> None:
    run = Run(two_variants(*SWAP))
    ready_when_it_fell: list[int] = []

    def meddle(cluster: LiveCluster, call: Call) -> None:
        if call.method == "PATCH" and "chat-small" in call.path:
            ready_when_it_fell.append(cluster.thing("Deployment", "chat-new")["status"]["readyReplicas"])

    run.cluster.meddle = meddle
    assert run.go() is ApplyEventKind.DONE
    assert run.counts() == {"chat-small": 1, "chat-new": 3}
    assert ready_when_it_fell == [3]
    # The clock went on by a start and an end, and not by a limit.
    assert 40.0 <= run.clock.monotonic_s() <= 60.0


def test_a_review_writes_nothing_and_says_every_field() -> None:
    run = Run(two_variants(*SWAP))
    review = look(run.route, run.how())
    assert [(each.wave, str(each)) for each in review.changes] == [
        (1, "Deployment llm/chat-new: spec.replicas: 1 → 3"),
        (2, "Deployment llm/chat-small: spec.replicas: 3 → 1"),
    ]
    assert (review.next_wave, review.refusals) == (1, ())
    assert {method for method, _ in run.cluster.calls} == {"GET"}


ON_THE_WAY = Begun(some=True)


@pytest.mark.parametrize(
    ("small", "new", "begun", "next_wave"),
    [
        (3, 1, Begun(), 1),
        (3, 3, Begun(), None),
        (1, 3, Begun(), 3),
        (3, 3, Begun(1), 2),
        (3, 1, ON_THE_WAY, 1),
        (3, 3, ON_THE_WAY, 1),
        (3, 3, Begun(1, some=True), 2),
        (1, 3, ON_THE_WAY, 3),
        (1, 1, ON_THE_WAY, None),
        (2, 3, ON_THE_WAY, None),
        (3, 2, ON_THE_WAY, None),
    ],
)
def test_where_a_cluster_is_on_the_way_is_seen_from_its_counts_where_it_was_begun(
    small: int, new: int, begun: Begun, next_wave: int | None
) -> None:
    objects = [a_node("n1", 64), a_workload("chat-small", small), a_workload("chat-new", new)]
    run = Run(two_variants(*SWAP), objects)
    review = look(run.route, run.how(), begun=begun)
    assert bool(review.refusals) == (next_wave is None)
    if next_wave is not None:
        assert review.next_wave == next_wave


def test_a_cluster_that_is_not_what_the_plan_started_from_is_refused_with_every_difference() -> None:
    run = Run(two_variants(*SWAP), [a_node("n1", 64), a_workload("chat-small", 7)])
    assert run.go() is ApplyEventKind.REFUSED
    said = run.said(ApplyEventKind.REFUSED)
    assert "Deployment llm/chat-small: it asks for 7 replicas, where the plan starts from 3" in said
    assert "Deployment llm/chat-new: there is no such object" in said
    assert run.cluster.wanted("chat-small") == 7


def test_what_was_stopped_goes_on_where_it_was() -> None:
    run = Run(two_variants(*SWAP))
    run.stop = lambda: run.cluster.wanted("chat-new") == 3
    assert run.go() is ApplyEventKind.STOPPED
    assert run.counts() == {"chat-small": 3, "chat-new": 3}
    run.stop = lambda: False
    writes = len(run.cluster.calls)
    assert run.go() is ApplyEventKind.REFUSED
    assert run.go(begun=ON_THE_WAY) is ApplyEventKind.DONE
    written = [path for method, path in run.cluster.calls[writes:] if method == "PATCH"]
    assert [path.rsplit("/", 2)[-2] for path in written] == ["chat-small"]


def test_a_replica_that_never_gets_ready_ends_it_before_anything_goes() -> None:
    run = Run(two_variants(*SWAP), start_s=1e7)
    assert run.go() is ApplyEventKind.STOPPED
    assert "in vain until 3 replicas of Deployment llm/chat-new are ready" in run.said(ApplyEventKind.STOPPED)
    assert run.counts() == {"chat-small": 3, "chat-new": 3}


def test_a_count_that_somebody_changes_while_it_waits_ends_it() -> None:
    run = Run(two_variants(*SWAP))

    def meddle(cluster: LiveCluster, call: Call) -> None:
        if run.clock.monotonic_s() > 10:
            cluster.set("Deployment", "chat-new", {"spec": {"replicas": 9}})

    run.cluster.meddle = meddle
    assert run.go() is ApplyEventKind.STOPPED
    assert "asks for 9 replicas now, which this plan did not write" in run.said(ApplyEventKind.STOPPED)
    assert run.counts() == {"chat-small": 3, "chat-new": 9}


def test_state_is_read_afresh_before_each_wave() -> None:
    run = Run(two_variants(*SWAP))

    def meddle(cluster: LiveCluster, call: Call) -> None:
        if cluster.thing("Deployment", "chat-new")["status"].get("readyReplicas") == 3:
            cluster.set(
                "Deployment", "chat-small", {"metadata": {"annotations": {"fleetplan.dev/paused": "true"}}}
            )

    run.cluster.meddle = meddle
    assert run.go() is ApplyEventKind.REFUSED
    assert "people hold it: annotation fleetplan.dev/paused of the Deployment" in run.said(
        ApplyEventKind.REFUSED
    )
    assert run.counts() == {"chat-small": 3, "chat-new": 3}


def test_a_paused_namespace_holds_all_of_it() -> None:
    objects = [*objects_of(two_variants(*SWAP)), a_namespace("llm", **{"fleetplan.dev/paused": "yes"})]
    run = Run(two_variants(*SWAP), objects)
    assert run.go() is ApplyEventKind.REFUSED
    assert run.said(ApplyEventKind.REFUSED).count("of namespace llm") == 2


def test_a_scaler_that_the_plan_does_not_name_is_refused() -> None:
    objects = [*objects_of(two_variants(*SWAP)), an_hpa("other", "chat-small", namespace="llm")]
    run = Run(two_variants(*SWAP), objects)
    assert run.go() is ApplyEventKind.REFUSED
    assert "HorizontalPodAutoscaler other scales it too" in run.said(ApplyEventKind.REFUSED)


def test_too_few_free_accelerators_are_refused_before_anything_is_written() -> None:
    run = Run(two_variants(*SWAP), [a_node("n1", 5), *objects_of(two_variants(*SWAP))[1:]])
    assert run.go() is ApplyEventKind.REFUSED
    assert "this wave starts replicas on 2 of them, and 1 are free" in run.said(ApplyEventKind.REFUSED)
    assert run.counts() == {"chat-small": 3, "chat-new": 1}


def test_a_cluster_that_does_not_let_nodes_be_read_is_noted_and_forbids_nothing() -> None:
    run = Run(two_variants(*SWAP), denied={("list", "nodes")})
    review = look(run.route, run.how())
    assert not review.refusals
    assert any('resources: ["nodes"], verbs: ["list"]' in note for note in review.notes)


def test_a_denied_write_names_the_missing_rule_and_leaves_the_rest() -> None:
    run = Run(two_variants(*SWAP), denied={("patch", "deployments/scale")})
    assert run.go() is ApplyEventKind.STOPPED
    said = run.said(ApplyEventKind.STOPPED)
    assert 'resources: ["deployments/scale"], verbs: ["patch"]' in said
    assert run.counts() == {"chat-small": 3, "chat-new": 1}


def test_a_cluster_that_is_away_stops_it_and_one_that_is_back_goes_on() -> None:
    run = Run(two_variants(*SWAP))

    def away(cluster: LiveCluster, call: Call) -> Answer | None:
        raise ClusterFault(Trouble.UNREACHABLE, "nobody answers")

    run.cluster.meddle = away
    assert run.go() is ApplyEventKind.STOPPED
    assert "nobody answers" in run.said(ApplyEventKind.STOPPED)
    run.cluster.meddle = lambda *_: None
    assert run.go() is ApplyEventKind.DONE


def test_a_cluster_that_is_away_for_a_while_is_waited_for() -> None:
    run = Run(two_variants(*SWAP))

    def away(cluster: LiveCluster, call: Call) -> Answer | None:
        if 5 < run.clock.monotonic_s() < 20:
            raise ClusterFault(Trouble.TIMEOUT, "it took too long")
        return None

    run.cluster.meddle = away
    assert run.go() is ApplyEventKind.DONE


def test_an_hpa_is_held_with_a_record_and_gets_its_bounds_back() -> None:
    fields = {"scaler": "hpa", "scaler_name": "chat-hpa"}
    there, back = (make(one_variant(3, **fields), {CHAT: 5}) for make in (a_route, a_way_back))
    objects = [*objects_of(there), an_hpa("chat-hpa", "chat-small", namespace="llm", least=2, most=8)]
    run = Run(there, objects)
    assert run.go() is ApplyEventKind.DONE
    hpa = run.cluster.thing("HorizontalPodAutoscaler", "chat-hpa")
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (5, 5)
    assert hpa["metadata"]["annotations"][FORMER_BOUNDS] == "2:8"
    assert run.counts() == {"chat-small": 5}
    assert run.go(back) is ApplyEventKind.DONE
    hpa = run.cluster.thing("HorizontalPodAutoscaler", "chat-hpa")
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (2, 8)
    assert FORMER_BOUNDS not in hpa["metadata"]["annotations"]
    assert run.counts() == {"chat-small": 3}


def test_an_hpa_that_a_controller_holds_is_left_to_it() -> None:
    route = a_route(one_variant(3, scaler="hpa", scaler_name="chat-hpa"), {CHAT: 5})
    notes = {FORMER_BOUNDS: "1:8", PINNED: "3"}
    scaler = an_hpa("chat-hpa", "chat-small", namespace="llm", least=3, most=3, annotations=notes)
    run = Run(route, [*objects_of(route), scaler])
    assert run.go() is ApplyEventKind.REFUSED
    assert "a controller (annotation" in run.said(ApplyEventKind.REFUSED)
    assert run.counts() == {"chat-small": 3}


@pytest.mark.parametrize(("start", "end"), [(3, 0), (0, 2)])
def test_a_resting_hpa_is_gone_around(start: int, end: int) -> None:
    route = a_route(one_variant(start, scaler="hpa", scaler_name="chat-hpa"), {CHAT: end})
    run = Run(route, [*objects_of(route), an_hpa("chat-hpa", "chat-small", namespace="llm", most=8)])
    assert run.go() is ApplyEventKind.DONE
    assert run.counts() == {"chat-small": end}


@pytest.mark.parametrize("before", [None, "3"])
def test_a_scaled_object_is_paused_and_gets_back_what_it_had(before: str | None) -> None:
    there, back = (make(one_variant(3, scaler="keda"), {CHAT: 4}) for make in (a_route, a_way_back))
    notes = {} if before is None else {PAUSED: before}
    scaler = a_scaled_object("chat-small", "chat-small", annotations=notes)
    scaler["metadata"]["namespace"] = "llm"
    run = Run(there, [*objects_of(there), scaler])
    assert run.go() is ApplyEventKind.DONE
    held = run.cluster.thing("ScaledObject", "chat-small")["metadata"]["annotations"]
    assert (held[PAUSED], held[FORMER_PAUSE]) == ("4", before or "none")
    assert run.go(back) is ApplyEventKind.DONE
    freed = run.cluster.thing("ScaledObject", "chat-small")["metadata"]["annotations"]
    assert (freed.get(PAUSED), FORMER_PAUSE in freed) == (before, False)


def test_a_scaler_that_is_not_there_is_refused() -> None:
    route = a_route(one_variant(3, scaler="hpa", scaler_name="nobody"), {CHAT: 4})
    run = Run(route)
    assert run.go() is ApplyEventKind.REFUSED
    assert "there is no HorizontalPodAutoscaler llm/nobody" in run.said(ApplyEventKind.REFUSED)
    assert "()" not in run.said(ApplyEventKind.REFUSED)


def test_from_anywhere_on_the_way_the_way_back_leads_to_the_start() -> None:
    run = Run(two_variants(*SWAP))
    run.stop = lambda: run.cluster.wanted("chat-small") == 1
    assert run.go() is ApplyEventKind.STOPPED
    run.stop = lambda: False
    assert run.go(two_variants(*SWAP, back=True), begun=ON_THE_WAY) is ApplyEventKind.DONE
    assert run.counts() == {"chat-small": 3, "chat-new": 1}


def test_what_nobody_here_can_start_is_confirmed_before_anything_goes() -> None:
    bare = a_candidate(variant="c", pool="west", current=0, object=None)
    route = a_route(one_variant(3, bare), {"chat/c@west": 2}, {CHAT: 1})
    run = Run(route)
    assert run.go() is ApplyEventKind.REFUSED
    assert "nobody here can tell whether this is ready: chat/c in pool west at 2" in run.said(
        ApplyEventKind.REFUSED
    )
    assert run.counts() == {"chat-small": 3}
    assert run.go(assume_done=True) is ApplyEventKind.DONE


def test_drift_is_what_differs_for_a_while_and_has_series() -> None:
    run = Run(two_variants(*SWAP))
    assert run.go() is ApplyEventKind.DONE
    watch = Watch(after_s=60.0)

    def looked() -> tuple[Any, Any]:
        states = read_objects({"": run.cluster.api}, scaled_targets(run.route)).states
        return watch.look(drift_of(run.route, states), run.clock.monotonic_s()), states

    assert looked()[0] == ()
    run.cluster.set("Deployment", "chat-small", {"spec": {"replicas": 4}})
    first, _ = looked()
    assert [(str(each.object), each.planned, each.wanted) for each in first] == [
        ("Deployment llm/chat-small", 1, 4)
    ]
    assert watch.alarms(first) == ()
    run.clock.advance(61)
    later, states = looked()
    assert [each.for_s for each in watch.alarms(later)] == [61.0]
    text = gauge_text(run.route, states, later)
    row = 'cluster="",namespace="llm",kind="Deployment",name="chat-small",service="chat",variant="small"'
    assert f"fleetplan_plan_drift_seconds{{{row}}} 61\n" in text
    assert f"fleetplan_plan_replicas_wanted{{{row}}} 4\n" in text
    run.cluster.set("Deployment", "chat-small", {"spec": {"replicas": 1}})
    run.clock.advance(60)
    looked()
    run.clock.advance(60)
    assert looked()[0] == ()
