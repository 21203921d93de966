"""The published Elastic EP load, resized by the real actuator: its driver and its HTTP client, with the twin behind the server.

Whoever waits lets the twin go on: the driver through its clock, the server while it works on a resize. So one call over
HTTP takes its 92 s of simulated time, and the record, the status and the metrics are those of that time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from models.elastic import ElasticEngine, ResizeMode
from models.resize_operation import OperationPhase, ResizeOperation
from models.simulation import (
    ElasticSize,
    ElasticSpec,
    NodeSpec,
    Outcome,
    ReplicaState,
    ResizeTiming,
    RetrySpec,
    RouterSpec,
)
from models.twin_timing import LinearTiming
from planner.control.collectors.access import Credentials
from planner.control.collectors.transport import Connections
from planner.control.resizing import World, drive, order
from planner.control.resizing.grounds import ByHand
from planner.control.resizing.http_engine import HttpEngine
from planner.control.resizing.routes import EngineRoutes
from planner.elastic import ResizeQuestion, estimate_resize
from planner.reproduction.elastic import Deployment, deployment
from planner.reproduction.elastic_slo import Scenario, rolling_p95_s
from planner.simulation.result import Result
from planner.simulation.twin import Twin
from planner.traces.generating import Generator
from planner.traces.lengths import Fixed, Independent
from planner.traces.shapes import Constant
from tests.elastic_standins import Answer, StandIn, serving
from tests.twins import a_fleet, a_replica

C = ResizeMode.ASYNC_GRAPH_REUSE
BEGIN_S = 1e9
LOAD = Scenario()


@dataclass
class TwinClock:
    """Time is that of the twin."""

    twin: Twin

    def monotonic_s(self) -> float:
        return float(self.twin.now_s)

    def unix_s(self) -> float:
        return BEGIN_S + float(self.twin.now_s)

    def sleep(self, duration_s: float) -> None:
        if duration_s > 0:
            self.twin.advance(self.twin.now_s + duration_s)


class TwinStandIn(StandIn):
    """vLLM with one API server, whose ranks are those of a replica in the twin."""

    def __init__(self, twin: Twin, replica: str, size: int) -> None:
        super().__init__("internal", size=size, floor=1)
        self.twin, self.replica = twin, replica

    def closed(self, rank: int, path: str) -> Answer | None:
        self.phase = "committing" if self._seen().state is ReplicaState.PAUSED else "idle"
        return super().closed(rank, path)

    def _resized(self, wanted: int) -> Answer | None:
        self.twin.resize(self.replica, wanted, C)
        while self._seen().ranks != wanted or self._seen().state is not ReplicaState.READY:
            self.twin.advance(self.twin.now_s + 0.1)
        grown = wanted > self.size
        self.size = wanted
        self.labels = wanted if grown else self.labels
        return self._done(wanted)

    def _seen(self) -> Any:
        return next(each for each in self.twin.observe().replicas if each.name == self.replica)


@dataclass
class Memory:
    record: ResizeOperation | None = None
    all: list[ResizeOperation] = field(default_factory=list)

    def load(self) -> ResizeOperation | None:
        return self.record

    def save(self, operation: ResizeOperation) -> None:
        self.record = operation
        self.all.append(operation)


@pytest.fixture
def connections() -> Iterator[Connections]:
    made = Connections(Credentials())
    yield made
    made.close()


def resize(twin: Twin, standin: StandIn, connections: Connections, sizes: tuple[int, int]) -> ResizeOperation:
    """One resize by the actuator, from the twin's now."""
    clock = TwinClock(twin)
    operation = ResizeOperation(
        id=f"{sizes}",
        deployment="prod/dsv4",
        engine=ElasticEngine(),
        urls=tuple(standin.urls),
        from_ranks=sizes[0],
        to_ranks=sizes[1],
        started_s=clock.unix_s(),
        since_s=clock.unix_s(),
    )
    engine = HttpEngine(ElasticEngine(), standin.urls, connections, timeout_s=120.0)
    world = World(engine=engine, ground=ByHand(), router=EngineRoutes(), store=Memory())
    return drive(order(operation, world), world, clock, poll_s=1.0)


