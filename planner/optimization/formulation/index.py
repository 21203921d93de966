"""The problem as the families read it: grouped once, with the keys of all columns in one place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, TypeVar, cast

from models.ids import CandidateId, PoolId, ServiceId, VariantId
from models.problem import PATHS, Candidate, Demand, Incumbent, PoolState, Problem, ServingPath
from models.scenario import Mode
from models.variant import Role
from models.workload import Routing, ServiceKind
from planner.optimization.formulation.figures import Figures, figures_of
from planner.optimization.formulation.lengths import Lengths, lengths_of
from planner.optimization.program import Key

__all__ = [
    "Index",
    "added",
    "borrowed",
    "down",
    "kept",
    "moved",
    "replicas",
    "runs",
    "served",
    "share",
    "unserved",
]


def replicas(candidate: Candidate) -> Key:
    """n_c."""
    return ("n", candidate.id)


def added(pool: PoolState) -> Key:
    """m_p."""
    return ("m", pool.id)


def served(demand: Demand, path: ServingPath, bucket: str | None = None) -> Key:
    """y: share of a demand, in grid steps, that is served on a path."""
    return ("y", demand.service, path, *(() if bucket is None else (bucket,)))


def unserved(demand: Demand, bucket: str | None = None) -> Key:
    """z: share of a demand, in grid steps, that stays unserved."""
    return ("z", demand.service, *(() if bucket is None else (bucket,)))


def borrowed(guest: Demand, path: ServingPath) -> Key:
    """w: share of a guest's demand, in grid steps, served on a path of its host."""
    return ("w", guest.service, path)


def share(candidate: Candidate, bucket: str) -> Key:
    """a: share of a bucket, in grid steps, that goes to a candidate (routing by length)."""
    return ("a", candidate.id, bucket)


def down(candidate: Candidate) -> Key:
    """Replicas below those on order; |n - on order| = (n - on order) + 2 * down, and starts are (n - on order) + down."""
    return ("down", candidate.id)


def kept(incumbent: Incumbent) -> Key:
    """Replicas of a candidate that stay on exactly these nodes."""
    return ("keep", incumbent.candidate, *incumbent.nodes)


def runs(demand: Demand, role: Role, variant: VariantId) -> Key:
    """x: whether replicas of a variant run (only where the variants of a service are counted)."""
    return ("x", demand.service, role, variant)


def moved(candidate: Candidate) -> Key:
    """Replicas that stay but change their nodes."""
    return ("move", candidate.id)


T = TypeVar("T")


class Unusual(NamedTuple):
    """Candidates in the order of the problem.

    Attributes:
        bounded: with replicas at least or at most.
        held: that may not shrink.
        moving: of which some are on order, or whose steps are limited.
        starting: whose starts cost something.
        unrated: that serve nothing.
    """

    bounded: list[Candidate]
    held: list[Candidate]
    moving: list[Candidate]
    starting: list[Candidate]
    unrated: list[Candidate]


_INPUTS: Final[Mapping[str, frozenset[str]]] = {
    "by_role": frozenset({"candidates"}),
    "role_keys": frozenset({"candidates"}),
    "bucket_shares": frozenset({"candidates"}),
    "unusual": frozenset({"candidates"}),
    "by_pool": frozenset({"candidates", "pools"}),
    "figures": frozenset({"candidates", "pools", "services"}),
    "incumbents_of": frozenset({"incumbents", "pools"}),
    "tracked": frozenset({"candidates", "incumbents", "mode", "pools"}),
}
"""Fields of the problem that each group is worked out from; ``services`` and ``namespaces``: of the demands, in order."""


