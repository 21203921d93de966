"""One cycle of deciding: analyze, let each service's policy propose, put the wishes through the rules, say why."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from models.controller import ControllerSettings
from models.observation import Condition, Finding, Observation, VariantObservation
from planner.clock import Clock, SystemClock
from planner.collecting import collection_paused
from planner.control.analysis import (
    Ahead,
    Service,
    VariantRef,
    Voices,
    analyze,
    foretold,
    grown,
)
from planner.control.analysis.gates import metrics_available, optimization_ready, target_resolved
from planner.control.deciding.contract import Decided
from planner.control.deciding.foresight import Foresight
from planner.control.deciding.makers import maker_of
from planner.control.deciding.policy import Policy, PolicyFactory, Proposal, Question, open_policy
from planner.control.deciding.reconciling import revalidated
from planner.control.deciding.room import Room
from planner.control.deciding.rules import (
    Code,
    Context,
    ServiceWays,
    Way,
    after_replacement,
    granted,
    hold,
    in_steps,
    never_by_accident,
    outside_dead_band,
    safe_scale_in,
    stabilized,
    to_zero,
    within_bounds,
)
from planner.control.deciding.state import DecidingState, Wish
from planner.control.deciding.telling import decision_of, verdicts_of
from planner.control.protocols import ClusterReading
from planner.errors import ConfigurationError
from planner.registry import Registry

__all__ = ["Decider"]

_LOG: Final = logging.getLogger(__name__)
_MOST_FINDINGS: Final = 100


@dataclass(slots=True)
class _Opened:
    """A policy with the options that it was opened with."""

    options: Mapping[str, object]
    policy: Policy


class Decider:
    """Decides; what it remembers is handed in and out. It only keeps policies that are open, and the past of demands.

    Args:
        clock: for policies that have limits of time.
        policies: by name; None: built in and installed ones.
    """

    def __init__(
        self, *, clock: Clock | None = None, policies: Registry[PolicyFactory] | None = None
    ) -> None:
        self._clock = clock or SystemClock()
        self._policies = policies
        self._open: dict[str, _Opened] = {}
        self._foresight = Foresight(self._clock)

    def decide(
        self, observation: Observation, *, state: DecidingState, settings: ControllerSettings, now_s: float
    ) -> tuple[Decided, DecidingState]:
        """See :class:`~planner.control.deciding.contract.Deciding`."""
        with collection_paused():
            return self._decide(observation, state, settings, now_s)

    def _decide(
        self, observation: Observation, state: DecidingState, settings: ControllerSettings, now_s: float
    ) -> tuple[Decided, DecidingState]:
        round_ = _Round(observation, state, settings, now_s)
        opened = self._opened(settings, round_)
        voices: dict[str, Voices] = {name: policy.voices for name, policy in opened.items()}
        analyzed, analysis = analyze(observation, settings, memory=state.analysis, now_s=now_s, voices=voices)
        round_.findings += analyzed.findings
        ahead = self._ahead(analyzed.services, opened, round_)
        services = [foretold(one, ahead.get(one.seen.key)) for one in analyzed.services]
        planned = [grown(one) for one in services]
        round_.ask(planned, opened)
        ways, wishes = round_.ruled(services)
        decided = round_.decided(ways, planned)
        return decided, DecidingState(
            analysis=analysis,
            wishes=wishes,
            decided={way.seen.ref: way.target for asked in ways for way in asked.ways},
            warm={name: one.warm for name, one in round_.proposals.items() if one.warm is not None},
        )

    def revalidate(self, decided: Decided, fresh: ClusterReading) -> Decided:
        """See :class:`~planner.control.deciding.contract.Deciding`."""
        return revalidated(decided, fresh)

    def _ahead(
        self, services: Sequence[Service], opened: Mapping[str, Policy], round_: _Round
    ) -> Mapping[str, Ahead]:
        """What is expected of services that ask for it; a fault in that is a finding, and what is observed counts."""
        reactive = {name for name, policy in opened.items() if getattr(policy, "reactive", False)}
        try:
            found = self._foresight.look(services, round_.settings, now_s=round_.now_s, reactive=reactive)
        except Exception as cause:
            _LOG.exception("event=forecast_failed")
            problem = f"no forecast could be made ({type(cause).__name__}); what is observed counts"
            round_.findings.append(Finding(subject="forecast", problem=problem, remedy="a fault of ours"))
            return {}
        return found

    def _opened(self, settings: ControllerSettings, round_: _Round) -> dict[str, Policy]:
        """The policies that services may name; one that cannot be opened is a finding, and its services are held."""
        names = {settings.rules.policy, *(o.policy for o in settings.overrides if o.policy is not None)}
        found = {}
        for name in sorted(names):
            options = settings.policies.get(name, {})
            before = self._open.get(name)
            if before is None or before.options != options:
                try:
                    made = open_policy(name, options, self._clock, self._policies)
                except ConfigurationError as cause:
                    round_.failed(name, cause)
                    continue
                before = self._open[name] = _Opened(options, made)
            found[name] = before.policy
        return found


@dataclass(slots=True)
class _Round:
    """One cycle while it is on its way."""

    observation: Observation
    state: DecidingState
    settings: ControllerSettings
    now_s: float
    proposals: dict[str, Proposal] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def room(
        self, variants: Iterable[VariantObservation] | None = None, staying: Iterable[VariantObservation] = ()
    ) -> Room:
        seen = self.observation
        among = seen.variants if variants is None else variants
        return Room.of(seen.pools, seen.quotas, among, staying=staying, maker=maker_of)

    def failed(self, name: str, cause: BaseException) -> None:
        problem = (
            str(cause) if isinstance(cause, ConfigurationError) else f"it failed ({type(cause).__name__})"
        )
        remedy = "its services are held until it answers"
        self.findings.append(Finding(subject=f"policy {name}", problem=problem[:1000], remedy=remedy))

    def ask(self, services: Sequence[Service], policies: Mapping[str, Policy]) -> None:
        """Let each policy propose for the services that name it; one that fails does not stop the others."""
        by_policy: dict[str, list[Service]] = {}
        for service in services:
            by_policy.setdefault(service.seen.rules.policy, []).append(service)
        if self.settings.constrained and not self.observation.pools:
            problem = "no inventory of accelerators is known: growth is not bounded by it"
            self.findings.append(
                Finding(subject="capacity", problem=problem, remedy="see discovery, or turn constrained off")
            )
        for name in sorted(by_policy.keys() & policies.keys()):
            question = Question(
                observation=self.observation,
                services=tuple(by_policy[name]),
                settings=self.settings,
                room=self.room if self.settings.constrained else None,
                now_s=self.now_s,
                warm=self.state.warm.get(name),
            )
            try:
                self.proposals[name] = policies[name].propose(question)
            # A plug-in may raise anything, and nothing that it raises may end the loop.
            except Exception as cause:
                # Its words may hold what nobody is to read.
                _LOG.warning("event=policy_failed policy=%s error=%s", name, type(cause).__name__)
                self.failed(name, cause)
            else:
                self.findings += self.proposals[name].findings

    def ruled(
        self, services: Iterable[Service]
    ) -> tuple[list[ServiceWays], dict[VariantRef, tuple[Wish, ...]]]:
        """Every wish after every rule."""
        context = Context(
            now_s=self.now_s,
            complete=self.observation.complete,
            wishes=self.state.wishes,
            decided=self.state.decided,
        )
        wishes: dict[VariantRef, tuple[Wish, ...]] = {}
        done = []
        for service in services:
            asked = self._asked(service)
            for rule in (hold, to_zero, never_by_accident, within_bounds, outside_dead_band):
                asked = rule(asked, context)
            asked, mine = stabilized(asked, context)
            wishes |= mine
            for rule in (safe_scale_in, after_replacement, in_steps):
                asked = rule(asked, context)
            done.append(asked)
        return (granted(done, self.room()) if self.settings.constrained else done), wishes

    def _asked(self, service: Service) -> ServiceWays:
        proposal = self.proposals.get(service.seen.rules.policy)
        ways = []
        for seen in service.seen.variants:
            wish = proposal.wishes.get(seen.ref) if proposal is not None else None
            # A policy that answered and left a variant out holds it.
            proposed = None if proposal is None else seen.wanted if wish is None else max(0, wish.replicas)
            ways.append(
                Way(
                    seen=seen,
                    proposed=proposed,
                    target=seen.wanted if proposed is None else proposed,
                    message=wish.message if wish is not None else "",
                    short=wish.short if wish is not None else 0,
                    carries=wish.carries if wish is not None else None,
                    asked=wish.asked if wish is not None else 0.0,
                    facts={} if wish is None else {**wish.facts, "why": wish.why},
                )
            )
        return ServiceWays(service=service, ways=tuple(ways))

    def decided(self, all_ways: Sequence[ServiceWays], planned: Sequence[Service]) -> Decided:
        """The answer of the cycle.

        Args:
            all_ways: of every service.
            planned: the services that policies were asked about, in their order.
        """
        leaving = frozenset(
            node.id
            for pool in self.observation.pools
            for node in pool.nodes
            if node.cordoned or node.tainted or not node.ready
        )
        told = list(zip(all_ways, planned, strict=True))
        decisions = [
            decision_of(asked, way, later=later, leaving=leaving)
            for asked, later in told
            for way in asked.ways
        ]
        return Decided(
            decisions=tuple(sorted(decisions, key=lambda one: one.variant.key)),
            conditions={way.seen.ref: self._conditions(way) for asked in all_ways for way in asked.ways},
            verdicts=tuple(verdict for asked, later in told for verdict in verdicts_of(asked.service, later)),
            problems={name: one.problem for name, one in self.proposals.items() if one.problem is not None},
            solutions={
                name: one.solution for name, one in self.proposals.items() if one.solution is not None
            },
            findings=tuple(self.findings[:_MOST_FINDINGS]),
            ahead=tuple(one.service.ahead for one in all_ways if one.service.ahead is not None),
            constrained=self.settings.constrained,
        )

    def _conditions(self, way: Way) -> tuple[Condition, ...]:
        target = target_resolved(way.seen)
        metrics = metrics_available(way.seen, complete=self.observation.complete)
        if not target.status:
            ready = optimization_ready(False, "SkippedProcessing", "its target is not resolved")
        elif way.code is Code.FAILED:
            ready = optimization_ready(False, "OptimizationFailed", way.message)
        elif way.code is Code.PAUSED:
            ready = optimization_ready(False, "SkippedProcessing", way.message)
        elif not metrics.status:
            ready = optimization_ready(False, "MetricsUnavailable", metrics.message)
        else:
            ready = optimization_ready(True, "OptimizationSucceeded")
        return target, metrics, ready
