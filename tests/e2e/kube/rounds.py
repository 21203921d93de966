"""What plays a part of a cluster: it looks around ten times a second, in a thread, until its block ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import Event, Thread
from typing import ClassVar, Self

from planner.control.cluster import Api, ClusterFault, Trouble

__all__ = ["Rounds"]


class Rounds(ABC):
    """A loop in a thread, until the block ends.

    Args:
        api: as administrator.
    """

    borne: ClassVar[frozenset[Trouble]]
    """What ends a round and not the loop: the next round looks again."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            try:
                self._round()
            except ClusterFault as fault:
                if fault.trouble not in self.borne:
                    raise

    @abstractmethod
    def _round(self) -> None:
        """Look at everything once."""
