"""Jobs: equal tasks are one, partial answers come first, stops and lost processes leave a state that says so."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from planner.ui.jobs import Job, Process, State, Task, Workers

A, B = Task("plan", {"x": 1}), Task("plan", {"x": 2})
_PATIENCE_S = 30.0


class FakeProcess(Process):
    """A process whose answers the test gives."""

    def __init__(self) -> None:
        self.sent: queue.Queue[Mapping[str, Any]] = queue.Queue()
        self._said: queue.Queue[Mapping[str, Any] | None] = queue.Queue()
        self.ended = threading.Event()

    def say(self, task: Task, event: str, value: object) -> None:
        self._said.put({"id": task.key, "event": event, "value": value})

    def send(self, message: Mapping[str, Any]) -> bool:
        self.sent.put(message)
        return not self.ended.is_set()

    def hear(self, heard: Callable[[Mapping[str, Any]], bool]) -> bool:
        while (message := self._said.get(timeout=_PATIENCE_S)) is not None:
            if heard(message):
                return True
        return False

    def end(self) -> None:
        self.ended.set()
        self._said.put(None)


class Bench:
    """Workers with one seat and the processes that were made for it."""

    def __init__(self) -> None:
        self.made: queue.Queue[FakeProcess] = queue.Queue()
        self.workers = Workers(1, start=self._make)
        self.process = self.made.get(timeout=_PATIENCE_S)

    def _make(self) -> FakeProcess:
        process = FakeProcess()
        self.made.put(process)
        return process

    def begun(self, task: Task) -> None:
        """Wait until the process was given the task."""
        assert self.process.sent.get(timeout=_PATIENCE_S)["id"] == task.key

    def when(self, task: Task, holds: Callable[[Job], bool]) -> Job:
        """The job as soon as something holds."""
        tick = threading.Event()
        for _ in range(3000):
            job = self.workers.look(task.key)
            if job is not None and holds(job):
                return job
            tick.wait(0.01)
        raise AssertionError(f"never so: {self.workers.look(task.key)}")


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.workers.close()


def test_equal_tasks_are_one_job_and_its_answer_stays(bench: Bench) -> None:
    assert bench.workers.ask(A) == bench.workers.ask(Task("plan", {"x": 1}))
    bench.begun(A)
    bench.process.say(A, "result", '{"answer": 1}')
    done = bench.when(A, lambda job: job.over)
    assert (done.state, done.result) == (State.DONE, '{"answer": 1}')
    bench.workers.ask(A)
    assert bench.workers.look(A.key) == done
    assert bench.process.sent.empty()


def test_progress_is_kept_by_level_and_a_partial_answer_until_the_real_one(bench: Bench) -> None:
    bench.workers.ask(A)
    bench.begun(A)
    bench.process.say(A, "progress", {"level": "cost", "value": 9})
    bench.process.say(A, "progress", {"level": "cost", "value": 8})
    bench.process.say(A, "partial", "{}")
    job = bench.when(A, lambda job: job.partial is not None)
    assert (job.state, dict(job.progress)) == (State.RUNNING, {"cost": {"level": "cost", "value": 8}})
    bench.process.say(A, "result", "{}")
    assert bench.when(A, lambda job: job.over).partial is None


def test_jobs_wait_in_line_and_a_waiting_one_stops_at_once(bench: Bench) -> None:
    bench.workers.ask(A)
    bench.begun(A)
    bench.workers.ask(B)
    assert bench.when(B, lambda job: True).state is State.WAITING
    bench.workers.stop(B.key)
    assert bench.when(B, lambda job: job.over).state is State.STOPPED
    assert bench.when(A, lambda job: True).state is State.RUNNING


def test_a_stop_is_passed_on_and_the_best_so_far_is_an_answer(bench: Bench) -> None:
    bench.workers.ask(A)
    bench.begun(A)
    bench.workers.stop(A.key)
    assert bench.process.sent.get(timeout=_PATIENCE_S) == {"stop": A.key}
    assert bench.when(A, lambda job: True).state is State.STOPPING
    bench.process.say(A, "result", '{"best": "so far"}')
    assert bench.when(A, lambda job: job.over).state is State.DONE


def test_what_was_cut_short_says_so_and_is_solved_to_the_end_on_request(bench: Bench) -> None:
    bench.workers.ask(A)
    bench.begun(A)
    bench.workers.stop(A.key)
    assert bench.process.sent.get(timeout=_PATIENCE_S) == {"stop": A.key}
    bench.process.say(A, "result", '{"best": "so far"}')
    assert bench.when(A, lambda job: job.over).cut
    bench.workers.ask(A)
    assert bench.when(A, lambda job: True).result == '{"best": "so far"}'
    bench.workers.ask(A, again=True)
    bench.begun(A)
    bench.process.say(A, "result", '{"best": "at all"}')
    done = bench.when(A, lambda job: job.over)
    assert (done.cut, done.result) == (False, '{"best": "at all"}')
    bench.workers.ask(A, again=True)
    assert bench.when(A, lambda job: True) == done


def test_a_job_that_others_wait_for_goes_on(bench: Bench) -> None:
    bench.workers.ask(A)
    bench.workers.ask(A)
    bench.begun(A)
    bench.workers.stop(A.key)
    assert bench.when(A, lambda job: True).state is State.RUNNING
    bench.workers.stop(A.key)
    assert bench.when(A, lambda job: True).state is State.STOPPING


def test_a_lost_process_fails_its_job_and_the_next_job_gets_a_new_one(bench: Bench) -> None:
    bench.workers.ask(A)
    bench.begun(A)
    bench.process.end()
    failed = bench.when(A, lambda job: job.over)
    assert failed.state is State.FAILED
    assert failed.failure is not None
    assert "process" in failed.failure.message
    bench.process = bench.made.get(timeout=_PATIENCE_S)
    bench.workers.ask(A)
    bench.begun(A)
    bench.process.say(A, "result", "{}")
    assert bench.when(A, lambda job: job.over).state is State.DONE


def test_an_error_keeps_every_finding(bench: Bench) -> None:
    bench.workers.ask(A)
    bench.begun(A)
    bench.process.say(
        A, "error", {"fault": "ConfigurationError", "message": "2 problems", "findings": ["a", "b"]}
    )
    failure = bench.when(A, lambda job: job.over).failure
    assert failure is not None
    assert (failure.fault, failure.findings) == ("ConfigurationError", ("a", "b"))


def test_a_real_process_plans_and_says_what_is_wrong() -> None:
    from planner import load_scenario
    from planner.ui.tasks.plan import plan_task
    from planner.ui.workspace import How

    scenario = load_scenario("data/scenarios/01-two-variants.yaml")
    workers = Workers(1)
    good = plan_task(scenario, How())
    bad = Task("plan", {**good.arguments, "how": {"solver": "nobody"}})
    try:
        tick = threading.Event()
        for task in (good, bad):
            workers.ask(task)
        while not all((job := workers.look(task.key)) and job.over for task in (good, bad)):
            tick.wait(0.05)
        done, failed = workers.look(good.key), workers.look(bad.key)
    finally:
        workers.close()
    assert done is not None
    assert done.result is not None
    assert json.loads(done.result)["answer"]["solution"]["status"] == "OPTIMAL"
    assert failed is not None
    assert failed.failure is not None
    assert failed.failure.fault == "ConfigurationError"
    assert "nobody" in f"{failed.failure.message} {failed.failure.findings}"


def test_a_process_that_is_being_made_while_the_workers_close_is_ended_too() -> None:
    began, may_go_on, process = threading.Event(), threading.Event(), FakeProcess()

    def slow() -> FakeProcess:
        began.set()
        may_go_on.wait(_PATIENCE_S)
        return process

    workers = Workers(1, start=slow)
    assert began.wait(_PATIENCE_S)
    closing = threading.Thread(target=workers.close)
    closing.start()
    while not workers.is_closed():
        may_go_on.wait(0.01)
    may_go_on.set()
    closing.join(_PATIENCE_S)
    assert process.ended.is_set()


def test_a_process_that_is_lost_by_closing_gets_no_successor() -> None:
    bench = Bench()
    bench.workers.ask(A)
    bench.begun(A)
    bench.workers.close()
    assert bench.process.ended.is_set()
    assert bench.made.empty()


def test_where_no_process_can_be_made_the_job_says_so_and_the_next_one_tries_again() -> None:
    room = threading.Event()

    def make() -> FakeProcess:
        if not room.is_set():
            raise OSError("no room for a process")
        process = FakeProcess()
        process.say(B, "result", "{}")
        return process

    workers = Workers(1, start=make)
    try:
        failed = workers.wait(workers.ask(A), _PATIENCE_S)
        assert failed is not None
        assert failed.state is State.FAILED
        assert failed.failure is not None
        assert "try again" in failed.failure.message
        room.set()
        done = workers.wait(workers.ask(B), _PATIENCE_S)
        assert done is not None
        assert done.state is State.DONE
    finally:
        workers.close()
