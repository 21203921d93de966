"""The published policies over a cluster: ``wva-v1`` (percentages, one replica at a time) and ``wva-v2`` (tokens).

Both run the cycles that the twin runs. With accelerators that bound growth V1 goes by saturation and V2 by fair share (and
rescale, where it is switched on); without it V1 is unlimited and V2 cost-aware.

Source: arXiv 2603.09730; llm-d autoscaling v0.9, internal/engines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import Field

from models.units import Ratio
from models.value import Value
from planner.clock import Clock
from planner.control.analysis import Service, VariantRef, Voices
from planner.control.deciding.policy import Policy, Proposal, Proposed, Question
from planner.control.options import options_of
from planner.saturation import Judged, PercentageRules, dealt_tokens, percentage_cycle
from planner.saturation.published import Budget, RescaleScope

__all__ = [
    "PercentageOptions",
    "TokenOptions",
    "VoiceOption",
    "percentage_policy",
    "token_policy",
    "voices_of",
]

_ANALYZERS: Final = r"^(throughput|queueing-model)$"


class VoiceOption(Value):
    """An analyzer that votes beside the token analyzer."""

    name: str = Field(pattern=_ANALYZERS, description="throughput or queueing-model")
    score: Ratio = Field(1.0, description="its weight where accelerators are few")


class PercentageOptions(Value):
    """Of ``wva-v1``."""

    spills: bool = Field(
        False,
        description="the next variant grows where the cheapest stands at its maximum; as published none does",
    )


class TokenOptions(Value):
    """Of ``wva-v2``."""

    analyzers: tuple[VoiceOption, ...] = Field((), description="that vote beside the token analyzer")
    rescale: bool = Field(
        False,
        description="services in contention move towards shares weighted by priority, giving up replicas for it",
    )


def voices_of(analyzers: Sequence[VoiceOption]) -> Voices:
    """Analyzers by name, with their scores."""
    return {each.name: each.score for each in analyzers}


def percentage_policy(options: Mapping[str, object], clock: Clock) -> Policy:
    """The policy ``wva-v1``.

    Raises:
        ConfigurationError: an option is wrong.
    """
    return _Percentage(options_of(PercentageOptions, "wva-v1", options))


def token_policy(options: Mapping[str, object], clock: Clock) -> Policy:
    """The policy ``wva-v2``.

    Raises:
        ConfigurationError: an option is wrong.
    """
    return _Token(options_of(TokenOptions, "wva-v2", options))


@dataclass(frozen=True, slots=True)
class _Percentage:
    options: PercentageOptions

    @property
    def reactive(self) -> bool:
        """It looks at how full replicas are; a demand to come says nothing to it."""
        return True

    @property
    def voices(self) -> Voices:
        return {}

    def propose(self, question: Question) -> Proposal:
        budget = _budget(question)
        free: tuple[Mapping[str, int], ...] = () if budget is None else _limiters(budget, question.services)
        rules = PercentageRules(spills=self.options.spills, free=free)
        judged = percentage_cycle([one.reading for one in question.services], rules)
        return Proposal(wishes=_wishes(question.services, judged))


@dataclass(frozen=True, slots=True)
class _Token:
    options: TokenOptions

    @property
    def voices(self) -> Voices:
        return voices_of(self.options.analyzers)

    def propose(self, question: Question) -> Proposal:
        budget = _budget(question)
        named = frozenset(budget.namespaces) if budget is not None else frozenset()
        judged = dealt_tokens(
            [one.reading for one in question.services],
            [one.tokens for one in question.services],
            budget=budget,
            rescale=RescaleScope(cluster=True, namespaces=named) if self.options.rescale else None,
        )
        return Proposal(wishes=_wishes(question.services, judged))


def _budget(question: Question) -> Budget | None:
    """Free accelerators; None where nothing bounds growth: it is not to, or no inventory is known."""
    if question.room is None:
        return None
    room = question.room()
    return room.budget({one.seen.namespace for one in question.services}) if room.free else None


def _limiters(budget: Budget, services: Sequence[Service]) -> tuple[Mapping[str, int], ...]:
    """As V1's limiter takes them; types that it does not know are none of its business."""
    unknown = {state.accelerator for one in services for state in one.reading.states} - set(budget.cluster)
    return ({**budget.cluster, **dict.fromkeys(unknown, 0)},)


def _wishes(services: Sequence[Service], judged: Sequence[Judged]) -> dict[VariantRef, Proposed]:
    found: dict[VariantRef, Proposed] = {}
    for service, answer in zip(services, judged, strict=True):
        targets, short = answer.targets, _short(service, answer)
        for one in service.seen.variants:
            if one.name in targets.replicas:
                found[one.ref] = Proposed(
                    replicas=targets.replicas[one.name],
                    why=targets.reasons[one.name].value,
                    short=short.get(one.name, 0),
                )
    return found


def _short(service: Service, answer: Judged) -> dict[str, int]:
    """Replicas that are missing, by the variant that is cheapest for its capacity."""
    found: dict[str, int] = {}
    sizes = service.tokens.variants
    for role, missing in answer.targets.unmet.items():
        able = [
            s
            for s in service.reading.states
            if s.serves == role and s.name in sizes and sizes[s.name].capacity > 0
        ]
        if able and missing > 0:
            best = min(able, key=lambda s: (s.cost / sizes[s.name].capacity, s.name))
            found[best.name] = math.ceil(missing / sizes[best.name].capacity)
    if service.reading.states and answer.analysis is None and answer.targets.limited:
        found = dict.fromkeys(sorted(answer.targets.limited), 1)
    return found
