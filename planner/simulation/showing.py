"""What is seen of a twin: observations while it runs, and records for its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from models.simulation import ReplicaObservation, ReplicaState, ServiceObservation
from planner.simulation.kernel import rep, svc, total
from planner.simulation.kernel.routing import kv_usage
from planner.simulation.result import Columns, ReplicaRecord, Result, in_order, request_columns

if TYPE_CHECKING:
    from models.simulation import ReplicaSpec, TwinSpec
    from planner.simulation.kernel.state import Floats, State

__all__ = ["Recorder", "observe_replica", "observe_service"]

_VARIANT: Final = ("starting", "ready", "draining", "paused", "running", "waiting", "kv_used", "kv_blocks")
_SERVICE: Final = ("arrivals", "done", "failures", "router_queue", "in_flight", "output_tokens")
_HOUR_S: Final = 3600.0


def observe_replica(st: State, r: int, name: str, spec: TwinSpec) -> ReplicaObservation:
    """One replica as it could be scraped now."""
    row, times = st.replicas[r], st.replica_times[r]
    variant = spec.replicas[row[rep.VARIANT]]
    highest = st.ring[r].max(axis=0)
    usage, ready = kv_usage(st, r), float(times[rep.READY_AT])
    return ReplicaObservation(
        name=name,
        variant=variant.variant,
        service=variant.service,
        state=ReplicaState(int(row[rep.STATE])),
        created_s=float(times[rep.CREATED_AT]),
        ready_s=None if np.isnan(ready) else ready,
        running=int(row[rep.RUNNING]),
        waiting=int(row[rep.WAITERS]),
        kv_usage=usage,
        running_max_1m=max(int(highest[2]), int(row[rep.RUNNING])),
        waiting_max_1m=max(int(highest[1]), int(row[rep.WAITERS])),
        kv_usage_max_1m=max(float(highest[0]), usage),
        kv_blocks=int(row[rep.BLOCKS]),
        block_size=int(row[rep.BLOCK_SIZE]),
        max_num_seqs=int(row[rep.MAX_SEQS]),
        prompt_tokens_total=int(row[rep.PROMPT_TOKENS]),
        generation_tokens_total=int(row[rep.OUTPUT_TOKENS]),
        finished_total=int(row[rep.FINISHED]),
        prefix_hit_tokens_total=int(row[rep.HIT_TOKENS]),
        prefix_query_tokens_total=int(row[rep.QUERY_TOKENS]),
        preemptions_total=int(row[rep.PREEMPTIONS]),
        ranks=int(row[rep.RANKS]),
    )


def observe_service(st: State, v: int, name: str) -> ServiceObservation:
    """What a service's router and clients have counted up to now."""
    row, sums = st.services[v], st.service_sums[v]
    return ServiceObservation(
        name=name,
        arrivals_total=int(row[svc.ARRIVALS]),
        completions_total=int(row[svc.DONE]),
        failures_total=int(row[svc.FAILURES]),
        rejected_total=int(row[svc.REJECTED]),
        in_flight=int(row[svc.IN_FLIGHT]),
        router_queue=int(row[svc.QUEUED]),
        router_queue_tokens=int(row[svc.QUEUED_TOKENS]),
        input_tokens_total=int(row[svc.INPUT_TOKENS]),
        output_tokens_total=int(row[svc.OUTPUT_TOKENS]),
        first_tokens_total=int(row[svc.FIRST_TOKENS]),
        ttft_s_sum=float(sums[svc.TTFT_SUM_S]),
        itl_s_sum=float(sums[svc.ITL_SUM_S]),
        itl_total=int(row[svc.ITL_COUNT]),
    )


@dataclass(slots=True)
class _Life:
    """What is noted of a replica while it lives: GPU-seconds up to ``since_s``, and GPUs held from then on."""

    name: str
    node: str
    spec: ReplicaSpec
    since_s: float
    gpus: int
    gpu_s: float = 0.0
    record: ReplicaRecord | None = None


