"""Writing replica counts directly, where nobody else scales: no HPA, no ScaledObject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from models.value import Value
from planner.control.actuators.connections import Connections
from planner.control.actuators.scaling import gone, set_replicas
from planner.control.actuators.writing import in_each_cluster, outcome
from planner.control.cluster import Api
from planner.control.cluster.kinds import HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS
from planner.control.cluster.reading import name_of, scaled_by
from planner.control.options import options_of
from planner.control.protocols import Decision, Outcome, OutcomeCode

__all__ = ["ScaleActuator", "ScaleOptions", "actuator"]


class ScaleOptions(Value):
    """Options of the actuator ``scale``."""

    wake_scalers: bool = Field(
        False, description="also wake targets of HPAs from zero, where an HPA rests and would never do it"
    )


class ScaleActuator:
    """Writes the scale subresource of Deployments, StatefulSets and LeaderWorkerSets.

    One owner for each field: where an HPA or a ScaledObject scales the same workload it is left to that.

    Args:
        options: how.
        connections: to the clusters.
    """

    def __init__(self, options: ScaleOptions, connections: Connections) -> None:
        self._options = options
        self._connections = connections

    def act(self, decisions: Sequence[Decision], *, dry_run: bool) -> Sequence[Outcome]:
        """See :class:`planner.control.protocols.Actuator`."""

        def attempt(api: Api, decision: Decision) -> Outcome:
            return self._act(api, decision, dry_run=dry_run)

        return in_each_cluster(decisions, self._connections, attempt)

    def _act(self, api: Api, decision: Decision, *, dry_run: bool) -> Outcome:
        variant = decision.variant
        wakes = self._options.wake_scalers and variant.target.scaler == "hpa" and variant.wanted == 0
        direct = variant.target.scaler in {"scale", "variantautoscaling"}
        if variant.paused or not (direct or (wakes and decision.desired)):
            return outcome(decision, OutcomeCode.LEFT)
        if (missing := gone(decision)) is not None:
            return missing
        if decision.desired == variant.wanted:
            return outcome(decision, OutcomeCode.SAME)
        owner = _owner(api, decision) if direct else ""
        if owner:
            return outcome(
                decision, OutcomeCode.LEFT, f"{owner} owns the count: use the actuator gauge, or remove it"
            )
        return set_replicas(api, decision, dry_run=dry_run)


def _owner(api: Api, decision: Decision) -> str:
    """The scaler that scales the same workload; empty: nobody does."""
    variant = decision.variant
    for kind in (SCALED_OBJECTS, HORIZONTAL_POD_AUTOSCALERS):
        listing = api.list_if_served(kind, variant.namespace)
        for thing in () if listing is None else listing.items:
            if scaled_by(thing) == (variant.target.kind, variant.target.name):
                return f"{kind.name} {variant.namespace}/{name_of(thing)}"
    return ""


def actuator(options: Mapping[str, object], connections: Connections) -> ScaleActuator:
    """The actuator ``scale``.

    Raises:
        ConfigurationError: an option is wrong.
    """
    return ScaleActuator(options_of(ScaleOptions, "scale", options), connections)
