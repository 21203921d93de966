"""Scale from zero: requests wait for a service that nothing serves, and the cheapest variant that fits is woken.

The published loop wakes every variant of the model, prefill and decode alike, and looks at neither accelerators nor quotas.
Here one replica of the cheapest way to serve is woken: of a variant that serves alone, or of a prefill and a decode
variant together; of a pair of which one side runs, the other side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from models.controller import ControllerSettings
from models.observation import TrafficObservation, VariantObservation
from models.problem import PATHS
from models.variant import Role
from planner.control.analysis import RuleBook, ref_of
from planner.control.deciding.makers import maker_of
from planner.control.deciding.room import Room
from planner.control.protocols import SHORT, ClusterReading, Decision

__all__ = ["WOKEN", "asleep", "wake"]

WOKEN: Final = "ScaledFromZero"
_CONSTRAINED: Final = "ResourceConstrained"
Service = tuple[str, str]


def asleep(variants: Iterable[VariantObservation]) -> dict[Service, list[VariantObservation]]:
    """Services (namespace, model) that no path of roles serves, with the variants that exist of them."""
    found: dict[Service, list[VariantObservation]] = defaultdict(list)
    for variant in variants:
        if variant.wanted is not None:
            found[variant.namespace, variant.model].append(variant)
    return {
        service: ours
        for service, ours in sorted(found.items())
        if not any(all(_runs(ours, role) for role in path) for path in PATHS.values())
    }


def wake(
    cluster: ClusterReading, traffic: Iterable[TrafficObservation], settings: ControllerSettings
) -> tuple[Decision, ...]:
    """One replica for each variant that is to wake.

    Args:
        cluster: variants, accelerators and quotas, as they were last read.
        traffic: what routers hold now.
        settings: rules (paused), and whether accelerators bound growth.

    Returns:
        Decisions that wake, and for a service that nothing has room for one that says so; nothing of others.
    """
    sleeping = asleep(cluster.variants)
    held = _held(traffic, sleeping)
    if not held:
        return ()
    inventory = cluster.inventory
    bounded = settings.constrained and bool(inventory.pools)
    room = Room.of(inventory.pools, inventory.quotas, cluster.variants, maker=maker_of) if bounded else Room()
    book = RuleBook(settings)
    order = sorted(held, key=lambda one: (-book.of_all(sleeping[one]).priority, one))
    return tuple(
        decision
        for service in order
        for decision in _woken(sleeping[service], held[service], (room, book, settings.paused))
    )


def _held(traffic: Iterable[TrafficObservation], sleeping: Mapping[Service, object]) -> dict[Service, float]:
    """Requests that wait for services that sleep; what is not known wakes nobody."""
    found: dict[Service, float] = defaultdict(float)
    for row in traffic:
        if row.queued and (row.namespace, row.model) in sleeping:
            found[row.namespace, row.model] += row.queued
    return dict(found)


def _runs(variants: Iterable[VariantObservation], role: Role) -> bool:
    return any(one.role is role and (one.wanted or 0) > 0 for one in variants)


def _woken(
    variants: Sequence[VariantObservation], queued: float, among: tuple[Room, RuleBook, bool]
) -> list[Decision]:
    room, book, all_paused = among
    free = [
        one
        for one in variants
        if not (all_paused or one.paused or book.of(one).paused) and one.max_replicas != 0 and not one.wanted
    ]
    ways = [way for path in PATHS.values() if (way := _cheapest_way(variants, free, path, room))]
    if ways:
        chosen = min(ways, key=_order)
        for one in chosen:
            room.take(one, 1)
        message = f"{queued:g} requests wait, and it is the cheapest that fits"
        return [_decision(one, 1, WOKEN, message, queued) for one in chosen]
    wanting = [way for path in PATHS.values() if (way := _cheapest_way(variants, free, path, Room()))]
    if not wanting:
        return []
    message = (
        f"{queued:g} requests wait, and neither accelerators nor quotas have room for any of its variants"
    )
    return [_decision(one, 0, _CONSTRAINED, message, queued) for one in min(wanting, key=_order)]


def _cheapest_way(
    variants: Sequence[VariantObservation],
    free: Sequence[VariantObservation],
    path: tuple[Role, ...],
    room: Room,
) -> list[VariantObservation]:
    """The cheapest variant that fits of each role of a path that nothing fills; empty: some role has none."""
    chosen: list[VariantObservation] = []
    for role in path:
        if _runs(variants, role):
            continue
        fitting = [one for one in free if one.role is role and room.fitting(one) > 0]
        if not fitting:
            return []
        chosen.append(min(fitting, key=lambda one: (one.cost, ref_of(one))))
    return chosen


def _order(way: Sequence[VariantObservation]) -> tuple[float, int, str]:
    return sum(one.cost for one in way), len(way), str(ref_of(way[0]))


def _decision(
    variant: VariantObservation, desired: int, reason: str, message: str, queued: float
) -> Decision:
    short = {SHORT: 1} if not desired else {}
    facts = {"wanted": 0, "queued": queued, "cost": variant.cost, **short}
    return Decision(variant=variant, desired=desired, reason=reason, message=message, facts=facts)
