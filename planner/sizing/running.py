"""What runs now, candidate by candidate: counts, places, and whether a replica may go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from models.fleet import RunningReplica, RunningVariant
from models.ids import AcceleratorId, DomainId, NodeId, PoolId, ServiceId, VariantId
from models.problem import NodeState, PoolState
from models.scenario import Scenario
from models.variant import Role, Variant
from models.workload import Service
from planner.saturation import ReplicaState, SaturationSignal, analyze, state_of
from planner.sizing.pools import fabric_domains

__all__ = ["Running", "Tally"]

Place = tuple[ServiceId, VariantId, PoolId]


@dataclass(frozen=True, slots=True)
class Tally:
    """What of one candidate runs now.

    Attributes:
        current: ready replicas.
        pending: replicas on order beside them.
        seats: replicas by the nodes of their pods, where these are known.
    """

    current: int = 0
    pending: int = 0
    seats: tuple[tuple[tuple[NodeId, ...], int], ...] = ()

    @property
    def on_order(self) -> int:
        """Ready and pending replicas."""
        return self.current + self.pending


class Running:
    """The fleet, asked by candidate.

    A replica with a pod on a node that is not ready is lost: it is not current and has no seat, but its
    object still asks for it, so it is on order. A replica is seated where exactly one node is known for each
    of its pods, all of them in its pool (and in one fabric domain if it spans nodes); any other replica is
    current and sits nobody knows where.

    Args:
        scenario: normalized.
        pools: states by identity.
    """

    def __init__(self, scenario: Scenario, pools: Mapping[PoolId, PoolState]) -> None:
        self._services = {service.id: service for service in scenario.services}
        self._variants = {(s.id, v.id): v for s in scenario.services for v in s.variants}
        self._pools = pools
        self._rows: dict[ServiceId, dict[tuple[VariantId, PoolId], _Row]] = {}
        for row in sorted(scenario.fleet.running, key=lambda row: (row.service, row.variant, row.pool)):
            variant = self._variants[row.service, row.variant]
            rows = self._rows.setdefault(row.service, {})
            rows[row.variant, row.pool] = _Row(row, variant, pools[row.pool])
        self._signals: dict[tuple[ServiceId, Role], SaturationSignal | None] = {}

    def pools_of(self, service: ServiceId, variant: VariantId) -> frozenset[PoolId]:
        """Pools where replicas of the variant run or are on order."""
        rows = self._rows.get(service, {})
        return frozenset(pool for (name, pool), row in rows.items() if name == variant and row.row.on_order)

    def accelerators_of(self, service: ServiceId) -> frozenset[AcceleratorId]:
        """Accelerator types that the service runs on now, or will when what is on order is there."""
        rows = self._rows.get(service, {})
        return frozenset(self._pools[pool].accelerator for (_, pool), row in rows.items() if row.row.on_order)

    def tally(self, place: Place, domain: DomainId | None) -> Tally:
        """What runs of the candidate in this place and fabric domain."""
        row = self._row(place)
        return row.by_domain[domain] if row is not None else Tally()

    def scale_in_permitted(self, place: Place) -> bool:
        """Whether replicas in this place may be removed.

        Permitted where the analyzer finds it safe for all replicas of the service and role together **and**
        the place itself is surely idle: none of its own replicas is saturated or without a metric, since a
        mean over many hides the full ones. Where no replica of the role has any metric there is nothing to
        judge by, and the plan is free (a scenario without a fleet observed). A service without traffic
        whose every replica is known to hold nothing may go to zero whatever the least number says.
        """
        service, variant = self._services[place[0]], self._variants[place[0], place[1]]
        signal = self._signal(service, variant.role)
        row = self._row(place)
        if signal is None or row is None:
            return True
        if self._asleep(service, variant.role):
            return True
        return signal.scale_in_safe and row.surely_idle(service)

    def _signal(self, service: Service, role: Role) -> SaturationSignal | None:
        key = (service.id, role)
        if key not in self._signals:
            rows = self._of_role(service, role)
            ready = [replica for row in rows for replica in row.ready]
            known = any(r.kv_usage is not None or r.queue is not None for r in ready)
            unreported = sum(row.unreported for row in rows)
            self._signals[key] = analyze(ready, service.thresholds, unreported=unreported) if known else None
        return self._signals[key]

    def _asleep(self, service: Service, role: Role) -> bool:
        rows = self._of_role(service, role)
        return (
            all(bucket.arrival_rps == 0 for bucket in service.buckets)
            and all(row.unreported == 0 for row in rows)
            and all(replica.kv_usage == 0 and replica.queue == 0 for row in rows for replica in row.ready)
        )

    def _of_role(self, service: Service, role: Role) -> list[_Row]:
        return [row for row in self._rows.get(service.id, {}).values() if row.variant.role is role]

    def _row(self, place: Place) -> _Row | None:
        return self._rows.get(place[0], {}).get(place[1:])


@dataclass(frozen=True)
class _Row:
    """One row of the fleet with the variant and the pool it speaks of."""

    row: RunningVariant
    variant: Variant
    pool: PoolState

    @cached_property
    def lost(self) -> int:
        """Replicas with a pod on a node that holds none."""
        return len(self.row.details) - len(self.ready)

    @cached_property
    def ready(self) -> tuple[RunningReplica, ...]:
        """Replicas of which something is known, without the lost ones."""
        dead = {node.id for node in self.pool.nodes if not node.holds_pods}
        return tuple(replica for replica in self.row.details if not dead.intersection(replica.nodes))

    @cached_property
    def _nodes(self) -> dict[NodeId, NodeState]:
        return {node.id: node for node in self.pool.nodes}

    @property
    def unreported(self) -> int:
        """Ready replicas of which nothing is known."""
        return self.row.replicas - len(self.row.details)

    def surely_idle(self, service: Service) -> bool:
        """Whether every ready replica here is known to be non-saturated."""
        states = {state_of(replica, service.thresholds) for replica in self.ready}
        return self.unreported == 0 and states <= {ReplicaState.NON_SATURATED}

    @cached_property
    def by_domain(self) -> dict[DomainId | None, Tally]:
        """The row, spread over the fabric domains its replicas may be in."""
        domains = fabric_domains(self.pool, self.variant.pods_per_replica)
        seats: dict[DomainId | None, Counter[tuple[NodeId, ...]]] = {domain: Counter() for domain in domains}
        homeless = self.unreported
        for replica in self.ready:
            seat = self._seat(replica, domains)
            if seat is None:
                homeless += 1
            else:
                seats[seat[0]][seat[1]] += 1
        seated = {domain: sum(seats[domain].values()) for domain in domains}
        elsewhere = self._spread(homeless, domains, seated)
        current = {domain: seated[domain] + elsewhere[domain] for domain in domains}
        pending = self._spread(self.row.pending + self.lost, domains, current)
        return {
            domain: Tally(current[domain], pending[domain], tuple(sorted(seats[domain].items())))
            for domain in domains
        }

    def _seat(
        self, replica: RunningReplica, domains: Sequence[DomainId | None]
    ) -> tuple[DomainId | None, tuple[NodeId, ...]] | None:
        """Fabric domain and nodes of one replica; None where they are not known for certain."""
        nodes = self._nodes
        if len(replica.nodes) != self.variant.pods_per_replica or not nodes.keys() >= set(replica.nodes):
            return None
        if tuple(domains) == (None,):
            return None, tuple(sorted(replica.nodes))
        spanned = {nodes[name].fabric_domain for name in replica.nodes}
        domain = next(iter(spanned))
        return (domain, tuple(sorted(replica.nodes))) if len(spanned) == 1 and domain in domains else None

    def _spread(
        self, replicas: int, domains: Iterable[DomainId | None], there: Mapping[DomainId | None, int]
    ) -> dict[DomainId | None, int]:
        """Replicas over domains: the one with most room is filled first, what fits nowhere goes to that one too."""
        room = {
            domain: sum(
                n.free_gpus for n in self.pool.nodes if n.holds_pods and domain in (None, n.fabric_domain)
            )
            // self.variant.parallelism.gpus
            - there[domain]
            for domain in domains
        }
        order = sorted(room, key=lambda domain: (-room[domain], domain or ""))
        given = dict.fromkeys(room, 0)
        for domain in order:
            given[domain] = min(max(0, room[domain]), replicas)
            replicas -= given[domain]
        given[order[0]] += replicas
        return given
