"""One cycle in values -> its record: only what changed, with fingerprints of everything."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from models.controller import ControllerSettings
from models.cycle_record import (
    ActuatorOutcome,
    CycleKind,
    CycleRecord,
    CycleReport,
    DemandRecord,
    Link,
    Stage,
    VariantDecision,
)
from models.observation import Finding, Observation
from models.variant import Role
from planner.control.analysis.identity import VariantRef, ref_of
from planner.control.deciding.contract import Decided, Verdict
from planner.control.protocols import Decision, Outcome

__all__ = ["CycleFacts", "decision_row", "record_of", "report_of"]

_MOST_ENGINES: Final = 5_000
_MOST_FINDINGS: Final = 100
_ROLES: Final = {str(role): role for role in Role}


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleFacts:
    """Everything of one cycle.

    Attributes:
        number: of the cycle.
        who: the controller.
        leader: whether it led.
        trigger: what started it.
        settings: as they were.
        observation: as it was seen.
        decided: as it was decided, people and fresh state respected.
        proposed: what policies wished for, before people and nodes, by variant.
        outcomes: what came of it.
        findings: beside those of the observation.
        seconds: by phase, s.
        dry_run: nothing was carried out.
        writes: objects that were written.
    """

    number: int
    who: str
    leader: bool
    trigger: str
    settings: ControllerSettings
    observation: Observation
    decided: Decided
    proposed: Mapping[VariantRef, int] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    dry_run: bool = True
    writes: int = 0


def decision_row(decision: Decision, proposed: int | None) -> VariantDecision:
    """A decision as records and screens have it."""
    variant = decision.variant
    return VariantDecision(
        name=variant.name,
        namespace=variant.namespace,
        cluster=variant.cluster,
        model=variant.model,
        role=variant.role,
        accelerator=variant.accelerator,
        gpus=variant.gpus,
        before=variant.wanted,
        ready=variant.ready,
        pending=variant.pending,
        proposed=proposed,
        desired=None if variant.wanted is None else max(0, decision.desired),
        reason=decision.reason,
        message=decision.message,
        facts={str(name)[:100]: value for name, value in decision.facts.items() if _is_figure(value)},
        victims=tuple(decision.victims),
    )


def _is_figure(value: object) -> bool:
    """Whether a fact can be written down; a plug-in may say anything."""
    return (
        value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    )


def record_of(
    facts: CycleFacts,
    kind: CycleKind,
    rows: Sequence[VariantDecision],
    *,
    changed: Collection[VariantRef],
    previous: str | None,
) -> CycleRecord:
    """The record of a cycle.

    Args:
        facts: everything of it.
        kind: why it is written.
        rows: its decisions, all of them.
        changed: variants whose decision or reason is another one than before, or of which something was written.
        previous: fingerprint of the record before.
    """
    services = {(each.cluster, each.namespace, each.model) for each in rows if _ref(each) in changed}
    excerpt, left_out = _excerpt(facts.observation, services)
    decisions = tuple(each for each in rows if (each.cluster, each.namespace, each.model) in services)
    outcomes = tuple(
        _outcome(each)
        for each in facts.outcomes
        if each.changed or not each.applied or ref_of(each.decision.variant) in changed
    )
    findings = dict.fromkeys((*facts.findings, *facts.observation.findings))
    if left_out:
        problem = f"{left_out:,} engines of services that changed are not in the record"
        findings[Finding(subject="record", problem=problem)] = None
    return CycleRecord(
        number=facts.number,
        at_s=facts.observation.at_s,
        kind=kind,
        controller=facts.who,
        leader=facts.leader,
        dry_run=facts.dry_run,
        trigger=facts.trigger[:500],
        settings=facts.settings.fingerprint,
        links=_links(facts, rows) if kind is not CycleKind.HEARTBEAT else (),
        observation=excerpt if services else None,
        demands=tuple(
            _demand(each)
            for each in facts.decided.verdicts
            if (each.namespace, each.model) in {one[1:] for one in services}
        ),
        decisions=decisions,
        outcomes=outcomes,
        findings=tuple(findings)[:_MOST_FINDINGS],
        report=report_of(facts, rows),
        previous=previous,
    )


def report_of(facts: CycleFacts, rows: Sequence[VariantDecision]) -> CycleReport:
    """A cycle in figures."""
    costs = {ref_of(each): each.cost for each in facts.observation.variants}
    before = {_ref(each): each.before or 0 for each in rows}
    after = {_ref(each): each.desired or 0 for each in rows}
    gpus = {_ref(each): each.gpus for each in rows}
    return CycleReport(
        variants=len(facts.observation.variants),
        engines=len(facts.observation.engines),
        replicas_before=sum(before.values()),
        replicas_after=sum(after.values()),
        gpus_before=sum(count * gpus[ref] for ref, count in before.items()),
        gpus_after=sum(count * gpus[ref] for ref, count in after.items()),
        cost_before=sum(count * costs.get(ref, 0.0) for ref, count in before.items()),
        cost_after=sum(count * costs.get(ref, 0.0) for ref, count in after.items()),
        reasons=dict(sorted(Counter(each.reason for each in rows).items())),
        applied=sum(each.applied for each in facts.outcomes),
        failed=sum(not each.applied for each in facts.outcomes),
        writes=facts.writes,
        seconds=dict(facts.seconds),
        complete=facts.observation.complete,
    )


def _ref(row: VariantDecision) -> VariantRef:
    return VariantRef(*row.key)


def _excerpt(
    observation: Observation, services: Collection[tuple[str | None, str, str]]
) -> tuple[Observation, int]:
    """What was seen of some services, and how many engines are left out of that."""
    variants = tuple(
        each for each in observation.variants if (each.cluster, each.namespace, each.model) in services
    )
    names = {(each.cluster, each.namespace, each.name) for each in variants}
    engines = [
        each
        for each in observation.engines
        if (each.cluster, each.namespace, each.variant) in names
        or (not each.variant and (each.cluster, each.namespace, each.model) in services)
    ]
    accelerators = {each.accelerator for each in variants}
    places = {(each.cluster, each.namespace) for each in variants}
    cut = observation.model_copy(
        update={
            "variants": variants,
            "engines": tuple(engines[:_MOST_ENGINES]),
            "traffic": tuple(
                each for each in observation.traffic if (each.cluster, each.namespace, each.model) in services
            ),
            "pools": tuple(each for each in observation.pools if each.accelerator in accelerators),
            "quotas": tuple(each for each in observation.quotas if (each.cluster, each.namespace) in places),
            "findings": (),
        }
    )
    return cut, max(0, len(engines) - _MOST_ENGINES)


def _links(facts: CycleFacts, rows: Sequence[VariantDecision]) -> tuple[Link, ...]:
    """Each value by its fingerprint, derived from the one before; a policy that solves nothing has no problem."""
    decided = facts.decided
    values: list[tuple[Stage, str]] = [(Stage.OBSERVATION, _digest([facts.observation.model_dump_json()]))]
    if decided.verdicts:
        values.append((Stage.DEMAND, _digest(_demand(each).model_dump_json() for each in decided.verdicts)))
    if decided.problems:
        values.append(
            (Stage.PROBLEM, _joined(each.fingerprint for _, each in sorted(decided.problems.items())))
        )
    if decided.solutions:
        values.append(
            (Stage.SOLUTION, _joined(each.fingerprint for _, each in sorted(decided.solutions.items())))
        )
    values.append((Stage.DECISIONS, _digest(each.model_dump_json() for each in rows)))
    if facts.outcomes:
        values.append((Stage.OUTCOMES, _digest(_outcome(each).model_dump_json() for each in facts.outcomes)))
    links: list[Link] = []
    for stage, value in values:
        links.append(Link(stage=stage, value=value, derived_from=links[-1].value if links else None))
    return tuple(links)


def _demand(verdict: Verdict) -> DemandRecord:
    return DemandRecord(
        namespace=verdict.namespace,
        model=verdict.model,
        role=_ROLES.get(verdict.role, Role.BOTH),
        policy=verdict.policy,
        unit=verdict.unit,
        demand=_figure(verdict.demand),
        expected=None if verdict.expected is None else _figure(verdict.expected),
        forecast=verdict.forecast,
        capacity=_figure(verdict.capacity),
        required=_figure(verdict.required),
        spare=_figure(verdict.spare),
        facts={
            "analyzer": verdict.analyzer,
            "anticipated": _figure(verdict.anticipated),
            "utilization": None if verdict.utilization is None else _figure(verdict.utilization),
            "may": verdict.may,
        },
    )


def _figure(value: float) -> float | None:
    """A figure as records have them; None: it is none."""
    return max(0.0, value) if math.isfinite(value) else None


def _outcome(outcome: Outcome) -> ActuatorOutcome:
    variant = outcome.decision.variant
    return ActuatorOutcome(
        actuator=outcome.actuator,
        name=variant.name,
        namespace=variant.namespace,
        cluster=variant.cluster,
        applied=outcome.applied,
        changed=outcome.changed,
        message=outcome.message[:1000],
    )


def _joined(fingerprints: Iterable[str]) -> str:
    found = tuple(fingerprints)
    return found[0] if len(found) == 1 else _digest([json.dumps(found)])


def _digest(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]
