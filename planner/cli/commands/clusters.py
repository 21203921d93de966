"""Clusters that a command asks: contexts of a kubeconfig, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.observation import Observation
    from planner.control.protocols import ClusterReading

__all__ = ["observed", "see_clusters"]


def see_clusters(
    contexts: Sequence[str], kubeconfig: Path | None, namespaces: Sequence[str]
) -> tuple[float, ClusterReading]:
    """When it was, in seconds of the epoch, and what the clusters say.

    Args:
        contexts: one for each cluster; empty: the current one, or the cluster that we run in.
        kubeconfig: None: the usual one.
        namespaces: whose variants are read; empty: all.

    Raises:
        ConfigurationError: ``kubernetes`` is not installed, or there is no such kubeconfig or context.
    """
    from planner.clock import SystemClock
    from planner.control.discovery.kubernetes import source

    clock = SystemClock()
    clusters = [{"context": context, "kubeconfig": kubeconfig} for context in contexts or (None,)]
    discovery = source({"clusters": clusters, "namespaces": tuple(namespaces)}, clock)
    now_s = clock.unix_s()
    return now_s, discovery.see(now_s)


def observed(seen: Observation, reading: ClusterReading) -> Observation:
    """What engines say, and what clusters say beside it."""
    inventory = reading.inventory
    return seen.but(
        variants=reading.variants,
        pools=inventory.pools,
        quotas=inventory.quotas,
        findings=tuple(dict.fromkeys((*reading.findings, *inventory.findings, *seen.findings))),
        complete=seen.complete and reading.complete and inventory.complete,
    )
