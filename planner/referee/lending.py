"""What batch services borrow from a host at given counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from models.ids import ServiceId
from models.problem import PATHS, Demand, ServingPath
from models.variant import Role
from models.workload import Routing
from planner.referee.borrowing import guest_weight, surge_capacity
from planner.referee.index import Index, ShareKey, paths_of
from planner.referee.tolerance import exact

__all__ = ["lent"]

ZERO = Fraction(0)


def lent(index: Index, host: Demand, grid: int) -> dict[ShareKey, Fraction]:
    """Shares (multiples of 1/grid) that guests get of what the host's own load leaves free up to τ.

    The most important guests come first; those of one priority are all brought to the same served share, or as far as
    the room goes.
    """
    found: dict[ShareKey, Fraction] = {}
    for path in paths_of(index.of_service[host.service]):
        lender = _Lender(index, host, path)
        guests = [guest for guest in index.guests[host.service] if lender.carries(guest)]
        for priority in sorted({guest.priority for guest in guests}, reverse=True):
            equals = [guest for guest in guests if guest.priority == priority]
            had = {key: share for guest in equals for key, share in _served(index, guest, found)}
            low, high = 0, grid
            while low < high:
                middle = (low + high + 1) // 2
                low, high = (
                    (middle, high)
                    if lender.fits(equals, _top_up(had, Fraction(middle, grid)))
                    else (low, middle - 1)
                )
            more = _top_up(had, Fraction(low, grid))
            lender.lend(equals, more)
            found |= {
                (service, path, bucket): share for (service, bucket), share in more.items() if share > 0
            }
    return found


Part = tuple[ServiceId, str | None]


def _served(
    index: Index, guest: Demand, lent_before: Mapping[ShareKey, Fraction]
) -> list[tuple[Part, Fraction]]:
    buckets = [bucket.id for bucket in guest.buckets] if guest.routing is Routing.BY_LENGTH else [None]
    return [
        (
            (guest.service, bucket),
            index.served_share(guest, bucket)
            + sum((lent_before.get((guest.service, path, bucket), ZERO) for path in ServingPath), ZERO),
        )
        for bucket in buckets
    ]


def _top_up(had: Mapping[Part, Fraction], level: Fraction) -> dict[Part, Fraction]:
    return {part: max(ZERO, level - share) for part, share in had.items()}


class _Lender:
    """Room of a host on one path: req/s of the host left in each role, and what each guest takes of it."""

    def __init__(self, index: Index, host: Demand, path: ServingPath) -> None:
        used = index.load_on(host, path)
        self._left = {role: surge_capacity(index, host.service, role) - used for role in PATHS[path]}
        self._weight = {
            (role, guest.service): guest_weight(index.by_role[host.service, role], guest.service)
            for role in PATHS[path]
            for guest in index.guests[host.service]
        }

    def carries(self, guest: Demand) -> bool:
        """Whether every role can carry this guest."""
        return all(self._weight[role, guest.service] is not None for role in self._left)

    def fits(self, guests: Sequence[Demand], shares: Mapping[Part, Fraction]) -> bool:
        """Whether these shares fit every role."""
        return all(self._taken(role, guests, shares) <= left for role, left in self._left.items())

    def lend(self, guests: Sequence[Demand], shares: Mapping[Part, Fraction]) -> None:
        """Take the room of these shares away."""
        self._left = {role: left - self._taken(role, guests, shares) for role, left in self._left.items()}

    def _taken(self, role: Role, guests: Sequence[Demand], shares: Mapping[Part, Fraction]) -> Fraction:
        taken = ZERO
        for guest in guests:
            weight = self._weight[role, guest.service] or ZERO
            for bucket in guest.buckets:
                part = (guest.service, bucket.id if guest.routing is Routing.BY_LENGTH else None)
                taken += weight * exact(bucket.arrival_rps) * shares[part]
        return taken