@dataclass(frozen=True)
class Index:
    """Groups of candidates that the families ask for again and again.

    ``made`` holds what was made once from some fields of the problem, by its maker.
    """

    problem: Problem
    made: dict[Callable[[Index], object], tuple[frozenset[str], object]] = field(
        default_factory=dict, compare=False
    )

    def once(self, make: Callable[[Index], T], inputs: frozenset[str]) -> T:
        """What ``make`` makes of some fields of the problem and nothing else, made once."""
        if make not in self.made:
            self.made[make] = (inputs, make(self))
        return cast("T", self.made[make][1])

    def lasting(self, rows: Callable[[Index], Iterable[T]], inputs: frozenset[str]) -> tuple[T, ...]:
        """The same for what comes one by one, such as the rows of a family."""
        if rows not in self.made:
            self.made[rows] = (inputs, tuple(rows(self)))
        return cast("tuple[T, ...]", self.made[rows][1])

    def followed_by(self, problem: Problem) -> Index:
        """The index of another problem, with all that was worked out from fields in which the two are equal."""
        old = self.problem
        same = {name for name in type(problem).model_fields if getattr(problem, name) == getattr(old, name)}
        if [demand.service for demand in problem.demands] == [demand.service for demand in old.demands]:
            same.add("services")
        if [demand.namespace for demand in problem.demands] == [demand.namespace for demand in old.demands]:
            same.add("namespaces")
        index = Index(
            problem, {make: (needs, it) for make, (needs, it) in self.made.items() if needs <= same}
        )
        known = {name: it for name, it in vars(self).items() if name in _INPUTS and _INPUTS[name] <= same}
        vars(index).update(known)
        return index

    @cached_property
    def by_role(self) -> dict[tuple[ServiceId, Role], tuple[Candidate, ...]]:
        """Candidates of one role of a service."""
        groups: dict[tuple[ServiceId, Role], list[Candidate]] = defaultdict(list)
        for candidate in self.problem.candidates:
            groups[candidate.service, candidate.role].append(candidate)
        return {key: tuple(group) for key, group in groups.items()}

    @cached_property
    def figures(self) -> Figures:
        """What every candidate has, as arrays."""
        return figures_of(self.problem, [replicas(candidate) for candidate in self.problem.candidates])

    @cached_property
    def role_keys(self) -> dict[tuple[ServiceId, Role], tuple[Key, ...]]:
        """Replicas of the candidates of one role of a service."""
        return {key: tuple(replicas(c) for c in group) for key, group in self.by_role.items()}

    @cached_property
    def bucket_shares(self) -> dict[CandidateId, dict[str, Key]]:
        """Shares of the buckets that a candidate can serve, where it is rated for buckets."""
        return {
            c.id: {bucket: ("a", c.id, bucket) for bucket in c.by_bucket}
            for c in self.problem.candidates
            if c.by_bucket
        }

    @cached_property
    def lengths(self) -> Lengths:
        """Loads and rates of all services that are routed by length, as arrays."""
        return lengths_of(self)

    @cached_property
    def by_pool(self) -> dict[PoolId, tuple[Candidate, ...]]:
        """Candidates of a pool; empty where there is none."""
        groups: dict[PoolId, list[Candidate]] = {pool.id: [] for pool in self.problem.pools}
        for candidate in self.problem.candidates:
            groups[candidate.pool].append(candidate)
        return {key: tuple(group) for key, group in groups.items()}

    @cached_property
    def unusual(self) -> Unusual:
        """Candidates by what few of them have, found in one pass: a fleet has tens of thousands."""
        found = Unusual([], [], [], [], [])
        for c in self.problem.candidates:
            if c.min_replicas or c.max_replicas is not None:
                found.bounded.append(c)
            if c.current and not c.scale_in_permitted:
                found.held.append(c)
            if c.max_step_up is not None or c.max_step_down is not None or c.current or c.pending:
                found.moving.append(c)
            if c.startup_cost:
                found.starting.append(c)
            if c.unrated:
                found.unrated.append(c)
        return found

    @cached_property
    def incumbents_of(self) -> dict[CandidateId, tuple[Incumbent, ...]]:
        """Replicas with known nodes, all of which hold pods, by candidate."""
        holding = {node.id for pool in self.problem.pools for node in pool.nodes if node.holds_pods}
        groups: dict[CandidateId, list[Incumbent]] = defaultdict(list)
        for incumbent in self.problem.incumbents:
            if holding.issuperset(incumbent.nodes):
                groups[incumbent.candidate].append(incumbent)
        return {key: tuple(group) for key, group in groups.items()}

    @cached_property
    def guests_of(self) -> dict[ServiceId, tuple[Demand, ...]]:
        """Batch services that may use the headroom of a service."""
        groups: dict[ServiceId, list[Demand]] = defaultdict(list)
        for demand in self.problem.demands:
            if demand.shares_replicas_of is not None:
                groups[demand.shares_replicas_of].append(demand)
        return {key: tuple(group) for key, group in groups.items()}

    @cached_property
    def tracked(self) -> frozenset[CandidateId]:
        """Candidates whose incumbents' nodes matter: in a pool where a pod may fail to find a node.

        Where every pod is one accelerator and every node accepts pods, any count that fits in sum fits.
        """
        return frozenset(
            candidate
            for candidate in self.incumbents_of
            if self.bounded(pool := self.problem.pool[self.problem.candidate[candidate].pool])
            and (
                any(c.gpus_per_pod > 1 or c.fabric_domain is not None for c in self.by_pool[pool.id])
                or not all(node.accepts_pods and node.holds_pods for node in pool.nodes)
            )
        )

    def role(self, demand: Demand, role: Role) -> tuple[Candidate, ...]:
        """Candidates of a role."""
        return self.by_role.get((demand.service, role), ())

    def paths(self, demand: Demand) -> tuple[ServingPath, ...]:
        """Paths for which the service has candidates of every role."""
        return tuple(path for path, roles in PATHS.items() if all(self.role(demand, role) for role in roles))

    def path_roles(self, demand: Demand) -> Iterator[tuple[ServingPath, Role, tuple[Candidate, ...]]]:
        """Every path of a service with each of its roles and the candidates of that role."""
        for path in self.paths(demand):
            for role in PATHS[path]:
                yield path, role, self.role(demand, role)

    def host_paths(self, guest: Demand) -> tuple[ServingPath, ...]:
        """Paths of the host on which a guest may borrow: every candidate there must carry the guest's traffic."""
        host = self.problem.demand.get(guest.shares_replicas_of) if guest.shares_replicas_of else None
        if host is None:
            return ()
        return tuple(
            path
            for path in self.paths(host)
            if all(guest.service in c.guest_surge_rps for role in PATHS[path] for c in self.role(host, role))
        )

    def guests_on(self, host: Demand, path: ServingPath) -> tuple[Demand, ...]:
        """Guests that may borrow on a path of a host."""
        return tuple(
            guest for guest in self.guests_of.get(host.service, ()) if path in self.host_paths(guest)
        )

    def bounded(self, pool: PoolState) -> bool:
        """Whether accelerators of the pool are counted at all: not in the unconstrained mode without growth."""
        return self.problem.mode is Mode.CONSTRAINED or pool.growth is not None

    def most_nodes(self, pool: PoolState) -> int | None:
        """Nodes that can be added; None: no limit."""
        if pool.growth is None:
            return 0
        return None if self.problem.mode is Mode.UNCONSTRAINED else pool.growth.max_nodes

    def capacity(self, demand: Demand, candidate: Candidate) -> float:
        """Capacity that the rate row counts: up to the trigger for online, up to tau for batch."""
        return candidate.surge_rps if demand.kind is ServiceKind.BATCH else candidate.rated_rps

    def buckets(self, demand: Demand) -> tuple[str | None, ...]:
        """Buckets that have shares of their own: one (``None``) for the whole mix unless routed by length."""
        if demand.routing is Routing.MIXED:
            return (None,)
        return tuple(bucket.id for bucket in demand.buckets)
