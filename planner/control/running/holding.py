"""Writing down in the cluster that people set replicas by hand, so that everybody sees it and a restart knows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from models.observation import Finding
from planner.control.cluster import Api, ClusterFault
from planner.control.cluster.kinds import WORKLOADS
from planner.control.deciding.people_hands import Edit
from planner.control.discovery.scalers import HELD

__all__ = ["Notes"]


@dataclass(frozen=True, slots=True)
class Notes:
    """Annotates workloads.

    Args:
        apis: of the clusters, by name.
    """

    apis: Mapping[str | None, Api]

    def write(self, edits: Iterable[Edit]) -> tuple[tuple[Edit, ...], tuple[Finding, ...]]:
        """Say at each workload who holds it and how to release it.

        Returns:
            Those that could not be written down, and why.
        """
        failed: list[Edit] = []
        findings: list[Finding] = []
        for edit in edits:
            target, variant = edit.variant.target, edit.variant
            subject = f"{target.kind} {variant.namespace}/{target.name}"
            api = self.apis.get(variant.cluster) or (
                next(iter(self.apis.values())) if len(self.apis) == 1 else None
            )
            try:
                if api is None:
                    failed.append(edit)
                    continue
                change = {"metadata": {"annotations": {HELD: edit.note}}}
                api.patch(WORKLOADS[target.kind], variant.namespace, target.name, change)
            except ClusterFault as fault:
                failed.append(edit)
                problem = f"{edit.note.partition(';')[0]}, which is respected but could not be noted: {fault.message}"
                findings.append(Finding(subject=subject, problem=problem[:1000], remedy=fault.remedy))
        return tuple(failed), tuple(findings)
