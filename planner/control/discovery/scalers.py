"""What is declared to be scaled: annotated HPAs and ScaledObjects, and VariantAutoscalings.

Source: llm-d workload-variant-autoscaler, discovery by annotations (since v0.9) and ``llmd.ai/v1alpha1`` (up to v0.8).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from models.observation import Finding
from planner.control.cluster.kinds import WORKLOADS
from planner.control.cluster.reading import (
    Object,
    annotations_of,
    at,
    controller_of,
    count_at,
    labels_of,
    name_of,
    namespace_of,
    scaled_by,
    text_at,
)
from planner.control.discovery.pods import Owner

__all__ = ["HELD", "PAUSED", "PINNED", "Declared", "declared", "former_bounds", "held_bounds", "is_true"]

MANAGED: Final = "llm-d.ai/managed"
MODEL: Final = "llm-d.ai/model-id"
COST: Final = "llm-d.ai/variant-cost"
INSTANCE: Final = "wva.llmd.ai/controller-instance"
PAUSED: Final = "fleetplan.dev/paused"
"""Annotation of a scaler, a workload or a namespace: people asked that nothing is changed."""
HELD: Final = "fleetplan.dev/held"
"""Annotation of a workload that we set: who changed its replicas by hand. Without it they are ours again."""
PINNED: Final = "fleetplan.dev/pinned"
"""Annotation of a scaler: the count that we hold it at. Where it says another one itself, people changed it."""
FORMER_BOUNDS: Final = "fleetplan.dev/former-bounds"
"""Annotation of an HPA that is held: minimum and maximum from before, ``1:8``."""
_KEDA_PAUSES: Final = ("autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas")
_FORMER: Final = re.compile(r"(\d{1,9}):(\d{1,9})", re.ASCII)
_DEFAULT_COST: Final = 10.0
_MOST_COST: Final = 1e9
_KEDA_MOST: Final = 100
"""``maxReplicaCount`` of a ScaledObject that states none (KEDA)."""

ScalerKind = Literal["keda", "hpa", "variantautoscaling"]
_SHOWN: Final[Mapping[str, str]] = {
    "keda": "ScaledObject", "hpa": "HorizontalPodAutoscaler", "variantautoscaling": "VariantAutoscaling",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A variant as its scaler declares it.

    Attributes:
        scaler: who.
        namespace: of scaler and workload.
        name: of the scaler, which is the variant's.
        model: identifier of what is served.
        cost: of a replica, relative.
        least: replicas at least.
        most: replicas at most; None: no bound.
        target: whose replicas.
        api_version: of the target; empty: the usual one.
        labels: of the scaler.
        paused: people asked that nothing is changed.
    """

    scaler: ScalerKind
    namespace: str
    name: str
    model: str
    cost: float
    least: int
    most: int | None
    target: Owner
    api_version: str
    labels: Mapping[str, str]
    paused: bool

    @property
    def subject(self) -> str:
        """As findings name it."""
        return f"{_SHOWN[self.scaler]} {self.namespace}/{self.name}"


def declared(
    scaled_objects: Iterable[Object],
    hpas: Sequence[Object],
    variant_autoscalings: Iterable[Object],
    *,
    instance: str | None,
) -> tuple[tuple[Declared, ...], tuple[Finding, ...]]:
    """Every variant that is ours to scale, and what of the declarations is wrong.

    A ScaledObject goes before an HPA, and that before a VariantAutoscaling, for the same workload or the same name.

    Args:
        scaled_objects: as the API has them.
        hpas: as the API has them, of any version.
        variant_autoscalings: as the API has them.
        instance: label that they must carry; None: whatever they carry.
    """
    findings: list[Finding] = []
    bounds = _bounds_by_target(hpas)
    found: list[Declared] = []
    for thing in scaled_objects:
        found += _annotated(thing, "keda", findings)
    for thing in hpas:
        # KEDA makes an HPA of each ScaledObject and copies its annotations.
        if (controller_of(thing) or ("",))[0] != "ScaledObject":
            found += _annotated(thing, "hpa", findings)
    for thing in variant_autoscalings:
        found += _custom(thing, bounds, findings)
    mine = [each for each in found if instance is None or each.labels.get(INSTANCE) == instance]
    return _once(mine, findings), tuple(findings)


def held_bounds(hpa: Object) -> tuple[int, int] | None:
    """Minimum and maximum that people gave an HPA which we hold at a count; None: we do not hold it."""
    notes = annotations_of(hpa)
    bounds = {count_at(hpa, "spec", "minReplicas"), count_at(hpa, "spec", "maxReplicas")}
    if {str(each) for each in bounds} != {notes.get(PINNED, "")}:
        return None
    return former_bounds(notes.get(FORMER_BOUNDS, ""))


def former_bounds(record: str) -> tuple[int, int] | None:
    """Minimum and maximum as a record of them has them, ``1:8``; None: it is none."""
    found = _FORMER.fullmatch(record)
    return None if found is None else (int(found[1]), int(found[2]))


def is_true(value: str | None) -> bool:
    """Whether an annotation says yes."""
    return (value or "").strip().casefold() in {"true", "1", "yes"}