@dataclass(slots=True)
class Recorder:
    """Collects tables and lives; with a sink, tables of requests are passed on instead of kept."""

    spec: TwinSpec
    sink: Callable[[Columns], None] | None
    lives: list[_Life] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    _requests: list[Columns] = field(default_factory=list)
    _variants: list[Floats] = field(default_factory=list)
    _services: list[Floats] = field(default_factory=list)

    @property
    def replicas(self) -> int:
        """How many there have been."""
        return len(self.lives)

    def named(self, r: int) -> str:
        """Name of a replica."""
        return self.lives[r].name

    def create(self, spec: ReplicaSpec, node: str, *, gpus: int, at_s: float) -> None:
        """The next replica begins to live, with so many GPUs; numbers are counted by variant."""
        number = self._numbers.get(spec.variant, 0)
        self._numbers[spec.variant] = number + 1
        self.lives.append(_Life(f"{spec.variant}-{number}", node, spec, at_s, gpus))

    def alive(self, name: str, st: State) -> list[int]:
        """Index of a replica by its name, if it is there."""
        return [
            r
            for r, life in enumerate(self.lives)
            if life.name == name and st.replicas[r, rep.STATE] < ReplicaState.REMOVED
        ]

    def note_gpus(self, r: int, at_s: float, gpus: int) -> None:
        """A replica holds another number of GPUs from now on."""
        life = self.lives[r]
        life.gpu_s += life.gpus * (at_s - life.since_s)
        life.since_s, life.gpus = at_s, gpus

    def settle(self, r: int, st: State) -> None:
        """Write the record of a replica that is gone, or of one that is there at the end."""
        life, times = self.lives[r], st.replica_times[r]
        created, removed, ready = (float(times[k]) for k in (rep.CREATED_AT, rep.REMOVED_AT, rep.READY_AT))
        end_s = float(st.clock[total.NOW]) if np.isnan(removed) else removed
        life.gpu_s += life.gpus * (end_s - life.since_s)
        spec, share = life.spec, life.gpu_s / life.spec.gpus
        busy, running = float(times[rep.BUSY_S]), float(times[rep.RUNNING_S])
        life.record = ReplicaRecord(
            name=life.name,
            variant=spec.variant,
            node=life.node,
            created_s=created,
            ready_s=None if np.isnan(ready) else ready,
            removed_s=None if np.isnan(removed) else removed,
            state=ReplicaState(int(st.replicas[r, rep.STATE])),
            busy_s=busy,
            running_s=running,
            gpu_s=life.gpu_s,
            cost_usd=spec.price_usd_per_h * share / _HOUR_S,
            energy_j=spec.power_idle_w * share
            + spec.power_busy_w * busy
            + spec.power_per_running_w * running,
        )

    def drain(self, st: State) -> None:
        """Take rows and samples out of the kernel's arrays."""
        rows, samples = int(st.totals[total.OUT]), int(st.totals[total.SAMPLES])
        if rows:
            table = request_columns(st.out[:rows], st.out_times[:rows])
            if self.sink is not None:
                self.sink(table)
            else:
                self._requests.append(table)
        if samples:
            self._variants.append(st.variant_samples[:samples].copy())
            self._services.append(st.service_samples[:samples].copy())
        st.totals[total.OUT] = st.totals[total.SAMPLES] = 0

    def _table(self) -> Columns:
        if not self._requests:
            return request_columns(np.zeros((0, total.OUT_WIDTH), np.int64), np.zeros((0, total.OUT_TIMES)))
        return in_order(self._requests)

    def _variant_table(self, samples: Floats, k: int) -> Columns:
        spec, rows = self.spec.replicas[k], samples[:, k]
        table: Columns = {name: rows[:, j].astype(np.int64) for j, name in enumerate(_VARIANT)}
        there = (
            rows[:, total.M_STARTING]
            + rows[:, total.M_READY]
            + rows[:, total.M_DRAINING]
            + rows[:, total.M_PAUSED]
        )
        busy, running = rows[:, total.M_BUSY], rows[:, total.M_RUN]
        drawn = spec.power_busy_w * busy + spec.power_per_running_w * running
        table["power_w"] = spec.power_idle_w * there + drawn / self.spec.sample_s
        used, blocks = rows[:, total.M_USED], rows[:, total.M_BLOCKS]
        table["kv_usage"] = np.divide(used, blocks, out=np.zeros(len(used)), where=blocks > 0)
        return table

    def result(self, st: State, duration_s: float) -> Result:
        """Everything, at the end of the run."""
        shape = st.variant_samples.shape[1:], st.service_samples.shape[1:]
        variants = np.concatenate([np.zeros((0, *shape[0])), *self._variants])
        services = np.concatenate([np.zeros((0, *shape[1])), *self._services])
        time: Columns = {"time_s": (np.arange(len(services)) + 1) * self.spec.sample_s}
        for v, service in enumerate(self.spec.services):
            time |= {
                f"{service.name}:{name}": services[:, v, j].astype(np.int64)
                for j, name in enumerate(_SERVICE)
            }
        result = Result(
            spec=self.spec,
            duration_s=duration_s,
            arrivals={s.name: int(st.services[v, svc.ARRIVALS]) for v, s in enumerate(self.spec.services)},
            requests=self._table(),
            time=time,
            variants={s.variant: self._variant_table(variants, k) for k, s in enumerate(self.spec.replicas)},
            replicas=tuple(life.record for life in self.lives if life.record is not None),
        )
        if self.sink is None:
            result.check_conservation()
        return result
