"""Chunks of a trace as arrivals of the kernel, with the prefix hashes of live requests in one pool."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import ConfigurationError, Finding
from planner.simulation.kernel import slot, total
from planner.simulation.kernel.loop import Arrivals
from planner.simulation.kernel.state import grown

if TYPE_CHECKING:
    from models.simulation import TwinSpec
    from planner.simulation.kernel.state import State
    from planner.traces.requests import RequestChunk, Trace

__all__ = ["Feed"]


def _nothing() -> Arrivals:
    none = np.zeros(0, np.int32)
    return Arrivals(np.zeros(0), none, none, none, none, np.zeros(1, np.int64))


class Feed:
    """Reads a trace chunk by chunk.

    Attributes:
        arrivals: the chunk that the kernel works on.
        ended: whether there is none after it.
        prefix_block_tokens: tokens of a prefix block, 0 where the trace has no prefixes.
    """

    def __init__(self, trace: Trace, spec: TwinSpec) -> None:
        chunks = iter(trace)
        first = next(chunks, None)
        self._chunks = chain([first] if first is not None else [], chunks)
        self._spec = spec
        self._priorities = np.array([service.priority for service in spec.services], np.int32)
        self._latest_s = 0.0
        self.arrivals = _nothing()
        self.ended = False
        has_prefixes = first is not None and first.prefix_hashes is not None
        self.prefix_block_tokens = first.prefix_block_tokens if first is not None and has_prefixes else 0

    def left(self, state: State) -> int:
        """Requests of the chunk at hand that are still to come."""
        return len(self.arrivals.arrival_s) - int(state.totals[total.POSITION])

    def load_next(self, state: State) -> State:
        """Put the next chunk in place; at the end say so."""
        chunk = next(self._chunks, None)
        if chunk is None:
            self.ended = True
            state.totals[total.ENDED] = 1
            return state
        self._check(chunk)
        n = len(chunk)
        service = np.zeros(n, np.int32) if chunk.service is None else chunk.service.astype(np.int32)
        priority = self._priorities[service] if chunk.priority is None else chunk.priority.astype(np.int32)
        state, hash_at = self._pool(state, chunk)
        self.arrivals = Arrivals(
            np.ascontiguousarray(chunk.arrival_s, np.float64),
            np.ascontiguousarray(chunk.input_tokens, np.int32),
            np.ascontiguousarray(chunk.output_tokens, np.int32),
            service,
            priority,
            hash_at,
        )
        state.totals[total.POSITION] = 0
        return state

    def _pool(
        self, state: State, chunk: RequestChunk
    ) -> tuple[State, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """Keep hashes of live requests, add those of the chunk; where the hashes of each request begin, and the end."""
        if chunk.prefix_hashes is None or chunk.prefix_offsets is None:
            return state, np.zeros(len(chunk) + 1, np.int64)
        live = np.flatnonzero((state.slots[:, slot.PLACE] != slot.UNUSED) & (state.slots[:, slot.HASHES] > 0))
        counts, starts = state.slots[live, slot.HASHES], state.slots[live, slot.HASH_AT]
        moved = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        places = np.repeat(starts - moved[:-1], counts) + np.arange(moved[-1])
        pool = grown(np.zeros(1024, np.int64), int(moved[-1]) + len(chunk.prefix_hashes))
        pool[: moved[-1]] = state.hashes[places]
        pool[moved[-1] : moved[-1] + len(chunk.prefix_hashes)] = chunk.prefix_hashes
        state.slots[live, slot.HASH_AT] = moved[:-1]
        return state._replace(hashes=pool), chunk.prefix_offsets.astype(np.int64) + moved[-1]

    def _check(self, chunk: RequestChunk) -> None:
        findings = [
            Finding("", None, f"trace.{name}", found, allowed)
            for name, wrong, found, allowed in self._rules(chunk)
            if wrong
        ]
        if findings:
            raise ConfigurationError.from_findings(findings)
        if len(chunk):
            self._latest_s = float(chunk.arrival_s[-1])

    def _rules(self, chunk: RequestChunk) -> list[tuple[str, bool, str, str]]:
        arrivals, services = chunk.arrival_s, len(self._spec.services)
        block = chunk.prefix_block_tokens if chunk.prefix_hashes is not None else 0
        odd = [
            spec.block_size
            for spec in self._spec.replicas
            if block and spec.prefix_caching and block % spec.block_size
        ]
        late = bool(len(arrivals)) and not bool(arrivals[0] >= self._latest_s)
        return [
            ("arrival_s", not bool(np.all(np.isfinite(arrivals))), "a time that is no number", "seconds"),
            (
                "arrival_s",
                late or bool(np.any(np.diff(arrivals) < 0)),
                "times that go back",
                "ascending times",
            ),
            (
                "input_tokens",
                bool(np.any(chunk.input_tokens < 1)),
                "a request without input",
                "at least 1 token",
            ),
            (
                "output_tokens",
                bool(np.any(chunk.output_tokens < 1)),
                "a request without output",
                "at least 1 token",
            ),
            (
                "service",
                chunk.service is not None and bool(np.any((chunk.service < 0) | (chunk.service >= services))),
                "an index of no service",
                f"0 to {services - 1}",
            ),
            (
                "prefix_block_tokens",
                bool(odd) or block not in (self.prefix_block_tokens, 0),
                f"{block} tokens in a prefix block",
                f"one size in the whole trace, a multiple of the KV block ({', '.join(map(str, odd)) or block})",
            ),
        ]
