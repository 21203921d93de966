"""Fleets from scenarios, step times, the planner in the loop, and runs beside each other."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import planner
from models.llm import Precision
from models.performance import Origin, RatingQuestion
from models.simulation import Admission, ReplicaSpec, ServiceSpec, TwinSpec
from models.twin_timing import LinearTiming, QueueingTiming, TableTiming
from planner import load_scenario
from planner.errors import ConfigurationError
from planner.performance import Knowledge, chosen_sources
from planner.performance.picture import nearest_rows
from planner.performance.step_times import StepTimes, step_times
from planner.picturing import busiest, question_of, scenario_catalog
from planner.replaying import PlannerSettings, Prepared, ReplayOptions, Start, playable, prepare, replay_all
from planner.simulation.experiment import Happening
from planner.simulation.twin import Twin
from planner.traces import RequestChunk

ROOT: Final = Path(__file__).parents[2]
SCENARIOS: Final = ROOT / "data" / "scenarios"

OWN: Final = """
name: own
services:
  chat:
    llm: {llm}
    traffic: {{rate: 4 req/s, input: 1000, output: 200}}
    slo: {{ttft: 2 s, itl: 60 ms, at: p95}}
    priority: 3
    variants:
      v: {{accelerator: H100, tp: 1, startup: 60 s, cost: 2 $/h{more}}}
pools:
  h: {{accelerator: H100, nodes: {{count: {nodes}, gpus: 2}}}}
llms:
  nobodys-llm: {{opaque: true}}
