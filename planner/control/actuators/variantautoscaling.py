"""The status of VariantAutoscalings: what was decided, whether it was carried out, and the readiness gates.

Source: llm-d workload-variant-autoscaler v0.8, ``llmd.ai/v1alpha1``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import Field

from models.observation import Condition
from models.value import Value
from planner.control.actuators.connections import Connections
from planner.control.actuators.published import UNRESOLVED, Key
from planner.control.actuators.writing import Ahead, Wanted, Way, in_each_cluster, outcome, settle
from planner.control.cluster import Api
from planner.control.cluster.kinds import VARIANT_AUTOSCALINGS
from planner.control.cluster.reading import Object, as_time, at, count_at, items_of, text_at
from planner.control.options import options_of
from planner.control.protocols import Decision, Outcome, OutcomeCode

__all__ = ["StatusActuator", "StatusOptions", "actuator"]

_LONGEST: Final = 32_768
"""Letters of a message, as conditions of Kubernetes have them at most."""
_PASSIVE: Final = frozenset({OutcomeCode.LEFT, OutcomeCode.WAITING, OutcomeCode.WOULD})


class StatusOptions(Value):
    """Options of the actuator ``variantautoscaling``."""

    force: bool = Field(
        False,
        description="take the status from whoever wrote it; off: that is a conflict, since another autoscaler may run",
    )


class StatusActuator:
    """Writes the status of VariantAutoscalings when something in it changes, and not for the sake of a time stamp.

    Args:
        options: how.
        connections: to the clusters.
    """

    def __init__(self, options: StatusOptions, connections: Connections) -> None:
        self._options = options
        self._connections = connections
        self._carried_out: dict[Key, bool] = {}

    def heard(self, outcomes: Sequence[Outcome]) -> None:
        """See :class:`planner.control.actuators.fleet.Hearing`: a count that did not get out was not applied."""
        found: dict[Key, bool] = {}
        for each in outcomes:
            if each.code not in _PASSIVE:
                key = each.decision.variant.key
                found[key] = found.get(key, True) and each.applied
        self._carried_out = found

    def act(self, decisions: Sequence[Decision], *, dry_run: bool) -> Sequence[Outcome]:
        """See :class:`planner.control.protocols.Actuator`."""
        ours = [one for one in decisions if one.variant.target.scaler == "variantautoscaling"]
        ahead = Ahead(VARIANT_AUTOSCALINGS, ours)
        way = Way(dry_run=dry_run, force=self._options.force, subresource="status")

        def attempt(api: Api, decision: Decision) -> Outcome:
            if decision.variant.target.scaler != "variantautoscaling":
                return outcome(decision, OutcomeCode.LEFT)
            return settle(
                api, decision, (ahead, decision.variant.name), lambda found: self._want(found, decision), way=way
            )  # fmt: skip

        return in_each_cluster(decisions, self._connections, attempt)

    def _want(self, found: Object, decision: Decision) -> Wanted:
        """The status, with times that are new only where what they are of is."""
        variant, now = decision.variant, as_time(self._connections.clock.unix_s())
        applied = self._carried_out.get(variant.key, False)
        # The CRD refuses an accelerator of fewer than two letters, so one that nobody knows has a name.
        accelerator = variant.accelerator if len(variant.accelerator) > 1 else UNRESOLVED
        alloc: dict[str, Any] = {"numReplicas": max(0, decision.desired), "accelerator": accelerator}
        before = at(found, "status", "desiredOptimizedAlloc")
        same = all(at(before, key) == value for key, value in alloc.items())
        last_run = text_at(before, "lastRunTime") if same else ""
        status = {
            "desiredOptimizedAlloc": alloc | {"lastRunTime": last_run or now},
            "actuation": {"applied": applied},
            "conditions": _conditions(found, _gates(decision), now),
        }
        return Wanted(fields={"status": status})


def _gates(decision: Decision) -> tuple[Condition, ...]:
    """The readiness gates; a decision that was made is one of them where nobody said otherwise."""
    gates = decision.variant.conditions
    if any(each.type == "OptimizationReady" for each in gates):
        return gates
    made = Condition(
        type="OptimizationReady", status=True, reason="OptimizationSucceeded", message=decision.message
    )
    return (*gates, made)


def _conditions(found: Object, gates: Sequence[Condition], now: str) -> list[dict[str, Any]]:
    """Conditions as Kubernetes has them, by type.

    Messages hold figures that change in every cycle; a new one alone is no reason to write, so the former one stays.
    """
    before = {text_at(each, "type"): each for each in items_of(at(found, "status", "conditions"))}
    generation = count_at(found, "metadata", "generation")
    made = []
    for gate in sorted(gates, key=lambda each: each.type):
        old = before.get(gate.type, {})
        status = "True" if gate.status else "False"
        turned = text_at(old, "status") != status
        if not turned and text_at(old, "reason") == gate.reason:
            made.append(dict(old))
            continue
        # There are API servers that take an empty text for none, and refuse a condition without a message.
        message = gate.message[:_LONGEST] or gate.reason
        fresh: dict[str, Any] = {
            "type": gate.type, "status": status, "reason": gate.reason, "message": message,
            "lastTransitionTime": now if turned else text_at(old, "lastTransitionTime") or now,
        }  # fmt: skip
        made.append(fresh if generation is None else fresh | {"observedGeneration": generation})
    return made


def actuator(options: Mapping[str, object], connections: Connections) -> StatusActuator:
    """The actuator ``variantautoscaling``.

    Raises:
        ConfigurationError: an option is wrong.
    """
    return StatusActuator(options_of(StatusOptions, "variantautoscaling", options), connections)
