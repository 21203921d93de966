"""Setting the replica count of a workload through its scale subresource."""

from __future__ import annotations

from planner.control.actuators.writing import named, outcome
from planner.control.cluster import Api
from planner.control.cluster.kinds import WORKLOADS
from planner.control.protocols import Decision, Difference, Outcome, OutcomeCode

__all__ = ["gone", "set_replicas"]


def gone(decision: Decision) -> Outcome | None:
    """The outcome where the workload was not found when it was looked for; None: it was found."""
    target = decision.variant.target
    if decision.variant.wanted is not None:
        return None
    return outcome(decision, OutcomeCode.GONE, f"there is no {target.kind} {target.name} to scale")


def set_replicas(api: Api, decision: Decision, *, dry_run: bool) -> Outcome:
    """Set the count, from the one that was observed; people or others who changed it since come first.

    Server-side apply is of no use here: APIs before 1.22 lose who owns a count that is applied through ``scale``. What
    protects the count is the version that was read.

    Args:
        api: of the variant's cluster.
        decision: with the count.
        dry_run: the server checks and keeps nothing.

    Raises:
        ClusterFault: the cluster refused, did not answer, or the count changed since.
    """
    variant = decision.variant
    kind, name = WORKLOADS[variant.target.kind], variant.target.name
    scaled = api.scale(kind, variant.namespace, name, decision.desired, seen=variant.wanted, dry_run=dry_run)
    if not scaled.changed:
        return outcome(decision, OutcomeCode.SAME)
    change = Difference(
        object=named(kind, variant, name), field="spec.replicas", before=str(scaled.before), after=str(scaled.after)
    )  # fmt: skip
    return outcome(decision, OutcomeCode.WOULD if dry_run else OutcomeCode.DONE, str(change), (change,))
