"""Vectors of Prometheus -> sightings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Final

from models.ids import NAME_PATTERN
from planner.control.collectors.label_names import LabelNames
from planner.control.collectors.names import ENGINE_MEASURES, ROUTER_MEASURES, STARTED
from planner.control.collectors.prometheus_api import Answer, Labels, Sample
from planner.control.collectors.queries import DOWN, ENGINE_LABEL
from planner.control.collectors.sightings import (
    LONGEST_LABEL,
    Place,
    RouterRow,
    Row,
    Sightings,
    certain,
    without_rank,
)

__all__ = ["Vectors"]

_OLDEST_S: Final = 1e8
_MOST_ENGINES: Final = 1_000_000
_NAME: Final = re.compile(NAME_PATTERN)


class Vectors:
    """Fills sightings with vectors.

    Args:
        seen: to fill.
        labels: how the scrape calls things.
    """

    def __init__(self, seen: Sightings, labels: LabelNames) -> None:
        self._seen = seen
        self._labels = labels
        self._down: set[Place] = set()
        self._cluster = labels.cluster or ""
        self._cluster_name = labels.cluster_name or ""

    def presence(self, answer: Answer[Sample] | None) -> None:
        """Take the engines that are there, from when they were last scraped, and note targets that are down."""
        present: list[Sample] = []
        for sample in answer.result if answer is not None else ():
            if sample[0].get(ENGINE_LABEL) == DOWN:
                self._down.add(self._place(sample[0]).whole)
            else:
                present.append(sample)
        self._take_rows(Answer(present), lambda _: True)

    def lost(self, last_seen: Answer[Sample] | None) -> None:
        """Take engines that cannot be scraped now: those last seen whose target is still there and down.

        A target that is gone has no ``up``: its engine was removed, and its last values say nothing of now.
        """
        self._take_rows(last_seen, lambda place: place.whole in self._down)

    def _take_rows(self, answer: Answer[Sample] | None, wanted: Callable[[Place], bool]) -> None:
        rows = self._seen.rows
        for metric, at_s, value in answer.result if answer is not None else ():
            place = self._place(metric)
            if place in rows or not _fits(place) or len(rows) >= _MOST_ENGINES:
                continue
            if math.isfinite(at_s - value) and wanted(place):
                age_s = min(max(0.0, at_s - value), _OLDEST_S)
                rows[place] = Row.of(metric, self._labels, engine=metric.get(ENGINE_LABEL, ""), age_s=age_s)

    def engines(self, answers: Mapping[str, Answer[Sample]]) -> None:
        """Take the values of engines; those of places where no engine is are passed over."""
        for measure in (*ENGINE_MEASURES, STARTED):
            answer = answers.get(measure.field)
            if answer is not None and measure.field == "kv_tokens":
                answer = Answer(
                    [(labels, at_s, _tokens(labels, value)) for labels, at_s, value in answer.result]
                )
            if answer is not None:
                self._take_values(measure.field, answer)

    def _take_values(self, field: str, answer: Answer[Sample]) -> None:
        believe = self._seen.believe
        low, high = certain(field)
        for labels, _, raw in answer.result:
            value = raw if low <= raw <= high else believe(field, raw)
            if value is None:
                continue
            try:
                values = labels.values_of
            except AttributeError:
                row = self._seen.rows.get(self._place(labels))
                values = labels.values_of = None if row is None else row.values
            if values is not None:
                values.setdefault(field, value)
            elif not (place := self._place(labels)).rank:
                self._seen.extras.setdefault(place, {}).setdefault(field, value)

    def routers(self, answers: Mapping[str, Answer[Sample]], periods: Mapping[str, str]) -> None:
        """Take the values of routers by model.

        Args:
            answers: by field.
            periods: by service (namespace/model) the answer that counts in place of ``arrived``.
        """
        rows: dict[tuple[str, str, str, str, str], RouterRow] = {}
        for measure in ROUTER_MEASURES:
            usual = periods if measure.field == "arrived" else {}
            self._take_routed(rows, measure.field, answers.get(measure.field), usual, "")
        for name in sorted(set(periods.values())):
            self._take_routed(rows, "arrived", answers.get(name), periods, name)
        self._seen.routers.extend(rows.values())

    def _take_routed(
        self,
        rows: dict[tuple[str, str, str, str, str], RouterRow],
        field: str,
        answer: Answer[Sample] | None,
        periods: Mapping[str, str],
        period: str,
    ) -> None:
        for metric, _, raw in answer.result if answer is not None else ():
            value = self._seen.believe(field, raw)
            row = RouterRow.of(metric, self._labels)
            if value is None or not row.model or periods.get(f"{row.namespace}/{row.model}", "") != period:
                continue
            key = (row.cluster, row.namespace, row.pool, row.model, metric.get(self._labels.instance, ""))
            kept = rows.setdefault(key, row)
            kept.values[field] = kept.values.get(field, 0.0) + value

    def power(self, answer: Answer[Sample] | None) -> None:
        """Take the power of the accelerators of each pod."""
        for metric, _, raw in answer.result if answer is not None else ():
            value = self._seen.believe("power_w", raw)
            pod = metric.get("exported_pod") or metric.get(self._labels.pod, "")
            namespace = metric.get("exported_namespace") or metric.get(self._labels.namespace, "")
            if value is not None and not math.isnan(value) and pod:
                whose = (self._cluster_of(metric), namespace, pod)
                self._seen.power_w[whose] = self._seen.power_w.get(whose, 0.0) + value

    def dispatch(self, answer: Answer[Sample] | None) -> None:
        """Take the rates at which routers send requests to engines."""
        for metric, _, raw in answer.result if answer is not None else ():
            value = self._seen.believe("dispatch_rps", raw)
            pod = without_rank(metric.get("to", ""))
            if value is not None and not math.isnan(value) and pod:
                namespace = metric.get("exported_namespace") or metric.get(self._labels.namespace, "")
                whose = (self._cluster_of(metric), namespace, pod, metric.get("port", ""))
                sofar = self._seen.dispatch_rps.get(whose, 0.0)
                self._seen.dispatch_rps[whose] = sofar + value

    def completed(self, answers: Mapping[str, Answer[Sample]], periods: Mapping[str, str]) -> None:
        """Take completed requests by namespace and served model; ``periods`` as in :meth:`routers`."""
        for name in ["completed", *sorted(set(periods.values()))]:
            answer = answers.get(name)
            for metric, _, raw in answer.result if answer is not None else ():
                namespace, model = metric.get(self._labels.namespace, ""), metric.get("model_name", "")
                value = self._seen.believe("completed", raw)
                if value is None or math.isnan(value):
                    continue
                if periods.get(f"{namespace}/{model}", "completed") == name:
                    self._seen.completed[self._cluster_of(metric), namespace, model] = value

    def _place(self, metric: Labels) -> Place:
        get, labels = metric.get, self._labels
        return Place(
            get(labels.namespace, ""),
            get(labels.pod, ""),
            get(labels.instance, ""),
            get("engine") or get("dp_rank") or "",
            get(self._cluster, self._cluster_name),
        )

    def _cluster_of(self, metric: Labels) -> str:
        return metric.get(self._cluster, self._cluster_name)


def _fits(place: Place) -> bool:
    """Whether names are of a length that a cluster can have, and the cluster's is one that a value may hold."""
    if any(len(part) > LONGEST_LABEL for part in place) or not (place.instance or place.pod):
        return False
    return not place.cluster or _NAME.match(place.cluster) is not None


def _tokens(labels: Labels, value: float) -> float:
    """Tokens of a KV cache: those of the blocks that an info series states, else the value itself."""
    if "num_gpu_blocks" not in labels:
        return value
    try:
        return float(labels["num_gpu_blocks"]) * float(labels["block_size"])
    except (KeyError, ValueError):
        return math.nan
