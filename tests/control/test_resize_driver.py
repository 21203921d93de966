"""Resizes step by step: one call whatever happens, nothing given back under live ranks, a record of what is true.

The deployment is a model of what is known of vLLM: it prepares, commits, fails and hangs as it is told, loses answers,
and answers nobody after a failed commit. Our process dies between any two things that it does.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from models.elastic import Dialect, ElasticEngine, LoadBalancing
from models.resize_call import CallAnswer, CallVerdict, ResizePhase, ResizeStatus
from models.resize_operation import OperationPhase, ResizeOperation
from planner.clock import FakeClock
from planner.control.resizing import World, advance, drive, order, resume
from planner.errors import SafetyGateError, TemporaryError

INTERNAL = ElasticEngine()
EXTERNAL = ElasticEngine(load_balancing=LoadBalancing.EXTERNAL, data_parallel_backend="mp")
SGLANG = ElasticEngine(dialect=Dialect.SGLANG, version="0.5.23")
P = OperationPhase


class DiedError(Exception):
    """Our process ended here."""


@dataclass
class Fleet:
    """A deployment, the accelerators under it and its router, all in one place so that invariants can be looked at.

    Attributes:
        fault: what the next call does instead of working.
    """

    clock: FakeClock
    size: int = 16
    fault: str = ""
    shows: bool = False
    calls: list[int] = field(default_factory=list)
    pods: int = 16
    routed: int = 16
    busy: dict[int, float] = field(default_factory=dict)
    dead: bool = False
    changes_at_s: float | None = None
    wanted: int = 0
    blocked: bool = False
    record: ResizeOperation | None = None
    prepare_s: float = 92.0
    answers: str = "Paris."
    dies_after: int | None = None
    done: int = 0
    pods_come_s: float = 0.0
    pods_at_s: float = 0.0

    def _act(self) -> None:
        """Everything that our process does is counted; it may die right after."""
        self._settle()
        assert self.pods >= self.size or self.dead, "accelerators were taken from under live ranks"
        assert self.routed <= max(self.size, 1) or self.fault == "wrong size"
        self.done += 1
        if self.dies_after is not None and self.done > self.dies_after:
            self.dies_after = None
            raise DiedError

    def _settle(self) -> None:
        now_s = self.clock.unix_s()
        if self.changes_at_s is not None and now_s >= self.changes_at_s:
            self.changes_at_s = None
            if self.fault == "failed commit":
                self.dead = True
            elif self.fault == "failed prepare":
                self.blocked = True
            elif self.fault == "wrong size":
                self.size = self.wanted - 1
            elif self.pods >= self.wanted:
                self.size = self.wanted

    # The engine.

    def call(self, operation: ResizeOperation) -> CallAnswer:
        self._settle()
        self.calls.append(operation.to_ranks)
        if self.fault == "refused":
            return self._after(CallAnswer(verdict=CallVerdict.REFUSED, message="minimum is 17"))
        if self.fault == "busy":
            return self._after(CallAnswer(verdict=CallVerdict.BUSY, message="currently scaling"))
        self.wanted = operation.to_ranks
        self.changes_at_s = self.clock.unix_s() + self.prepare_s
        if self.fault in ("cut", "hang", "accepted"):
            self.clock.sleep(5.0 if self.fault != "hang" else 900.0)
            verdict = CallVerdict.ACCEPTED if self.fault == "accepted" else CallVerdict.UNKNOWN
            return self._after(CallAnswer(verdict=verdict, message=self.fault))
        self.clock.sleep(self.prepare_s)
        self._settle()
        if self.fault in ("failed commit", "failed prepare", "wrong size"):
            return self._after(CallAnswer(verdict=CallVerdict.UNKNOWN, message="HTTP 500: Scale failed"))
        return self._after(CallAnswer(verdict=CallVerdict.DONE, message=f"Scaled to {self.size}"))

    def _after(self, answer: CallAnswer) -> CallAnswer:
        self._act()
        return answer

    def status(self) -> ResizeStatus:
        self._act()
        if self.dead:
            return ResizeStatus(phase=ResizePhase.UNKNOWN)
        if not self.shows:
            return ResizeStatus(phase=ResizePhase.IDLE)
        if self.changes_at_s is not None:
            return ResizeStatus(phase=ResizePhase.PREPARING, shows_preparing=True)
        phase = ResizePhase.FAILED if self.blocked else ResizePhase.IDLE
        return ResizeStatus(phase=phase, shows_preparing=True)

    def healthy(self) -> bool | None:
        self._act()
        return not self.dead

    def ranks(self) -> int | None:
        self._act()
        return None if self.dead else self.size

    def answer(self) -> str | None:
        self._act()
        wrong = self.fault == "joiners lie" and self.size == 20
        return None if self.dead else "Rome." if wrong else self.answers

    # The accelerators.

    def reserve(self, ranks: int) -> str | None:
        self._act()
        if self.fault == "no pods":
            return "no node has room"
        if not self.pods_at_s:
            self.pods_at_s = self.clock.unix_s() + self.pods_come_s
        if self.clock.unix_s() >= self.pods_at_s:
            self.pods = max(self.pods, ranks)
        return None

    def there(self) -> int | None:
        self._act()
        return self.pods

    def release(self, ranks: int) -> str | None:
        self._act()
        self.pods = min(self.pods, ranks)
        return None

    # The router.

    def route(self, ranks: int) -> str | None:
        self._act()
        self.routed = ranks
        return None

    def in_flight(self, first: int) -> float | None:
        self._act()
        ends = self.busy.get(first, 0.0)
        return 0.0 if self.clock.unix_s() >= ends and self.fault != "never empty" else 3.0

    # The record.

    def load(self) -> ResizeOperation | None:
        return self.record

    def save(self, operation: ResizeOperation) -> None:
        if self.fault == "no record":
            raise TemporaryError("the record cannot be written")
        self.record = ResizeOperation.model_validate_json(operation.model_dump_json())
        self._act()

    @property
    def world(self) -> World:
        return World(engine=self, ground=self, router=self, store=self)


def a_resize(
    engine: ElasticEngine = INTERNAL, *, sizes: tuple[int, int] = (16, 20), name: str = "a"
) -> ResizeOperation:
    return ResizeOperation(
        id=name,
        deployment="prod/moe",
        engine=engine,
        urls=("http://127.0.0.1:1",),
        from_ranks=sizes[0],
        to_ranks=sizes[1],
        started_s=1e9,
        since_s=1e9,
    )


def fleet(sizes: tuple[int, int] = (16, 20), **fields: Any) -> Fleet:
    clock = FakeClock(unix_s=1e9)
    return Fleet(clock, size=sizes[0], pods=sizes[0], routed=sizes[0], **fields)


def run(made: Fleet, operation: ResizeOperation) -> ResizeOperation:
    """To the end, with a new process whenever ours dies."""
    for _ in range(500):
        try:
            return drive(order(operation, made.world), made.world, made.clock, poll_s=20.0)
        except DiedError:
            made.clock.sleep(20.0)
    raise AssertionError("it never came to an end")


def test_a_grow_takes_accelerators_first_then_calls_once_then_routes() -> None:
    made = fleet(pods_come_s=60.0)
    ended = run(made, a_resize())
    assert (ended.phase, made.calls, made.size, made.pods, made.routed) == (P.DONE, [20], 20, 20, 20)
    phases = [entry.phase for entry in ended.history]
    assert phases == [P.RESERVING, P.CALLING, P.CALLING, P.VERIFYING, P.ROUTING, P.DONE]


def test_a_shrink_takes_traffic_away_first_and_gives_back_last() -> None:
    made = fleet((20, 16), busy={16: 1e9 + 30})
    ended = run(made, a_resize(sizes=(20, 16)))
    assert (ended.phase, made.calls, made.size, made.pods, made.routed) == (P.DONE, [16], 16, 16, 16)
    called = next(entry.at_s for entry in ended.history if "called" in entry.text)
    assert called >= 1e9 + 30


FAULTS = [
    ("refused", P.ABANDONED, 16, 16),
    ("busy", P.ABANDONED, 16, 16),
    ("cut", P.DONE, 20, 20),
    ("hang", P.DONE, 20, 20),
    ("accepted", P.DONE, 20, 20),
    ("failed prepare", P.ABANDONED, 16, 16),
    ("failed commit", P.NEEDS_PEOPLE, 16, 20),
    ("wrong size", P.NEEDS_PEOPLE, 19, 20),
    ("joiners lie", P.NEEDS_PEOPLE, 20, 20),
    ("no pods", P.ABANDONED, 16, 16),
]


@pytest.mark.parametrize("shows", [False, True])
@pytest.mark.parametrize(("fault", "phase", "size", "pods"), FAULTS)
def test_a_grow_that_fails_leaves_what_is_true(
    fault: str, phase: P, size: int, pods: int, *, shows: bool
) -> None:
    made = fleet(fault=fault, shows=shows)
    ended = run(made, a_resize())
    assert (ended.phase, made.size, made.pods) == (phase, size, pods)
    assert len(made.calls) == (0 if fault == "no pods" else 1)
    assert made.routed == (20 if phase is P.DONE else 16)
    assert bool(ended.way_out) == (phase is P.NEEDS_PEOPLE)
    if phase is P.DONE or phase is P.ABANDONED:
        assert ended.serving_ranks == made.size


@pytest.mark.parametrize(
    ("fault", "phase", "size", "routed"),
    [
        ("refused", P.ABANDONED, 20, 20),
        ("cut", P.DONE, 16, 16),
        ("failed prepare", P.ABANDONED, 20, 20),
        ("failed commit", P.NEEDS_PEOPLE, 20, 16),
        ("never empty", P.ABANDONED, 20, 20),
    ],
)
def test_a_shrink_that_fails_gives_traffic_back(fault: str, phase: P, size: int, routed: int) -> None:
    made = fleet((20, 16), fault=fault)
    ended = run(made, a_resize(sizes=(20, 16)))
    assert (ended.phase, made.size, made.routed) == (phase, size, routed)
    assert made.pods == (16 if phase is P.DONE else 20)


@pytest.mark.parametrize("sizes", [(16, 20), (20, 16)])
@pytest.mark.parametrize(
    "fault", ["", "cut", "hang", "accepted", "refused", "busy", "failed prepare", "failed commit"]
)
@pytest.mark.parametrize("shows", [False, True])
def test_wherever_our_process_dies_the_next_one_goes_on(
    sizes: tuple[int, int], fault: str, *, shows: bool
) -> None:
    whole = fleet(sizes, fault=fault, shows=shows)
    run(whole, a_resize(sizes=sizes))
    for step in range(whole.done):
        made = fleet(sizes, fault=fault, shows=shows, dies_after=step)
        ended = run(made, a_resize(sizes=sizes))
        assert len(made.calls) <= 1, step
        assert made.pods >= made.size, step
        assert ended.over
        if ended.phase is P.DONE:
            assert (made.size, made.pods, made.routed) == (sizes[1],) * 3, step
        if ended.phase is P.ABANDONED:
            assert (made.size, made.pods, made.routed) == (sizes[0],) * 3, step
        if fault in ("", "cut", "hang", "accepted") and made.calls:
            assert ended.phase is P.DONE, step


@pytest.mark.parametrize("seed", range(60))
def test_our_process_dies_again_and_again(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - instances, not secrets
    sizes = draw.choice([(16, 20), (20, 16), (16, 32)])
    fault = draw.choice(["", "cut", "hang", "failed prepare", "failed commit", "wrong size"])
    made = fleet(sizes, fault=fault, shows=draw.random() < 0.5)
    operation = a_resize(sizes=sizes)
    for _ in range(200):
        made.dies_after = made.done + draw.randint(1, 6)
        try:
            ended = drive(order(operation, made.world), made.world, made.clock, poll_s=20.0)
            break
        except DiedError:
            made.clock.sleep(draw.choice([0.0, 5.0, 200.0]))
    else:
        ended = run(made, operation)
    assert ended.over
    assert len(made.calls) <= 1
    assert made.pods >= made.size


def test_after_a_call_of_minutes_there_is_time_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call takes longer than a look may: what is not seen at once is not given up."""
    made = fleet(prepare_s=400.0)
    unseen = iter([None, None])
    monkeypatch.setattr(made, "healthy", lambda: next(unseen, True) if made.size == 20 else True)
    assert run(made, a_resize()).phase is P.DONE


