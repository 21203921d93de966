"""Long work beside the pages: worker processes, jobs by content, progress to look at, and a way to stop.

A page never computes. It asks :class:`Workers` for a task, gets a key, and looks at the job under that key
as often as it likes. Equal tasks are one job, whoever asks; a finished one answers at once until it is
pushed out by newer ones. Processes speak JSON lines over pipes, so nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import IO, Any, Final

from planner.clock import Clock, SystemClock

__all__ = ["Failure", "Job", "Process", "State", "Task", "Workers", "start_process"]

_KEPT_BYTES: Final = 256_000_000
_STOP_GRACE_S: Final = 20.0
"""How long a stopped task may take to hand over the best it has before its process is ended."""
_LEAVE_S: Final = 10.0
"""How long closing waits for the thread of a seat, which may be at starting a process."""


class State(StrEnum):
    """Where a job stands."""

    WAITING = "waiting"
    RUNNING = "running"
    STOPPING = "stopping"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


OVER: Final = frozenset({State.DONE, State.FAILED, State.STOPPED})


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be computed.

    Attributes:
        kind: name of a function in :mod:`planner.ui.tasks`.
        arguments: what it is given, as JSON would hold it.
        key: equal tasks have equal keys.
    """

    kind: str
    arguments: Mapping[str, Any]
    key: str = field(init=False)

    def __post_init__(self) -> None:
        text = json.dumps([self.kind, self.arguments], sort_keys=True, separators=(",", ":"))
        object.__setattr__(self, "key", f"{self.kind}-{hashlib.sha256(text.encode()).hexdigest()[:32]}")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a task gave no result.

    Attributes:
        fault: class of the error.
        message: one sentence.
        findings: everything that is wrong with an input, one line each.
    """

    fault: str
    message: str
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A task and what has come of it so far.

    Attributes:
        task: what was asked.
        state: where it stands.
        progress: latest sign of life by level, in the order in which levels began.
        partial: a first answer while the real one is on its way, JSON.
        partials: how many first answers there were; another one is another to look at.
        result: the answer, JSON; None until done.
        failure: why there is none.
        cut: somebody stopped it, so the result is the best that there was by then.
        turn: how often it was begun anew after that.
        seconds: since it started to run.
    """

    task: Task
    state: State = State.WAITING
    progress: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    partial: str | None = None
    partials: int = 0
    result: str | None = None
    failure: Failure | None = None
    cut: bool = False
    turn: int = 0
    seconds: float = 0.0

    @property
    def answer(self) -> str:
        """What its result is remembered by: one that is begun anew answers anew, under the same key."""
        return f"{self.task.key}-{self.turn}" if self.turn else self.task.key

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.state in OVER


class Process:
    """One worker process: lines in, lines out.

    Args:
        popen: of a program that speaks the lines of :mod:`planner.ui.worker`.
    """

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        self._popen = popen

    def send(self, message: Mapping[str, Any]) -> bool:
        """Hand over a message; False when the process is gone."""
        try:
            stream = _there(self._popen.stdin)
            stream.write(f"{json.dumps(message)}\n")
            stream.flush()
        except (OSError, ValueError):
            return False
        return True

    def hear(self, heard: Callable[[Mapping[str, Any]], bool]) -> bool:
        """Pass on messages until one is taken as the last word; False when the process ends before."""
        try:
            for line in iter(_there(self._popen.stdout).readline, ""):
                if heard(json.loads(line)):
                    return True
        except ValueError:
            return False
        return False

    def end(self) -> None:
        """End it now."""
        self._popen.kill()
        self._popen.wait()
        for stream in (self._popen.stdin, self._popen.stdout):
            with suppress(OSError, ValueError):
                _there(stream).close()


