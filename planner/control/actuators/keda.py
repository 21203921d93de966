"""Holding ScaledObjects at what was decided, by KEDA's own annotation; for where no gauge is scraped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from models.observation import VariantObservation
from models.value import Value
from planner.control.actuators.connections import Connections
from planner.control.actuators.holding import freed_keda, held_keda
from planner.control.actuators.scaling import gone
from planner.control.actuators.writing import Ahead, Way, in_each_cluster, outcome, release_each, settle
from planner.control.cluster import Api
from planner.control.cluster.kinds import SCALED_OBJECTS
from planner.control.options import options_of
from planner.control.protocols import Decision, Outcome, OutcomeCode

__all__ = ["KedaActuator", "KedaOptions", "actuator"]


class KedaOptions(Value):
    """Options of the actuator ``keda``."""

    force: bool = Field(
        True, description="take the annotation from whoever wrote it; off: that is a conflict"
    )


class KedaActuator:
    """Writes ``autoscaling.keda.sh/paused-replicas`` of ScaledObjects; a pause of people stays as it is.

    Args:
        options: how.
        connections: to the clusters.
    """

    def __init__(self, options: KedaOptions, connections: Connections) -> None:
        self._options = options
        self._connections = connections

    def act(self, decisions: Sequence[Decision], *, dry_run: bool) -> Sequence[Outcome]:
        """See :class:`planner.control.protocols.Actuator`."""
        way = Way(dry_run=dry_run, force=self._options.force)
        ahead = Ahead(SCALED_OBJECTS, decisions)
        return in_each_cluster(decisions, self._connections, lambda api, one: _act(api, one, ahead, way))

    def release(self, variants: Sequence[VariantObservation], *, dry_run: bool) -> Sequence[Outcome]:
        """See :class:`planner.control.actuators.fleet.Releasing`."""
        ours = filter(_is_ours, variants)
        return release_each(
            SCALED_OBJECTS, ours, connections=self._connections, freed=freed_keda, dry_run=dry_run
        )


def _is_ours(variant: VariantObservation) -> bool:
    return variant.target.scaler == "keda" and not variant.paused


def _act(api: Api, decision: Decision, ahead: Ahead, way: Way) -> Outcome:
    if not _is_ours(decision.variant):
        return outcome(decision, OutcomeCode.LEFT)
    if (missing := gone(decision)) is not None:
        return missing
    where = ahead, decision.variant.name
    return settle(api, decision, where, lambda found: held_keda(found, decision.desired), way=way)


def actuator(options: Mapping[str, object], connections: Connections) -> KedaActuator:
    """The actuator ``keda``.

    Raises:
        ConfigurationError: an option is wrong.
    """
    return KedaActuator(options_of(KedaOptions, "keda", options), connections)
