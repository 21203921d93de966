"""Batch services on the replicas of an online service: what the host's replicas carry beside their own load."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from models.ids import ServiceId
from models.problem import PATHS, Candidate, Demand, ServingPath
from models.variant import Role
from models.workload import Routing
from planner.referee.by_length import replicas_busy
from planner.referee.index import Index
from planner.referee.rows import Row
from planner.referee.tolerance import exact

__all__ = ["borrowing", "guest_weight", "room_for_guests", "surge_capacity"]

ZERO = Fraction(0)


def guest_weight(candidates: list[Candidate], guest: ServiceId) -> Fraction | None:
    """κ: req/s of the host that 1 req/s of the guest displaces at most; None: some candidate cannot carry it."""
    if not candidates or any(guest not in candidate.guest_surge_rps for candidate in candidates):
        return None
    return max(
        exact(candidate.surge_rps) / exact(candidate.guest_surge_rps[guest]) for candidate in candidates
    )


def surge_capacity(index: Index, host: ServiceId, role: Role) -> Fraction:
    """Σ σ_c·n_c over the candidates of a role."""
    candidates = index.running.get((host, role), [])
    return sum((exact(c.surge_rps) * index.count(c) for c in candidates), ZERO)


def room_for_guests(index: Index, host: Demand, path: ServingPath, role: Role) -> Fraction:
    """Req/s of the host that its replicas of a role could carry up to τ beside what they serve of it.

    Mixed: Σ σ_c·n_c − λ_s·y. By length: Σ σ_c·(n_c − Σ_b a_{c,b}·λ_b/σ_{c,b}).
    """
    capacity = surge_capacity(index, host.service, role)
    if host.routing is Routing.MIXED:
        return capacity - index.load_on(host, path)
    routed = [c for c in index.by_role[host.service, role] if c.id in index.routed]
    return capacity - sum(
        (exact(c.surge_rps) * replicas_busy(index, host, c, surge=True) for c in routed), ZERO
    )


def borrowing(index: Index) -> Iterator[Row]:
    """Guests fit beside the host up to τ: Σ_guests κ_g·λ_g·w ≤ room; without κ a role carries no guest."""
    for service, guests in index.guests.items():
        host = index.problem.demand.get(service)
        if host is None:
            continue
        for path in index.paths(service):
            loads = [(guest, index.borrowed_load_on(guest, path)) for guest in guests]
            borrowed = [(guest, load) for guest, load in loads if load > 0]
            for role in PATHS[path] if borrowed else ():
                yield from _role_rows(index, host, (path, role, borrowed))


def _role_rows(
    index: Index, host: Demand, carried: tuple[ServingPath, Role, list[tuple[Demand, Fraction]]]
) -> Iterator[Row]:
    path, role, borrowed = carried
    key, candidates, used = (host.service, path.value, role.value), index.by_role[host.service, role], ZERO
    for guest, load in borrowed:
        weight = guest_weight(candidates, guest.service)
        used += (weight or ZERO) * load
        if weight is None:
            say = f"Service {guest.service} borrows {{found}} req/s where a candidate of role {role} cannot carry it."
            yield Row("rate", (*key, guest.service), load, ZERO, "req/s", say)
    # Both sides with the host's own load, so that the tolerance is relative to what the replicas carry.
    capacity = surge_capacity(index, host.service, role)
    own = capacity - room_for_guests(index, host, path, role)
    say = f"Service {host.service} and its guests take {{found}} req/s in role {role} and {{allowed}} req/s fit up to τ."
    step = exact(min((c.surge_rps for c in candidates if index.count(c)), default=0.0))
    yield Row("rate", (*key, "borrowed"), own + used, capacity, "req/s", say, step=step)