def start_process() -> Process:
    """A new worker process; it loads the solvers while nobody waits for it."""
    return Process(
        subprocess.Popen(
            [sys.executable, "-m", "planner.ui.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
    )


def _there(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise ValueError("a worker without pipes")
    return stream


class Workers:
    """A few worker processes for everybody who looks at the app.

    Args:
        size: how many tasks run at once; the others wait in line.
        start: makes a process.
        clock: measures how long a job runs.
    """

    def __init__(
        self, size: int = 1, *, start: Callable[[], Process] = start_process, clock: Clock | None = None
    ) -> None:
        self._lock = threading.RLock()
        self._woken = threading.Condition(self._lock)
        self._over = threading.Condition(self._lock)
        self._clock = clock or SystemClock()
        self._start = start
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._watchers: dict[str, int] = {}
        self._begun: dict[str, float] = {}
        self._line: deque[str] = deque()
        self._closed = False
        self._busy = threading.Event()
        self._seats = [_Seat(self, at_once=place == 0) for place in range(size)]

    def ask(self, task: Task, *, again: bool = False) -> str:
        """Have a task done; the key under which to look. A failed or stopped one is tried again.

        Args:
            task: what is to be done.
            again: also where it was cut short, and its result is the best that there was by then.
        """
        key = task.key
        with self._lock:
            known = self._jobs.get(key)
            if known is not None and not _is_to_begin(known, again=again):
                self._jobs.move_to_end(key)
                self._watchers[key] = self._watchers.get(key, 0) + 1
                return key
            self._jobs[key] = Job(task, turn=0 if known is None else known.turn + known.cut)
            self._jobs.move_to_end(key)
            self._watchers[key] = 1
            self._line.append(key)
            if self._begun or len(self._line) > 1:
                self._busy.set()
            self._woken.notify()
        return key

    def look(self, key: str) -> Job | None:
        """The job as it stands; None when it was pushed out by newer ones."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or key not in self._begun or job.over:
                return job
            return replace(job, seconds=self._clock.monotonic_s() - self._begun[key])

    def wait(self, key: str, seconds: float) -> Job | None:
        """The job as it stands when it is over, or when so much time has passed."""

        def settled() -> bool:
            job = self._jobs.get(key)
            return job is None or job.over

        with self._lock:
            self._over.wait_for(settled, timeout=seconds)
        return self.look(key)

    def stop(self, key: str) -> None:
        """Stop a job for one who asked for it; it goes on while others wait for the same."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.over:
                return
            self._watchers[key] = self._watchers.get(key, 1) - 1
            if self._watchers[key] > 0:
                return
            if job.state is State.WAITING:
                self._line.remove(key)
                self._put(key, state=State.STOPPED)
                return
            self._put(key, state=State.STOPPING)
            seat = next((seat for seat in self._seats if seat.key == key), None)
        if seat is not None:
            seat.stop(_STOP_GRACE_S)

    def close(self) -> None:
        """End all processes; waiting jobs are stopped."""
        with self._lock:
            self._closed = True
            self._busy.set()
            self._woken.notify_all()
        for seat in self._seats:
            seat.end()
        for seat in self._seats:
            seat.leave(_LEAVE_S)

    # What seats need.

    def is_closed(self) -> bool:
        """Whether there will be no more work."""
        with self._lock:
            return self._closed

    def wait_until_needed(self) -> None:
        """Return when there is more to do than one process does, or the first job is over.

        Processes load solvers when they start, and would be in each other's way while somebody waits for the first.
        """
        self._busy.wait()

    def next_job(self) -> tuple[str, Task] | None:
        """Wait for a job; None when there will be no more."""
        with self._lock:
            while not self._line and not self._closed:
                self._woken.wait()
            if self._closed:
                return None
            key = self._line.popleft()
            self._begun[key] = self._clock.monotonic_s()
            self._put(key, state=State.RUNNING)
            return key, self._jobs[key].task

    def new_process(self) -> Process:
        """A process for a seat."""
        return self._start()

    def heard(self, key: str, message: Mapping[str, Any]) -> bool:
        """Take in what a process says of a job; whether that was its last word."""
        event, value = message["event"], message["value"]
        last = event in ("result", "error")
        with self._lock:
            if key not in self._jobs:
                return last
            if event == "progress":
                self._put(key, progress={**self._jobs[key].progress, value["level"]: value})
            elif event == "partial":
                self._put(key, partial=value, partials=self._jobs[key].partials + 1)
            elif event == "result":
                self._finish(key, state=State.DONE, result=value)
            else:
                failure = Failure(value["fault"], value["message"], tuple(value["findings"]))
                self._finish(key, state=State.FAILED, failure=failure)
        return last

    def lost(self, key: str) -> None:
        """The process of a job ended without a last word."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.over:
                return
            if job.state is State.STOPPING:
                self._finish(key, state=State.STOPPED)
            else:
                message = "the process that computed this ended; try again, or with a smaller scenario"
                self._finish(key, state=State.FAILED, failure=Failure("WorkerLost", message))

    def _finish(self, key: str, **changes: Any) -> None:  # noqa: ANN401 - fields of a job
        begun = self._begun.pop(key, self._clock.monotonic_s())
        changes["cut"] = self._jobs[key].state is State.STOPPING
        self._put(key, seconds=self._clock.monotonic_s() - begun, partial=None, **changes)
        self._busy.set()
        self._forget_old(key)

    def _put(self, key: str, **changes: Any) -> None:  # noqa: ANN401 - fields of a job
        self._jobs[key] = replace(self._jobs[key], **changes)
        if self._jobs[key].over:
            self._over.notify_all()

    def _forget_old(self, newest: str) -> None:
        sizes = {key: len(job.result or "") for key, job in self._jobs.items()}
        total = sum(sizes.values())
        for key in list(self._jobs):
            if total <= _KEPT_BYTES:
                break
            if key != newest and self._jobs[key].over:
                total -= sizes[key]
                del self._jobs[key]
                self._watchers.pop(key, None)


def _is_to_begin(job: Job, *, again: bool) -> bool:
    return job.state in (State.FAILED, State.STOPPED) or (again and job.cut)


class _Seat:
    """One thread that keeps one process busy.

    Args:
        workers: give it jobs.
        at_once: its process is started now, and not only when it is needed.
    """

    def __init__(self, workers: Workers, *, at_once: bool = True) -> None:
        self._workers = workers
        self._at_once = at_once
        self._process: Process | None = None
        self.key: str | None = None
        self._held = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="fleetplan-worker", daemon=True)
        self._thread.start()

    def stop(self, grace_s: float) -> None:
        """Ask the task to end; end its process if it does not."""
        process, key = self._process, self.key
        if process is None or key is None:
            return
        process.send({"stop": key})

        def end_if_still_there() -> None:
            if self.key == key and self._process is process:
                process.end()

        timer = threading.Timer(grace_s, end_if_still_there)
        timer.daemon = True
        timer.start()

    def end(self) -> None:
        """End the process, if there is one."""
        with self._held:
            if self._process is not None:
                self._process.end()
            self._process = None

    def leave(self, patience_s: float) -> None:
        """Wait until the thread is over."""
        self._thread.join(patience_s)

    def _run(self) -> None:
        if not self._at_once:
            self._workers.wait_until_needed()
        self._renew()
        while (job := self._workers.next_job()) is not None:
            self.key, task = job
            if self._process is None:
                self._renew()
            if not self._do(self.key, task):
                self._workers.lost(self.key)
                self._renew()
            self.key = None
        self.end()

    def _renew(self) -> None:
        """Have a living process, but none that closing would not see: nobody would end it.

        A machine may have no room for one now; the seat has none then, and asks again when there is a job.
        """
        self.end()
        if self._workers.is_closed():
            return
        try:
            process = self._workers.new_process()
        except OSError:
            return
        with self._held:
            self._process = process
        if self._workers.is_closed():
            self.end()

    def _do(self, key: str, task: Task) -> bool:
        """Whether the process lived to say its last word."""
        process = self._process
        if process is None or not process.send(
            {"id": key, "kind": task.kind, "arguments": dict(task.arguments)}
        ):
            return False
        return process.hear(lambda message: message.get("id") == key and self._workers.heard(key, message))
