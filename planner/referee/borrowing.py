"""Batch services on the replicas of an online service: what the host's replicas carry beside their own load."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from models.ids import ServiceId
from models.problem import PATHS, Candidate, Demand, ServingPath
from models.variant import Role
from planner.referee.index import Index, paths_of
from planner.referee.rows import Row
from planner.referee.tolerance import exact

__all__ = ["borrowing", "guest_weight", "surge_capacity"]


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
    return sum((exact(c.surge_rps) * index.count(c) for c in candidates), Fraction(0))


def borrowing(index: Index) -> Iterator[Row]:
    """Host and guests fit up to τ: Σ σ_c·n_c ≥ λ_s·y + Σ_guests κ_g·λ_g·w; without κ a role carries no guest."""
    for service, guests in index.guests.items():
        host = index.problem.demand.get(service)
        if host is None:
            continue
        for path in paths_of(index.of_service[service]):
            loads = [(guest, index.borrowed_load_on(guest, path)) for guest in guests]
            borrowed = [(guest, load) for guest, load in loads if load > 0]
            for role in PATHS[path] if borrowed else ():
                yield from _role_rows(index, host, (path, role, borrowed))


def _role_rows(
    index: Index, host: Demand, carried: tuple[ServingPath, Role, list[tuple[Demand, Fraction]]]
) -> Iterator[Row]:
    path, role, borrowed = carried
    candidates = index.by_role[host.service, role]
    used = index.load_on(host, path)
    for guest, load in borrowed:
        weight = guest_weight(candidates, guest.service)
        if weight is None:
            yield Row(
                family="rate",
                key=(host.service, path.value, role.value, guest.service),
                found=load,
                allowed=Fraction(0),
                unit="req/s",
                say=f"Service {guest.service} borrows {{found}} req/s from {host.service}, where a candidate of role {role} cannot carry it.",
            )
        else:
            used += weight * load
    yield Row(
        family="rate",
        key=(host.service, path.value, role.value, "borrowed"),
        found=used,
        allowed=surge_capacity(index, host.service, role),
        unit="req/s",
        say=f"Service {host.service} and its guests take {{found}} req/s in role {role}, above the {{allowed}} req/s up to saturation.",
        step=min((exact(c.surge_rps) for c in candidates if index.count(c)), default=Fraction(0)),
    )
