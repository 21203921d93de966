"""Requests as columns, chunk by chunk, so that a trace may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["RequestChunk", "Trace"]


@dataclass(frozen=True, slots=True, eq=False)
class RequestChunk:
    """Some requests in order of arrival; n of them.

    Attributes:
        arrival_s: float64 (n,), ascending, from the start of the trace.
        input_tokens: int32 (n,), at least 1.
        output_tokens: int32 (n,), at least 1.
        service: int32 (n,), index of the service; None: all of the first.
        priority: int32 (n,), larger is more important; None: as the service says.
        prefix_offsets: int64 (n + 1,), where the prefix blocks of each request begin; None: nobody knows prefixes.
        prefix_hashes: int64 (prefix_offsets[n],), each names a block and all before it.
        prefix_block_tokens: tokens of one prefix block.
    """

    arrival_s: NDArray[np.float64]
    input_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    service: NDArray[np.int32] | None = None
    priority: NDArray[np.int32] | None = None
    prefix_offsets: NDArray[np.int64] | None = None
    prefix_hashes: NDArray[np.int64] | None = None
    prefix_block_tokens: int = 512

    def __post_init__(self) -> None:
        n = len(self.arrival_s)
        wrong = [
            name
            for name, column in (
                ("input_tokens", self.input_tokens),
                ("output_tokens", self.output_tokens),
                ("service", self.service),
                ("priority", self.priority),
            )
            if column is not None and len(column) != n
        ]
        if self.prefix_offsets is not None and len(self.prefix_offsets) != n + 1:
            wrong.append("prefix_offsets")
        if wrong:
            raise ConfigurationError(f"columns of {n} requests have other lengths: {', '.join(wrong)}")

    def __len__(self) -> int:
        return len(self.arrival_s)


Trace = Iterable[RequestChunk]
"""Chunks in order of arrival, the first arrival of a chunk not before the last of the chunk before it."""
