"""A cycle as the controller's own figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from models.cycle_record import CycleKind, VariantDecision
from models.observation import Finding, Freshness
from planner.control.analysis import Ahead
from planner.control.analysis.identity import VariantRef
from planner.control.deciding.people import FROZEN, HELD_BY_PEOPLE, OUTSIDE_HOURS, PAUSED_BY_PEOPLE
from planner.control.running.live import LiveConfiguration
from planner.control.running.metering import Meters
from planner.control.running.recounting import CycleFacts

__all__ = ["CycleMeters"]

_BY_PEOPLE = (PAUSED_BY_PEOPLE, HELD_BY_PEOPLE, OUTSIDE_HOURS, FROZEN)


@dataclass(frozen=True, slots=True)
class CycleMeters:
    """Counts what a cycle did.

    Args:
        meters: take it.
        live: counts edits of the configuration.
    """

    meters: Meters
    live: LiveConfiguration

    def tell(
        self,
        facts: CycleFacts,
        rows: Mapping[VariantRef, VariantDecision],
        *,
        changed: Collection[VariantRef],
        kind: CycleKind,
        before: Collection[Finding],
    ) -> None:
        """Count a cycle.

        Args:
            facts: everything of it.
            rows: its decisions.
            changed: variants whose decision or reason is another one than before.
            kind: of its record.
            before: findings of the cycle before.
        """
        meters, observation = self.meters, facts.observation
        meters.count("cycles_total", kind=str(kind))
        for phase, seconds in facts.seconds.items():
            meters.count("cycle_seconds_total", seconds, phase=phase)
            meters.set("cycle_seconds", seconds, phase=phase)
        for ref in changed:
            if ref in rows:
                meters.count("decisions_total", reason=rows[ref].reason)
        reasons = Counter(each.reason for each in rows.values())
        meters.set_all("variants", "reason", reasons)
        meters.set("held_by_people", sum(reasons[word] for word in _BY_PEOPLE))
        ages = Counter(facts.settings.freshness.of(each.age_s) for each in observation.engines)
        meters.set_all("engines", "freshness", {str(each): float(ages[each]) for each in Freshness})
        meters.set("complete", observation.complete)
        if observation.complete:
            meters.set("last_complete_timestamp_seconds", observation.at_s)
        found = {*facts.findings, *observation.findings}
        meters.set("findings", len(found))
        meters.count("findings_total", len(found - set(before)))
        self._foretold(facts.decided.ahead)
        meters.set("configuration_refused_total", self.live.refused)
        meters.set("configuration_changes_total", self.live.changes)

    def _foretold(self, ahead: Collection[Ahead]) -> None:
        """Forecasts by service; what is not known has no row."""
        expected: dict[tuple[tuple[str, str], ...], float] = {}
        observed: dict[tuple[tuple[str, str], ...], float] = {}
        trusted: dict[tuple[tuple[str, str], ...], float] = {}
        for one in ahead:
            who = (("namespace", one.namespace), ("model", one.model))
            trusted[who] = float(bool(one.method))
            if one.observed is not None and math.isfinite(one.observed):
                observed[*who, ("unit", one.unit)] = one.observed
                expected[*who, ("unit", one.unit)] = one.observed * one.growth
        self.meters.set_rows("forecast_expected", expected)
        self.meters.set_rows("forecast_observed", observed)
        self.meters.set_rows("forecast_trusted", trusted)