def test_without_a_record_nothing_is_done() -> None:
    made = fleet(fault="no record")
    with pytest.raises(TemporaryError):
        run(made, a_resize())
    assert (made.calls, made.pods, made.routed) == ([], 16, 16)


def test_one_operation_at_a_time() -> None:
    made = fleet()
    first = order(a_resize(), made.world)
    advance(first, made.world, made.clock)
    with pytest.raises(SafetyGateError, match="is reserving"):
        order(a_resize(name="b", sizes=(16, 24)), made.world)


def test_a_failed_preparation_stands_in_the_way_until_people_have_seen_to_it() -> None:
    made = fleet(fault="failed prepare")
    assert run(made, a_resize()).blocked
    with pytest.raises(SafetyGateError, match="restart it at the last good size, 16 ranks"):
        order(a_resize(name="b"), made.world)
    made.fault = ""
    assert resume(made, made.clock.unix_s()) is not None
    assert run(made, a_resize(name="b")).phase is P.DONE


@pytest.mark.parametrize(("size", "phase", "pods"), [(16, P.ABANDONED, 16), (20, P.DONE, 20)])
def test_after_people_restarted_it_the_operation_looks_and_ends(size: int, phase: P, pods: int) -> None:
    made = fleet(fault="failed commit")
    assert run(made, a_resize()).phase is P.NEEDS_PEOPLE
    with pytest.raises(SafetyGateError, match="needs people"):
        order(a_resize(name="b"), made.world)
    made.fault, made.dead, made.size = "", False, size
    again = resume(made, made.clock.unix_s())
    assert again is not None
    ended = drive(again, made.world, made.clock, poll_s=20.0)
    assert (ended.phase, made.pods, len(made.calls)) == (phase, pods, 1)


def test_a_size_that_is_there_already_is_no_operation() -> None:
    made = fleet((20, 20))
    ended = run(made, a_resize(sizes=(16, 20)))
    assert (ended.phase, made.calls) == (P.DONE, [])


def test_a_deployment_of_another_size_is_left_alone() -> None:
    made = fleet((18, 18))
    ended = run(made, a_resize())
    assert (ended.phase, made.calls, made.pods) == (P.ABANDONED, [], 18)
    assert "18 ranks" in ended.history[-1].text
