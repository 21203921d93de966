"""Whether a variant may run in a pool: what its service allows, and whether its pods fit any node."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from models.explanation import Fact, Reason
from models.hardware import Pool
from models.ids import AcceleratorId, DomainId
from models.problem import PoolState
from models.scenario import Mode
from models.variant import Variant
from models.workload import AllowedPlaces, Service
from planner.sizing.pools import node_sizes

__all__ = ["Refusal", "refusal_of_place", "refusal_of_size"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something is no candidate."""

    reason: Reason
    facts: dict[str, Fact] = field(default_factory=dict)


def refusal_of_place(
    service: Service, variant: Variant, pool: Pool, *, running_on: Collection[AcceleratorId]
) -> Refusal | None:
    """The first rule that keeps the variant out of the pool, or None.

    Deny goes before allow, and residency and the pin come last. A pool that does not state its region, cluster
    or residency is in none of those that an allow list names. ``pin_accelerator`` allows the accelerator
    types that the service runs on now; while it runs on none there is nothing to stay on.

    Args:
        service: whose rules count.
        variant: with its own list of pools.
        pool: the place.
        running_on: accelerator types that the service runs on now.
    """
    if variant.accelerator != pool.accelerator:
        facts: dict[str, Fact] = {"needs": variant.accelerator, "has": pool.accelerator}
        return Refusal(Reason.NO_POOL_WITH_ACCELERATOR, facts)
    refusals = (*_denied(service.places, pool), *_not_allowed(service.places, variant, pool))
    if refusals:
        return refusals[0]
    if service.places.pin_accelerator and running_on and variant.accelerator not in running_on:
        facts = {"accelerator": variant.accelerator, "runs_on": ", ".join(sorted(running_on))}
        return Refusal(Reason.PINNED_ELSEWHERE, facts)
    return None


def refusal_of_size(variant: Variant, pool: PoolState, domain: DomainId | None, mode: Mode) -> Refusal | None:
    """Whether a pod needs more accelerators than any node of the pool (or domain) has or will have.

    In the unconstrained mode a pool without nodes and without growth stands for "as much as is needed": it
    has no node size that could be too small.
    """
    if mode is Mode.UNCONSTRAINED and not pool.nodes and pool.growth is None:
        return None
    if any(size >= variant.gpus_per_pod for size in node_sizes(pool, domain)):
        return None
    largest = max(node_sizes(pool, domain), default=0)
    facts: dict[str, Fact] = {"gpus_per_pod": variant.gpus_per_pod, "largest_node_gpus": largest}
    return Refusal(Reason.POD_LARGER_THAN_NODE, facts | ({} if domain is None else {"fabric_domain": domain}))


def _denied(places: AllowedPlaces, pool: Pool) -> Iterator[Refusal]:
    for what, reason, is_in, denied in (
        ("accelerator", Reason.ACCELERATOR_NOT_ALLOWED, pool.accelerator, places.deny_accelerators),
        ("pool", Reason.POOL_NOT_ALLOWED, pool.id, places.deny_pools),
        ("region", Reason.REGION_NOT_ALLOWED, pool.region, places.deny_regions),
        ("cluster", Reason.CLUSTER_NOT_ALLOWED, pool.cluster, places.deny_clusters),
    ):
        if is_in in denied:
            yield Refusal(reason, {what: is_in, "rule": f"deny_{what}s"})


def _not_allowed(places: AllowedPlaces, variant: Variant, pool: Pool) -> Iterator[Refusal]:
    for what, reason, is_in, allowed in (
        ("accelerator", Reason.ACCELERATOR_NOT_ALLOWED, pool.accelerator, places.allow_accelerators),
        ("pool", Reason.POOL_NOT_ALLOWED, pool.id, places.allow_pools),
        ("region", Reason.REGION_NOT_ALLOWED, pool.region, places.allow_regions),
        ("cluster", Reason.CLUSTER_NOT_ALLOWED, pool.cluster, places.allow_clusters),
    ):
        if allowed and is_in not in allowed:
            yield Refusal(reason, {what: is_in, "rule": f"allow_{what}s"})
    if variant.pools and pool.id not in variant.pools:
        yield Refusal(Reason.POOL_NOT_ALLOWED, {"pool": pool.id, "rule": "pools of the variant"})
    if places.residency and pool.residency not in places.residency:
        yield Refusal(
            Reason.RESIDENCY_NOT_ALLOWED,
            {"residency": pool.residency, "allowed": ", ".join(sorted(places.residency))},
        )
