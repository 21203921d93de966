"""Which clusters a plan is carried out on: those that its pools name, as contexts of a kubeconfig."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from planner.clock import Clock
from planner.control.cluster import Api, ClusterOptions, connect_all
from planner.errors import ConfigurationError, Finding
from planner.manifests import Route

__all__ = ["Apis", "apis_of"]

Apis = Mapping[str, Api]
"""By name of the cluster; empty: the only one, which has none."""


def apis_of(
    route: Route, clock: Clock, *, context: str | None = None, kubeconfig: Path | None = None
) -> Apis:
    """The clusters of a plan's objects; nothing is asked of them yet.

    Args:
        route: with the objects.
        clock: for waits.
        context: of the kubeconfig, where there is one cluster; None: that of its name, else the current one.
        kubeconfig: None: the usual one.

    Raises:
        ConfigurationError: there is no such context or kubeconfig, ``kubernetes`` is not installed, or one context
            is named for several clusters.
    """
    names = route.clusters or ("",)
    if context is not None and len(names) > 1:
        found = f"objects in the clusters {', '.join(name or 'one without a name' for name in names)}"
        allowed = "--cluster beside it, or contexts that are called like the clusters"
        raise ConfigurationError.from_findings([Finding("", None, "--context", found, allowed)])
    options = [
        ClusterOptions(name=name or None, kubeconfig=kubeconfig, context=context or name or None)
        for name in names
    ]
    if len(options) > 1 and "" in names:
        found = "pools of a cluster without a name beside others"
        raise ConfigurationError.from_findings(
            [Finding("", None, "pools", found, "a cluster for every pool, or for none")]
        )
    return dict(zip(names, connect_all(options, clock), strict=True))
