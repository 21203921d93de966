"""The digital twin: a fleet, its router and its traffic on simulated time, stepped from outside."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from models.elastic import ResizeMode
from models.simulation import Observation, ReplicaState, RouterSpec, TwinSpec
from planner.errors import ConfigurationError, Finding
from planner.simulation.feeding import Feed
from planner.simulation.hosts import Hosts
from planner.simulation.kernel import rep, total
from planner.simulation.kernel.loop import kill, run, shed_ranks, stop_all
from planner.simulation.kernel.state import Sizes, State, grown, new_state
from planner.simulation.replica import Fleet, Size, grow_replicas, write_replica, write_size
from planner.simulation.router import write_router
from planner.simulation.showing import Recorder, observe_replica, observe_service

if TYPE_CHECKING:
    from planner.simulation.result import Columns, Result
    from planner.traces.requests import Trace

__all__ = ["Twin"]

_MINUTE_S: Final = 60.0
_GONE: Final = (ReplicaState.REMOVED, ReplicaState.FAILED)


class Twin:
    """Replays a trace against a fleet. Equal arguments and equal calls give equal bytes.

    Args:
        spec: the fleet; its initial replicas are ready at 0.
        trace: requests, read as they are needed.
        seed: of ties between replicas, random routing and the simulator's noise.
        sink: takes tables of requests that ended, in order of their end, so that they need not be kept; the result
            then has none.

    Raises:
        ConfigurationError: the trace does not fit the fleet (everything wrong with a chunk at once).
    """

    def __init__(
        self, spec: TwinSpec, trace: Trace, *, seed: int = 0, sink: Callable[[Columns], None] | None = None
    ) -> None:
        self._spec = spec
        self._fleet = Fleet.of(spec.replicas)
        self._variants = {replica.variant: k for k, replica in enumerate(spec.replicas)}
        self._services = {service.name: k for k, service in enumerate(spec.services)}
        self._feed = Feed(trace, spec)
        self._state = self._empty(seed)
        self._hosts = Hosts.of(spec)
        self._recorder = Recorder(spec, sink)
        self._agenda: list[tuple[float, int, Callable[[float], None]]] = []
        self._sequence = 0
        self._pending: list[int] = []
        self._desired = {replica.variant: 0 for replica in spec.replicas}
        self._resizing: set[int] = set()
        self._successors: dict[int, int] = {}
        self._now_s = 0.0
        for v, service in enumerate(spec.services):
            write_router(self._state, v, service.router)
        for replica in spec.replicas:
            self._set_desired(replica.variant, replica.initial_replicas, at_once=True)

    def _empty(self, seed: int) -> State:
        sizes = self._fleet.all_sizes
        block = self._feed.prefix_block_tokens
        entries = 0
        if block:
            per_size = [
                size.kv_blocks * spec.block_size // block + 1
                for spec, own in zip(self._fleet.specs, self._fleet.sizes, strict=True)
                for size in own.values()
                if spec.prefix_caching
            ]
            entries = max(per_size, default=0)
        bounds = Sizes(
            variants=len(self._variants),
            services=len(self._services),
            block_size=max(spec.block_size for spec in self._fleet.specs),
            heap=2 * max(size.max_num_seqs for size in sizes) + 16,
            entries=entries,
            ring=max(1, round(_MINUTE_S / self._spec.sample_s)),
        )
        state = new_state(bounds, self._fleet.timings, seed)
        state.clock[total.SAMPLE_S] = state.clock[total.NEXT_SAMPLE] = self._spec.sample_s
        state.totals[total.HASH_BLOCK] = block
        state.totals[total.SPLIT] = any(spec.role == "prefill" for spec in self._fleet.specs)
        return state

    @property
    def now_s(self) -> float:
        """Simulated time."""
        return self._now_s

    @property
    def spec(self) -> TwinSpec:
        """The fleet as it was given."""
        return self._spec

    @property
    def idle(self) -> bool:
        """Whether all requests have come and each has ended."""
        return self._feed.ended and self._state.totals[total.LIVE] == 0 and self._feed.left(self._state) == 0

    def desired(self, variant: str) -> int:
        """Replicas that were last asked for."""
        return self._desired[variant]

    def advance(self, until_s: float) -> None:
        """Go on to ``until_s``. It makes no difference how a run is cut into calls."""
        while True:
            next_s = min(until_s, self._agenda[0][0]) if self._agenda else until_s
            if self._run(next_s):
                self._now_s = max(self._now_s, next_s)
                if not self._agenda or self._agenda[0][0] > until_s:
                    self._tidy()
                    return
                at_s, _, act = heapq.heappop(self._agenda)
                act(at_s)
            self._tidy()

    def _run(self, until_s: float) -> bool:
        """Whether the kernel reached ``until_s``; False: a replica is gone that others wait for."""
        while True:
            status = run(self._state, self._feed.arrivals, until_s)
            if status == total.WANTS_ARRIVALS:
                self._state = self._feed.load_next(self._state)
            elif status == total.WANTS_ROOM:
                self._make_room()
            else:
                self._now_s = max(self._now_s, float(self._state.clock[total.NOW]))
                return status == total.REACHED

    def _make_room(self) -> None:
        self._recorder.drain(self._state)
        state = self._state
        slots = len(state.slots)
        totals, live = state.totals, state.totals[total.LIVE] + 1
        tight = totals[total.SPARE] == 0 or live > len(state.out) // 2
        if tight or totals[total.EVENTS] + 2 * live > len(state.events):
            spare = grown(state.spare, 2 * slots)
            unused = int(totals[total.SPARE])
            spare[unused : unused + slots] = np.arange(2 * slots - 1, slots - 1, -1)
            totals[total.SPARE] += slots
            self._state = state._replace(
                slots=grown(state.slots, 2 * slots),
                slot_times=grown(state.slot_times, 2 * slots),
                spare=spare,
                event_times=grown(state.event_times, 2 * len(state.events)),
                events=grown(state.events, 2 * len(state.events)),
                out=grown(state.out, 8 * slots),
                out_times=grown(state.out_times, 8 * slots),
            )

    def _tidy(self) -> None:
        """Give back the GPUs of replicas that are gone, and start those that wait for them."""
        state, totals = self._state, self._state.totals
        kept = 0
        for r in self._active():
            if state.replicas[r, rep.STATE] in _GONE:
                self._recorder.settle(r, state)
                self._hosts.release(r)
            else:
                state.active[kept] = r
                kept += 1
        totals[total.ACTIVE] = kept
        self._start_pending()

    def _start_pending(self) -> None:
        # Whoever comes after one without room may need fewer GPUs, or another type.
        self._pending = [variant for variant in self._pending if not self._start(variant)]
        self._state.totals[total.PENDING] = len(self._pending)

    def _later(self, at_s: float, act: Callable[[float], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._agenda, (at_s, self._sequence, act))

    def _start(self, variant: int, *, at_once: bool = False) -> bool:
        """Create a replica where there are GPUs for it; False where there are none."""
        r, startup_s = self._recorder.replicas, self._fleet.specs[variant].startup_s
        if not self._create(variant, self._fleet.initial(variant)):
            return False
        if at_once or startup_s == 0:
            self._ready(r, self._now_s)
        else:
            self._later(self._now_s + startup_s, lambda at_s: self._ready(r, at_s))
        return True

    def _create(self, variant: int, size: Size) -> bool:
        """A replica of this size that is starting; False where there are no GPUs for it."""
        spec, r = self._fleet.specs[variant], self._recorder.replicas
        if not self._hosts.place(r, spec, size.gpus):
            return False
        if r == len(self._state.replicas):
            self._state = grow_replicas(self._state, r + 1)
        write_replica(
            self._state,
            r,
            self._fleet,
            variant=variant,
            service=self._services[spec.service],
            now_s=self._now_s,
        )
        if size is not self._fleet.initial(variant):
            write_size(self._state, r, size, spec.watermark)
        node, _, gpus = self._hosts.held[r]
        self._recorder.create(spec, node, gpus=gpus, at_s=self._now_s)
        totals = self._state.totals
        self._state.active[totals[total.ACTIVE]] = r
        totals[total.ACTIVE] += 1
        return True

    def _ready(self, r: int, at_s: float) -> None:
        if self._state.replicas[r, rep.STATE] == ReplicaState.STARTING:
            self._state.replicas[r, rep.STATE] = ReplicaState.READY
            self._state.replica_times[r, rep.READY_AT] = at_s

    def _active(self) -> list[int]:
        """Replicas that are not gone, oldest first."""
        active: list[int] = self._state.active[: self._state.totals[total.ACTIVE]].tolist()
        return active

    def _of(self, variant: int) -> Iterator[int]:
        """Replicas of a variant that are to stay, oldest first; who is to follow one that is there does not count."""
        state = self._state
        for r in self._active():
            follows = r in self._successors and state.replicas[self._successors[r], rep.STATE] not in _GONE
            stays = (
                state.replicas[r, rep.STATE] <= ReplicaState.PAUSED
                and state.replicas[r, rep.STATE] != rep.DRAINING
                and not follows
            )
            if stays and state.replicas[r, rep.VARIANT] == variant:
                yield r

    def scale(self, variant: str, desired: int) -> None:
        """Ask for so many replicas of a variant, held within its bounds.

        More start as soon as there are GPUs for them. Fewer: those that wait for GPUs go first, then those that are
        starting, then by the variant's rule; a ready one drains, and is ended when its grace period is over.

        Raises:
            ConfigurationError: no such variant.
        """
        if variant not in self._variants:
            found, known = f"variant {variant!r}", ", ".join(sorted(self._variants))
            raise ConfigurationError.from_findings([Finding("", None, "scale", found, known)])
        spec = self._fleet.specs[self._variants[variant]]
        bounded = max(desired, spec.min_replicas)
        self._set_desired(variant, bounded if spec.max_replicas is None else min(bounded, spec.max_replicas))

    def _set_desired(self, variant: str, desired: int, *, at_once: bool = False) -> None:
        self._desired[variant] = desired
        k = self._variants[variant]
        there, waiting = list(self._of(k)), self._pending.count(k)
        for _ in range(desired - len(there) - waiting):
            if not self._start(k, at_once=at_once):
                self._pending.append(k)
        surplus = len(there) + waiting - desired
        for _ in range(min(surplus, waiting)):
            self._pending.remove(k)
        for r in self._leavers(k, there, max(0, surplus - waiting)):
            self._remove(r)
        self._tidy()

    def _leavers(self, variant: int, there: list[int], count: int) -> list[int]:
        """Which replicas scale-in takes: those not ready first."""
        rows = self._state.replicas
        by_load = self._fleet.specs[variant].removal == "least-loaded"

        def order(r: int) -> tuple[bool, int, int]:
            load = int(rows[r, rep.RUNNING] + rows[r, rep.WAITERS]) if by_load else 0
            return bool(rows[r, rep.STATE] != ReplicaState.STARTING), load, -r

        return sorted(there, key=order)[:count]

    def _remove(self, r: int) -> None:
        row = self._state.replicas[r]
        empty = row[rep.RUNNING] + row[rep.WAITERS] + row[rep.HOLDS] == 0
        grace_s = self._fleet.specs[row[rep.VARIANT]].grace_s
        if row[rep.STATE] == ReplicaState.STARTING or empty or grace_s == 0:
            kill(self._state, r, ReplicaState.REMOVED, self._now_s)
            return
        row[rep.STATE] = ReplicaState.DRAINING
        self._later(self._now_s + grace_s, lambda at_s: self._end_grace(r, at_s))

    def _end_grace(self, r: int, at_s: float) -> None:
        if self._state.replicas[r, rep.STATE] == ReplicaState.DRAINING:
            kill(self._state, r, ReplicaState.REMOVED, at_s)

    def fail(self, name: str) -> None:
        """A node or a replica fails now, with all that runs there; what was desired is started anew elsewhere.

        Raises:
            ConfigurationError: neither a node nor a replica that is there.
        """
        lost = self._hosts.lose(name) if name in self._hosts.free else self._recorder.alive(name, self._state)
        if not lost and name not in {node.name for node in self._spec.nodes}:
            raise ConfigurationError(f"there is no node and no living replica {name!r}")
        for r in lost:
            kill(self._state, r, ReplicaState.FAILED, self._now_s)
        self._tidy()
        for variant, desired in self._desired.items():
            self._set_desired(variant, desired)

    def admit(self, service: str, router: RouterSpec) -> None:
        """Let the router of a service go by another spec from now on."""
        write_router(self._state, self._services[service], router)

    def resize(self, replica: str, ranks: int, mode: ResizeMode) -> float:
        """Begin to change an Elastic EP deployment to another number of ranks.

        Growing takes the GPUs of the joining ranks now; shrinking gives them back at the commit. Until the commit
        the deployment serves as before; during it no step runs and new requests find nobody; a restart drops what
        runs. When experts have moved, speed is that of the new size. A redeploy starts a second deployment of that size on
        GPUs of its own; when it is ready, it takes what comes, and the first one drains.

        Returns:
            Seconds until the commit is over.

        Raises:
            ConfigurationError: unknown replica, size or mode, a resize under way, or too few GPUs on its node.
        """
        alive = self._recorder.alive(replica, self._state)
        if not alive:
            raise ConfigurationError(f"there is no living replica {replica!r}")
        r = alive[0]
        elastic = self._fleet.specs[self._state.replicas[r, rep.VARIANT]].elastic
        sizes = self._fleet.sizes[self._state.replicas[r, rep.VARIANT]]
        now = int(self._state.replicas[r, rep.RANKS])
        known = [
            t for t in (elastic.resizes if elastic else ()) if t.mode == mode and t.grow == (ranks > now)
        ]
        if r in self._resizing or ranks not in sizes or ranks == now or not known:
            raise ConfigurationError(f"{replica} cannot go from {now} to {ranks} ranks by {mode.value} now")
        if mode is ResizeMode.REDEPLOY:
            return self._redeploy(r, sizes[ranks], known[0].total_s)
        if ranks > now and not self._hosts.resize(r, sizes[ranks].gpus):
            raise ConfigurationError(f"{replica} finds no {sizes[ranks].gpus - sizes[now].gpus} further GPUs")
        timing = known[0]
        self._recorder.note_gpus(r, self._now_s, self._hosts.gpus_of(r))
        self._resizing.add(r)
        commit_s = self._now_s + max(0.0, timing.total_s - timing.downtime_s)
        self._later(commit_s, lambda at_s: self._commit(r, ranks, at_s, timing.downtime_s, timing.mode))
        self._later(commit_s + timing.downtime_s, lambda at_s: self._resume(r, ranks, at_s, timing.balance_s))
        return float(commit_s + timing.downtime_s - self._now_s)

    def _redeploy(self, r: int, size: Size, total_s: float) -> float:
        new = self._recorder.replicas
        if not self._create(int(self._state.replicas[r, rep.VARIANT]), size):
            raise ConfigurationError(
                f"{self._recorder.named(r)} finds no {size.gpus} GPUs for a second deployment"
            )
        self._successors[new] = r
        self._resizing |= {r, new}
        self._later(self._now_s + total_s, lambda at_s: self._take_over(new, at_s))
        return total_s

    def _take_over(self, new: int, at_s: float) -> None:
        old = self._successors.pop(new)
        self._resizing -= {old, new}
        self._ready(new, at_s)
        rows = self._state.replicas
        if rows[new, rep.STATE] == ReplicaState.READY and rows[old, rep.STATE] == ReplicaState.READY:
            self._remove(old)

    def _commit(self, r: int, ranks: int, at_s: float, downtime_s: float, mode: ResizeMode) -> None:
        row = self._state.replicas[r]
        if row[rep.STATE] != ReplicaState.READY:
            return
        row[rep.STATE] = ReplicaState.PAUSED
        self._state.replica_times[r, rep.PAUSED_UNTIL] = at_s + downtime_s
        if mode is ResizeMode.RESTART:
            kill(self._state, r, ReplicaState.PAUSED, at_s)
            self._state.replica_times[r, rep.REMOVED_AT] = np.nan
        elif ranks < row[rep.RANKS]:
            shed_ranks(self._state, r, int(row[rep.RANKS]), ranks, at_s)

    def _resume(self, r: int, ranks: int, at_s: float, balance_s: float) -> None:
        row = self._state.replicas[r]
        self._resizing.discard(r)
        if row[rep.STATE] != ReplicaState.PAUSED:
            return
        row[rep.STATE] = ReplicaState.READY
        size, spec = self._fleet.sizes[row[rep.VARIANT]][ranks], self._fleet.specs[row[rep.VARIANT]]
        before = int(row[rep.KIND]), int(row[rep.TIMING])
        shrinks = ranks < row[rep.RANKS]
        write_size(self._state, r, size, spec.watermark)
        shed_ranks(self._state, r, 1, 1, at_s)
        if shrinks:
            self._hosts.resize(r, size.gpus)
            self._recorder.note_gpus(r, at_s, size.gpus)
        if balance_s > 0:
            row[rep.KIND], row[rep.TIMING] = before
            self._later(at_s + balance_s, lambda _: self._balanced(r, ranks))

    def _balanced(self, r: int, ranks: int) -> None:
        row = self._state.replicas[r]
        size = self._fleet.sizes[row[rep.VARIANT]][ranks]
        if row[rep.RANKS] == ranks:
            row[rep.KIND], row[rep.TIMING] = size.kind, size.timing

    def observe(self) -> Observation:
        """Everything that could be scraped now."""
        state, named = self._state, self._recorder.named
        return Observation(
            at_s=self._now_s,
            replicas=tuple(observe_replica(state, r, named(r), self._spec) for r in self._active()),
            services=tuple(observe_service(state, v, name) for name, v in self._services.items()),
            desired=dict(self._desired),
        )

    def finish(self) -> Result:
        """End the run here: what is still somewhere is unfinished. The twin cannot go on after this."""
        stop_rows = self._state.totals[total.OUT] + self._state.totals[total.LIVE]
        self._state = self._state._replace(
            out=grown(self._state.out, int(stop_rows)), out_times=grown(self._state.out_times, int(stop_rows))
        )
        stop_all(self._state)
        self._recorder.drain(self._state)
        for r in self._active():
            self._recorder.settle(r, self._state)
        return self._recorder.result(self._state, self._now_s)
