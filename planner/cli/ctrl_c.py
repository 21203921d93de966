"""Ctrl-C while a plan is made: the first ends the search with the best plan so far, the second kills."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from planner.cli.edge import ExitCode
from planner.cli.terminal import note

if TYPE_CHECKING:
    from planner.optimization.protocol import Cancelled

__all__ = ["ending_on_ctrl_c"]


def _killed() -> None:
    os._exit(ExitCode.INTERRUPTED)


@contextmanager
def ending_on_ctrl_c(
    say: Callable[[str], None] = note, kill: Callable[[], None] = _killed
) -> Iterator[Cancelled]:
    """Inside, Ctrl-C makes what is yielded say yes, and a second one kills; outside all is as before.

    A solver may hold the main thread for long, and Python runs handlers of signals there only. So a thread waits
    for the byte that Python writes as soon as the signal arrives.
    """
    wanted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield wanted.is_set
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.signal(signal.SIGINT, lambda *_: None)
    fd_before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    waiter = threading.Thread(target=_wait, args=(ours, wanted, say, kill), daemon=True)
    waiter.start()
    try:
        yield wanted.is_set
    finally:
        signal.set_wakeup_fd(fd_before)
        signal.signal(signal.SIGINT, before)
        theirs.close()
        waiter.join()
        ours.close()


def _wait(
    ours: socket.socket, wanted: threading.Event, say: Callable[[str], None], kill: Callable[[], None]
) -> None:
    while received := ours.recv(1):
        if received[0] != signal.SIGINT:
            continue
        if wanted.is_set():
            kill()
            continue
        wanted.set()
        say("ending with the best plan so far; Ctrl-C again to stop at once")
