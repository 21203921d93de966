"""Accelerators and variants of one or several Kubernetes clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import Field

from models.ids import Name
from models.observation import Finding
from models.value import Value
from planner.catalog import Catalog, load_catalog
from planner.clock import Clock
from planner.control.cluster import Api, ClusterFault, ClusterOptions, connect_all, of_each
from planner.control.cluster.kinds import (
    HORIZONTAL_POD_AUTOSCALERS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    SCALED_OBJECTS,
    VARIANT_AUTOSCALINGS,
    WORKLOADS,
)
from planner.control.cluster.reading import annotations_of, at, items_of, name_of
from planner.control.discovery.inventory import Tolerating, pools_of, quotas_of
from planner.control.discovery.naming import Names
from planner.control.discovery.nodes import nodes_of
from planner.control.discovery.pods import pods_of
from planner.control.discovery.scalers import PAUSED, Declared, declared, is_true
from planner.control.discovery.snapshot import CAPACITY_KINDS, VARIANT_KINDS, Snapshot, snapshot
from planner.control.discovery.variants import Fleet, observe_variants
from planner.control.discovery.workloads import workload_of
from planner.control.options import options_of
from planner.control.protocols import ClusterReading, Inventory

__all__ = ["DiscoveryOptions", "KubernetesDiscovery", "read_snapshot", "source"]

EXCLUDE: Final = "wva.llmd.ai/exclude"
_MOST_FINDINGS: Final = 200


class DiscoveryOptions(Value):
    """Which clusters are read, and how."""

    clusters: tuple[ClusterOptions, ...] = Field(
        (),
        max_length=100,
        description="where they are; empty: the current context, or the cluster that we run in",
    )
    namespaces: tuple[Name, ...] = Field((), description="whose variants are ours; empty: all")
    exclude: tuple[Name, ...] = Field((), description="namespaces whose variants are not ours")
    controller_instance: str | None = Field(
        None, min_length=1, max_length=63,
        description="label wva.llmd.ai/controller-instance that scalers must carry; None: whatever they carry",
    )  # fmt: skip
    node_selector: str = Field(
        "", max_length=4096, description="label selector of the nodes that count; empty: all"
    )
    labels: tuple[str, ...] = Field(
        (), description="further labels of nodes and pods that name the accelerator"
    )
    resources: Mapping[str, Name] = Field(
        {}, description="accelerator by resource, where no label says it; also of resources of other vendors"
    )
    tolerations: tuple[Mapping[str, str], ...] = Field(
        (), description="that pods get beside those of their template (key, operator, value, effect)"
    )


class KubernetesDiscovery:
    """Reads clusters; nothing that it cannot reach or understand raises.

    Args:
        apis: of the clusters, each with a name where there are several.
        options: what of them.
        catalog: knows accelerators by their aliases.
    """

    def __init__(self, apis: Sequence[Api], options: DiscoveryOptions, catalog: Catalog) -> None:
        self.apis = tuple(apis)
        self.options = options
        self._catalog = catalog

    def see(self, now_s: float) -> ClusterReading:
        """See :class:`planner.control.protocols.FleetDiscovery`."""

        def ask(api: Api) -> Snapshot:
            return snapshot(api, self.options.namespaces, node_selector=self.options.node_selector)

        seen, faults = of_each(self.apis, ask)
        readings = [
            read_snapshot(seen[api.name], self.options, self._catalog)
            if api.name in seen
            else _unseen(api, faults[api.name])
            for api in self.apis
        ]
        return ClusterReading(
            variants=tuple(each for one in readings for each in one.variants),
            inventory=Inventory(
                pools=tuple(each for one in readings for each in one.inventory.pools),
                quotas=tuple(each for one in readings for each in one.inventory.quotas),
                findings=tuple(each for one in readings for each in one.inventory.findings),
                complete=all(one.inventory.complete for one in readings),
            ),
            findings=tuple(each for one in readings for each in one.findings),
            complete=all(one.complete for one in readings),
        )

    def discover(self, now_s: float) -> Inventory:
        """See :class:`planner.control.protocols.CapacityDiscovery`; findings about variants are among its findings."""
        seen = self.see(now_s)
        inventory = seen.inventory
        return replace(
            inventory,
            findings=(*inventory.findings, *seen.findings),
            complete=inventory.complete and seen.complete,
        )


def _unseen(api: Api, fault: ClusterFault) -> ClusterReading:
    finding = Finding(subject=f"cluster {api.name or ''}".strip(), problem=fault.message, remedy=fault.remedy)
    return ClusterReading(inventory=Inventory(complete=False), findings=(finding,), complete=False)


def read_snapshot(seen: Snapshot, options: DiscoveryOptions, catalog: Catalog) -> ClusterReading:
    """What a snapshot of a cluster says of variants and accelerators.

    Args:
        seen: objects as the API has them.
        options: what of them is ours.
        catalog: knows accelerators by their aliases.
    """
    names = Names(catalog, options.labels, options.resources)
    nodes, about_nodes = nodes_of(seen.of(NODES), names)
    pods = pods_of(seen.of(PODS), seen.of(REPLICA_SETS))
    workloads = [workload_of(each, kind) for kind, plural in WORKLOADS.items() for each in seen.of(plural)]
    ours, about_scalers = _declared(seen, options)
    fleet = Fleet.of(workloads, pods, nodes)
    variants, about_variants = observe_variants(ours, fleet, seen, names, _marked(seen, PAUSED))
    kept = {(each.target.kind, each.namespace, each.target.name): each.accelerator for each in variants}
    tolerating = [
        Tolerating(accelerator, tuple(items_of(at(fleet.workloads[owner].leader, "tolerations"))))
        for owner, accelerator in kept.items()
        if owner in fleet.workloads
    ]
    quotas, about_quotas = quotas_of(seen.of(RESOURCE_QUOTAS), pods, names, cluster=seen.cluster)
    pools = pools_of(
        nodes, pods, cluster=seen.cluster, managed=set(kept), tolerating=tolerating, further=options.tolerations
    )  # fmt: skip
    return ClusterReading(
        variants=variants,
        inventory=Inventory(
            pools=pools,
            quotas=quotas,
            findings=(*about_nodes, *about_quotas)[:_MOST_FINDINGS],
            complete=seen.knows(CAPACITY_KINDS),
        ),
        findings=(*seen.findings, *about_scalers, *about_variants)[:_MOST_FINDINGS],
        complete=seen.knows(VARIANT_KINDS),
    )


def _declared(seen: Snapshot, options: DiscoveryOptions) -> tuple[list[Declared], tuple[Finding, ...]]:
    found, findings = declared(
        seen.of(SCALED_OBJECTS),
        seen.of(HORIZONTAL_POD_AUTOSCALERS),
        seen.of(VARIANT_AUTOSCALINGS),
        instance=options.controller_instance,
    )
    out = {*options.exclude, *_marked(seen, EXCLUDE)}
    mine = [
        each
        for each in found
        if each.namespace not in out and (not options.namespaces or each.namespace in options.namespaces)
    ]
    return mine, findings


def _marked(seen: Snapshot, annotation: str) -> frozenset[str]:
    """Namespaces with an annotation that says yes."""
    return frozenset(
        name_of(each) for each in seen.of(NAMESPACES) if is_true(annotations_of(each).get(annotation))
    )


def source(options: Mapping[str, Any], clock: Clock) -> KubernetesDiscovery:
    """Make the discovery of these options; nothing is read yet.

    Raises:
        ConfigurationError: lists everything that is wrong with options and kubeconfigs.
    """
    read = options_of(DiscoveryOptions, "kubernetes", options)
    return KubernetesDiscovery(connect_all(read.clusters or (ClusterOptions(),), clock), read, load_catalog())
