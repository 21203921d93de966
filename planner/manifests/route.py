"""A plan as counts of Kubernetes objects: what changes in each wave, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from models.ids import CandidateId
from models.plan import Plan, Step, StepKind, Stuck, Wave
from models.problem import Problem
from planner.errors import ConfigurationError, Finding, nearest
from planner.manifests.resizes import elastic_variants, is_told
from planner.manifests.targets import Target, targets_of

__all__ = ["Change", "Route", "Stage", "route_of"]

Counts = Mapping[CandidateId, int]


@dataclass(frozen=True, slots=True)
class Change:
    """One object before and after a stage, or before and after all of them.

    Attributes:
        target: the object.
        before: replicas by candidate.
        after: replicas by candidate.
    """

    target: Target
    before: Counts
    after: Counts

    @property
    def old(self) -> int:
        """Count of the object before."""
        return sum(self.before.values())

    @property
    def new(self) -> int:
        """Count of the object after."""
        return sum(self.after.values())

    @property
    def idle(self) -> bool:
        """Whether nothing of it runs, before or after."""
        return self.old == self.new == 0

    def back(self) -> Change:
        """The same change, undone."""
        return Change(self.target, self.after, self.before)


@dataclass(frozen=True, slots=True)
class Stage:
    """One wave.

    Attributes:
        changes: objects with a change in some place, even where their count stays.
        elsewhere: steps that no object carries out: nodes, variants without an object, and those that change their size.
        awaited: objects whose replicas on order are waited for.
        duration_s: longest start-up, drain or addition of nodes, s.
        apart: changes in other clusters, where this is the part for one.
    """

    changes: tuple[Change, ...]
    elsewhere: tuple[Step, ...]
    awaited: tuple[Change, ...]
    duration_s: float
    apart: tuple[Change, ...] = ()

    @property
    def takes_away(self) -> bool:
        """Whether a count of an object falls."""
        return any(change.new < change.old for change in self.changes)

    @property
    def swaps(self) -> tuple[Change, ...]:
        """Objects whose replicas change places under one count, which no command can do."""
        return tuple(change for change in self.changes if change.old == change.new)

    @property
    def resizes(self) -> tuple[Step, ...]:
        """Elastic deployments that change their size, which no object says."""
        return tuple(step for step in self.elsewhere if step.resize is not None)


@dataclass(frozen=True, slots=True)
class Route:
    """All stages, and the counts at both ends.

    Attributes:
        name: of the problem.
        derived_from: fingerprint of the solution.
        stages: in order.
        ends: every object from the first stage to the last, sorted by object.
        left_out: ``service/variant`` without an object that run or shall run, sorted.
        stuck: why the stages end before the solution is reached; None: they reach it.
        way_back: whether this undoes a plan.
        drain_s: time in which a draining replica ends its requests, s.
    """

    name: str
    derived_from: str
    stages: tuple[Stage, ...]
    ends: tuple[Change, ...]
    left_out: tuple[str, ...] = ()
    stuck: Stuck | None = None
    way_back: bool = False
    drain_s: float = 60.0

    @property
    def clusters(self) -> tuple[str, ...]:
        """Clusters of the objects that run or shall run, sorted; empty where nobody said."""
        return tuple(sorted({change.target.cluster or "" for change in self.ends if not change.idle}))

    def in_cluster(self, cluster: str) -> Route:
        """The part that concerns the objects of one cluster.

        Raises:
            ConfigurationError: no object that runs or shall run is in this cluster.
        """
        if cluster not in self.clusters:
            named = [name for name in self.clusters if name]
            allowed = ", ".join(named) or "nothing: no pool names its cluster"
            finding = Finding("", None, "--cluster", repr(cluster), allowed, nearest(cluster, named))
            raise ConfigurationError.from_findings([finding])
        return replace(
            self,
            stages=tuple(
                replace(
                    stage,
                    changes=tuple(c for c in stage.changes if c.target.cluster == cluster),
                    awaited=tuple(c for c in stage.awaited if c.target.cluster == cluster),
                    apart=tuple(c for c in stage.changes if c.target.cluster != cluster),
                )
                for stage in self.stages
            ),
            ends=tuple(change for change in self.ends if change.target.cluster == cluster),
        )


def route_of(problem: Problem, plan: Plan, *, undone: Plan | None = None) -> Route:
    """The stages of a plan as counts of objects.

    An object starts with what it asks for now: ready and pending replicas of all its candidates.

    Args:
        problem: with the objects.
        plan: the way.
        undone: the plan that this one leads back from; None: this one starts from what runs now.

    Raises:
        ConfigurationError: no variant that runs or shall run has an object, or an object is named wrongly.
    """
    targets = targets_of(problem)
    start = {candidate.id: candidate.on_order for candidate in problem.candidates}
    for wave in () if undone is None else undone.waves:
        start = _after(wave, start)
    counts, stages = start, []
    for wave in plan.waves:
        stages.append(_stage(wave, targets, counts))
        counts = _after(wave, counts)
    left_out = _left_out(problem, start, counts)
    ends = tuple(_change(target, start, counts) for target in targets)
    if left_out and all(change.idle for change in ends):
        found = f"no object in {', '.join(left_out)}"
        allowed = "object in the variants, the Kubernetes object whose replicas are scaled"
        raise ConfigurationError.from_findings([Finding("", None, "services", found, allowed)])
    return Route(
        name=problem.name,
        derived_from=(undone or plan).derived_from,
        stages=tuple(stages),
        ends=ends,
        left_out=left_out,
        stuck=plan.stuck,
        way_back=undone is not None,
        drain_s=plan.limits.drain_s,
    )


def _after(wave: Wave, counts: Counts) -> dict[CandidateId, int]:
    return {**counts, **{step.candidate: step.after for step in wave.steps if step.candidate is not None}}


def _stage(wave: Wave, targets: tuple[Target, ...], counts: Counts) -> Stage:
    """One wave, from these counts."""
    after = _after(wave, counts)
    of_candidate = {candidate.id: target for target in targets for candidate in target.candidates}
    changed, awaited = {}, {}
    for step in wave.steps:
        target = of_candidate.get(step.candidate) if step.candidate is not None else None
        if target is not None and step.before != step.after:
            changed[target.key] = _change(target, counts, after)
        elif target is not None and step.kind is StepKind.AWAIT:
            awaited[target.key] = _change(target, after, after)
    elsewhere = tuple(step for step in wave.steps if step.candidate not in of_candidate and is_told(step))
    return Stage(tuple(changed.values()), elsewhere, tuple(awaited.values()), wave.duration_s)


def _change(target: Target, before: Counts, after: Counts) -> Change:
    places = [candidate.id for candidate in target.candidates]
    return Change(
        target,
        {place: before.get(place, 0) for place in places},
        {place: after.get(place, 0) for place in places},
    )


def _left_out(problem: Problem, start: Counts, end: Counts) -> tuple[str, ...]:
    elastic = elastic_variants(problem)
    return tuple(
        sorted(
            {
                f"{candidate.service}/{candidate.variant}"
                for candidate in problem.candidates
                if candidate.object is None
                and (candidate.service, candidate.variant) not in elastic
                and (start[candidate.id] or end[candidate.id])
            }
        )
    )