"""


def own(tmp_path: Path, more: str = "", *, llm: str = "Llama-3.1-8B", nodes: int = 4) -> Prepared:
    path = tmp_path / "own.yaml"
    path.write_text(OWN.format(llm=llm, more=f", {more}" if more else "", nodes=nodes))
    return prepare(load_scenario(path))


@pytest.mark.parametrize(
    ("more", "origin", "kind"),
    [
        ("queueing: {alpha_ms: 8, beta_ms_per_token: 0.05, gamma_ms_per_token: 0.00002}", Origin.MODELED, QueueingTiming),
        ("capacity: {rated: 2 req/s, surge: 2.5 req/s}", Origin.GIVEN, TableTiming),
        ("", Origin.MODELED, TableTiming),
    ],
)  # fmt: skip
def test_step_times_come_from_whoever_rates_the_variant(
    tmp_path: Path, more: str, origin: Origin, kind: type
) -> None:
    found = next(iter(own(tmp_path, more).playable.steps.values()))
    assert (found.origin, type(found.timing)) == (origin, kind)


def test_an_unknown_llm_with_a_rate_has_steps_and_one_without_says_what_is_missing(tmp_path: Path) -> None:
    stated = own(tmp_path, "capacity: {rated: 2 req/s, residence: 6 s}", llm="nobodys-llm")
    found = next(iter(stated.playable.steps.values()))
    assert isinstance(found.timing, LinearTiming)
    assert "half fixed" in found.source


def itl_at(timing: Any, rate: float, *, inputs: int, outputs: int) -> float:
    """Mean inter-token latency of one replica at a steady rate, s."""
    spec = ReplicaSpec(
        variant="v",
        service="a",
        timing=timing,
        kv_blocks=10**6,
        max_num_seqs=1024,
        max_num_batched_tokens=8192,
    )
    n = 600
    chunk = RequestChunk(np.arange(n) / rate, np.full(n, inputs, np.int32), np.full(n, outputs, np.int32))
    twin = Twin(TwinSpec(services=(ServiceSpec(name="a"),), replicas=(spec,)), [chunk])
    while not twin.idle:
        twin.advance(twin.now_s + 1000)
    rows = twin.finish().requests
    spans = (rows["end_s"] - rows["first_token_s"]) / (outputs - 1)
    return float(np.mean(spans[200:400]))


def asked_of(service: str, variant: str) -> tuple[RatingQuestion, Knowledge]:
    """A variant of a shipped scenario at its busiest shape, and what is known."""
    scenario = load_scenario(SCENARIOS / "02-contention.yaml")
    catalog, choice = scenario_catalog(scenario), scenario.performance
    one = next(each for each in scenario.services if each.id == service)
    asked = question_of(one, next(v for v in one.variants if v.id == variant), catalog, bucket=busiest(one))
    return asked, Knowledge(choice, catalog.profiles, catalog.queueing)


def steps_of(asked: RatingQuestion, knowledge: Knowledge) -> StepTimes:
    sources = chosen_sources(knowledge.choice, knowledge.profiles, queueing=knowledge.queueing)
    return step_times(asked, knowledge, sources)


@pytest.mark.parametrize(
    ("service", "variant"), [("assistant", "tp1"), ("minutes", "h200-tp4"), ("reasoning", "tp8-ep8")]
)
def test_measured_rows_come_out_of_the_twin_again(service: str, variant: str) -> None:
    """At the measured rates the twin shows the measured latency between tokens, from few requests in flight to many."""
    asked, knowledge = asked_of(service, variant)
    found = steps_of(asked, knowledge)
    rows = [row for row in nearest_rows(asked, knowledge) if row.concurrency <= 64]
    assert len(rows) > 1
    for row in rows:
        seen = itl_at(found.timing, row.rps * 0.97, inputs=row.input_tokens, outputs=row.output_tokens)
        assert seen == pytest.approx(row.itl_s, rel=0.1)


def test_rows_of_another_precision_of_the_cache_are_not_mixed_in() -> None:
    asked, knowledge = asked_of("assistant", "tp1")
    rows = nearest_rows(asked, knowledge)
    others = tuple(row.but(kv_precision=Precision.FP8, itl_s=row.itl_s / 2) for row in rows[1:])
    both = replace(knowledge, profiles={"a": others, "b": rows})
    assert steps_of(asked, both) == steps_of(asked, replace(knowledge, profiles={"b": rows}))


def test_a_stated_rate_is_what_a_replica_carries_within_its_promises(tmp_path: Path) -> None:
    """At the rated rate the promises hold; at half as much again they do not, or the KV cache is full."""
    ready = own(tmp_path, "capacity: {rated: 4 req/s, surge: 4.4 req/s, kv_tokens: 60000}", nodes=1)
    options = ReplayOptions(seed=1)

    def figures(rate: float) -> Any:
        line = f"poisson:rate={rate},duration=10m,input=1000,output=200"
        found = replay_all(ready, line, ["static"], options=options).runs[0]
        return found.figures.total.attainment, found.result.variants["chat/v@h"]["kv_usage"].max()

    count = sum(ready.solution.counts.values())
    assert figures(3.2 * count)[0] > 0.9
    attained, usage = figures(8.0 * count)
    assert attained < 0.5 or usage > 0.97


@cache
def two_variants() -> Prepared:
    return prepare(load_scenario(SCENARIOS / "01-two-variants.yaml"))


def test_runs_start_from_the_plan_from_now_or_from_the_least() -> None:
    line = "poisson:rate=1,duration=1m,input=100,output=10"
    started = {
        start: {v.variant: v.started for v in replay_all(two_variants(), line, ["static"], options=ReplayOptions(start=start)).runs[0].figures.variants}
        for start in (Start.PLAN, Start.NOW)
    }  # fmt: skip
    assert started[Start.PLAN] == {n: c for n, c in two_variants().solution.counts.items() if c}
    assert started[Start.NOW] == {"chat/va-a100@a100": 3, "chat/va-h100@h100": 2}


def test_nothing_to_replay_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nothing to replay"):
        replay_all(
            own(tmp_path),
            "poisson:rate=1,duration=1m,input=100,output=10",
            ["hpa"],
            options=ReplayOptions(start=Start.LEAST),
        )


def test_a_scenario_whose_variants_cannot_run_says_why(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"chat/v@h: found a variant that cannot run: weights do not fit"
    ):
        own(tmp_path, llm="Llama-3.1-405B")


def test_the_planner_follows_demand_up_after_one_start_and_down_after_its_hold() -> None:
    line = "staircase:rates=[3,12,2],step=[6m,8m,14m],input=4096,output=1024"
    quick = PlannerSettings(solver="greedy", hold_s=120.0)
    run = replay_all(
        two_variants(), line, ["planner"], options=ReplayOptions(start=Start.NOW, planner=quick)
    ).runs[0]
    time_s = run.result.time["time_s"]
    ready = sum(table["ready"] for table in run.result.variants.values())

    def at(minute: float) -> int:
        return int(ready[np.searchsorted(time_s, 60 * minute)])

    assert at(10) > at(5)
    assert at(13.9) >= 12
    assert at(26) < at(13)
    assert run.figures.decisions < 40


def test_the_planner_holds_requests_where_no_plan_serves_all_and_lets_go_again(tmp_path: Path) -> None:
    ready = own(tmp_path, "capacity: {rated: 2 req/s, surge: 2.2 req/s, kv_tokens: 60000}", nodes=1)
    line = "staircase:rates=[2,12,1],step=[5m,8m,10m],input=1000,output=200"
    runs = {
        admits: replay_all(
            ready, line, ["planner"], options=ReplayOptions(planner=PlannerSettings(solver="greedy", admits=admits))
        ).runs[0].figures.total
        for admits in (True, False)
    }  # fmt: skip
    assert runs[True].failed.get("rejected_503", 0) > 0
    assert runs[True].goodput_rps > 3 * runs[False].goodput_rps
    assert runs[False].failures == 0


def test_a_node_that_fails_takes_its_replicas_and_the_policy_starts_others() -> None:
    node = two_variants().playable.problem.pools[0].nodes[0].id
    lost = Happening(60.0, lambda twin: twin.fail(f"a100/{node}"))
    run = replay_all(
        two_variants(), "poisson:rate=4,duration=5m,input=2000,output=300", ["static"],
        options=ReplayOptions(happenings=(lost,)),
    ).runs[0]  # fmt: skip
    assert run.figures.total.failed.get("aborted", 0) > 0
    assert any(life.state.name == "FAILED" for life in run.result.replicas)


def test_services_that_share_replicas_are_served_on_them(tmp_path: Path) -> None:
    path = tmp_path / "shared.yaml"
    path.write_text(
        OWN.format(llm="Llama-3.1-8B", more="", nodes=4).replace(
            "pools:",
            "  night:\n    llm: Llama-3.1-8B\n    kind: batch\n    shares_replicas_of: chat\n    priority: -5\n"
            "    traffic: {rate: 0.5 req/s, input: 1000, output: 100}\npools:",
        )
    )
    ready = prepare(load_scenario(path))
    lines = [
        "chat=poisson:rate=2,duration=2m,input=500,output=50",
        "night=poisson:rate=1,duration=2m,input=500,output=50",
    ]
    found = replay_all(ready, lines, ["static"])
    assert [each.service for each in found.runs[0].figures.services] == ["chat"]
    assert found.runs[0].figures.total.done == found.runs[0].figures.total.arrivals > 250


def test_the_door_takes_a_path_and_a_line() -> None:
    found = planner.simulate(
        SCENARIOS / "01-two-variants.yaml", "poisson:rate=2,duration=1m,input=200,output=20", ["static", "hpa"], solver="greedy"
    )  # fmt: skip
    assert [run.policy for run in found.told.runs] == ["static", "hpa"]
    assert found.told.runs[0].total.done == found.told.runs[0].total.arrivals
    assert len(found.runs[0].result.requests["request"]) == found.told.runs[0].total.arrivals


def test_unknown_policies_are_named_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"(?s)'hpaa'.*did you mean 'hpa'.*'plan'"):
        replay_all(two_variants(), "poisson:rate=1,duration=1m,input=1,output=1", ["hpaa", "plan"])


def test_a_router_is_that_of_the_thresholds_unless_told_otherwise() -> None:
    scenario, problem = two_variants().playable.scenario, two_variants().playable.problem
    router = playable(scenario, problem).routers["chat"]
    assert (router.saturated_kv, router.saturated_queue, router.admission) == (0.8, 5, Admission.OFF)