def published_run(
    call_s: float, connections: Connections, *, seed: int = 0
) -> tuple[Result, ResizeOperation]:
    """11,391 requests, about 8 req/s and then about 16, with a resize from 16 to 20 that begins at ``call_s``."""
    given = Deployment()
    trace = given.traffic(LOAD.shape, seed=seed, most=LOAD.requests)
    twin = Twin(deployment(given, 16, ttft_slo_s=LOAD.slo_s), trace, seed=seed)
    with serving(TwinStandIn(twin, "dsv4-0", 16)) as standin:
        twin.advance(call_s)
        ended = resize(twin, standin, connections, (16, 20))
    while not twin.idle:
        twin.advance(twin.now_s + 10.0)
    return twin.finish(), ended


def over_s(result: Result) -> float:
    """Seconds in which the rolling p95 of TTFT was above the promise."""
    curve = rolling_p95_s(result, window_s=LOAD.window_s, failed_s=LOAD.failed_s)
    return float(np.sum(curve[:, 1] >= LOAD.slo_s))


def test_the_published_load_is_served_to_the_last_request(connections: Connections) -> None:
    result, ended = published_run(LOAD.call_s, connections)
    assert ended.phase is OperationPhase.DONE
    assert int(np.sum(result.requests["outcome"] == Outcome.DONE)) == LOAD.requests
    assert over_s(result) == 0
    called, answered = (
        next(each.at_s for each in ended.history if word in each.text)
        for word in ("called", "it has 20 ranks")
    )
    assert answered - called == pytest.approx(92.34, abs=2.5)


def test_a_resize_that_starts_as_early_as_it_takes_is_there_before_the_load(connections: Connections) -> None:
    lead_s = estimate_resize(ResizeQuestion(mode=C, from_ranks=16, to_ranks=20)).lead_s
    result, ended = published_run(LOAD.step_s - lead_s, connections)
    assert ended.history[-1].at_s <= BEGIN_S + LOAD.step_s
    assert over_s(result) == 0


def test_starting_late_costs_the_promise_and_the_later_the_more(connections: Connections) -> None:
    late = [over_s(published_run(LOAD.step_s + wait_s, connections)[0]) for wait_s in (15, 120, 300)]
    assert late == sorted(late)
    assert late[0] == 0
    assert late[-1] > 30


def test_two_to_four_and_back_under_traffic(connections: Connections) -> None:
    def size(ranks: int) -> ElasticSize:
        timing = LinearTiming(base_s=0.03, per_request_s=5e-4 / ranks, per_prefill_token_s=1e-4 / ranks)
        return ElasticSize(
            ranks=ranks, timing=timing, kv_blocks=4096 * ranks, max_num_seqs=32 * ranks, max_num_batched_tokens=2048 * ranks, gpus=ranks,
        )  # fmt: skip

    resizes = (
        ResizeTiming(mode=C, grow=True, downtime_s=0.8, total_s=31.0, balance_s=5.0),
        ResizeTiming(mode=C, grow=False, downtime_s=2.0, total_s=7.0),
    )
    first = size(2)
    replica = a_replica(
        timing=first.timing, kv_blocks=first.kv_blocks, max_num_seqs=first.max_num_seqs,
        max_num_batched_tokens=first.max_num_batched_tokens, gpus=2, gpu_type="H",
        elastic=ElasticSpec(initial_ranks=2, sizes=(size(2), size(4)), resizes=resizes),
    )  # fmt: skip
    router = RouterSpec(retry=RetrySpec(attempts=6, backoff_s=0.25, factor=2.0))
    fleet = a_fleet(replica, router=router, nodes=(NodeSpec(name="n0", gpu_type="H", gpus=4),))
    lengths = Independent(Fixed(512), Fixed(64))
    twin = Twin(fleet, Generator(Constant(4.0, 240.0), lengths, seed=1), seed=1)
    with serving(TwinStandIn(twin, "v-0", 2)) as standin:
        twin.advance(60.0)
        assert resize(twin, standin, connections, (2, 4)).phase is OperationPhase.DONE
        twin.advance(150.0)
        assert resize(twin, standin, connections, (4, 2)).phase is OperationPhase.DONE
        assert [wanted for _, wanted in standin.orders] == [4, 2]
    while not twin.idle:
        twin.advance(twin.now_s + 10.0)
    outcomes = twin.finish().requests["outcome"]
    assert len(outcomes) > 800
    assert (outcomes == Outcome.DONE).all()
