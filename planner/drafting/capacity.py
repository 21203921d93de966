"""What one replica carries, judged from engines that run: rate over KV-cache usage, taken to be a straight line.

At usage u a replica serves r req/s; up to τ it is taken to serve r·τ/u, up to the trigger r·(τ − γ)/u. That is how resident
tokens grow with the rate as long as residence times stay (Little's law); near saturation they grow faster, so the figures
are no promise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from models.observation import EngineObservation, VariantObservation
from models.saturation import SaturationThresholds
from models.variant import Capacity

__all__ = ["Carried", "Engines", "capacity_of"]

_LEAST_USAGE: Final = 0.05
"""Below it the line is drawn through noise."""
_MOST_RPS: Final = 1e7


@dataclass(frozen=True, slots=True)
class Carried:
    """What the replicas of one variant were seen to do.

    Attributes:
        capacity: of one replica; without rates where nothing can be concluded.
        usage: mean KV-cache usage that it was concluded from, 0..1; None: none was seen.
    """

    capacity: Capacity
    usage: float | None = None


class Engines:
    """Engines of an observation by the variant that they belong to, and by the model that they serve.

    Args:
        engines: as they were seen.
    """

    def __init__(self, engines: Iterable[EngineObservation]) -> None:
        self._of_variant: dict[tuple[str, str, str], list[EngineObservation]] = defaultdict(list)
        self._of_model: dict[tuple[str, str], list[EngineObservation]] = defaultdict(list)
        self._of_pod: dict[tuple[str, str, str], list[EngineObservation]] = defaultdict(list)
        for each in engines:
            where = (each.cluster or "", each.namespace)
            self._of_variant[(*where, each.variant)].append(each)
            self._of_model[each.namespace, each.model].append(each)
            self._of_pod[(*where, each.pod)].append(each)

    def of_variant(self, variant: VariantObservation) -> Sequence[EngineObservation]:
        """Those of one variant: attributed to it, else those in its pods."""
        where = (variant.cluster or "", variant.namespace)
        found = self._of_variant.get((*where, variant.name), [])
        return found or [each for pod in variant.pods for each in self._of_pod.get((*where, pod), ())]

    def of_pod(self, variant: VariantObservation, pod: str) -> Sequence[EngineObservation]:
        """The ranks in one pod."""
        return self._of_pod.get((variant.cluster or "", variant.namespace, pod), ())

    def of_model(self, namespace: str, model: str) -> Sequence[EngineObservation]:
        """Those that say that they serve a model."""
        return self._of_model.get((namespace, model), ())

    @property
    def models(self) -> Sequence[tuple[str, str]]:
        """Namespaces and models that engines serve, sorted; those that name no model are left out."""
        return sorted(key for key in self._of_model if key[1])


def capacity_of(
    engines: Sequence[EngineObservation], replicas: int, thresholds: SaturationThresholds
) -> Carried:
    """What one replica carries, as far as it can be concluded.

    Args:
        engines: of one variant; ranks of a replica are engines of their own.
        replicas: that they belong to.
        thresholds: τ and γ.
    """
    rates = _known(engine.request_rps for engine in engines)
    usages = _known(engine.kv_now if engine.kv_now is not None else engine.kv_usage for engine in engines)
    tokens = _known(engine.kv_tokens for engine in engines)
    kv_tokens = sum(tokens) / max(1, replicas) if tokens and len(tokens) == len(engines) else None
    usage = fmean(usages) if usages else None
    known = {"kv_tokens": kv_tokens} if kv_tokens else {}
    if usage is None or usage < _LEAST_USAGE or not rates or sum(rates) <= 0 or replicas < 1:
        return Carried(Capacity.model_validate(known), usage)
    rps = sum(rates) / replicas
    surge = min(_MOST_RPS, rps * thresholds.tau_kv / usage)
    rated = min(surge, rps * (thresholds.tau_kv - thresholds.gamma_kv) / usage)
    figures: Mapping[str, float] = {"rated_rps": _rounded(rated), "surge_rps": _rounded(surge)}
    return Carried(Capacity.model_validate({**known, **figures}), usage)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _rounded(value: float) -> float:
    """Four digits: more would be said than is known."""
    return float(f"{value:.4g}")
