"""Whether scalers do what the gauge says: target values, selectors, the API that HPAs read it from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from planner.control.cluster.quantities import quantity
from planner.control.cluster.reading import (
    Object,
    annotations_of,
    at,
    controller_of,
    items_of,
    name_of,
    namespace_of,
    text_at,
)
from planner.control.discovery.scalers import MANAGED, is_true
from planner.control.running.checking_result import Area, Checked, bad, good

__all__ = ["GAUGE", "checked_hpas", "checked_scaled_objects", "managed"]

GAUGE: Final = "wva_desired_replicas"
_NAMESPACE_LABELS: Final = ("exported_namespace", "namespace")
_MATCHER: Final = re.compile(r'(\w+)\s*=\s*"([^"]*)"')
_WHY_ONE: Final = "set AverageValue with 1: with Value the HPA multiplies a steady wish by the replicas that there are, up to the maximum"


def managed(things: Iterable[Object]) -> tuple[Object, ...]:
    """Scalers that carry the annotation of variants; the HPA that KEDA makes of a ScaledObject is not one."""
    return tuple(
        each
        for each in things
        if is_true(annotations_of(each).get(MANAGED)) and (controller_of(each) or ("",))[0] != "ScaledObject"
    )


def checked_hpas(hpas: Iterable[Object]) -> Iterator[Checked]:
    """A line for each managed HPA: as it should be, or what is wrong with it."""
    for thing in managed(hpas):
        subject = f"HorizontalPodAutoscaler {namespace_of(thing)}/{name_of(thing)}"
        gauges = [each for each in map(_external, items_of(at(thing, "spec", "metrics"))) if each is not None]
        ours = [
            each
            for each in gauges
            if text_at(each, "metric", "name") == GAUGE or text_at(each, "metricName") == GAUGE
        ]
        if not ours:
            said = f"none of its metrics is {GAUGE}, so nothing that is decided reaches it"
            yield bad(Area.SCALERS, subject, said, "see the sample HPA of the deploy kit, or act by 'hpa'")
            continue
        problems = [problem for each in ours for problem in _wrong_hpa(each, thing)]
        yield from _told(subject, problems)


def checked_scaled_objects(things: Iterable[Object]) -> Iterator[Checked]:
    """A line for each managed ScaledObject."""
    for thing in managed(things):
        subject = f"ScaledObject {namespace_of(thing)}/{name_of(thing)}"
        ours = [
            each
            for each in items_of(at(thing, "spec", "triggers"))
            if GAUGE in text_at(each, "metadata", "query")
        ]
        if not ours:
            said = f"no trigger asks for {GAUGE}, so nothing that is decided reaches it"
            yield bad(
                Area.SCALERS, subject, said, "see the sample ScaledObject of the deploy kit, or act by 'keda'"
            )
            continue
        problems = [problem for each in ours for problem in _wrong_trigger(each, thing)]
        yield from _told(subject, problems)


def _told(subject: str, problems: list[tuple[str, str]]) -> Iterator[Checked]:
    if not problems:
        yield good(Area.SCALERS, subject, f"follows {GAUGE}")
    for said, remedy in problems:
        yield bad(Area.SCALERS, subject, said, remedy)


def _external(metric: Object) -> Object | None:
    """What an external metric says, in the form of any version."""
    return (
        at(metric, "external")
        if text_at(metric, "type") == "External" and isinstance(at(metric, "external"), dict)
        else None
    )


def _wrong_hpa(external: Object, thing: Object) -> Iterator[tuple[str, str]]:
    target = at(external, "target")
    kind = text_at(target, "type") or (
        "AverageValue" if at(external, "targetAverageValue") is not None else "Value"
    )
    value = at(target, "averageValue") if isinstance(target, dict) else at(external, "targetAverageValue")
    if kind != "AverageValue":
        yield f"its target is {kind} and not AverageValue", _WHY_ONE
    elif quantity(value) != 1:
        yield f"its target is AverageValue {value!r:.40} and not 1", _WHY_ONE
    labels = at(external, "metric", "selector", "matchLabels") or at(
        external, "metricSelector", "matchLabels"
    )
    yield from _wrong_labels(labels if isinstance(labels, dict) else {}, thing)


def _wrong_trigger(trigger: Object, thing: Object) -> Iterator[tuple[str, str]]:
    kind = text_at(trigger, "metricType") or "AverageValue"
    if kind != "AverageValue":
        yield f"its metricType is {kind} and not AverageValue", _WHY_ONE
    threshold = at(trigger, "metadata", "threshold")
    if quantity(threshold) != 1:
        yield f'its threshold is {threshold!r:.40} and not "1"', 'set threshold: "1"'
    activation = at(trigger, "metadata", "activationThreshold")
    if activation is not None and quantity(activation) != 0:
        yield (
            f"its activationThreshold is {activation!r:.40}, so a wish of so many replicas wakes nothing",
            'set activationThreshold: "0", or leave it out',
        )
    yield from _wrong_labels(dict(_MATCHER.findall(text_at(trigger, "metadata", "query"))), thing)


def _wrong_labels(labels: Object, thing: Object) -> Iterator[tuple[str, str]]:
    """The gauge is named after the scaler, and Prometheus renames the namespace where it has one of its own."""
    name, namespace = name_of(thing), namespace_of(thing)
    if labels.get("variant_name") != name:
        said = f"it selects variant_name {labels.get('variant_name')!r:.80}, and variants are named after their scaler"
        yield said, f"select variant_name: {name}"
    stated = [str(labels[label]) for label in _NAMESPACE_LABELS if label in labels]
    if not stated:
        yield (
            "it selects no namespace, so variants of one name in two namespaces are mixed",
            f"select exported_namespace: {namespace}",
        )
    elif namespace not in stated:
        yield (
            f"it selects the namespace {stated[0]!r:.80} and is in {namespace}",
            f"select exported_namespace: {namespace}",
        )
