"""Specs of replicas as rows of the kernel: packed step times, sizes, and what changes when one is resized."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Final

import numpy as np

from models.simulation import ElasticSize, ReplicaSpec, ReplicaState
from models.twin_timing import (
    Curve,
    Grid,
    LinearTiming,
    QueueingTiming,
    RooflineTiming,
    SimulatorTiming,
    TableTiming,
    Timing,
)
from models.variant import Role
from planner.simulation.kernel import rep
from planner.simulation.kernel.state import grown

if TYPE_CHECKING:
    from planner.simulation.kernel.state import Floats, State

__all__ = ["Fleet", "Size", "grow_replicas", "write_replica", "write_size"]

_ROLES: Final = {Role.BOTH: rep.BOTH, Role.PREFILL: rep.PREFILL, Role.DECODE: rep.DECODE}
_MS: Final = 1e-3


@dataclass(slots=True)
class _Packer:
    """Parameters of step times one after another, with where each begins."""

    values: list[float] = field(default_factory=list)

    def add(self, *values: float) -> int:
        at = len(self.values)
        self.values.extend(float(value) for value in values)
        return at

    def curve(self, curve: Curve | None) -> int:
        return self.add(len(curve.at), *curve.at, *curve.seconds) if curve else self.add(0)

    def grid(self, grid: Grid | None) -> int:
        if grid is None:
            return self.add(0, 0)
        body = [second for row in grid.seconds for second in row]
        return self.add(len(grid.rows), len(grid.columns), *grid.rows, *grid.columns, *body)

    @singledispatchmethod
    def timing(self, timing: Timing) -> tuple[int, int]:
        """Kind and place of a form."""
        raise TypeError(type(timing))  # pragma: no cover - the union is closed

    @timing.register
    def _(self, timing: LinearTiming) -> tuple[int, int]:
        return rep.LINEAR, self.add(
            timing.base_s,
            timing.per_request_s,
            timing.per_prefill_token_s,
            timing.per_kv_token_s,
            timing.per_pair_s,
            0.0,
            timing.prefill_step_s,
        )

    @timing.register
    def _(self, timing: QueueingTiming) -> tuple[int, int]:
        alpha, beta, gamma = timing.alpha_ms, timing.beta_ms_per_token, timing.gamma_ms_per_token
        return rep.LINEAR, self.add(alpha * _MS, beta * _MS, beta * _MS, gamma * _MS, 0.0, gamma * _MS, 0.0)

    @timing.register
    def _(self, timing: RooflineTiming) -> tuple[int, int]:
        return rep.ROOFLINE, self.add(
            timing.overhead_s,
            timing.compute_per_token_s,
            timing.compute_per_pair_s,
            timing.weights_s,
            timing.per_kv_token_s,
        )

    @timing.register
    def _(self, timing: TableTiming) -> tuple[int, int]:
        parts = (self.curve(timing.tokens), self.curve(timing.sequences))
        decode, prefill = self.grid(timing.decode), self.grid(timing.prefill)
        mixed = self.grid(timing.mixed_decode) if timing.mixed_decode else decode
        return rep.TABLE, self.add(
            timing.overhead_s, *parts, decode, prefill, mixed, timing.mixed_per_product_s
        )

    @timing.register
    def _(self, timing: SimulatorTiming) -> tuple[int, int]:
        return rep.WORKERS, self.add(
            timing.constant_prefill,
            timing.ttft_ms,
            timing.ttft_sd_ms,
            timing.prefill_overhead_ms,
            timing.prefill_ms_per_token,
            timing.prefill_sd_ms,
            timing.itl_ms,
            timing.itl_sd_ms,
            timing.time_factor_under_load,
            timing.max_waiting,
            timing.kv_cache,
            timing.whole_ms,
            timing.constant_transfer,
            timing.kv_transfer_ms,
            timing.kv_transfer_sd_ms,
            timing.kv_transfer_ms_per_token,
            timing.kv_transfer_tokens_sd_ms,
        )


@dataclass(frozen=True, slots=True)
class Size:
    """What a replica can do at one number of ranks."""

    ranks: int
    kind: int
    timing: int
    kv_blocks: int
    max_num_seqs: int
    max_num_batched_tokens: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Fleet:
    """Variants as the kernel wants them.

    Attributes:
        specs: variants, in the order of the spec.
        sizes: sizes that each can have, by ranks, the initial one first.
        timings: packed parameters.
    """

    specs: tuple[ReplicaSpec, ...]
    sizes: tuple[dict[int, Size], ...]
    timings: Floats

    @classmethod
    def of(cls, specs: tuple[ReplicaSpec, ...]) -> Fleet:
        """Pack all that specs say of step times."""
        packer = _Packer()
        sizes = tuple(_sizes(spec, packer) for spec in specs)
        return cls(specs, sizes, np.array([*packer.values, 0.0]))

    def initial(self, variant: int) -> Size:
        """The size with which replicas of a variant start."""
        return next(iter(self.sizes[variant].values()))

    @property
    def all_sizes(self) -> list[Size]:
        """Sizes of all variants."""
        return [size for sizes in self.sizes for size in sizes.values()]


def _sizes(spec: ReplicaSpec, packer: _Packer) -> dict[int, Size]:
    if spec.elastic is None:
        only = ElasticSize(
            ranks=1,
            timing=spec.timing,
            kv_blocks=spec.kv_blocks,
            max_num_seqs=spec.max_num_seqs,
            max_num_batched_tokens=spec.max_num_batched_tokens,
            gpus=spec.gpus,
        )
        return {1: _pack(only, packer)}
    first = spec.elastic.initial_ranks
    ordered = sorted(spec.elastic.sizes, key=lambda size: (size.ranks != first, size.ranks))
    return {size.ranks: _pack(size, packer) for size in ordered}


def _pack(size: ElasticSize, packer: _Packer) -> Size:
    kind, at = packer.timing(size.timing)
    return Size(
        size.ranks, kind, at, size.kv_blocks, size.max_num_seqs, size.max_num_batched_tokens, size.gpus
    )


def grow_replicas(st: State, count: int) -> State:
    """The same state with room for so many replicas."""
    return st._replace(
        replicas=grown(st.replicas, count),
        replica_times=grown(st.replica_times, count),
        active=grown(st.active, count),
        phases=grown(st.phases, count),
        heap_keys=grown(st.heap_keys, count),
        heap_items=grown(st.heap_items, count),
        table=grown(st.table, count),
        entries=grown(st.entries, count),
        ring=grown(st.ring, count),
    )


def write_size(st: State, r: int, size: Size, watermark: float) -> None:
    """Let a replica be of this size from its next step on; the KV cache grows or shrinks by what is free."""
    row = st.replicas[r]
    row[rep.FREE] += size.kv_blocks - row[rep.BLOCKS]
    row[rep.BLOCKS] = size.kv_blocks
    row[rep.MAX_SEQS], row[rep.MAX_TOKENS] = size.max_num_seqs, size.max_num_batched_tokens
    row[rep.KIND], row[rep.TIMING], row[rep.RANKS] = size.kind, size.timing, size.ranks
    row[rep.WATERMARK] = int(watermark * size.kv_blocks)
    row[rep.BLOCKED] = 0


def write_replica(st: State, r: int, fleet: Fleet, *, variant: int, service: int, now_s: float) -> None:
    """Make row ``r`` a replica that is starting."""
    spec, row, times = fleet.specs[variant], st.replicas[r], st.replica_times[r]
    row[:], times[:] = 0, 0.0
    row[rep.SERVICE], row[rep.VARIANT], row[rep.STATE] = service, variant, ReplicaState.STARTING
    row[rep.ROLE], row[rep.BLOCK_SIZE] = _ROLES[spec.role], spec.block_size
    row[rep.CHUNKED], row[rep.PREFIX], row[rep.MAX_WAITING] = (
        spec.chunked_prefill,
        spec.prefix_caching,
        spec.max_waiting,
    )
    row[rep.ASYNC] = spec.async_scheduling
    write_size(st, r, fleet.initial(variant), spec.watermark)
    times[rep.CREATED_AT], times[rep.START_AT] = now_s, now_s
    times[rep.READY_AT], times[rep.REMOVED_AT] = np.nan, np.nan
    times[rep.TRANSFER_S], times[rep.TRANSFER_PER_TOKEN_S] = spec.transfer_s, spec.transfer_per_token_s
