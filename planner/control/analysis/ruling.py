"""Which rules hold for a variant, a role and a service: the settings with every override that speaks of it.

What is compared replica by replica (τ, steps, windows, bands) is looked up for each variant. What is said of all replicas
of a role together (γ, δ, bounds of the threshold step) is the mean over them. What is of the service alone (policy,
priority, promises, zero) comes from overrides that cover all its variants.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from models.autoscaling import ScalingBounds
from models.controller import ControllerSettings, Override, Rules
from models.observation import Finding, VariantObservation
from models.saturation import SaturationThresholds

__all__ = ["RoleRules", "RuleBook"]

_OF_SERVICE = (
    "policy",
    "min_non_saturated",
    "priority",
    "scale_to_zero",
    "retention_s",
    "ttft_s",
    "itl_s",
    "delta",
    "forecast",
    "forecast_quantile",
    "forecast_season_s",
    "forecast_lead_s",
    "forecast_most",
)
_AGREED = ("cluster", "name", "role", "accelerator")
_Weighted = Sequence[tuple[Rules, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRules:
    """Of all replicas of one role of a service.

    Attributes:
        thresholds: τ is the largest of its variants, γ the mean; see ``ServiceReading.role_thresholds``.
        bounds: mean bounds of the threshold step.
        rules: of the role, for what is not pooled.
    """

    thresholds: SaturationThresholds
    bounds: ScalingBounds
    rules: Rules

    @property
    def usable(self) -> float:
        """Share of the capacity up to τ that may be in use before γ asks for more: (τ - γ) / τ."""
        return (self.thresholds.tau_kv - self.thresholds.gamma_kv) / self.thresholds.tau_kv


class RuleBook:
    """Looks rules up.

    Args:
        settings: with overrides.
    """

    def __init__(self, settings: ControllerSettings) -> None:
        self._settings = settings
        self._filed: dict[tuple[str | None, str | None], list[tuple[int, Override]]] = defaultdict(list)
        for place, each in enumerate(settings.overrides):
            self._filed[each.namespace, each.model].append((place, each))
        self._found: dict[tuple[int, ...], Rules] = {}
        self._alike: dict[int, RoleRules] = {}

    def of(self, variant: VariantObservation) -> Rules:
        """Of one variant."""
        if not self._filed:
            return self._settings.rules
        keys = {(n, m) for n in (None, variant.namespace) for m in (None, variant.model)}
        near = sorted(entry for key in keys for entry in self._filed.get(key, ()))
        covering = [(place, each) for place, each in near if each.covers(variant)]
        chosen = tuple(place for place, _ in covering)
        if chosen not in self._found:
            self._found[chosen] = self._settings.rules_under(each for _, each in covering)
        return self._found[chosen]

    def of_all(self, variants: Sequence[VariantObservation]) -> Rules:
        """Of several variants of one service together: by overrides that name nothing in which they differ."""
        first = variants[0]
        if not self._filed:
            return self._settings.rules
        differing = {
            name: ""
            for name in _AGREED
            if any(getattr(one, name) != getattr(first, name) for one in variants)
        }
        return self.of(first.model_copy(update=differing) if differing else first)

    def of_role(self, variants: Sequence[VariantObservation]) -> RoleRules:
        """Of the variants of one role of a service."""
        rules = self.of_all(variants)
        each = [(self.of(one), float(max(1, one.wanted or 0))) for one in variants]
        if all(one is rules for one, _ in each):
            # Rules are kept by this book, so that none takes the place of another.
            if id(rules) not in self._alike:
                self._alike[id(rules)] = RoleRules(
                    thresholds=rules.thresholds, bounds=rules.bounds, rules=rules
                )
            return self._alike[id(rules)]
        tau_kv, tau_queue = max(one.tau_kv for one, _ in each), max(one.tau_queue for one, _ in each)
        thresholds = SaturationThresholds(
            tau_kv=tau_kv,
            tau_queue=tau_queue,
            gamma_kv=_mean(each, lambda one: one.gamma_kv),
            gamma_queue=min(tau_queue, _mean(each, lambda one: one.gamma_queue)),
            min_non_saturated_for_scale_in=rules.min_non_saturated,
        )
        bounds = ScalingBounds(up=_mean(each, lambda one: one.up), down=_mean(each, lambda one: one.down))
        return RoleRules(thresholds=thresholds, bounds=bounds, rules=rules)

    def misplaced(self) -> tuple[Finding, ...]:
        """Overrides that set what belongs to a service and name a single variant or accelerator of it."""
        found = []
        for place, each in enumerate(self._settings.overrides):
            narrow = [name for name in ("variant", "accelerator") if getattr(each, name) is not None]
            lost = [name for name in _OF_SERVICE if name in each.changes]
            if narrow and lost:
                found.append(
                    Finding(
                        subject=f"overrides[{place}]",
                        problem=f"{', '.join(lost)} belong to a whole service or role; they count only where all of its "
                        f"variants have this {' and '.join(narrow)}",
                        remedy="name namespace, model or role in place of it",
                    )
                )
        return tuple(found)


def _mean(each: _Weighted, value: Callable[[Rules], float]) -> float:
    """Mean of a rule over replicas."""
    return math.fsum(value(one) * weight for one, weight in each) / math.fsum(weight for _, weight in each)
