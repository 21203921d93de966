"""A wish on its way through the rules: where it stands, and which rule moved it last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import is_

from models.explanation import Fact
from planner.control.analysis import Service, VariantRef, VariantSeen
from planner.control.deciding.state import Wish

__all__ = ["Code", "Context", "ServiceWays", "Way"]


class Code(StrEnum):
    """Why a variant has the count that it is to have; one word for events, counters and records."""

    STEADY = "Steady"
    SCALED_UP = "ScaledUp"
    SCALED_DOWN = "ScaledDown"
    SCALED_TO_ZERO = "ScaledToZero"
    PAUSED = "Paused"
    TARGET_NOT_FOUND = "TargetNotFound"
    RESIZING = "Resizing"
    METRICS = "MetricsUnavailable"
    FAILED = "OptimizationFailed"
    KEPT_ONE = "KeptOne"
    MINIMUM = "AtMinimum"
    MAXIMUM = "AtMaximum"
    DEAD_BAND = "DeadBand"
    STABILIZED = "Stabilized"
    NOT_SAFE = "ScaleInNotSafe"
    REPLACEMENT = "WaitsForReplacement"
    STEP = "StepLimited"
    CONSTRAINED = "ResourceConstrained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One variant.

    Attributes:
        seen: with its rules and what is observed of it.
        proposed: what the policy wished for; None: nothing.
        target: where the wish stands.
        code: of the rule that moved it last.
        message: one sentence of that rule.
        fixed: nothing may move it any more: it is held, or goes to zero because nobody uses it.
        short: replicas that were needed and that nothing has room for.
        carries: what one replica carries, in the policy's own unit; None: it does not say.
        asked: what all replicas of its role are asked for, in that unit.
        facts: figures, among them where each rule that moved it left it (``after_<rule>``).
    """

    seen: VariantSeen
    proposed: int | None
    target: int
    code: Code = Code.STEADY
    message: str = ""
    fixed: bool = False
    short: int = 0
    carries: float | None = None
    asked: float = 0.0
    facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def wanted(self) -> int:
        """Replicas that its target asks for now."""
        return self.seen.wanted

    @property
    def role(self) -> str:
        """The role of its replicas."""
        return self.seen.observed.role.value

    @property
    def grows(self) -> bool:
        """Whether it is to have more than now."""
        return not self.fixed and self.target > self.wanted

    @property
    def shrinks(self) -> bool:
        """Whether it is to have fewer than now."""
        return not self.fixed and self.target < self.wanted

    def kept(self, last: int | None) -> int:
        """What it has, or what was decided in the cycle before and has not arrived yet.

        Inside of the bounds that the variant has now, but never below what runs.
        """
        observed = self.seen.observed
        count = max(self.wanted, last or 0)
        top = count if observed.max_replicas is None else min(count, observed.max_replicas)
        return max(top, self.wanted, observed.min_replicas)

    def to(self, target: int, code: Code, message: str, *, fixed: bool = False, short: int = 0) -> Way:
        """Moved by a rule; the same where it stands there already."""
        if target == self.target and not fixed and not short:
            return self
        moved = self.target != target
        return replace(
            self,
            target=target,
            code=code,
            message=message,
            fixed=fixed,
            short=self.short + short,
            facts={**self.facts, f"after_{code}": target} if moved else self.facts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What rules look at beside the service.

    Attributes:
        now_s: seconds of the epoch.
        complete: False: a source did not answer in full.
        wishes: of earlier cycles, by variant.
        decided: of the cycle before, by variant.
    """

    now_s: float
    complete: bool
    wishes: Mapping[VariantRef, tuple[Wish, ...]]
    decided: Mapping[VariantRef, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceWays:
    """All variants of one service.

    Attributes:
        service: as the analyzers see it.
        ways: of its variants, in their order.
    """

    service: Service
    ways: tuple[Way, ...]

    def by_role(self) -> dict[str, list[Way]]:
        """Ways by role."""
        found: dict[str, list[Way]] = {}
        for way in self.ways:
            found.setdefault(way.role, []).append(way)
        return found

    def but(self, changed: Sequence[Way]) -> ServiceWays:
        """With these in place of those of the same variants."""
        by_ref = {way.seen.ref: way for way in changed}
        ways = tuple(by_ref.get(way.seen.ref, way) for way in self.ways) if by_ref else self.ways
        # Most services stay as they are, and thousands of them go through every rule.
        return self if all(map(is_, ways, self.ways)) else replace(self, ways=ways)
