"""What the loop hands to whoever decides, and what it gets back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from models.controller import ControllerSettings
from models.observation import Condition, Finding, Observation
from models.problem import Problem
from models.solution import Solution
from planner.control.analysis.ahead import Ahead
from planner.control.analysis.identity import VariantRef
from planner.control.deciding.state import DecidingState
from planner.control.protocols import ClusterReading, Decision

__all__ = ["Decided", "Deciding", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found of one role of one service, for records, metrics and screens.

    Attributes:
        namespace: of the service.
        model: that it serves.
        role: ``prefill``, ``decode`` or ``both``.
        policy: name of the policy that decided.
        analyzer: who found it: ``saturation`` (tokens), ``throughput``, ``queueing-model``.
        unit: of the figures: ``token``, ``token/s`` or ``req/s``.
        demand: what is asked for, as far as it is known.
        capacity: of ready replicas.
        anticipated: of ready and pending replicas.
        required: missing capacity.
        spare: capacity that may go.
        utilization: demand / capacity; None: there is no capacity.
        may: ``up``, ``down``, or ``hold`` between the two.
        expected: what is planned for instead of the demand, of a forecast; required, spare and may are of it; None: none
            counts.
        forecast: who foretold it, or why nobody is believed; empty: none was asked for.
    """

    namespace: str
    model: str
    role: str
    policy: str
    analyzer: str
    unit: str
    demand: float
    capacity: float
    anticipated: float
    required: float
    spare: float
    utilization: float | None
    may: str
    expected: float | None = None
    forecast: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The answer of one cycle.

    Attributes:
        decisions: one for every variant that was observed, by cluster, namespace and name; one that is held has its
            replicas of now and says why.
        conditions: readiness gates (TargetResolved, MetricsAvailable, OptimizationReady) of every variant.
        verdicts: what was found, by service and role.
        problems: what was solved, by name of the policy, for the record; empty where a policy solves nothing.
        solutions: its answer, by name of the policy.
        findings: what could not be done, and why.
        constrained: growth was bounded by accelerators and quotas that there are.
        ahead: forecasts of services that ask for one.
    """

    decisions: tuple[Decision, ...]
    conditions: Mapping[VariantRef, tuple[Condition, ...]] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    problems: Mapping[str, Problem] = field(default_factory=dict)
    solutions: Mapping[str, Solution] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    constrained: bool = True
    ahead: tuple[Ahead, ...] = ()


class Deciding(Protocol):
    """Decides, and looks again just before somebody acts.

    It keeps nothing between calls that a decision must have: the state goes in and out. What it may keep makes decisions
    better or faster, as open policies and the past of demands for forecasts.
    """

    def decide(
        self,
        observation: Observation,
        *,
        state: DecidingState,
        settings: ControllerSettings,
        now_s: float,
    ) -> tuple[Decided, DecidingState]:
        """One decision for every variant.

        It never raises for what was observed, however hostile that is: what cannot be judged is held.

        Args:
            observation: as it was seen.
            state: of the cycle before; ``DecidingState()`` at the first start.
            settings: as they are now.
            now_s: seconds of the epoch.
        """
        ...

    def revalidate(self, decided: Decided, fresh: ClusterReading) -> Decided:
        """The same decisions against what the clusters say just before somebody acts.

        A variant whose target is gone, whose bounds changed or whose replicas somebody moved is held until the next
        cycle; nothing is scaled in where ``fresh`` is incomplete.
        """
        ...
