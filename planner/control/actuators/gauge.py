"""The gauge that an HPA or KEDA follows: ``wva_desired_replicas``, one series for each variant, and its companions.

Source: llm-d autoscaling v0.9, emitted metrics; a consumer takes it with the target ``AverageValue: 1``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock

from pydantic import Field

from models.observation import Observation
from models.value import Value
from planner.control.actuators.connections import Connections
from planner.control.actuators.published import Exported, Key, Published, Row
from planner.control.actuators.scaling import gone
from planner.control.actuators.writing import outcome
from planner.control.options import options_of
from planner.control.protocols import Decision, Difference, Outcome, OutcomeCode
from planner.errors import ConfigurationError

__all__ = ["GaugeActuator", "GaugeOptions", "actuator"]


class GaugeOptions(Value):
    """Options of the actuator ``gauge``."""

    companions: bool = Field(
        True,
        description="series beside the counts: current replicas, ratio, scalings, KV cache, accelerators",
    )


class GaugeActuator:
    """Exports what was decided. It says nothing until it leads, and of a variant nothing before it was decided on.

    A count stays until another is decided, also while nothing can be decided: whoever follows it holds still then.

    Args:
        options: which series.
        connections: says which clusters there are, hence whether series name theirs.
    """

    def __init__(self, options: GaugeOptions, connections: Connections) -> None:
        self._lock = Lock()
        self._leads = False
        self._rows: dict[Key, Row] = {}
        self._would: dict[Key, Row] = {}
        self._published = Published(connections, companions=options.companions)

    def lead(self, *, leading: bool) -> None:
        """See :class:`planner.control.actuators.fleet.Leading`; whoever does not lead has no series at all."""
        with self._lock:
            if not leading:
                self._rows, self._would = {}, {}
            self._leads = leading

    def saw(self, observation: Observation) -> None:
        """See :class:`planner.control.actuators.fleet.Seeing`; a series goes with its variant, if that is known to be gone."""
        self._published.saw(observation)
        if not observation.complete:
            return
        there = {each.key for each in observation.variants}
        with self._lock:
            self._rows = {key: row for key, row in self._rows.items() if key in there}
            self._would = {key: row for key, row in self._would.items() if key in there}

    def act(self, decisions: Sequence[Decision], *, dry_run: bool) -> Sequence[Outcome]:
        """See :class:`planner.control.protocols.Actuator`; a dry run has series of another name, which nobody follows."""
        with self._lock:
            if not self._leads:
                return [outcome(one, OutcomeCode.LEFT, "another controller leads") for one in decisions]
            rows = self._would if dry_run else self._rows
            outcomes = [self._set(rows, one, dry_run=dry_run) for one in decisions]
        if not dry_run:
            self._published.decided(decisions, outcomes)
        return outcomes

    def exposition(self, cluster: str | None = None) -> bytes:
        """See :class:`planner.control.actuators.fleet.Exporting`."""
        with self._lock:
            seen = Exported(tuple(self._rows.values()), tuple(self._would.values()), leads=self._leads)
        return self._published.text(seen, cluster)

    def _set(self, rows: dict[Key, Row], decision: Decision, *, dry_run: bool) -> Outcome:
        variant, key = decision.variant, decision.variant.key
        if (missing := gone(decision)) is not None:
            rows.pop(key, None)
            return missing
        before, row = rows.get(key), Row.of(decision)
        rows[key] = row
        if before is not None and before.desired == row.desired:
            return outcome(decision, OutcomeCode.SAME)
        where = f"{variant.cluster}: " if variant.cluster else ""
        change = Difference(
            object=f"{where}series {variant.namespace}/{variant.name}",
            field="wva_desired_replicas",
            before="" if before is None else str(before.desired),
            after=str(row.desired),
        )
        code = OutcomeCode.WOULD if dry_run else OutcomeCode.DONE
        return outcome(decision, code, str(change), (change,))


def actuator(options: Mapping[str, object], connections: Connections) -> GaugeActuator:
    """The actuator ``gauge``.

    Raises:
        ConfigurationError: ``prometheus-client`` is not installed, or an option is wrong.
    """
    try:
        import prometheus_client  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigurationError(
            "the gauge needs the Python package 'prometheus-client': pip install 'fleetplan[metrics]'"
        ) from None
    return GaugeActuator(options_of(GaugeOptions, "gauge", options), connections)
