"""What the token analyzer remembers from cycle to cycle, as a value: compute limits that were seen, and capacities.

A window of ten observed compute limits is kept per engine, GPU count and class of output lengths; one capacity per
variant. Memories are never changed: each function returns a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from planner.saturation.readings import EngineLimits, VariantReading

__all__ = ["LimitKey", "OutputClass", "Stored", "TokenMemory", "VariantKey", "output_class"]

_WINDOW: Final = 10
_LIMITS_KEPT_S: Final = 24 * 3600.0
_CAPACITIES_KEPT_S: Final = 7 * 24 * 3600.0
_BORROWED_UP_TO_S: Final = 30 * 60.0


class OutputClass(StrEnum):
    """Class of output lengths that share one history."""

    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"


def output_class(output_tokens: float) -> OutputClass:
    """Short below 100 tokens, medium below 500, else long."""
    if output_tokens < 100:  # noqa: PLR2004 - the published classes
        return OutputClass.SHORT
    return OutputClass.MEDIUM if output_tokens < 500 else OutputClass.LONG  # noqa: PLR2004 - the same


class LimitKey(NamedTuple):
    """Whose compute limits are alike."""

    llm: str
    accelerator: str
    gpus: int
    outputs: OutputClass


class VariantKey(NamedTuple):
    """One variant: an LLM may be served in several namespaces."""

    llm: str
    namespace: str
    variant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Capacity of one replica as last seen running.

    Attributes:
        effective: tokens that it may hold, τ and compute limit applied.
        at_s: when.
        accelerator: GPU type.
        gpus: GPUs of one replica.
        limits: of its engine.
    """

    effective: int
    at_s: float
    accelerator: str = ""
    gpus: int = 1
    limits: EngineLimits | None = None

    def fits(self, variant: VariantReading) -> bool:
        """Whether a replica of ``variant`` is alike: accelerator, GPUs and engine."""
        return (self.accelerator, self.gpus, self.limits) == (
            variant.accelerator,
            variant.gpus,
            variant.limits,
        )


@dataclass(frozen=True, slots=True)
class TokenMemory:
    """Observed compute limits with their times, newest last, and capacities by variant."""

    limits: Mapping[LimitKey, tuple[tuple[float, int], ...]] = field(default_factory=dict)
    stored: Mapping[VariantKey, Stored] = field(default_factory=dict)

    def seen(self, key: LimitKey, tokens: Iterable[int], *, now_s: float) -> TokenMemory:
        """With compute limits that were observed now; the ten newest stay, none older than 24 hours."""
        window = tuple([*self._recent(key, now_s), *((now_s, k2) for k2 in tokens)][-_WINDOW:])
        return replace(self, limits={**self.limits, key: window})

    def usual_limit(self, key: LimitKey, *, now_s: float) -> int | None:
        """Mean of the window; None: nothing was observed in the last 24 hours."""
        known = [k2 for _, k2 in self._recent(key, now_s)]
        return sum(known) // len(known) if known else None

    def _recent(self, key: LimitKey, now_s: float) -> list[tuple[float, int]]:
        return [(at, k2) for at, k2 in self.limits.get(key, ()) if now_s - at <= _LIMITS_KEPT_S]

    def ran(self, capacities: Mapping[VariantKey, Stored], *, now_s: float) -> TokenMemory:
        """With the capacities of variants that run; others are forgotten after seven days."""
        kept = {name: old for name, old in self.stored.items() if now_s - old.at_s <= _CAPACITIES_KEPT_S}
        return replace(self, stored={**kept, **capacities})

    def own(self, key: VariantKey, *, now_s: float) -> Stored | None:
        """Capacity that this variant had when it last ran, at most seven days ago."""
        found = self.stored.get(key)
        return found if found is not None and now_s - found.at_s <= _CAPACITIES_KEPT_S else None

    def alike(self, key: VariantKey, variant: VariantReading, *, now_s: float) -> Stored | None:
        """Newest capacity of another variant of the same LLM, in any namespace, that is alike and at most 30 min old."""
        found = [
            (stored.at_s, name)
            for name, stored in self.stored.items()
            if name != key and name.llm == key.llm and stored.fits(variant)
            if now_s - stored.at_s <= _BORROWED_UP_TO_S
        ]
        return self.stored[max(found)[1]] if found else None
