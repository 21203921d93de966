"""Where replicas run: nodes with free GPUs, or a number of GPUs per type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from models.simulation import ReplicaSpec, TwinSpec

__all__ = ["Hosts"]


@dataclass(slots=True)
class Hosts:
    """GPUs that are free, by node and by type; changes as replicas come and go.

    Attributes:
        types: type of GPU of each node.
        free: GPUs free by node, in the order of the spec.
        pools: GPUs free by type, for types without nodes that are bounded.
        held: node (empty where there is none), type and GPUs of each replica.
    """

    types: dict[str, str]
    free: dict[str, int]
    pools: dict[str, int]
    held: dict[int, tuple[str, str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: TwinSpec) -> Self:
        """All that the fleet has, free."""
        types = {node.name: node.gpu_type for node in spec.nodes}
        pools = {name: count for name, count in spec.gpus.items() if name not in types.values()}
        return cls(types, {node.name: node.gpus for node in spec.nodes}, pools)

    def place(self, replica: int, spec: ReplicaSpec, gpus: int) -> bool:
        """Take GPUs for a replica, on the first node with room; False where there is no room."""
        if spec.gpu_type in self.types.values():
            for node, free in self.free.items():
                if self.types[node] == spec.gpu_type and free >= gpus:
                    self.free[node] -= gpus
                    self.held[replica] = (node, spec.gpu_type, gpus)
                    return True
            return False
        if self.pools.get(spec.gpu_type, gpus) < gpus:
            return False
        if spec.gpu_type in self.pools:
            self.pools[spec.gpu_type] -= gpus
        self.held[replica] = ("", spec.gpu_type, gpus)
        return True

    def resize(self, replica: int, gpus: int) -> bool:
        """Let a replica have so many GPUs from now on; False where its node or type has too few."""
        node, gpu_type, has = self.held[replica]
        more = gpus - has
        store, key = (self.free, node) if node else (self.pools, gpu_type)
        if key in store:
            if store[key] < more:
                return False
            store[key] -= more
        self.held[replica] = (node, gpu_type, gpus)
        return True

    def release(self, replica: int) -> None:
        """Give back what a replica has; a node that is lost takes nothing."""
        node, gpu_type, gpus = self.held.pop(replica)
        if node in self.free:
            self.free[node] += gpus
        elif not node and gpu_type in self.pools:
            self.pools[gpu_type] += gpus

    def lose(self, node: str) -> list[int]:
        """A node is gone; replicas that ran there."""
        self.free.pop(node, None)
        return [replica for replica, (host, _, _) in self.held.items() if host == node]

    def gpus_of(self, replica: int) -> int:
        """GPUs that a replica has; 0 where it has none."""
        return self.held[replica][2] if replica in self.held else 0
