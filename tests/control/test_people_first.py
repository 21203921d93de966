"""Pauses, hands, hours and nodes that leave: people have the last word, whatever was decided."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from models.controller import ControllerSettings
from models.hardware import Node, Pool
from models.observation import Observation, VariantObservation
from models.people import ChangeWindow
from planner.control.analysis.identity import VariantRef, ref_of
from planner.control.deciding.people import PeopleSay, respected
from planner.control.deciding.people_hands import Edit, Hands, hands_after
from planner.control.deciding.people_hours import is_open, unknown_zone
from planner.control.deciding.people_nodes import (
    MOVING,
    Leaving,
    Surge,
    leaving_nodes,
    moved,
    without_leaving,
)
from planner.control.protocols import Decision

NOON = datetime(2026, 5, 6, 12, 0, tzinfo=UTC).timestamp()
"""A Wednesday."""
REF = VariantRef("", "prod", "llama")


def a_served(wanted: int | None = 2, **more: Any) -> VariantObservation:
    fields: dict[str, Any] = {
        "name": "llama", "namespace": "prod", "model": "llama-8b", "accelerator": "H100", "wanted": wanted,
        "ready": wanted or 0, "target": {"kind": "Deployment", "name": "llama", "scaler": "hpa"},
    }  # fmt: skip
    return VariantObservation.model_validate(fields | more)


def a_wish(desired: int, variant: VariantObservation | None = None) -> Decision:
    return Decision(variant=variant or a_served(), desired=desired, reason="ScaledUp")


def after_people(decision: Decision, at_s: float = NOON, **settings: Any) -> Decision:
    say = PeopleSay(settings=ControllerSettings.model_validate(settings), now_s=at_s)
    return respected([decision], say)[0]


class TestPauses:
    @pytest.mark.parametrize(
        "settings",
        [
            {"paused": True},
            {"rules": {"paused": True}},
            {"overrides": [{"model": "llama-8b", "paused": True}]},
            {"overrides": [{"namespace": "prod", "accelerator": "H100", "role": "both", "paused": True}]},
        ],
        ids=str,
    )
    def test_a_setting_holds_the_replicas_of_now(self, settings: dict[str, Any]) -> None:
        found = after_people(a_wish(5), **settings)
        assert (found.desired, found.reason) == (2, "Paused")
        assert found.facts["decided_replicas"] == 5

    def test_an_override_for_others_holds_nothing(self) -> None:
        assert after_people(a_wish(5), overrides=[{"model": "other", "paused": True}]).desired == 5

    def test_one_override_may_let_go_what_all_others_are_held_by(self) -> None:
        found = after_people(
            a_wish(5), rules={"paused": True}, overrides=[{"model": "llama-8b", "paused": False}]
        )
        assert found.desired == 5

    def test_an_annotation_holds(self) -> None:
        found = after_people(a_wish(5, a_served(paused=True)))
        assert (found.desired, found.reason) == (2, "Paused")
        assert "annotation" in found.message

    def test_a_target_that_is_gone_is_left_as_it_was_decided(self) -> None:
        assert after_people(a_wish(0, a_served(None)), paused=True).reason == "ScaledUp"


class TestHours:
    @pytest.mark.parametrize(
        ("window", "moment", "opened"),
        [
            ({"begin": "22:00", "end": "04:00"}, "2026-05-06T23:00+00:00", True),
            ({"begin": "22:00", "end": "04:00"}, "2026-05-07T03:59+00:00", True),
            ({"begin": "22:00", "end": "04:00"}, "2026-05-07T04:00+00:00", False),
            ({"begin": "22:00", "end": "04:00", "days": ["wed"]}, "2026-05-07T03:00+00:00", True),
            ({"begin": "22:00", "end": "04:00", "days": ["thu"]}, "2026-05-07T03:00+00:00", False),
            ({"begin": "09:00", "end": "17:00", "days": ["wed"]}, "2026-05-06T09:00+00:00", True),
            ({"begin": "09:00", "end": "17:00", "days": ["wed"]}, "2026-05-06T17:00+00:00", False),
            ({}, "2026-05-06T00:00+00:00", True),
            ({"begin": "06:00", "end": "06:00", "days": ["wed"]}, "2026-05-07T05:59+00:00", True),
            ({"begin": "06:00", "end": "06:00", "days": ["wed"]}, "2026-05-07T06:00+00:00", False),
            ({"since": "2026-05-07"}, "2026-05-06T12:00+00:00", False),
            ({"until": "2026-05-06", "begin": "22:00", "end": "04:00"}, "2026-05-07T02:00+00:00", True),
            ({"until": "2026-05-05", "begin": "22:00", "end": "04:00"}, "2026-05-07T02:00+00:00", False),
            ({"begin": "09:00", "end": "10:00", "zone": "Europe/Berlin"}, "2026-07-01T07:30+00:00", True),
            ({"begin": "09:00", "end": "10:00", "zone": "Europe/Berlin"}, "2026-01-01T07:30+00:00", False),
            # The night in which clocks skip 02:00 to 03:00: what begins in the hour that is not there begins after it.
            ({"begin": "02:30", "end": "04:00", "zone": "Europe/Berlin"}, "2026-03-29T01:00+00:00", True),
            ({"begin": "02:30", "end": "04:00", "zone": "Europe/Berlin"}, "2026-03-29T00:59+00:00", False),
        ],
        ids=str,
    )  # fmt: skip
    def test_a_window_is_open(self, window: dict[str, Any], moment: str, opened: bool) -> None:
        found = is_open(ChangeWindow.model_validate(window), datetime.fromisoformat(moment).timestamp())
        assert found is opened

    def test_a_zone_that_is_not_there_is_told_with_the_nearest(self) -> None:
        assert "Europe/Berlin" in (unknown_zone("Europe/Berln") or "")
        assert unknown_zone("UTC") is None

    def test_outside_of_every_window_nothing_changes(self) -> None:
        windows = [{"begin": "22:00", "end": "04:00"}, {"begin": "01:00", "end": "02:00"}]
        found = after_people(a_wish(5), change_windows=windows)
        assert (found.desired, found.reason) == (2, "OutsideChangeWindow")
        assert (
            after_people(a_wish(5), change_windows=[*windows, {"begin": "11:00", "end": "13:00"}]).desired
            == 5
        )

    def test_a_window_of_others_binds_nobody_else(self) -> None:
        windows = [{"who": {"namespace": "test"}, "begin": "22:00", "end": "04:00"}]
        assert after_people(a_wish(5), change_windows=windows).desired == 5

    def test_a_freeze_of_scale_in_lets_growth_pass(self) -> None:
        freezes = [{"forbids": "scale_in"}]
        assert after_people(a_wish(5), freezes=freezes).desired == 5
        held = after_people(a_wish(1), freezes=freezes)
        assert (held.desired, held.reason) == (2, "Frozen")

    def test_of_a_freeze_and_a_closed_window_the_stricter_holds(self) -> None:
        found = after_people(
            a_wish(5), freezes=[{"forbids": "scale_in"}], change_windows=[{"begin": "22:00", "end": "04:00"}]
        )
        assert (found.desired, found.reason) == (2, "OutsideChangeWindow")


def seen_twice(
    before: VariantObservation, after: VariantObservation, *, ours: bool = False
) -> tuple[Edit, ...]:
    first, _, _ = hands_after([before], Hands(), ours=())
    return hands_after([after], first, ours=(ref_of(after),) if ours else ())[1]


class TestHands:
    def test_the_first_look_takes_counts_as_they_are(self) -> None:
        assert (
            hands_after([a_served(7, written_by="kubectl-scale", written_at="2026")], Hands(), ours=(REF,))[1]
            == ()
        )

    @pytest.mark.parametrize(
        ("by", "ours", "edited"),
        [
            ("kubectl-scale", False, True),
            ("kubectl-edit", False, True),
            ("argocd-controller", True, True),
            ("kube-controller-manager", False, False),
            ("keda-operator", False, False),
            ("fleetplan", True, False),
        ],
    )
    def test_a_count_that_changed_is_by_hand_if_its_new_writer_is_a_person(
        self, by: str, ours: bool, edited: bool
    ) -> None:
        edits = seen_twice(
            a_served(2), a_served(5, written_by=by, written_at="2026-05-06T12:00:00Z"), ours=ours
        )
        assert bool(edits) is edited

    def test_an_api_that_does_not_tell_leaves_hpas_alone_and_betrays_whoever_changes_our_own(self) -> None:
        creator = {"written_by": "kubectl-create", "written_at": "2026-01-01T00:00:00Z"}
        assert not seen_twice(a_served(2, **creator), a_served(5, **creator))
        assert seen_twice(a_served(2, **creator), a_served(5, **creator), ours=True)

    def test_what_we_wrote_ourselves_is_no_change_by_hand(self) -> None:
        hands, _, _ = hands_after([a_served(2)], Hands(), ours=())
        assert not hands_after([a_served(5)], hands.wrote({REF: 5}), ours=(REF,))[1]

    def test_the_note_says_who_and_how_to_release(self) -> None:
        (edit,) = seen_twice(
            a_served(2), a_served(5, written_by="kubectl-scale", written_at="2026-05-06T12:00:00Z")
        )
        assert "5 replicas set by kubectl-scale at 2026-05-06T12:00:00Z" in edit.note
        assert "kubectl annotate deployment/llama -n prod fleetplan.dev/held-" in edit.note

    def test_a_note_holds_until_it_is_gone_and_is_not_written_again(self) -> None:
        by_hand = {"written_by": "kubectl-scale", "written_at": "2026-05-06T12:00:00Z"}
        hands, edits, _ = hands_after([a_served(2)], Hands(), ours=())
        hands, edits, _ = hands_after([a_served(5, **by_hand)], hands, ours=())
        assert edits
        hands, edits, _ = hands_after([a_served(5, held=edits[0].note, **by_hand)], hands, ours=())
        assert not edits
        hands, edits, released = hands_after([a_served(5, **by_hand)], hands, ours=())
        assert (len(edits), [each.name for each in released]) == (0, ["llama"])
        assert not hands_after([a_served(5, **by_hand)], hands, ours=())[1]

    def test_what_could_not_be_noted_is_respected_all_the_same(self) -> None:
        edit = Edit(a_served(5), 2, "kubectl-scale")
        hands = hands_after([a_served(5)], Hands().could_not_note([edit]), ours=())[0]
        say = PeopleSay(settings=ControllerSettings(), now_s=NOON, hands=hands.notes)
        assert respected([a_wish(9, a_served(5))], say)[0].reason == "HeldByPeople"

    def test_a_held_variant_moves_where_people_do_not_want_that(self) -> None:
        held = a_served(held="5 replicas set by somebody")
        assert after_people(a_wish(5, held)).desired == 2
        assert after_people(a_wish(5, held), respect_manual=False).desired == 5


def two_nodes(**first: Any) -> tuple[Pool, ...]:
    nodes = (
        Node.model_validate({"id": "n1", "gpus": 8} | first),
        Node.model_validate({"id": "n2", "gpus": 8}),
    )
    return (Pool.model_validate({"id": "H100", "accelerator": "H100", "nodes": nodes}),)


def leaving(*names: str) -> Leaving:
    return Leaving(nodes=frozenset(("", name) for name in names))


def on_nodes(*nodes: str, **more: Any) -> VariantObservation:
    pods = tuple(f"p{number}" for number in range(len(nodes)))
    return a_served(**{"wanted": len(nodes), "pods": pods, "nodes": nodes} | more)


class TestNodesThatLeave:
    @pytest.mark.parametrize(
        ("plan", "found"),
        [
            ({"nodes": ["n1"], "begin": "2026-05-06T13:00Z", "ahead_s": 3600}, ["n1"]),
            ({"nodes": ["n1"], "begin": "2026-05-06T13:00Z", "ahead_s": 3599}, []),
            ({"nodes": ["n*"], "begin": "2026-05-06T11:00Z"}, ["n1", "n2"]),
            ({"nodes": ["n1"], "begin": "2026-05-06T10:00Z", "end": "2026-05-06T12:00Z"}, []),
            ({"nodes": ["n1"], "cluster": "east", "begin": "2026-05-06T11:00Z"}, []),
        ],
        ids=str,
    )
    def test_maintenance_is_near(self, plan: dict[str, Any], found: list[str]) -> None:
        settings = ControllerSettings.model_validate({"maintenance": [plan]})
        assert sorted(name for _, name in leaving_nodes(two_nodes(), settings, NOON).nodes) == found

    def test_a_cordoned_node_leaves_unless_people_say_otherwise(self) -> None:
        pools = two_nodes(cordoned=True)
        assert leaving_nodes(pools, ControllerSettings(), NOON).nodes == {("", "n1")}
        assert not leaving_nodes(pools, ControllerSettings(leave_cordoned=False), NOON).nodes

    def test_a_node_that_leaves_and_takes_pods_is_told(self) -> None:
        plan = {"nodes": ["n1", "n7"], "begin": "2026-05-06T11:00Z"}
        found = leaving_nodes(two_nodes(), ControllerSettings.model_validate({"maintenance": [plan]}), NOON)
        assert [each.remedy for each in found.findings] == ["kubectl cordon n1"]

    def test_its_capacity_leaves_the_plan(self) -> None:
        seen = without_leaving(Observation(at_s=NOON, pools=two_nodes()), leaving("n1"))
        assert [node.cordoned for node in seen.pools[0].nodes] == [True, False]

    def test_what_runs_there_is_replaced_before_it_goes(self) -> None:
        variant = on_nodes("n1", "n2")
        (raised,), surged = moved([a_wish(2, variant)], leaving("n1"), {}, chooses_victims=True)
        assert (raised.desired, raised.reason, surged) == (3, MOVING, {REF: Surge(2, 1)})
        waiting = on_nodes("n1", "n2", wanted=3, pending=1)
        (same,), surged = moved([a_wish(3, waiting)], leaving("n1"), surged, chooses_victims=True)
        assert (same.desired, surged) == (3, {REF: Surge(2, 1)})
        replaced = on_nodes("n1", "n2", "n2")
        (going,), surged = moved([a_wish(3, replaced)], leaving("n1"), surged, chooses_victims=True)
        assert (going.desired, going.victims, surged) == (2, ("p0",), {})
        (done,), surged = moved(
            [a_wish(2, on_nodes("n2", "n2"))], leaving("n1"), surged, chooses_victims=True
        )
        assert (done.desired, done.reason, surged) == (2, "ScaledUp", {})

    @pytest.mark.parametrize("wish", [2, 3], ids=["takes the surplus for spare", "holds"])
    def test_a_policy_that_sees_the_surplus_does_not_make_it_grow_or_vanish(self, wish: int) -> None:
        variant, surged = on_nodes("n1", "n2", wanted=3, pending=1), {REF: Surge(2, 1)}
        for _ in range(5):
            (found,), surged = moved([a_wish(wish, variant)], leaving("n1"), surged, chooses_victims=True)
            assert (found.desired, surged) == (3, {REF: Surge(2, 1)})

    def test_a_scaler_that_has_not_followed_yet_is_waited_for(self) -> None:
        variant = on_nodes("n1", "n2")
        (found,), surged = moved(
            [a_wish(2, variant)], leaving("n1"), {REF: Surge(2, 1)}, chooses_victims=True
        )
        assert (found.desired, surged) == (3, {REF: Surge(2, 1)})

    def test_growth_goes_on_top(self) -> None:
        variant = on_nodes("n1", "n2", wanted=3, pending=1)
        (found,), surged = moved(
            [a_wish(5, variant)], leaving("n1"), {REF: Surge(2, 1)}, chooses_victims=True
        )
        assert (found.desired, surged) == (5, {REF: Surge(4, 1)})

    def test_without_a_choice_of_victims_the_surplus_stays_until_the_node_is_empty(self) -> None:
        replaced = on_nodes("n1", "n2", "n2")
        (found,), surged = moved(
            [a_wish(3, replaced)], leaving("n1"), {REF: Surge(2, 1)}, chooses_victims=False
        )
        assert (found.desired, surged) == (3, {REF: Surge(2, 1)})
        (found,), surged = moved(
            [a_wish(3, on_nodes("n2", "n2", "n2"))], leaving("n1"), surged, chooses_victims=False
        )
        assert (found.desired, surged) == (2, {})

    def test_the_maximum_holds(self) -> None:
        (found,), surged = moved(
            [a_wish(2, on_nodes("n1", "n2", max_replicas=2))], leaving("n1"), {}, chooses_victims=True
        )
        assert (found.desired, surged) == (2, {})

    def test_nodes_of_another_cluster_are_others(self) -> None:
        (found,), _ = moved(
            [a_wish(2, on_nodes("n1", "n2", cluster="east"))], leaving("n1"), {}, chooses_victims=True
        )
        assert found.desired == 2

    def test_no_pods_on_a_node_that_leaves_changes_nothing(self) -> None:
        (found,), surged = moved([a_wish(4, on_nodes("n2", "n2"))], leaving("n1"), {}, chooses_victims=True)
        assert (found.desired, found.reason, surged) == (4, "ScaledUp", {})
