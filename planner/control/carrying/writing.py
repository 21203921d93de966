"""Counts written to clusters: what fields change, and one write at a time, each under the version that was read.

A count that nobody owns goes through the scale subresource; an HPA is held by equal bounds, a ScaledObject by its
annotation; each keeps a record of what it had. These are the fields that ``planner.manifests`` writes as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from models.applied import FieldChange, ObjectState
from planner.control.carrying.objects import SCALER_KINDS
from planner.control.cluster import Api, ClusterFault, Trouble
from planner.control.cluster.kinds import WORKLOADS
from planner.control.cluster.reading import Object, annotations_of, count_at, version_of
from planner.control.discovery.scalers import former_bounds
from planner.manifests import Change, Target
from planner.manifests.orders import FORMER_BOUNDS, FORMER_PAUSE, NOT_PAUSED, PAUSED, pinned_bounds
from planner.manifests.orders import annotations_of as variant_notes

__all__ = ["Written", "fields_of", "fields_to_free", "free", "write"]

_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class Written:
    """What came of writing one count.

    Attributes:
        fields: that were written; empty: all of it was so already.
        left: what could not be given back; empty: nothing.
    """

    fields: tuple[FieldChange, ...] = ()
    left: str = ""


def fields_of(change: Change, state: ObjectState, *, way_back: bool = False) -> tuple[FieldChange, ...]:
    """The fields that bring one count about, as the object is now; none where it is so already.

    Args:
        change: of one object.
        state: of it, now.
        way_back: what a scaler has was given by a plan, so no record is made.
    """
    return tuple(each for each in _fields(change, state, way_back=way_back) if each.before != each.after)


def _fields(change: Change, state: ObjectState, *, way_back: bool) -> Iterator[FieldChange]:
    target, count = change.target, _count(change, state)
    match target.object.scaler:
        case "scale":
            yield count
        case "hpa":
            bounds, pinned = state.bounds or (0, 0), str(pinned_bounds(change))
            named = _scaler_name(target)
            if not way_back:
                yield _field(
                    named, _note(FORMER_BOUNDS), state.former, state.former or f"{bounds[0]}:{bounds[1]}"
                )
            yield _field(named, "spec.minReplicas", str(bounds[0]), pinned)
            yield _field(named, "spec.maxReplicas", str(bounds[1]), pinned)
            if change.new == 0 or change.old == 0:
                yield count
        case "keda":
            named = _scaler_name(target)
            if not way_back:
                yield _field(
                    named, _note(FORMER_PAUSE), state.former, state.former or state.pause or NOT_PAUSED
                )
            yield _field(named, _note(PAUSED), state.pause, str(change.new))
        case "variantautoscaling":
            # It has no count: that goes through the gauge of the control plane.
            return


def fields_to_free(target: Target, state: ObjectState) -> Iterator[FieldChange]:
    """The fields that give a scaler back what it had before a plan; none without a record."""
    if target.object.scaler not in {"hpa", "keda"}:
        return
    named, former = _scaler_name(target), state.former
    if target.object.scaler == "hpa" and (bounds := former_bounds(former)) is not None:
        now = state.bounds or (0, 0)
        yield _field(named, "spec.minReplicas", str(now[0]), str(bounds[0]))
        yield _field(named, "spec.maxReplicas", str(now[1]), str(bounds[1]))
        yield _field(named, _note(FORMER_BOUNDS), former, "")
    if target.object.scaler == "keda" and (former == NOT_PAUSED or former.isdecimal()):
        yield _field(named, _note(PAUSED), state.pause, "" if former == NOT_PAUSED else former)
        yield _field(named, _note(FORMER_PAUSE), former, "")


def _count(change: Change, state: ObjectState) -> FieldChange:
    found = "" if state.wanted is None else str(state.wanted)
    return _field(str(state.object), "spec.replicas", found, str(change.new))


def _field(named: str, path: str, before: str, after: str) -> FieldChange:
    return FieldChange(object=named, field=path, before=before, after=after)


def _note(key: str) -> str:
    return f"metadata.annotations[{key}]"


def _scaler_name(target: Target) -> str:
    where = f"{target.cluster}: " if target.cluster else ""
    return f"{where}{SCALER_KINDS[target.object.scaler].name} {target.namespace}/{target.scaler_name}"


def write(api: Api, change: Change, state: ObjectState, *, way_back: bool = False) -> Written:
    """Bring one count about.

    Args:
        api: of its cluster.
        change: from the count that it has, or has had, to the one it is to have.
        state: as it was read last; a count that differs from it by now is a conflict.
        way_back: what a scaler has was given by a plan, so no record is made.

    Raises:
        ClusterFault: the cluster refused, did not answer, or somebody changed the count since.
    """
    target, fields = change.target, fields_of(change, state, way_back=way_back)
    match target.object.scaler:
        case "hpa":
            _changed(api, target, lambda found: _held_hpa(found, pinned_bounds(change), way_back=way_back))
        case "keda":
            _changed(api, target, lambda found: _held_keda(found, change.new, way_back=way_back))
        case "variantautoscaling" if not way_back:
            _changed(api, target, lambda found: _noted(found, variant_notes(target)))
    if any(each.field == "spec.replicas" for each in fields):
        kind, name = WORKLOADS[target.object.kind], target.object.name
        api.scale(kind, target.namespace, name, change.new, seen=state.wanted)
    return Written(fields)


def free(api: Api, target: Target, state: ObjectState) -> Written:
    """Give a scaler back what it had before the plan, where a record says what that was.

    Raises:
        ClusterFault: the cluster refused or did not answer.
    """
    if target.object.scaler not in {"hpa", "keda"}:
        return Written()
    fields = tuple(fields_to_free(target, state))
    if not fields:
        return Written(
            left=f"{_scaler_name(target)} has no record of what it had before the plan: it stays held"
        )
    _changed(api, target, _freed_hpa if target.object.scaler == "hpa" else _freed_keda)
    return Written(fields)


def _changed(api: Api, target: Target, change: Callable[[Object], Object | None]) -> None:
    """Merge a change into a scaler under the version that it was worked out from; again when somebody was faster."""
    kind = SCALER_KINDS[target.object.scaler]
    for left in reversed(range(_ATTEMPTS)):
        found = api.get(kind, target.namespace, target.scaler_name)
        wanted = change(found)
        if wanted is None:
            return
        metadata = {**wanted.get("metadata", {}), **version_of(found)}
        try:
            api.patch(kind, target.namespace, target.scaler_name, {**wanted, "metadata": metadata})
        except ClusterFault as fault:
            if fault.trouble is not Trouble.CONFLICT or not left:
                raise
        else:
            return


def _held_hpa(found: Object, bounds: int, *, way_back: bool) -> Object | None:
    least, most = count_at(found, "spec", "minReplicas"), count_at(found, "spec", "maxReplicas")
    now = (1 if least is None else least, most)
    notes = annotations_of(found)
    if now == (bounds, bounds) and (way_back or FORMER_BOUNDS in notes):
        return None
    # One patch for both: no state between in which the minimum exceeds the maximum.
    wanted: Object = {"spec": {"minReplicas": bounds, "maxReplicas": bounds}}
    if way_back or FORMER_BOUNDS in notes:
        return wanted
    return {**wanted, "metadata": {"annotations": {FORMER_BOUNDS: f"{now[0]}:{now[1]}"}}}


def _held_keda(found: Object, count: int, *, way_back: bool) -> Object | None:
    notes = annotations_of(found)
    kept = {} if way_back or FORMER_PAUSE in notes else {FORMER_PAUSE: notes.get(PAUSED, NOT_PAUSED)}
    return _noted(found, {PAUSED: str(count), **kept})


def _noted(found: Object, wanted: dict[str, str]) -> Object | None:
    notes = annotations_of(found)
    missing = {key: value for key, value in wanted.items() if notes.get(key) != value}
    return {"metadata": {"annotations": missing}} if missing else None


def _freed_hpa(found: Object) -> Object | None:
    bounds = former_bounds(annotations_of(found).get(FORMER_BOUNDS, ""))
    if bounds is None:
        return None
    spec = {"minReplicas": bounds[0], "maxReplicas": bounds[1]}
    return {"metadata": {"annotations": {FORMER_BOUNDS: None}}, "spec": spec}


def _freed_keda(found: Object) -> Object | None:
    former = annotations_of(found).get(FORMER_PAUSE)
    if former is None:
        return None
    pause = None if former == NOT_PAUSED else former
    return {"metadata": {"annotations": {PAUSED: pause, FORMER_PAUSE: None}}}
