"""Every fault in every dialect, over HTTP: the record says what is true, and no second call is ever sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from models.elastic import Dialect, ElasticEngine, LoadBalancing
from models.resize_operation import OperationLimits, OperationPhase, ResizeOperation
from planner.clock import SystemClock
from planner.control.collectors.access import Credentials
from planner.control.collectors.transport import Connections
from planner.control.resizing import World, drive, order
from planner.control.resizing.http_engine import HttpEngine
from tests.elastic_standins import FAULTS, StandIn, serving

P = OperationPhase
ENGINES = {
    "internal": ElasticEngine(),
    "external": ElasticEngine(load_balancing=LoadBalancing.EXTERNAL, data_parallel_backend="mp"),
    "dynamo": ElasticEngine(dialect=Dialect.DYNAMO, version="0.31.0"),
    "sglang": ElasticEngine(dialect=Dialect.SGLANG, version="0.5.23"),
}
QUICK = OperationLimits(reserve_s=2, drain_s=1, total_s=0.5, ready_s=1, verify_s=1)


class SoonLimits(OperationLimits):
    """Patience of a second where people have minutes."""

    @property
    def quiet_s(self) -> float:
        return 1.2

    @property
    def give_up_s(self) -> float:
        return 2.0


@dataclass
class Yard:
    """Accelerators, router and record in memory."""

    pods: int
    routed: int
    least: int = 10**6
    record: ResizeOperation | None = None
    standin: StandIn | None = None
    trail: list[str] = field(default_factory=list)

    def reserve(self, ranks: int) -> str | None:
        self.pods = max(self.pods, ranks)
        return None

    def there(self) -> int | None:
        return self.pods

    def release(self, ranks: int) -> str | None:
        assert self.standin is not None
        assert ranks >= self.standin.size, "accelerators under live ranks"
        self.pods = min(self.pods, ranks)
        return None

    def route(self, ranks: int) -> str | None:
        self.routed = ranks
        return None

    def in_flight(self, _first: int) -> float | None:
        return 0.0

    def load(self) -> ResizeOperation | None:
        return self.record

    def save(self, operation: ResizeOperation) -> None:
        self.record = operation
        self.trail.append(operation.phase.value)


def a_resize(dialect: str, urls: list[str], sizes: tuple[int, int]) -> ResizeOperation:
    clock = SystemClock()
    return ResizeOperation(
        id="a",
        deployment="prod/moe",
        engine=ENGINES[dialect],
        urls=tuple(urls),
        from_ranks=sizes[0],
        to_ranks=sizes[1],
        started_s=clock.unix_s(),
        since_s=clock.unix_s(),
    ).model_copy(update={"limits": SoonLimits.model_validate(QUICK.model_dump())})


@pytest.fixture
def connections() -> Iterator[Any]:
    made = Connections(Credentials(), most=64)
    yield made
    made.close()


def run(standin: StandIn, yard: Yard, connections: Any, sizes: tuple[int, int]) -> ResizeOperation:
    operation = a_resize(standin.dialect, standin.urls, sizes)
    engine = HttpEngine(ENGINES[standin.dialect], standin.urls, connections, timeout_s=1.5)
    yard.standin = standin
    world = World(engine=engine, ground=yard, router=yard, store=yard)
    return drive(order(operation, world), world, SystemClock(), poll_s=0.05, tell=lambda _: standin.work())


def test_each_dialect_grows_and_shrinks(connections: Any) -> None:
    for dialect in ENGINES:
        with serving(StandIn(dialect, size=4)) as standin:
            yard = Yard(pods=4, routed=4)
            ended = run(standin, yard, connections, (4, 6))
            assert (ended.phase, standin.size, yard.pods, yard.routed) == (P.DONE, 6, 6, 6), (
                dialect,
                ended.history,
            )
            expected = dict.fromkeys(standin.urls[: 4 if dialect == "external" else 1], 1)
            assert {
                url: sum(u == url for u, _ in standin.orders)
                for url in standin.urls
                if (url, 6) in standin.orders
            } == expected
            if dialect == "sglang":
                continue
            standin.orders.clear()
            standin.phase = "idle"
            yard.record = None
            ended = run(standin, yard, connections, (6, 4))
            assert (ended.phase, standin.size, yard.pods, yard.routed) == (P.DONE, 4, 4, 4), (
                dialect,
                ended.history,
            )


@pytest.mark.parametrize("dialect", list(ENGINES))
def test_a_grow_with_every_fault(dialect: str, connections: Any) -> None:
    _with_every_fault(dialect, connections, (4, 6))


@pytest.mark.parametrize("dialect", ["internal", "external", "dynamo"])
def test_a_shrink_with_every_fault(dialect: str, connections: Any) -> None:
    _with_every_fault(dialect, connections, (6, 4))


def _with_every_fault(dialect: str, connections: Any, sizes: tuple[int, int]) -> None:
    """All of them beside each other: nearly all of their time is waiting."""

    def meets(fault: str) -> None:
        with serving(StandIn(dialect, size=sizes[0], fault=fault)) as standin:
            yard = Yard(pods=sizes[0], routed=sizes[0])
            _holds_true(run(standin, yard, connections, sizes), standin, yard, sizes)

    with ThreadPoolExecutor(len(FAULTS)) as pool:
        for met in [pool.submit(meets, fault) for fault in FAULTS]:
            met.result(timeout=120)


def _holds_true(ended: ResizeOperation, standin: StandIn, yard: Yard, sizes: tuple[int, int]) -> None:
    calls = len(standin.orders)
    assert calls <= (sizes[0] if standin.dialect == "external" else 1), ended.history
    assert len({url for url, _ in standin.orders}) == calls, "an API server was called twice"
    assert yard.pods >= standin.size, ended.history
    if ended.phase is P.DONE:
        assert (standin.size, yard.pods, yard.routed) == (sizes[1],) * 3, ended.history
    elif ended.phase is P.ABANDONED:
        assert (standin.size, yard.pods, yard.routed) == (sizes[0],) * 3, ended.history
    else:
        assert ended.phase is P.NEEDS_PEOPLE
        assert "restart" in ended.way_out
        assert yard.pods == max(sizes)
        assert yard.routed == min(sizes)
    if ended.serving_ranks is not None and ended.phase is not P.NEEDS_PEOPLE:
        assert ended.serving_ranks == standin.size


@pytest.mark.parametrize("fault", ["cut in commit", "500 after the commit", "500 before anything"])
def test_after_a_lost_answer_a_shrink_is_seen_by_the_ranks_that_still_move(
    fault: str, connections: Any
) -> None:
    """Labels of ranks that left stay in the metrics for ever; traffic shows which of them live."""
    with serving(StandIn("internal", size=6, fault=fault)) as standin, traffic(standin):
        yard = Yard(pods=6, routed=6)
        ended = run(standin, yard, connections, (6, 4))
        assert standin.labels == 6
        assert ended.phase is (P.ABANDONED if standin.size == 6 else P.DONE), ended.history
        _holds_true(ended, standin, yard, (6, 4))


@contextmanager
def traffic(standin: StandIn) -> Iterator[None]:
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(0.02):
            standin.work()

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()


def test_a_deployment_that_nobody_listens_for_is_not_resized(connections: Any) -> None:
    standin = StandIn("internal", size=4)
    standin.urls = ["http://127.0.0.1:9"]
    yard = Yard(pods=4, routed=4)
    ended = run(standin, yard, connections, (4, 6))
    assert (ended.phase, yard.pods) == (P.ABANDONED, 4)


@pytest.mark.parametrize("dialect", list(ENGINES))
def test_joiners_that_answer_in_another_way_get_no_traffic(dialect: str, connections: Any) -> None:
    with serving(StandIn(dialect, size=4, fault="joiners lie")) as standin:
        yard = Yard(pods=4, routed=4)
        ended = run(standin, yard, connections, (4, 6))
        assert (ended.phase, yard.routed, yard.pods) == (P.NEEDS_PEOPLE, 4, 6)
        assert "in another way" in ended.history[-1].text


def test_ranks_that_left_may_have_answered_in_their_own_way(connections: Any) -> None:
    with serving(StandIn("external", size=6, fault="joiners lie")) as standin:
        yard = Yard(pods=6, routed=6)
        assert run(standin, yard, connections, (6, 4)).phase is P.DONE
