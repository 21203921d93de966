"""A fence before the clusters: whoever does not lead, or only tries, writes nothing, whatever calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from planner.control.cluster import ClusterFault, Trouble
from planner.control.cluster.transport import Answer, Call, Transport

__all__ = ["Fenced"]


@dataclass(frozen=True, slots=True)
class Fenced:
    """A transport that lets writes pass only as long as we may write; reading and server-side dry runs always pass.

    It is asked at the last moment before each write, so that one that lost the lead in the middle of many stops there.

    Args:
        transport: to the cluster.
        may_write: whether we may, now.
    """

    transport: Transport
    may_write: Callable[[], bool]

    def call(self, call: Call) -> Answer:
        """See :class:`planner.control.cluster.transport.Transport`."""
        self._check(call)
        return self.transport.call(call)

    def stream(self, call: Call) -> Iterator[bytes]:
        """See :class:`planner.control.cluster.transport.Transport`."""
        return self.transport.stream(call)

    def _check(self, call: Call) -> None:
        asks = call.path.endswith(("/selfsubjectaccessreviews", "/subjectaccessreviews"))
        if call.method == "GET" or asks or call.query.get("dryRun") == "All" or self.may_write():
            return
        raise ClusterFault(
            Trouble.INVALID, f"{call.method} {call.path} was stopped: this controller may not write now"
        )
