"""What all analyzers say of every service, and which way a role may move: γ decides whether, δ how far.

The percentage analyzer (V1) and the token analyzer (V2) always speak. The throughput analyzer speaks where it is asked to,
the queueing analyzer where latencies are promised (or where it is asked to). Between the trigger for more and the safety
of fewer nothing moves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeVar

from models.controller import ControllerSettings
from models.observation import Finding, Observation
from models.workload import Slo
from planner.control.analysis.ahead import Ahead
from planner.control.analysis.identity import VariantRef
from planner.control.analysis.memory import AnalysisMemory, Quiet, Voice
from planner.control.analysis.quiet import is_still, is_unused, looked_at
from planner.control.analysis.reading import reading_of
from planner.control.analysis.ruling import RuleBook
from planner.control.analysis.seeing import ServiceSeen, see
from planner.saturation import (
    THROUGHPUT,
    Analysis,
    PaceMemory,
    SaturationSignal,
    ServiceReading,
    Step,
    TokenMemory,
    TokenRates,
    analyze_throughput,
    is_live,
    token_analysis,
)
from planner.saturation.promises import QUEUEING, LearningMemory, PromiseSettings, analyze_promises

__all__ = ["Analyzed", "Move", "Service", "Voices", "analyze"]

_LAST_BITS: Final = 1e-9
_REMEMBERED_S: Final = 86_400.0
_Kept = TypeVar("_Kept")
Voices = Mapping[str, float]
"""Further analyzers that are asked (``throughput``, ``queueing-model``), with their scores."""


class Move(StrEnum):
    """Which way a role may move."""

    UP = "up"
    DOWN = "down"
    HOLD = "hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One service as every analyzer sees it.

    Attributes:
        seen: what was observed.
        reading: what the published rules read, further analyzers' words among it.
        signals: of the percentage analyzer, by role; None: no replica of the role shows metrics.
        tokens: of the token analyzer.
        others: further analyses, by analyzer.
        live: analyzers whose last word is fresh.
        stuck: what waits in its engines will never be served.
        unused: nobody used it for its retention time.
        ahead: its forecast; None: it asked for none.
    """

    seen: ServiceSeen
    reading: ServiceReading
    signals: Mapping[str, SaturationSignal | None]
    tokens: Analysis
    others: Mapping[str, Analysis]
    live: frozenset[str]
    stuck: bool = False
    unused: bool = False
    ahead: Ahead | None = None

    @property
    def growth(self) -> float:
        """How many times what is observed is to be planned for."""
        return 1.0 if self.ahead is None else self.ahead.growth

    @property
    def voters(self) -> tuple[Analysis, ...]:
        """Analyses that count: live ones with something to say, the token analyzer's first."""
        said = (self.tokens, *self.others.values())
        return tuple(one for one in said if one.analyzer in self.live and one.informative)

    def step(self, analysis: Analysis, role: str) -> Step | None:
        """What an analysis says of one role; None: nothing (prefill makes no tokens)."""
        return analysis.roles.get(role, analysis.total if len(self.seen.roles) == 1 else None)

    def move(self, role: str) -> Move:
        """Which way a role may move, by γ and by every analyzer that votes."""
        signal, step = self.signals.get(role), self.step(self.tokens, role)
        if step is None or not self.voters:
            return Move.HOLD
        usable = self.seen.roles[role].usable
        others = [self.step(one, role) for one in self.voters if one is not self.tokens]
        waits = step.anticipated > step.supply * (1 + _LAST_BITS)
        fills = step.demand > usable * step.anticipated * (1 + _LAST_BITS)
        asked = signal is not None and signal.scale_up and not waits
        if fills or asked or any(one.required > 0 for one in others if one is not None):
            return Move.UP
        smallest = min(self._running_sizes(role), default=0.0)
        fits = step.demand + step.hidden <= usable * (step.supply - smallest) * (1 + _LAST_BITS)
        spare = all(one.spare > 0 for one in others if one is not None)
        safe = signal is not None and signal.scale_in_safe
        return Move.DOWN if safe and fits and spare and smallest > 0 else Move.HOLD

    def _running_sizes(self, role: str) -> list[float]:
        return [
            one.capacity
            for one in self.tokens.variants.values()
            if one.role == role and one.ready and one.capacity > 0
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analyzed:
    """All services.

    Attributes:
        services: by namespace and model.
        findings: rules that cannot hold, queues that are stuck.
    """

    services: tuple[Service, ...]
    findings: tuple[Finding, ...] = ()


def analyze(
    observation: Observation,
    settings: ControllerSettings,
    *,
    memory: AnalysisMemory,
    now_s: float,
    voices: Mapping[str, Voices] | None = None,
) -> tuple[Analyzed, AnalysisMemory]:
    """Judge what was seen.

    Args:
        observation: as it was seen.
        settings: rules, overrides, freshness, length of a cycle.
        memory: of earlier cycles.
        now_s: seconds of the epoch.
        voices: further analyzers by policy.

    Returns:
        Every service, and the memory for the next cycle.
    """
    book = RuleBook(settings)
    listening = _Listening.of(memory, now_s, settings.cycle_s)
    services = [
        listening.hear(each, (voices or {}).get(each.rules.policy, {}))
        for each in see(observation, book, settings.freshness)
    ]
    stuck = [_about_stuck(each) for each in services if each.stuck]
    kept = listening.remembered([one.seen for one in services])
    blind = _about_blind([one.seen for one in services], kept.seen_s, now_s, settings.freshness.stale_s)
    return Analyzed(services=tuple(services), findings=(*book.misplaced(), *stuck, *blind)), kept


@dataclass(slots=True)
class _Listening:
    """One round over all services; memories are gathered here and handed out as a value at the end."""

    now_s: float
    cycle_s: float
    before: AnalysisMemory
    tokens: dict[str, TokenMemory]
    paces: dict[str, PaceMemory]
    learning: dict[str, LearningMemory]
    informative_s: dict[Voice, float]
    quiet: dict[str, Quiet]

    @classmethod
    def of(cls, memory: AnalysisMemory, now_s: float, cycle_s: float) -> _Listening:
        return cls(
            now_s=now_s,
            cycle_s=cycle_s,
            before=memory,
            tokens=dict(memory.tokens),
            paces=dict(memory.paces),
            learning=dict(memory.learning),
            informative_s=dict(memory.informative_s),
            quiet=dict(memory.quiet),
        )

    def hear(self, seen: ServiceSeen, voices: Voices) -> Service:
        quiet = looked_at(seen, self.quiet.get(seen.key, Quiet()), self.now_s)
        self.quiet[seen.key] = quiet
        stuck = is_still(quiet, self.now_s, stuck_s=seen.rules.stuck_s)
        unused = is_unused(quiet, self.now_s, retention_s=seen.rules.retention_s)
        reading = reading_of(seen, stuck=stuck, unused=unused)
        kept = self.tokens.get(seen.model, TokenMemory())
        tokens, self.tokens[seen.model] = token_analysis(reading, memory=kept, now_s=self.now_s)
        others = self._others(seen, reading, voices)
        live = frozenset(one.analyzer for one in (tokens, *others.values()) if self._lives(seen.key, one))
        signals = tuple(
            one.signal(live=one.analyzer in live, score=voices.get(one.analyzer, 1.0))
            for one in others.values()
        )
        return Service(
            seen=seen,
            reading=replace(reading, voices=signals) if signals else reading,
            signals=reading.signals(),
            tokens=tokens,
            others=others,
            live=live,
            stuck=stuck,
            unused=unused,
        )

    def _others(self, seen: ServiceSeen, reading: ServiceReading, voices: Voices) -> dict[str, Analysis]:
        found: dict[str, Analysis] = {}
        rules, queued = seen.rules, reading.queue.requests
        if THROUGHPUT in voices:
            found[THROUGHPUT], self.paces[seen.key] = analyze_throughput(
                reading.variants,
                traffic=reading.traffic,
                asked=TokenRates(arrival_rps=reading.traffic.arrival_rps, queued=queued),
                memory=self.paces.get(seen.key, PaceMemory()),
                now_s=self.now_s,
                bounds=rules.bounds,
            )
        if QUEUEING in voices or rules.ttft_s is not None or rules.itl_s is not None:
            promised = rules.ttft_s is not None or rules.itl_s is not None
            slo = Slo(ttft_s=rules.ttft_s, itl_s=rules.itl_s) if promised else None
            found[QUEUEING], self.learning[seen.key] = analyze_promises(
                reading.variants,
                traffic=reading.traffic,
                queued=queued,
                memory=self.learning.get(seen.key, LearningMemory()),
                now_s=self.now_s,
                settings=PromiseSettings(slo=slo, bounds=rules.bounds),
            )
        return found

    def _lives(self, service: str, analysis: Analysis) -> bool:
        """Whether an analyzer has something to say, or had a moment ago."""
        voice = Voice(service, analysis.analyzer)
        if analysis.informative:
            self.informative_s[voice] = self.now_s
        return is_live(self.informative_s.get(voice), self.now_s, interval_s=self.cycle_s)

    def _unlearn(self, services: Iterable[ServiceSeen]) -> None:
        """What a service showed while one of its deployments changes its size teaches nothing."""
        for one in services:
            if any(variant.unsettled(self.now_s) for variant in one.variants):
                _restore(self.tokens, self.before.tokens, one.model)
                _restore(self.paces, self.before.paces, one.key)
                _restore(self.learning, self.before.learning, one.key)

    def remembered(self, services: Sequence[ServiceSeen]) -> AnalysisMemory:
        """Of services that are there; others are forgotten, but for capacities of models, which age by themselves."""
        self._unlearn(services)
        keys, models = {one.key for one in services}, {one.model for one in services}
        recent = {
            model: kept
            for model, kept in self.tokens.items()
            if model in models or _is_recent(kept, self.now_s)
        }
        seen_s = {
            variant.ref: self.now_s
            if variant.speaks or not variant.observed.ready
            else self.before.seen_s.get(variant.ref, self.now_s)
            for one in services
            for variant in one.variants
        }
        return AnalysisMemory(
            tokens=recent,
            paces=_of(self.paces, keys),
            learning=_of(self.learning, keys),
            informative_s={voice: at for voice, at in self.informative_s.items() if voice.service in keys},
            quiet={key: quiet for key, quiet in self.quiet.items() if key in keys},
            seen_s=seen_s,
        )


def _restore(memories: dict[str, _Kept], before: Mapping[str, _Kept], key: str) -> None:
    """As it was; where nothing was, nothing."""
    if key in before:
        memories[key] = before[key]
    else:
        memories.pop(key, None)


def _of(memories: Mapping[str, _Kept], keys: Collection[str]) -> dict[str, _Kept]:
    return {key: kept for key, kept in memories.items() if key in keys}


def _is_recent(memory: TokenMemory, now_s: float) -> bool:
    """Whether a model that is not served now was served within a day."""
    return any(now_s - one.at_s <= _REMEMBERED_S for one in memory.stored.values())


def _about_blind(
    services: Sequence[ServiceSeen], seen_s: Mapping[VariantRef, float], now_s: float, after_s: float
) -> list[Finding]:
    """Variants that showed nothing for long: they are held, and somebody should know."""
    return [
        Finding(
            subject=f"variant {variant.ref}",
            problem=f"no usable metrics of its {variant.observed.ready} ready replicas for {now_s - seen_s[variant.ref]:.0f} s: it is held",
            remedy="'fleetplan observe --check' looks for the reason",
        )
        for service in services
        for variant in service.variants
        if variant.observed.ready and not variant.speaks and now_s - seen_s[variant.ref] >= after_s
    ]


def _about_stuck(service: Service) -> Finding:
    held = service.seen.traffic.in_flight
    return Finding(
        subject=f"service {service.seen.key}",
        problem=f"{'requests' if held is None else f'{held:g} requests'} in its engines make no token and nothing arrives: "
        "they count as no demand",
        remedy="left over from clients that went away; engines that are restarted forget them",
    )
