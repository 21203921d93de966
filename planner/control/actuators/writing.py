"""Carrying decisions out in clusters, each in its own: faults become outcomes, and silence is never written into again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from models.observation import VariantObservation
from planner.control.actuators.connections import Connections
from planner.control.cluster import Api, ClusterFault, Kind, Trouble
from planner.control.cluster.reading import Object, at, name_of, namespace_of, version_of
from planner.control.protocols import Decision, Difference, Outcome, OutcomeCode

__all__ = [
    "Ahead",
    "Attempt",
    "Wanted",
    "Way",
    "differing",
    "in_each_cluster",
    "named",
    "outcome",
    "release_each",
    "settle",
    "to_release",
    "told_of",
]

Attempt = Callable[[Api, Decision], Outcome]
"""Carries one decision out; raises :class:`ClusterFault` for what went wrong."""

_AT_ONCE: Final = 16
_TOGETHER: Final = 4
"""Objects of a namespace that are worth reading all of them."""
_CODES: Final = {
    Trouble.DENIED: OutcomeCode.DENIED,
    Trouble.UNAUTHENTICATED: OutcomeCode.DENIED,
    Trouble.NOT_FOUND: OutcomeCode.GONE,
    Trouble.CONFLICT: OutcomeCode.CONFLICT,
    Trouble.BUSY: OutcomeCode.BUSY,
    Trouble.TIMEOUT: OutcomeCode.AWAY,
    Trouble.UNREACHABLE: OutcomeCode.AWAY,
    Trouble.CREDENTIALS: OutcomeCode.AWAY,
}
_OF_ALL: Final = frozenset(
    {Trouble.TIMEOUT, Trouble.UNREACHABLE, Trouble.BUSY, Trouble.CREDENTIALS, Trouble.UNAUTHENTICATED}
)
"""Faults of a cluster, not of an object: the next call would meet them too."""


def in_each_cluster(
    decisions: Sequence[Decision], connections: Connections, attempt: Attempt
) -> tuple[Outcome, ...]:
    """An outcome for each decision, in their order; clusters are acted in at the same time.

    A cluster that does not answer is not asked again in this round, and none of the others waits for it longer than a
    round may take.

    Args:
        decisions: to carry out.
        connections: to the clusters.
        attempt: carries one out.
    """
    found: dict[int, Outcome] = {}
    groups: dict[str | None, list[tuple[int, Decision]]] = {}
    apis: dict[str | None, Api] = {}
    for place, decision in enumerate(decisions):
        api = connections.of(decision.variant)
        if api is None:
            where = f"cluster {decision.variant.cluster}" if decision.variant.cluster else "its cluster"
            found[place] = outcome(decision, OutcomeCode.AWAY, f"{where} is none of those that are connected")
        else:
            apis[api.name] = api
            groups.setdefault(api.name, []).append((place, decision))

    def work(name: str | None) -> dict[int, Outcome]:
        return dict(_round(apis[name], groups[name], connections, attempt))

    if len(groups) == 1:
        found |= work(next(iter(groups)))
    elif groups:
        with ThreadPoolExecutor(max_workers=min(len(groups), _AT_ONCE)) as pool:
            for part in pool.map(work, groups):
                found |= part
    return tuple(found[place] for place in range(len(decisions)))


def _round(
    api: Api, decisions: Sequence[tuple[int, Decision]], connections: Connections, attempt: Attempt
) -> Iterator[tuple[int, Outcome]]:
    """One cluster, one decision after the other, until time is over or the cluster stops to answer."""
    clock = connections.clock
    end_s = clock.monotonic_s() + connections.within_s
    wait_s = connections.waits.get(api.name, 0.0) - clock.monotonic_s()
    closed: tuple[OutcomeCode, str] | None = None
    if wait_s > 0:
        closed = OutcomeCode.BUSY, f"the API server asked to be left alone for another {wait_s:.0f} s"
    for place, decision in sorted(decisions, key=lambda each: connections.turns.pop(each[1].variant.key, 0)):
        if closed is None and clock.monotonic_s() >= end_s:
            closed = OutcomeCode.BUSY, f"not tried: the {connections.within_s:.3g} s of a round are over"
        if closed is not None:
            connections.turns.setdefault(decision.variant.key, -1)
            yield place, outcome(decision, *closed)
            continue
        try:
            yield place, attempt(api, decision)
        except ClusterFault as fault:
            yield place, outcome(decision, *told_of(fault))
            if fault.trouble in _OF_ALL:
                # One object that is slow for reasons of its own is not to keep the others from their turn for ever.
                connections.turns[decision.variant.key] = 1
                code = OutcomeCode.BUSY if fault.trouble is Trouble.BUSY else OutcomeCode.AWAY
                closed = code, f"not tried, since another call failed: {fault.message}"
            if fault.after_s is not None:
                connections.waits[api.name] = clock.monotonic_s() + fault.after_s


def told_of(fault: ClusterFault) -> tuple[OutcomeCode, str]:
    """What came of a call that failed, and a sentence for people."""
    if fault.unsure:
        return OutcomeCode.UNKNOWN, f"unknown, will be read again: {fault.message}"
    remedy = "" if fault.rule is not None or not fault.remedy else f"; {fault.remedy}"
    return _CODES.get(fault.trouble, OutcomeCode.FAILED), f"{fault.message}{remedy}"


def outcome(
    decision: Decision, code: OutcomeCode, message: str = "", differences: Sequence[Difference] = ()
) -> Outcome:
    """An outcome whose code says the rest."""
    return Outcome(
        decision=decision,
        applied=code in {OutcomeCode.DONE, OutcomeCode.SAME},
        changed=code is OutcomeCode.DONE,
        message=message,
        code=code,
        differences=tuple(differences),
    )


def named(kind: Kind, variant: VariantObservation, name: str) -> str:
    """An object as differences name it: kind, namespace and name, with the cluster where it has a name."""
    where = f"{variant.cluster}: " if variant.cluster else ""
    return f"{where}{kind.name} {variant.namespace}/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What an object is to be like.

    Attributes:
        fields: of the object that we want to own, without name and version; None: it stays as it is.
        code: why it stays; of no use with fields.
        message: for people.
        ignored: paths whose difference alone is no reason to write.
        merge: fields are merged into the object, and removed where they are None; we need not own them.
    """

    fields: Mapping[str, Any] | None = None
    code: OutcomeCode = OutcomeCode.SAME
    message: str = ""
    ignored: frozenset[str] = frozenset()
    merge: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How something is written.

    Attributes:
        dry_run: the server checks and keeps nothing.
        force: fields that others own become ours; otherwise that is a conflict which names them.
        subresource: ``status``; empty: the object itself.
    """

    dry_run: bool
    force: bool = True
    subresource: str = ""


class Ahead:
    """Objects of one round, read together where there are many in a namespace: one call in place of one for each.

    Args:
        kind: of the objects.
        decisions: of the round.
    """

    def __init__(self, kind: Kind, decisions: Sequence[Decision]) -> None:
        self.kind = kind
        self._counts = Counter((one.variant.cluster, one.variant.namespace) for one in decisions)
        self._found: dict[tuple[str | None, str], Mapping[str, Object]] = {}

    def get(self, api: Api, variant: VariantObservation, name: str) -> Object:
        """One object, from what was read ahead where it was.

        Raises:
            ClusterFault: there is none, or the cluster did not answer.
        """
        place = variant.cluster, variant.namespace
        if place not in self._found:
            self._found[place] = self._listed(api, variant) if self._counts[place] >= _TOGETHER else {}
        return self._found[place].get(name) or api.get(self.kind, variant.namespace, name)

    def _listed(self, api: Api, variant: VariantObservation) -> Mapping[str, Object]:
        try:
            return {name_of(each): each for each in api.list(self.kind, variant.namespace).items}
        except ClusterFault as fault:
            # Rules may allow to read one and not all.
            if fault.trouble is not Trouble.DENIED:
                raise
            return {}


def settle(
    api: Api,
    decision: Decision,
    where: tuple[Ahead, str],
    want: Callable[[Object], Wanted],
    *,
    way: Way,
) -> Outcome:
    """Bring one object about by server-side apply, under the version that was read; worked out again where that changed.

    Args:
        api: of the variant's cluster.
        decision: with the variant, in whose namespace the object is.
        where: objects that are read ahead, and the name of this one.
        want: what it is to be like, as it is now.
        way: how it is written.
    """
    (ahead, name), variant = where, decision.variant
    kind = ahead.kind
    found = ahead.get(api, variant, name)
    for left in range(api.limits.conflicts, -1, -1):
        wanted = want(found)
        if wanted.fields is None:
            return outcome(decision, wanted.code, wanted.message)
        changes = differing(named(kind, variant, name), found, wanted.fields)
        if all(each.field in wanted.ignored for each in changes):
            return outcome(decision, OutcomeCode.SAME)
        try:
            _write(api, kind, _versioned(found, wanted.fields), way, merge=wanted.merge)
        except ClusterFault as fault:
            if fault.trouble is not Trouble.CONFLICT or "owned by" in fault.message or not left:
                raise
            found = api.get(kind, variant.namespace, name)
            continue
        code = OutcomeCode.WOULD if way.dry_run else OutcomeCode.DONE
        return outcome(decision, code, wanted.message or "; ".join(map(str, changes)), changes)
    raise AssertionError("unreachable: the last round returns or raises")


def to_release(variant: VariantObservation) -> Decision:
    """What outcomes are about where a variant is given back: nothing is decided, and its count stays."""
    return Decision(variant=variant, desired=variant.wanted or 0, reason="Released")


def release_each(
    kind: Kind,
    variants: Iterable[VariantObservation],
    *,
    connections: Connections,
    freed: Callable[[Object], Wanted],
    dry_run: bool,
) -> tuple[Outcome, ...]:
    """Give back the scalers of variants, which bear their names.

    Args:
        kind: of the scalers.
        variants: whose are held, or may be.
        connections: to the clusters.
        freed: what a scaler is to be like, as it is now.
        dry_run: the server checks and keeps nothing.
    """
    held = [to_release(each) for each in variants]
    ahead, way = Ahead(kind, held), Way(dry_run=dry_run)

    def attempt(api: Api, one: Decision) -> Outcome:
        return settle(api, one, (ahead, one.variant.name), freed, way=way)

    return in_each_cluster(held, connections, attempt)


def _write(api: Api, kind: Kind, thing: Mapping[str, Any], way: Way, *, merge: bool) -> None:
    namespace, name = namespace_of(thing), name_of(thing)
    sub = way.subresource
    if merge:
        api.patch(kind, namespace, name, thing, subresource=sub, dry_run=way.dry_run)
    else:
        api.apply(kind, namespace, thing, subresource=sub, force=way.force, dry_run=way.dry_run)


def _versioned(found: Object, fields: Mapping[str, Any]) -> dict[str, Any]:
    """With the version that was read, so that nothing newer is overwritten and nothing deleted is made again."""
    identity = {"name": name_of(found), "namespace": namespace_of(found)} | version_of(found)
    return {**fields, "metadata": {**fields.get("metadata", {}), **identity}}


def differing(name: str, found: Object, fields: Mapping[str, Any], *path: str) -> tuple[Difference, ...]:
    """Every field that is other in ``fields`` than in an object; whatever is no mapping is compared as a whole."""
    changes: list[Difference] = []
    for key, value in fields.items():
        here = (*path, key)
        if isinstance(value, Mapping):
            changes += differing(name, found, value, *here)
            continue
        before = at(found, *here)
        if before != value:
            changes.append(
                Difference(object=name, field=_shown_path(here), before=_shown(before), after=_shown(value))
            )
    return tuple(changes)


def _shown_path(path: Sequence[str]) -> str:
    """``spec.minReplicas``, ``metadata.annotations[a.b/c]``."""
    return "".join(f"[{key}]" if "/" in key or "." in key else f".{key}" for key in path).lstrip(".")


def _shown(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= 200 else f"{text[:199]}…"  # noqa: PLR2004 - a line
