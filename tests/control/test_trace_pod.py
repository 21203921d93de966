"""From a pod back to the metric, through the records of a real loop; and what is said where a link is missing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from models.cycle_record import CycleRecord
from planner.cli.app import app
from planner.clock import FakeClock
from planner.control.running.recording import read_records
from planner.control.tracing import trace_pod
from tests.control.controller_builders import START, Served, Told, a_controller, led
from tests.control.test_run_cycles import SCALES, direct


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """A service that was full and got a third replica, and then idle and lost it again."""
    cluster, source, clock = direct(), Told(kv=0.3), FakeClock(START)
    controller = led(a_controller(cluster, source, SCALES, clock=clock, records=tmp_path))
    for kv, cycles in ((0.3, 1), (0.78, 2), (0.05, 2)):
        source.kv = kv
        for _ in range(cycles):
            led(controller).cycle(("timer",))
            cluster.settle()
            clock.advance(15.0)
    return tmp_path


def traced(folder: Path, pod: str) -> dict[str, object]:
    done = CliRunner().invoke(app, ["trace", pod, "--records", str(folder), "--json"])
    assert done.exit_code in {0, 3}, done.output
    found: dict[str, object] = json.loads(done.stdout)
    return found


def read(folder: Path) -> Iterable[CycleRecord]:
    return read_records(folder)


def test_a_pod_leads_to_the_decision_the_record_the_observation_and_the_series(records: Path) -> None:
    found = trace_pod(lambda: read(records), "llama-2")
    assert (found.variant, found.found_by) == ("llama-va", "record")
    assert found.came is not None
    decision = found.came.decision
    assert (decision.reason, decision.before, decision.desired) == ("ScaledUp", 2, 3)
    assert any(each.applied for each in found.came.outcomes)
    record = next(each for each in read(records) if each.fingerprint == found.came.record)
    assert found.came.links == record.links
    seen = {(each.subject, each.field): each for each in found.came.series}
    kv = seen["llama-0:8000", "kv_usage"]
    assert (kv.value, kv.how, kv.window_s, kv.series[0]) == (0.78, "peak", 60.0, "vllm:kv_cache_usage_perc")
    assert not any(name.startswith("sglang") for each in found.came.series for name in each.series)
    assert found.complete


def test_a_pod_that_is_older_than_the_records_says_so(records: Path) -> None:
    found = trace_pod(lambda: read(records), "llama-0")
    assert found.came is None
    assert "it is older than the records" in " ".join(each.remedy for each in found.missing)


def test_a_pod_that_goes_first_leads_to_the_decision_that_says_so(records: Path) -> None:
    victims = [pod for each in read(records) for row in each.decisions for pod in row.victims]
    assert victims
    found = trace_pod(lambda: read(records), victims[0])
    assert found.goes is not None
    assert found.goes.decision.reason == "ScaledDown"


def test_a_pod_that_no_record_has_is_guessed_by_its_name_and_that_is_said(records: Path) -> None:
    found = trace_pod(lambda: read(records), "llama-5d4f-x7k2p")
    assert (found.variant, found.found_by, found.complete) == ("llama-va", "name", False)
    assert "guessed from its name" in found.missing[0].problem


def test_a_pod_of_nobody_is_unknown(records: Path) -> None:
    found = trace_pod(lambda: read(records), "postgres-0")
    assert (found.variant, found.found_by) == ("", "")
    assert "no record has this pod" in found.missing[0].problem
    assert trace_pod(list, "llama-2").missing[0].problem == "there are no records"


def test_a_dry_run_carries_nothing_out_and_the_chain_says_so(tmp_path: Path) -> None:
    cluster, clock = Served(), FakeClock(START)
    controller = led(
        a_controller(cluster, Told(kv=0.78), f"act: false\n{SCALES}", clock=clock, records=tmp_path)
    )
    controller.cycle(("timer",))
    found = trace_pod(lambda: read(tmp_path), "llama-9")
    assert any("dry run" in each.problem for each in found.missing)


def test_the_command_shows_the_chain_and_ends_with_3_where_a_link_is_missing(records: Path) -> None:
    whole = CliRunner(env={"COLUMNS": "200"}).invoke(
        app, ["trace", "prod/llama-2", "--records", str(records)]
    )
    assert whole.exit_code == 0, whole.output
    for words in (
        "variant prod/llama-va",
        "decision ScaledUp: 2 to 3",
        "outcome of scale",
        "vllm:kv_cache_usage_perc",
    ):
        assert words in whole.stdout
    assert traced(records, "prod/llama-2")["came"]
    broken = CliRunner().invoke(app, ["trace", "postgres-0", "--records", str(records)])
    assert broken.exit_code == 3
    assert "Missing in the chain" in broken.stdout


@pytest.mark.parametrize("words", [(), ("--records", "/nowhere/at/all"), ("--context", "x")])
def test_what_cannot_be_looked_through_is_refused(words: tuple[str, ...]) -> None:
    refused = CliRunner(env={"FLEETPLAN_RECORDS": ""}).invoke(app, ["trace", "a-pod", *words])
    assert refused.exit_code == 2


def test_the_environment_names_the_folder(records: Path) -> None:
    done = CliRunner(env={"FLEETPLAN_RECORDS": str(records)}).invoke(app, ["trace", "llama-2"])
    assert done.exit_code == 0, done.output
