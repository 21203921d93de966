"""Whatever the traffic and the policy: every request ends once, equal seeds give equal bytes, and limits hold."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import load_scenario
from planner.replaying import (
    POLICIES,
    PlannerSettings,
    Prepared,
    ReplayOptions,
    Run,
    Start,
    prepare,
    replay_all,
)
from planner.traces import HowRead, open_trace

ROOT: Final = Path(__file__).parents[2]
OPTIONS: Final = ReplayOptions(planner=PlannerSettings(solver="greedy"))


@cache
def prepared(name: str = "01-two-variants") -> Prepared:
    return prepare(load_scenario(ROOT / f"data/scenarios/{name}.yaml"))


def run_of(line: str, policy: str, *, seed: int = 0, name: str = "01-two-variants", **options: object) -> Run:
    fields = {"seed": seed, "planner": OPTIONS.planner} | options
    return replay_all(prepared(name), line, [policy], options=ReplayOptions(**fields)).runs[0]  # type: ignore[arg-type]


def bytes_of(run: Run) -> list[bytes]:
    tables = [run.result.requests, run.result.time, *run.result.variants.values()]
    return [np.ascontiguousarray(column).tobytes() for table in tables for column in table.values()]


@given(
    policy=st.sampled_from(POLICIES),
    kind=st.sampled_from(["poisson:rate={}", "gamma:cv=4,rate={}", "ramp:from=0,to={}", "staircase:rates=[1,{},2],step=90s"]),
    traffic=st.tuples(st.integers(1, 30), st.integers(1, 6000), st.integers(0, 3)),
    start=st.sampled_from([Start.PLAN, Start.NOW]),
    until=st.sampled_from([None, 100.0, 333.3]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_every_request_ends_once_and_gpus_are_never_more_than_there_are(
    policy: str, kind: str, traffic: tuple[int, int, int], start: Start, until: float | None
) -> None:
    rate, length, seed = traffic
    line = f"{kind.format(rate)},duration=4m,input=normal({length},{length / 3 + 1}),output=uniform(1,300)"
    run = run_of(line, policy, seed=seed, start=start, until_s=until)
    total, result = run.figures.total, run.result
    assert total.arrivals == total.done + total.failures + total.unfinished == sum(result.arrivals.values())
    came = np.concatenate([chunk.arrival_s for chunk in open_trace(line, HowRead(seed=seed))])
    assert total.arrivals == (len(came) if until is None else int(np.sum(came <= until)))
    assert sum(each.arrivals for each in run.figures.services) == total.arrivals
    assert until is not None or total.unfinished == 0
    for spec in run.twin.replicas:
        table = result.variants[spec.variant]
        there = table["starting"] + table["ready"] + table["draining"] + table["paused"]
        room = sum(node.gpus // spec.gpus for node in run.twin.nodes if node.gpu_type == spec.gpu_type)
        assert bool(np.all(there <= room))
        assert bool(np.all(table["kv_used"] <= table["kv_blocks"]))
        assert bool(np.all(table["kv_used"] >= 0))


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_gives_the_same_bytes(policy: str) -> None:
    line = "gamma:cv=3,rate=9,duration=5m,input=normal(3000,900),output=uniform(1,600)"
    one, again = run_of(line, policy, seed=7), run_of(line, policy, seed=7)
    assert bytes_of(one) == bytes_of(again)
    assert one.figures == again.figures


@pytest.mark.parametrize("name", ["04-fragmentation", "05-prefill-decode", "08-rent-nodes"])
def test_a_plan_finds_room_for_all_its_replicas(name: str) -> None:
    run = run_of("poisson:rate=2,duration=1m,input=900,output=50", "static", name=name)
    wanted = {key: count for key, count in prepared(name).solution.counts.items() if count}
    assert {each.variant: each.started for each in run.figures.variants if each.started} == wanted
    assert run.figures.total.failures == 0
