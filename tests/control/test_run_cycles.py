"""Cycles of the loop on a cluster in memory: what moves, what holds, and what is written down."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from models.cycle_record import CycleKind, CycleRecord, Stage
from planner.clock import FakeClock
from planner.control.cluster import ClusterFault, Trouble
from planner.control.cluster.transport import Call
from planner.control.deciding import Decider
from planner.control.running.controller import Controller
from planner.control.running.recording import read_records
from tests.control.controller_builders import START, Served, Told, a_controller, led
from tests.kube_objects import a_variant_autoscaling

SCALES = "actuators: [{name: gauge}, {name: scale}]"


def turned(controller: Controller) -> CycleRecord:
    return controller.cycle(("timer",))


def decision(controller: Controller) -> tuple[int | None, int | None, str]:
    """Before, desired and reason of the only variant after one more cycle."""
    turned(controller)
    (row,) = controller.loop.rows.values()
    return row.before, row.desired, row.reason


def direct(**options: Any) -> Served:
    """A cluster where nobody but us scales: a VariantAutoscaling and no HPA."""
    cluster = Served(a_variant_autoscaling(maxReplicas=10), **options)
    del cluster._objects["autoscaling", "horizontalpodautoscalers", "prod", "llama-hpa"]
    return cluster


def unreachable(call: Call) -> None:
    raise ClusterFault(Trouble.UNREACHABLE, "the test says so")


class TestOneCycle:
    def test_full_replicas_raise_the_gauge_and_the_record_says_why(self) -> None:
        controller = led(a_controller(Served(), Told(kv=0.78)))
        record = turned(controller)
        (row,) = record.decisions
        assert (row.before, row.desired, row.reason) == (2, 3, "ScaledUp")
        assert b'variant_name="llama-hpa"} 3.0' in controller.metrics(None)
        assert [link.stage for link in record.links] == [
            Stage.OBSERVATION,
            Stage.DEMAND,
            Stage.DECISIONS,
            Stage.OUTCOMES,
        ]
        assert all(
            later.derived_from == sooner.value
            for sooner, later in zip(record.links, record.links[1:], strict=False)
        )
        assert record.observation is not None
        assert len(record.observation.engines) == 2
        assert record.demands[0].required
        assert record.outcomes[0].changed
        assert CycleRecord.model_validate_json(record.canonical_json()) == record

    def test_replicas_that_idle_go_one_cycle_after_the_other_is_settled(self) -> None:
        cluster = direct(replicas=4)
        controller = led(a_controller(cluster, Told(kv=0.05), SCALES))
        assert decision(controller)[:2] == (4, cluster.replicas())
        assert cluster.replicas() < 4

    def test_a_dry_run_writes_nothing_takes_no_lease_and_tells_what_it_would_do(self) -> None:
        cluster = direct()
        controller = a_controller(cluster, Told(kv=0.78), f"act: false\n{SCALES}")
        record = turned(led(controller))
        assert record.dry_run
        assert record.decisions[0].desired == 3
        assert cluster.writes == []
        assert cluster.replicas() == 2
        assert any("2 → 3" in each.message for each in record.outcomes)
        assert b"wva_desired_replicas{" not in controller.metrics(None)

    def test_what_stays_as_it_is_is_not_written_again(self) -> None:
        cluster = direct()
        controller = led(a_controller(cluster, Told(kv=0.5), SCALES))
        turned(controller)
        before = len(cluster.writes)
        for _ in range(5):
            assert turned(controller).kind is CycleKind.HEARTBEAT
        assert len(cluster.writes) == before

    def test_a_count_that_was_written_is_in_the_events_of_its_scaler(self) -> None:
        cluster = direct()
        controller = led(a_controller(cluster, Told(kv=0.78), SCALES))
        turned(controller)
        (event,) = [json.loads(call.body or b"") for call in cluster.writes if "/events" in call.path]
        assert (event["reason"], event["involvedObject"]["kind"], event["involvedObject"]["name"]) == (
            "ScaledUp", "VariantAutoscaling", "llama-va",
        )  # fmt: skip
        assert event["message"].startswith("2 → 3")


class TestNothingIsKnown:
    def test_a_source_that_is_away_holds_replicas_and_is_told_and_comes_back_without_a_jump(self) -> None:
        source, cluster = Told(kv=0.05), direct(replicas=4)
        controller = led(a_controller(cluster, source, f"{SCALES}\nrules: {{stabilize_down_s: 30}}"))
        clock: Any = controller.parts.clock
        assert decision(controller)[:2] == (4, 4)
        source.answers = False
        for _ in range(8):
            clock.advance(15)
            assert decision(controller)[:2] == (4, 4)
        assert "Prometheus" in {each.subject for each in controller.standing().findings}
        source.answers = True
        assert decision(controller)[:2] == (4, 4)

    def test_a_source_that_raises_never_ends_the_loop_and_shows_no_secret(self) -> None:
        source = Told(raises=RuntimeError("token=hunter2"))
        controller = led(a_controller(direct(), source, SCALES))
        record = turned(controller)
        assert (record.report.replicas_after, record.report.complete) == (2, False)
        assert "hunter2" not in controller.status()
        assert any("RuntimeError" in each.problem for each in record.findings)

    def test_a_cluster_that_is_away_holds_what_was_seen_and_the_gauge_stays(self) -> None:
        cluster = Served()
        controller = led(a_controller(cluster, Told(kv=0.78), "lease: {enabled: false}"))
        turned(controller)
        cluster.before = unreachable  # type: ignore[assignment]
        record = turned(controller)
        assert record.report.variants == 1
        assert record.report.complete is False
        assert b'variant_name="llama-hpa"} 3.0' in controller.metrics(None)

    def test_a_policy_that_breaks_holds_everything(self) -> None:
        class Broken(Decider):
            def decide(self, *_: Any, **__: Any) -> Any:
                raise ZeroDivisionError("secret")

        cluster = direct()
        controller = led(a_controller(cluster, Told(kv=0.78), SCALES, deciding=Broken()))
        record = turned(controller)
        assert (record.kind, cluster.replicas()) == (CycleKind.FAILED, 2)
        assert decision(controller) == (2, 2, "HeldAfterFailure")

    @pytest.mark.parametrize("fact", [math.nan, math.inf, -1e308, "x" * 10, None, [1]], ids=str)
    def test_figures_of_a_plug_in_that_cannot_be_written_break_no_record(self, fact: Any) -> None:
        class Odd(Decider):
            def decide(self, *given: Any, **more: Any) -> Any:
                decided, state = super().decide(*given, **more)
                odd = tuple(replace(each, facts={"odd": fact}) for each in decided.decisions)
                return replace(decided, decisions=odd), state

        record = turned(led(a_controller(direct(), Told(kv=0.78), SCALES, deciding=Odd())))
        assert record.kind is CycleKind.DECIDED
        record.canonical_json()

    def test_a_fault_of_ours_is_a_record_and_the_next_cycle_goes_on(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        cluster = direct()
        controller = led(a_controller(cluster, Told(kv=0.78), SCALES))
        whole = controller.parts.live.refresh

        def broken() -> Any:
            raise ZeroDivisionError("secret")

        controller.parts.live.refresh = broken  # type: ignore[method-assign]
        record = turned(controller)
        assert (record.kind, cluster.replicas()) == (CycleKind.FAILED, 2)
        assert "secret" not in controller.status() + caplog.text
        assert "event=cycle_broke" in caplog.text
        controller.parts.live.refresh = whole  # type: ignore[method-assign]
        turned(controller)
        assert cluster.replicas() == 3

    def test_a_cycle_that_takes_too_long_changes_nothing(self) -> None:
        class Slow(Told):
            def read(self, variants: Any, now_s: float) -> Any:
                clock.advance(61)
                return super().read(variants, now_s)

        clock, cluster = FakeClock(START), direct()
        controller = a_controller(cluster, Slow(kv=0.78), f"{SCALES}\nlease: {{enabled: false}}", clock=clock)
        record = turned(led(controller))
        assert (record.kind, cluster.replicas(), cluster.writes) == (CycleKind.FAILED, 2, [])
        assert controller.parts.meters.of("late_cycles_total") == 1

    def test_a_target_that_is_deleted_is_told_and_scales_nothing(self) -> None:
        cluster = Served()
        controller = led(a_controller(cluster, Told(kv=0.78)))
        turned(controller)
        del cluster._objects["apps", "deployments", "prod", "llama"]
        turned(controller)
        (row,) = controller.loop.rows.values()
        assert row.desired is None
        assert b"wva_desired_replicas{accelerator" not in controller.metrics(None)


class TestLag:
    def test_growth_is_not_taken_back_before_the_hpa_followed(self) -> None:
        cluster, source, clock = Served(), Told(kv=0.78), FakeClock(START)
        controller = led(a_controller(cluster, source, "lease: {enabled: false}", clock=clock))
        assert decision(controller) == (2, 3, "ScaledUp")
        source.kv = 0.5
        clock.advance(15)
        assert decision(controller) == (2, 3, "Arriving")
        cluster.edit("deployments", "llama", "apps", spec={"replicas": 3})
        clock.advance(15)
        assert decision(controller)[:2] == (3, 3)

    def test_what_nobody_follows_is_given_up(self) -> None:
        source, clock = Told(kv=0.78), FakeClock(START)
        controller = led(a_controller(Served(), source, "lease: {enabled: false}", clock=clock))
        turned(controller)
        source.kv = 0.5
        clock.advance(121)
        assert decision(controller)[:2] == (2, 2)

    def test_an_hpa_that_lags_by_a_cycle_and_the_gauge_do_not_chase_one_another(self) -> None:
        cluster, source, clock = Served(), Told(kv=0.78), FakeClock(START)
        controller = led(a_controller(cluster, source, "lease: {enabled: false}", clock=clock))
        counts, gauge = [], 2
        for number in range(20):
            source.kv = 0.78 if number == 0 else 0.5
            followed = gauge
            gauge = decision(controller)[1] or 0
            cluster.edit("deployments", "llama", "apps", spec={"replicas": followed})
            cluster.settle()
            counts.append(cluster.replicas())
            clock.advance(15)
        assert counts == [2, *[3] * 19]


class TestPeople:
    def test_what_somebody_changes_between_looking_and_acting_is_not_overwritten(self) -> None:
        cluster = direct()

        class Meddling(Told):
            def read(self, variants: Any, now_s: float) -> Any:
                cluster.edit("deployments", "llama", "apps", spec={"replicas": 7})
                return super().read(variants, now_s)

        controller = led(a_controller(cluster, Meddling(kv=0.78), SCALES))
        turned(controller)
        assert cluster.replicas() == 7

    def test_a_count_set_by_hand_is_noted_respected_and_released(self) -> None:
        cluster, source = direct(), Told(kv=0.5)
        controller = led(a_controller(cluster, source, SCALES))
        turned(controller)
        cluster.edit("deployments", "llama", "apps", spec={"replicas": 6})
        cluster.settle()
        assert decision(controller)[:2] == (6, 6)
        note = cluster.thing("deployments", "llama", "apps")["metadata"]["annotations"]["fleetplan.dev/held"]
        assert note.startswith("6 replicas set by")
        assert "kubectl annotate" in note
        source.kv = 0.01
        assert decision(controller) == (6, 6, "HeldByPeople")
        annotations = cluster.thing("deployments", "llama", "apps")["metadata"]["annotations"]
        del annotations["fleetplan.dev/held"]
        before, desired, reason = decision(controller)
        assert (before, reason) == (6, "ScaledDown")
        assert (desired or 0) < 6

    def test_a_note_that_may_not_be_written_names_the_rule_and_holds_all_the_same(self) -> None:
        cluster = direct(denied={("patch", "deployments")})
        controller = led(a_controller(cluster, Told(kv=0.05), SCALES))
        turned(controller)
        cluster.edit("deployments", "llama", "apps", spec={"replicas": 6})
        cluster.settle()
        record = turned(controller)
        assert any("patch" in each.remedy and "deployments" in each.remedy for each in record.findings)
        assert decision(controller) == (6, 6, "HeldByPeople")

    def test_a_cordoned_node_is_left_make_before_break(self) -> None:
        cluster = direct(nodes=2)
        controller = led(a_controller(cluster, Told(kv=0.5), "actuators: [{name: draining}, {name: scale}]"))
        turned(controller)
        cluster.edit("nodes", "n1", spec={"unschedulable": True})
        cluster._objects.pop(("", "nodes", "", "n9"), None)
        assert decision(controller) == (2, 3, "MovedFromNode")
        assert cluster.replicas() == 3


class TestRecords:
    def test_one_record_for_each_cycle_that_decided_and_a_heartbeat_now_and_then(
        self, tmp_path: Path
    ) -> None:
        source, clock = Told(kv=0.5), FakeClock(START)
        controller = led(a_controller(Served(), source, clock=clock, records=tmp_path))
        for _ in range(60):
            clock.advance(15)
            controller.elect()
            turned(controller)
        source.kv = 0.79
        turned(controller)
        kinds = [each.kind for each in read_records(tmp_path)]
        assert kinds[-1] is CycleKind.DECIDED
        assert kinds.count(CycleKind.HEARTBEAT) == 2

    def test_records_follow_one_another_by_fingerprint(self, tmp_path: Path) -> None:
        clock = FakeClock(START)
        controller = led(
            a_controller(Served(), Told(kv=0.79), "records: {heartbeat_s: 1}", clock=clock, records=tmp_path)
        )
        turned(controller)
        clock.advance(5)
        turned(controller)
        first, second = read_records(tmp_path)
        assert second.previous == first.fingerprint

    def test_files_are_followed_by_the_next_and_the_oldest_goes(self, tmp_path: Path) -> None:
        source = Told()
        text = "records: {most_bytes: 4000, files: 3, heartbeat_s: 1}"
        clock = FakeClock(START)
        controller = led(a_controller(Served(), source, text, clock=clock, records=tmp_path))
        for number in range(30):
            source.kv = 0.79 if number % 2 else 0.4
            clock.advance(5)
            controller.elect()
            turned(controller)
        assert len(list(tmp_path.glob("cycles-*.jsonl"))) == 3
        numbers = [each.number for each in read_records(tmp_path)]
        assert numbers == sorted(numbers)
        assert numbers[-1] == 30
        assert [each.number for each in read_records(tmp_path, newest=2)] == numbers[-2:]

    def test_damaged_lines_are_passed_over(self, tmp_path: Path) -> None:
        controller = led(a_controller(Served(), Told(kv=0.79), records=tmp_path))
        turned(controller)
        (file,) = tmp_path.glob("cycles-*.jsonl")
        file.write_bytes(b"{\xff\n" + file.read_bytes() + b'{"number": 3}\n{"half')
        assert [each.number for each in read_records(tmp_path)] == [1]

    def test_a_folder_that_is_gone_stops_nothing(self, tmp_path: Path) -> None:
        folder = tmp_path / "records"
        controller = led(a_controller(Served(), Told(kv=0.79), records=folder))
        folder.rmdir()
        assert turned(controller).kind is CycleKind.DECIDED
        assert controller.parts.meters.of("record_failures_total") >= 1


class TestRestarts:
    def test_the_next_controller_goes_on_where_the_one_before_stopped(self, tmp_path: Path) -> None:
        cluster, clock, source = direct(replicas=4), FakeClock(START), Told(kv=0.05)
        text = f"{SCALES}\nrules: {{stabilize_down_s: 60}}\nrecords: {{heartbeat_s: 1}}"
        first = led(a_controller(cluster, source, text, clock=clock, records=tmp_path))
        turned(first)
        clock.advance(30)
        first.elect()
        turned(first)
        first.end()
        second = led(a_controller(cluster, source, text, clock=clock, who="two", records=tmp_path))
        clock.advance(40)
        second.elect()
        assert (decision(second)[1] or 0) < 4

    @pytest.mark.parametrize(
        "damage", ["", "{", '{"deciding": 3}', "[]", "\x00", '{"hands": {"seen": [[1]]}}']
    )
    def test_a_damaged_memory_is_as_good_as_none(self, damage: str, tmp_path: Path) -> None:
        (tmp_path / "state.json").write_text(damage)
        controller = led(a_controller(Served(), Told(kv=0.78), records=tmp_path))
        assert decision(controller) == (2, 3, "ScaledUp")

    def test_a_write_that_was_cut_off_is_made_good_from_what_the_cluster_says(self) -> None:
        cluster = direct()
        controller = led(a_controller(cluster, Told(kv=0.78), SCALES))

        def cut(call: Call) -> None:
            if call.method == "PATCH" and call.path.endswith("/scale"):
                raise ClusterFault(Trouble.UNREACHABLE, "cut off")

        cluster.before = cut  # type: ignore[assignment]
        record = turned(controller)
        assert record.report.failed
        assert cluster.replicas() == 2
        cluster.before = lambda _: None
        turned(led(a_controller(cluster, Told(kv=0.78), SCALES, who="one")))
        assert cluster.replicas() == 3
