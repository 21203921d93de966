"""Accelerators that really are there: physical and quota, node by node; cordoned nodes and foreign pods do not count.

Only how many accelerators each node has free matters, not which node it is, so a pool is a count of nodes by what they
have free. Pods of ours whose nodes are known are where they are; those that are on order come before any growth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from models.hardware import Pool
from models.observation import QuotaObservation, VariantObservation
from planner.control.analysis.reading import UNNAMED
from planner.saturation.published import UNBOUNDED, Budget

__all__ = ["Room", "pool_key", "speaks_of"]

_REQUESTS: Final = "requests."
_MOST_NAMED: Final = 1_000
"""Alike nodes of one entry that get names, so that pods can be found on them; of more only their number counts."""
_MAKERS: Final = {
    "nvidia.com": "nvidia",
    "amd.com": "amd",
    "gpu.intel.com": "intel",
    "habana.ai": "intel",
    "google.com": "google",
}
Maker = Callable[[str], str | None]
"""Who makes an accelerator type; None: nobody knows."""


class _Taken(NamedTuple):
    """Replicas that there is room for, and what stands in the way of more: ``accelerators``, ``quota``, or nothing."""

    replicas: int
    limit: str = ""


def pool_key(cluster: str | None, accelerator: str) -> str:
    """Accelerators of one type in one cluster."""
    return f"{cluster}/{accelerator}" if cluster else accelerator


def speaks_of(resource: str, accelerator: str, maker: str | None) -> bool:
    """Whether a quota on a resource counts accelerators of a type.

    Slices and shares have resources of their own; where the maker is not known the quota is taken to hold.
    """
    domain, _, name = resource.removeprefix(_REQUESTS).partition("/")
    if name.startswith("mig-"):
        return accelerator.lower().endswith(f"-{name}")
    if name.endswith(".shared"):
        return accelerator.endswith("-shared")
    return maker is None or _MAKERS.get(domain, maker) == maker


@dataclass(slots=True)
class Room:
    """What is free, by pool; taking changes it.

    Attributes:
        free: nodes by free accelerators, by pool; empty: no inventory is known, and nothing is limited by it.
        quotas: accelerators that a quota leaves, each with what it speaks of.
        maker: of accelerator types.
    """

    free: dict[str, dict[int, int]] = field(default_factory=dict)
    quotas: list[tuple[QuotaObservation, int]] = field(default_factory=list)
    maker: Maker = lambda _: None

    @classmethod
    def of(
        cls,
        pools: Iterable[Pool],
        quotas: Iterable[QuotaObservation],
        variants: Iterable[VariantObservation],
        *,
        staying: Iterable[VariantObservation] = (),
        maker: Maker = lambda _: None,
    ) -> Room:
        """What pools and quotas leave beside the replicas of these variants that run or are on order.

        Args:
            pools: with foreign use by node.
            quotas: with what is used of them.
            variants: whose replicas are in the way.
            staying: variants whose replicas are not; what they hold on nodes that take no other pods is theirs too.
            maker: of accelerator types.
        """
        nodes: dict[str, dict[str, int]] = defaultdict(dict)
        many: list[tuple[str, int, int]] = []
        for pool in pools:
            key = pool_key(pool.cluster, pool.accelerator)
            mine = nodes[key]
            for node in pool.nodes:
                usable = node.ready and not node.cordoned and not node.tainted
                left = node.gpus - node.foreign_gpus if usable else -1
                if node.count == 1:
                    mine[node.id] = left
                elif node.count > _MOST_NAMED:
                    many.append((key, left, node.count))
                else:
                    mine.update({f"{node.id}-{place}": left for place in range(node.count)})
        homeless = _seat(nodes, variants)
        _keep(nodes, staying)
        room = cls(
            free={key: _tally(of_pool.values()) for key, of_pool in nodes.items()},
            quotas=[(quota, max(0, quota.hard - quota.used)) for quota in quotas],
            maker=maker,
        )
        for key, left, count in many:
            if left > 0:
                room.free[key][left] = room.free[key].get(left, 0) + count
        for key, gpus, pods in sorted(homeless, reverse=True):
            room._take_pods(key, gpus, pods)
        return room

    def key_of(self, variant: VariantObservation) -> str | None:
        """The pool that a variant draws from; None: not known, or no inventory is, so that nothing limits it.

        A variant whose accelerator is unknown draws from the only type of its cluster.
        """
        if not self.free:
            return None
        if variant.accelerator:
            return pool_key(variant.cluster, variant.accelerator)
        prefix = f"{variant.cluster}/" if variant.cluster else ""
        here = [key for key in self.free if key.startswith(prefix)]
        return here[0] if len(here) == 1 else None

    def fitting(self, variant: VariantObservation) -> int:
        """Replicas of a variant that there is room for now."""
        return min(self._physical(variant), self._allowed(variant))

    def take(self, variant: VariantObservation, replicas: int) -> _Taken:
        """Give up to so many replicas their accelerators."""
        physical, allowed = self._physical(variant), self._allowed(variant)
        count = max(0, min(replicas, physical, allowed))
        key = self.key_of(variant)
        if key is not None:
            self._take_pods(key, _pod(variant), count * variant.pods_per_replica)
        self.quotas = [
            (quota, left - count * variant.gpus if self.binds(quota, variant) else left)
            for quota, left in self.quotas
        ]
        if count >= replicas:
            return _Taken(count)
        return _Taken(count, "quota" if allowed < physical else "accelerators")

    def budget(self, namespaces: Iterable[str]) -> Budget:
        """Free accelerators as the published rules read them; an unknown type is not limited, nor is what no quota names."""
        cluster = {
            key: sum(size * count for size, count in sizes.items()) for key, sizes in self.free.items()
        }
        clusters = {key.rpartition("/")[0] for key in self.free}
        unnamed = {pool_key(name or None, UNNAMED): UNBOUNDED for name in clusters}
        listed: dict[str, dict[str, int]] = {}
        for namespace in namespaces:
            mine = {key: self._quota_left(namespace, key) for key in cluster}
            if any(left < UNBOUNDED for left in mine.values()):
                listed[namespace] = mine | unnamed
        return Budget(cluster | unnamed, listed)

    def _quota_left(self, namespace: str, key: str) -> int:
        cluster, _, accelerator = key.rpartition("/")
        left = [
            gpus
            for quota, gpus in self.quotas
            if quota.namespace == namespace
            and (quota.cluster or "") in {"", cluster}
            and speaks_of(quota.resource, accelerator, self.maker(accelerator))
        ]
        return min(left, default=UNBOUNDED)

    def _physical(self, variant: VariantObservation) -> int:
        key = self.key_of(variant)
        if key is None:
            return UNBOUNDED
        pods = sum(size // _pod(variant) * count for size, count in self.free.get(key, {}).items())
        return pods // variant.pods_per_replica

    def _allowed(self, variant: VariantObservation) -> int:
        left = [gpus for quota, gpus in self.quotas if self.binds(quota, variant)]
        return max(0, min(left)) // variant.gpus if left else UNBOUNDED

    def binds(self, quota: QuotaObservation, variant: VariantObservation) -> bool:
        """Whether a quota counts the accelerators of a variant."""
        return (
            quota.namespace == variant.namespace
            and (quota.cluster or "") == (variant.cluster or "")
            and speaks_of(quota.resource, variant.accelerator, self.maker(variant.accelerator))
        )

    def _take_pods(self, key: str, gpus: int, pods: int) -> None:
        """From nodes that have least to spare, so that large pods find theirs; what fits nowhere takes nothing.

        Alike nodes are filled at once: somebody may have asked for a billion replicas.
        """
        sizes = self.free.get(key, {})
        while pods > 0:
            fitting = [size for size, count in sizes.items() if size >= gpus and count > 0]
            if not fitting:
                return
            size = min(fitting)
            each = min(size // gpus, pods)
            nodes = min(sizes[size], pods // each)
            sizes[size] -= nodes
            left = size - each * gpus
            sizes[left] = sizes.get(left, 0) + nodes
            pods -= nodes * each


def _keep(nodes: Mapping[str, dict[str, int]], staying: Iterable[VariantObservation]) -> None:
    """Let nodes that take no pods have room for those that are there."""
    there: dict[tuple[str, str], int] = defaultdict(int)
    for variant in staying:
        key = pool_key(variant.cluster, variant.accelerator)
        for node in variant.nodes[: variant.ready]:
            if nodes.get(key, {}).get(node, 0) < 0:
                there[key, node] += _pod(variant)
    for (key, node), gpus in there.items():
        nodes[key][node] = gpus


def _pod(variant: VariantObservation) -> int:
    return max(1, variant.gpus // variant.pods_per_replica)


def _tally(left: Iterable[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for gpus in left:
        if gpus > 0:
            found[gpus] = found.get(gpus, 0) + 1
    return found


def _seat(
    nodes: Mapping[str, dict[str, int]], variants: Iterable[VariantObservation]
) -> list[tuple[str, int, int]]:
    """Put pods on nodes that are known; (pool, accelerators, how many) of all others that run or are on order."""
    homeless: list[tuple[str, int, int]] = []
    for variant in variants:
        key, gpus = pool_key(variant.cluster, variant.accelerator), _pod(variant)
        mine = nodes.get(key, {})
        expected = max(variant.ready + variant.pending, variant.wanted or 0)
        seated = 0
        for node in variant.nodes[:expected]:
            if node in mine:
                seated += 1
                # Pods on nodes that take none hold nothing that we could use.
                mine[node] = max(0, mine[node] - gpus) if mine[node] >= 0 else -1
        homeless.append((key, gpus, expected * variant.pods_per_replica - seated))
    return homeless