def _annotated(thing: Object, scaler: ScalerKind, findings: list[Finding]) -> list[Declared]:
    notes = annotations_of(thing)
    if not is_true(notes.get(MANAGED)):
        return []
    spec = at(thing, "spec")
    least, most = held_bounds(thing) or (count_at(spec, "minReplicas"), count_at(spec, "maxReplicas"))
    if scaler == "keda":
        least, most = count_at(spec, "minReplicaCount") or 0, count_at(spec, "maxReplicaCount")
        most = _KEDA_MOST if most is None else most
    return _made(
        thing, scaler, model=notes.get(MODEL, ""), cost=notes.get(COST),
        bounds=(1 if least is None else least, most), findings=findings,
    )  # fmt: skip


def _custom(
    thing: Object, bounds: Mapping[Owner, tuple[int | None, int | None]], findings: list[Finding]
) -> list[Declared]:
    """Early VariantAutoscalings state no bounds: they are those of the HPA of the same workload."""
    spec = at(thing, "spec")
    target = _target(thing)
    others = bounds.get(target, (None, None)) if target is not None else (None, None)
    least, most = count_at(spec, "minReplicas"), count_at(spec, "maxReplicas")
    least = others[0] if least is None else least
    most = others[1] if most is None else most
    cost = at(spec, "variantCost")
    return _made(
        thing, "variantautoscaling", model=text_at(spec, "modelID"), cost=None if cost is None else str(cost),
        bounds=(1 if least is None else least, most), findings=findings,
    )  # fmt: skip


def _made(
    thing: Object,
    scaler: ScalerKind,
    *,
    model: str,
    cost: str | None,
    bounds: tuple[int, int | None],
    findings: list[Finding],
) -> list[Declared]:
    """One variant, or none and a finding for each reason."""
    subject = f"{_SHOWN[scaler]} {namespace_of(thing)}/{name_of(thing)}"
    target, price = _target(thing), _cost(cost)
    problems = []
    if not model.strip() or len(model) > 253 or not model.isprintable():  # noqa: PLR2004 - as names are
        key = "spec.modelID" if scaler == "variantautoscaling" else f"annotation {MODEL}"
        problems.append((f"{key} names no model", "name what its engines serve"))
    if price is None:
        problems.append((f"cost {cost!r:.40} is no number from 0", f'write {COST} as a number, e.g. "4.5"'))
    if target is None or not namespace_of(thing) or not name_of(thing):
        kinds = ", ".join(WORKLOADS)
        problems.append(("scaleTargetRef names nothing that can be scaled", f"name a {kinds}"))
    least, most = bounds
    findings += [
        Finding(subject=subject, problem=f"ignored: {problem}", remedy=remedy) for problem, remedy in problems
    ]
    if problems or target is None or price is None:
        return []
    if most is not None and most < least:
        problem = f"at most {most} replicas is less than at least {least}; {least} count for both"
        findings.append(Finding(subject=subject, problem=problem, remedy="repair the bounds"))
        most = least
    notes = annotations_of(thing)
    return [
        Declared(
            scaler=scaler, namespace=namespace_of(thing), name=name_of(thing), model=model.strip(), cost=price,
            least=least, most=most, target=target,
            api_version=text_at(thing, "spec", "scaleTargetRef", "apiVersion"), labels=labels_of(thing),
            paused=is_true(notes.get(PAUSED)) or (scaler == "keda" and _keda_pauses(notes)),
        )
    ]  # fmt: skip


def _keda_pauses(notes: Mapping[str, str]) -> bool:
    """A pause that we set to hold it at a count is none."""
    count = notes.get(_KEDA_PAUSES[1])
    return is_true(notes.get(_KEDA_PAUSES[0])) or (count is not None and count != notes.get(PINNED))


def _target(thing: Object) -> Owner | None:
    kind, name = scaled_by(thing)
    return (kind, namespace_of(thing), name) if kind in WORKLOADS and name else None


def _cost(text: str | None) -> float | None:
    if text is None:
        return _DEFAULT_COST
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= _MOST_COST else None


def _bounds_by_target(hpas: Iterable[Object]) -> dict[Owner, tuple[int | None, int | None]]:
    found: dict[Owner, tuple[int | None, int | None]] = {}
    for thing in hpas:
        target = _target(thing)
        if target is not None:
            stated = count_at(thing, "spec", "minReplicas"), count_at(thing, "spec", "maxReplicas")
            found.setdefault(target, held_bounds(thing) or stated)
    return found


def _once(found: Sequence[Declared], findings: list[Finding]) -> tuple[Declared, ...]:
    """One variant for each workload and for each name; a pause of any of them counts."""
    order: Final[Sequence[str]] = tuple(_SHOWN)
    kept: dict[Owner, Declared] = {}
    names: set[tuple[str, str]] = set()
    for each in sorted(found, key=lambda one: (order.index(one.scaler), one.namespace, one.name)):
        first = kept.get(each.target)
        if first is not None:
            kept[each.target] = replace(first, paused=first.paused or each.paused)
            problem = f"ignored: {first.subject} scales {each.target[0]} {each.target[2]} already"
        elif (each.namespace, each.name) in names:
            problem = "ignored: another scaler of that name comes before it, and variants are named after their scalers"
        else:
            kept[each.target] = each
            names.add((each.namespace, each.name))
            continue
        findings.append(Finding(subject=each.subject, problem=problem, remedy="keep one of the two"))
    return tuple(sorted(kept.values(), key=lambda one: (one.namespace, one.name)))
