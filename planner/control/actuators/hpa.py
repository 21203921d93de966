"""Holding HPAs at what was decided: minimum = maximum, with a record of what they were; for where no gauge is scraped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pydantic import Field

from models.observation import VariantObservation
from models.value import Value
from planner.control.actuators.connections import Connections
from planner.control.actuators.holding import freed_hpa, held_hpa, set_back_by
from planner.control.actuators.published import Key
from planner.control.actuators.scaling import gone, set_replicas
from planner.control.actuators.writing import (
    Ahead,
    Wanted,
    Way,
    in_each_cluster,
    outcome,
    release_each,
    settle,
)
from planner.control.cluster import Api
from planner.control.cluster.kinds import HORIZONTAL_POD_AUTOSCALERS
from planner.control.cluster.reading import Object
from planner.control.options import options_of
from planner.control.protocols import Decision, Outcome, OutcomeCode

__all__ = ["HpaActuator", "HpaOptions", "actuator"]

_TIMES: Final = 3
"""How often bounds are taken again that somebody set back."""


class HpaOptions(Value):
    """Options of the actuator ``hpa``."""

    force: bool = Field(True, description="take the bounds from whoever wrote them; off: that is a conflict")


class HpaActuator:
    """Writes ``minReplicas`` and ``maxReplicas`` of HPAs, both at once, so that no moment has a minimum above the maximum.

    Args:
        options: how.
        connections: to the clusters.
    """

    def __init__(self, options: HpaOptions, connections: Connections) -> None:
        self._options = options
        self._connections = connections
        self._round = 0
        self._set_back: dict[Key, tuple[int, int]] = {}

    def act(self, decisions: Sequence[Decision], *, dry_run: bool) -> Sequence[Outcome]:
        """See :class:`planner.control.protocols.Actuator`."""
        way = Way(dry_run=dry_run, force=self._options.force)
        ahead = Ahead(HORIZONTAL_POD_AUTOSCALERS, decisions)
        self._round += 1
        return in_each_cluster(decisions, self._connections, lambda api, one: self._act(api, one, ahead, way))

    def release(self, variants: Sequence[VariantObservation], *, dry_run: bool) -> Sequence[Outcome]:
        """See :class:`planner.control.actuators.fleet.Releasing`."""
        ours = filter(_is_ours, variants)
        return release_each(
            HORIZONTAL_POD_AUTOSCALERS, ours, connections=self._connections, freed=freed_hpa, dry_run=dry_run
        )

    def _act(self, api: Api, decision: Decision, ahead: Ahead, way: Way) -> Outcome:
        variant = decision.variant
        if not _is_ours(variant):
            return outcome(decision, OutcomeCode.LEFT)
        if (missing := gone(decision)) is not None:
            return missing
        now = variant.wanted or 0

        def want(found: Object) -> Wanted:
            return self._rival(decision, set_back_by(found, decision.desired, now)) or held_hpa(
                found, decision.desired, now
            )

        held = settle(api, decision, (ahead, variant.name), want, way=way)
        rests = decision.desired == 0 or now == 0
        if not rests or decision.desired == now or held.code in {OutcomeCode.LEFT, OutcomeCode.CONFLICT}:
            return held
        # It leaves a target without replicas alone, so the first ones and the last one are set past it.
        scaled = set_replicas(api, decision, dry_run=way.dry_run)
        messages = [each.message for each in (held, scaled) if each.message]
        differences = (*held.differences, *scaled.differences)
        return replace(scaled, message="; ".join(messages), differences=differences)

    def _rival(self, decision: Decision, by: str) -> Wanted | None:
        """The end of a quarrel: whoever sets bounds back each time keeps them until another count is decided."""
        key = decision.variant.key
        if not by:
            self._set_back.pop(key, None)
            return None
        last, times = self._set_back.get(key, (0, 0))
        # Within a round it is worked out again where the object changed.
        times += last != self._round
        self._set_back[key] = self._round, times
        if times <= _TIMES:
            return None
        message = f"{by} sets the bounds back each time: let it ignore them, or leave this HPA to the gauge"
        return Wanted(code=OutcomeCode.CONFLICT, message=message)


def _is_ours(variant: VariantObservation) -> bool:
    return variant.target.scaler == "hpa" and not variant.paused


def actuator(options: Mapping[str, object], connections: Connections) -> HpaActuator:
    """The actuator ``hpa``.

    Raises:
        ConfigurationError: an option is wrong.
    """
    return HpaActuator(options_of(HpaOptions, "hpa", options), connections)
