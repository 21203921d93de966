"""Scaling in without cutting a request: replicas leave routing and finish what they have before the count falls.

It stands before the actuators that write counts, and holds back from them what may not happen yet. What it began is
written on the pods themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from pydantic import Field

from models.observation import Observation, VariantObservation
from models.units import PositiveSeconds, Seconds
from models.value import Value
from planner.control.actuators.connections import Connections
from planner.control.actuators.draining import DrainRules, Mark, Overdue, Step, Waiting, next_step
from planner.control.actuators.fleet import Prepared, held_back
from planner.control.actuators.marked import MarkedPods
from planner.control.actuators.marking import Kept, has_gate, kept_of, marked, opened, restored, settled, shut
from planner.control.actuators.published import Key
from planner.control.actuators.replicas import Crew, Loads, Unit, crew_of, loads_of
from planner.control.actuators.routing import SERVING, WayOut, way_out
from planner.control.actuators.writing import differing, in_each_cluster, named, outcome, to_release
from planner.control.cluster import Api, ClusterFault, Trouble
from planner.control.cluster.kinds import PODS
from planner.control.cluster.reading import Object, as_time, labels_of, name_of
from planner.control.options import options_of
from planner.control.protocols import Decision, Difference, Outcome, OutcomeCode

__all__ = ["DrainOptions", "Drainer", "actuator"]

_RANKED_SINCE: Final = (1, 22)
"""Kubernetes that ends pods of low ``pod-deletion-cost`` first."""
_FAIR: Final = frozenset(
    {OutcomeCode.DONE, OutcomeCode.SAME, OutcomeCode.LEFT, OutcomeCode.WAITING, OutcomeCode.WOULD}
)
_AWAY: Final = frozenset({OutcomeCode.AWAY, OutcomeCode.BUSY})
_SILENT_S: Final = 60.0
Change = Callable[[Object], Mapping[str, Any]]


class DrainOptions(Value):
    """Options of the actuator ``draining``."""

    limit_s: PositiveSeconds = Field(
        600.0, le=86_400, description="longest wait for a replica to become idle, s"
    )
    overdue: Overdue = Field(
        Overdue.GO,
        description="what becomes of it then: go (its requests have the grace period of its pod) or give-back",
    )
    settle_s: Seconds = Field(
        5.0,
        le=600,
        description="until everybody knows that it is out of routing; idle counts from then on, s",
    )
    impossible: Literal["go", "hold"] = Field(
        "go",
        description="what becomes of a scale-in whose replicas cannot be drained: go (undrained) or hold",
    )  # fmt: skip
    gates: bool = Field(
        False, description="open the readiness gate of new pods with the label fleetplan.dev/gated: true"
    )


class Drainer:
    """See the module.

    Args:
        options: how long is waited, and what then.
        connections: to the clusters.
    """

    def __init__(self, options: DrainOptions, connections: Connections) -> None:
        self._options = options
        self._rules = DrainRules(limit_s=options.limit_s, overdue=options.overdue, settle_s=options.settle_s)
        self._connections = connections
        self._observation: Observation | None = None
        self._loads: Loads | None = None
        self._seen: Mapping[Key, VariantObservation] = {}
        self._whole = False
        self._versions: dict[str | None, tuple[int, int]] = {}

    def saw(self, observation: Observation) -> None:
        """See :class:`planner.control.actuators.fleet.Seeing`."""
        self._observation, self._loads = observation, None
        self._seen = {each.key: each for each in observation.variants}
        self._whole = True

    def act(self, decisions: Sequence[Decision], *, dry_run: bool) -> Sequence[Outcome]:
        """See :class:`planner.control.protocols.Actuator`."""
        return self.prepare(decisions, dry_run=dry_run).outcomes

    def prepare(self, decisions: Sequence[Decision], *, dry_run: bool) -> Prepared:
        """See :class:`planner.control.actuators.fleet.Preparing`.

        Whatever cannot be told leaves the count as it is; what is to rise rises all the same. In the round that follows
        what was seen, variants without a decision are held; decisions between two cycles are about their own variants.
        """
        told, whole = {one.variant.key for one in decisions}, self._whole
        self._whole = False
        held = [
            Decision(variant=each, desired=each.wanted, reason="Held")
            for key, each in self._seen.items()
            if whole and key not in told and each.wanted is not None
        ]
        pods = MarkedPods(
            self._connections, self._rules, self._seen, dry_run=dry_run, gates=self._options.gates
        )

        def attempt(api: Api, decision: Decision) -> Outcome:
            return self._drained(api, decision, pods, dry_run=dry_run)

        outcomes = in_each_cluster([*decisions, *held], self._connections, attempt)
        ready = [
            one if dry_run else found.decision if found.code in _FAIR else held_back(one)
            for one, found in zip(decisions, outcomes, strict=False)
        ]
        # Nobody asked for those that are held: that their cluster is away is said of the others.
        more = [one for one in outcomes[len(decisions) :] if one.code not in _AWAY]
        return Prepared(tuple(ready), (*outcomes[: len(decisions)], *more))

    def release(self, variants: Sequence[VariantObservation], *, dry_run: bool) -> Sequence[Outcome]:
        """See :class:`planner.control.actuators.fleet.Releasing`: every replica comes back that has not gone."""
        back = [to_release(one) for one in variants if one.wanted is not None]
        pods = MarkedPods(self._connections, self._rules, self._seen, dry_run=dry_run, gates=False)

        def attempt(api: Api, decision: Decision) -> Outcome:
            return self._drained(api, decision, pods, dry_run=dry_run)

        return in_each_cluster(back, self._connections, attempt)

    def _drained(self, api: Api, decision: Decision, pods: MarkedPods, *, dry_run: bool) -> Outcome:
        """What is done for one variant; the decision of the outcome is what may be carried out now."""
        variant = decision.variant
        falls = variant.wanted is not None and decision.desired < variant.wanted
        if (
            variant.wanted is None
            or variant.paused
            or not (pods.has_any(api, variant, needed=falls) or falls)
        ):
            return outcome(decision, OutcomeCode.LEFT)
        crew = crew_of(api, variant, pods.routers(api, variant.namespace))
        if self._loads is None:
            # Engines are many, and most rounds drain nothing.
            self._loads = {} if self._observation is None else loads_of(self._observation)
        step = next_step(crew.scene(decision, self._loads), self._rules, self._connections.clock.unix_s())
        ways = {name: self._way(api, crew, crew.units[name], decision) for name in step.mark}
        problem = next((way.problem for way in ways.values() if way.problem), "")
        if problem:
            return self._undrained(decision, problem)
        changes = self._carry_out(api, decision, crew, step, ways, dry_run=dry_run)
        return _said(decision, step, changes, dry_run=dry_run)

    def _undrained(self, decision: Decision, problem: str) -> Outcome:
        if self._options.impossible == "hold":
            return outcome(
                held_back(decision), OutcomeCode.WAITING, f"held, since it cannot be drained: {problem}"
            )
        return outcome(decision, OutcomeCode.LEFT, f"scaled in without draining: {problem}")

    def _way(self, api: Api, crew: Crew, unit: Unit, decision: Decision) -> WayOut:
        """How a replica leaves routing and goes first, or why it cannot."""
        ways = [way_out(labels_of(pod), crew.owned, crew.routers) for pod in unit.pods]
        gated = all(has_gate(pod) for pod in unit.pods)
        # Workers of a group need not be routed to, its leader has to be.
        if ways[0].problem and not gated:
            return ways[0]
        if not crew.ordered and not gated and self._version(api) < _RANKED_SINCE:
            return WayOut(
                problem=f"this Kubernetes does not end pods of low cost first: add the readiness gate {SERVING} to them"
            )
        return WayOut(tuple(sorted({key for way in ways for key in way.labels})))

    def _version(self, api: Api) -> tuple[int, int]:
        if api.name not in self._versions:
            self._versions[api.name] = api.server_version()
        return self._versions[api.name]

    def _carry_out(
        self,
        api: Api,
        decision: Decision,
        crew: Crew,
        step: Step,
        ways: Mapping[str, WayOut],
        *,
        dry_run: bool,
    ) -> tuple[Difference, ...]:
        """Write what a step says, back into routing first, so that it never serves less than it has to."""
        variant, clock = decision.variant, self._connections.clock
        now_s = clock.unix_s()
        now = as_time(now_s)
        whose = f"{variant.namespace}/{variant.name}"
        begun = Kept(mark=Mark(now_s), variant=whose, labels={}, cost=None)
        spared_s = now_s + self._rules.limit_s
        pen = _Pen(api, variant, dry_run=dry_run)
        for name in step.restore:
            back = _restoring(crew.template, spared_s if name in step.spare else None)
            pen.write_all(crew.units[name], back, lambda found: opened(found, now))
        for name in step.mark:
            out = _marking(crew.template, ways[name].labels, begun)
            pen.write_all(crew.units[name], out, lambda found: shut(found, now))
        for name in step.settle:
            pen.write_all(crew.units[name], lambda found: settled(found, kept_of(found) or begun))
        return tuple(pen.changes)


def _restoring(template: Mapping[str, str], spared_until_s: float | None) -> Change:
    return lambda found: restored(found, template, spared_until_s=spared_until_s)


def _marking(template: Mapping[str, str], keys: Sequence[str], begun: Kept) -> Change:
    return lambda found: marked(found, template, keys, begun)


class _Pen:
    """Writes pods of one variant, each under the version that was read."""

    def __init__(self, api: Api, variant: VariantObservation, *, dry_run: bool) -> None:
        self._api = api
        self._variant = variant
        self._dry_run = dry_run
        self._newest: dict[str, Object] = {}
        self.changes: list[Difference] = []

    def write_all(self, unit: Unit, change: Change, gate: Change | None = None) -> None:
        """Change every pod of a replica, and the readiness gate of those that have one."""
        for pod in unit.pods:
            self.write(pod, change)
            if gate is not None and has_gate(pod):
                self.write(pod, gate, subresource="status")

    def write(self, pod: Object, change: Change, *, subresource: str = "") -> None:
        """Change a pod; read again where it changed since. One that is gone is done with."""
        name, namespace = name_of(pod), self._variant.namespace
        found = self._newest.get(name, pod)
        for left in range(self._api.limits.conflicts, -1, -1):
            fields = change(found)
            try:
                now = self._api.patch(
                    PODS, namespace, name, fields, subresource=subresource, dry_run=self._dry_run
                )
            except ClusterFault as fault:
                if fault.trouble is Trouble.NOT_FOUND:
                    return
                if fault.trouble is not Trouble.CONFLICT or not left:
                    raise
                again = self._api.find(PODS, namespace, name)
                if again is None:
                    return
                found = again
                continue
            shown = {
                key: value for key, value in fields["metadata"].items() if key in {"labels", "annotations"}
            }
            self.changes += differing(named(PODS, self._variant, name), found, {"metadata": shown})
            self._newest[name] = found if self._dry_run else now
            return


def _said(decision: Decision, step: Step, changes: Sequence[Difference], *, dry_run: bool) -> Outcome:
    """One sentence on what was begun, what is waited for, and who comes back."""
    parts = []
    if step.restore:
        parts.append(f"{', '.join(step.restore)} back in routing")
    if step.mark:
        parts.append(f"{', '.join(step.mark)} out of routing")
    if step.settle:
        parts.append(f"{', '.join(step.settle)} first to go")
    if step.cut:
        parts.append(f"time is over for {', '.join(step.cut)}, whose requests have its grace period left")
    if step.waiting:
        parts.append(f"waiting for {', '.join(map(_shown, step.waiting))}")
        if any(each.load is None and each.since_s > _SILENT_S for each in step.waiting):
            parts.append(
                "metrics that are scraped through a Service end when a pod leaves it: use a PodMonitor"
            )
    message = "; ".join(parts)
    going = tuple(dict.fromkeys((*step.settle, *decision.victims)))
    if step.count > decision.desired:
        held = replace(decision, desired=step.count, victims=going)
        found = outcome(held, OutcomeCode.WAITING, message, changes)
        return replace(found, changed=bool(changes) and not dry_run)
    if not changes:
        return outcome(decision, OutcomeCode.LEFT)
    code = OutcomeCode.WOULD if dry_run else OutcomeCode.DONE
    return outcome(replace(decision, victims=going), code, message, changes)


def _shown(each: Waiting) -> str:
    load = "says nothing" if each.load is None else f"{each.load:.0f} requests"
    return f"{each.name} ({load}, {each.since_s:.0f} s)"


def actuator(options: Mapping[str, object], connections: Connections) -> Drainer:
    """The actuator ``draining``.

    Raises:
        ConfigurationError: an option is wrong.
    """
    return Drainer(options_of(DrainOptions, "draining", options), connections)
