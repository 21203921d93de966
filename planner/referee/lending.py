"""What batch services borrow from a host at given counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from models.ids import ServiceId
from models.problem import PATHS, Demand, ServingPath
from models.variant import Role
from models.workload import Routing
from planner.referee.borrowing import guest_weight, room_for_guests
from planner.referee.index import Index, LoanKey, rate_of

__all__ = ["lent"]

ZERO = Fraction(0)


def lent(index: Index, host: Demand, grid: int) -> dict[LoanKey, Fraction]:
    """Shares (multiples of 1/grid) that guests get of what the host's own load leaves free up to τ.

    The most important guests come first; those of one priority are all brought to the same served share, or as far as
    the room goes.
    """
    found: dict[LoanKey, Fraction] = {}
    for path in index.paths(host.service):
        lender = _Lender(index, host, path)
        guests = [guest for guest in index.guests[host.service] if lender.carries(guest)]
        for priority in sorted({guest.priority for guest in guests}, reverse=True):
            equals = [guest for guest in guests if guest.priority == priority]
            had = {guest.service: _served(index, guest, found) for guest in equals}
            loans = _highest(lender, (equals, had), grid)
            lender.lend(equals, loans)
            found |= {(service, path): share for service, share in loans.items() if share > 0}
    return found


Span = tuple[Fraction, Fraction]
"""Least and largest served share over the buckets of a guest."""


def _served(index: Index, guest: Demand, lent_before: Mapping[LoanKey, Fraction]) -> Span:
    buckets = [bucket.id for bucket in guest.buckets] if guest.routing is Routing.BY_LENGTH else [None]
    own = [index.served_share(guest, bucket) for bucket in buckets]
    more = sum((lent_before.get((guest.service, path), ZERO) for path in ServingPath), ZERO)
    return min(own) + more, max(own) + more


def _highest(
    lender: _Lender, guests: tuple[Sequence[Demand], Mapping[ServiceId, Span]], grid: int
) -> dict[ServiceId, Fraction]:
    """The loans at the highest level of the least served share that still fits, found by halving."""
    equals, had = guests
    low, high = 0, grid
    while low < high:
        middle = (low + high + 1) // 2
        fits = lender.fits(equals, _loans(had, Fraction(middle, grid)))
        low, high = (middle, high) if fits else (low, middle - 1)
    return _loans(had, Fraction(low, grid))


def _loans(had: Mapping[ServiceId, Span], level: Fraction) -> dict[ServiceId, Fraction]:
    """What brings the least served bucket to the level and no bucket above everything."""
    return {service: max(ZERO, min(level - least, 1 - most)) for service, (least, most) in had.items()}


class _Lender:
    """Room of a host on one path: req/s of the host left in each role, and what each guest takes of it."""

    def __init__(self, index: Index, host: Demand, path: ServingPath) -> None:
        self._left = {role: room_for_guests(index, host, path, role) for role in PATHS[path]}
        self._weight = {
            (role, guest.service): guest_weight(index.by_role[host.service, role], guest.service)
            for role in PATHS[path]
            for guest in index.guests[host.service]
        }

    def carries(self, guest: Demand) -> bool:
        """Whether every role can carry this guest."""
        return all(self._weight[role, guest.service] is not None for role in self._left)

    def fits(self, guests: Sequence[Demand], loans: Mapping[ServiceId, Fraction]) -> bool:
        """Whether these loans fit every role."""
        return all(self._taken(role, guests, loans) <= left for role, left in self._left.items())

    def lend(self, guests: Sequence[Demand], loans: Mapping[ServiceId, Fraction]) -> None:
        """Take the room of these loans away."""
        self._left = {role: left - self._taken(role, guests, loans) for role, left in self._left.items()}

    def _taken(self, role: Role, guests: Sequence[Demand], loans: Mapping[ServiceId, Fraction]) -> Fraction:
        parts = (
            (self._weight[role, one.service] or ZERO) * rate_of(one) * loans[one.service] for one in guests
        )
        return sum(parts, ZERO)
