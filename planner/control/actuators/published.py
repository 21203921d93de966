"""Series as the published autoscaler names them, so that its dashboards and alerts stay of use.

Source: llm-d autoscaling v0.9, emitted metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

from models.observation import EngineObservation, FreshnessLimits, Observation, VariantObservation
from planner.control.actuators.connections import Connections
from planner.control.actuators.pages import page_of
from planner.control.protocols import SHORT, Decision, Outcome, OutcomeCode

if TYPE_CHECKING:
    from prometheus_client.core import Metric

__all__ = ["UNRESOLVED", "Exported", "Key", "Published", "Row"]

Key = tuple[str, str, str]
"""Cluster (empty: the only one), namespace and name of a variant."""
UNRESOLVED: Final = "unresolved"
"""Accelerator of a variant whose type nobody knows, as the published autoscaler writes it."""
_LABELS: Final = ("variant_name", "namespace", "accelerator_type")
_LIMITS: Final = FreshnessLimits()
_FIGURES: Final = ("demand_tokens", "capacity_tokens", "required_tokens", "spare_tokens")
"""Facts of decisions: what the token analyzer says of the variant's role."""


@dataclass(frozen=True, slots=True)
class Row:
    """One variant, as its series say it."""

    key: Key
    accelerator: str
    model: str
    desired: int
    current: int
    figures: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, decision: Decision) -> Row:
        """The series of a decision."""
        variant = decision.variant
        now = variant.ready + variant.pending
        told = {name: decision.facts.get(name) for name in _FIGURES}
        figures = {name: float(value) for name, value in told.items() if isinstance(value, int | float)}
        return cls(
            variant.key,
            variant.accelerator or UNRESOLVED,
            variant.model,
            max(0, decision.desired),
            now,
            figures,
        )

    @property
    def labels(self) -> tuple[str, str, str]:
        """Variant, namespace, accelerator."""
        return self.key[2], self.key[1], self.accelerator


@dataclass(frozen=True, slots=True)
class Exported:
    """What is exported at one moment.

    Attributes:
        rows: counts that are followed.
        would: counts of dry runs.
        leads: whether this controller leads.
    """

    rows: Sequence[Row]
    would: Sequence[Row]
    leads: bool


class Published:
    """Keeps what is counted, and writes all of it as text.

    Args:
        connections: say which clusters there are, and which of several controllers this is.
        companions: series beside the counts too.
    """

    def __init__(self, connections: Connections, *, companions: bool) -> None:
        self._several = any(api.name is not None for api in connections.apis)
        self._instance = connections.instance
        self._companions = companions
        self._lock = Lock()
        self._scalings: Counter[tuple[Key, str, str]] = Counter()
        self._limited: Counter[tuple[Key, str]] = Counter()
        self._last: dict[Key, int] = {}
        self._seen: Observation | None = None
        self._decided: set[Key] = set()
        self._services: set[str] = set()

    def saw(self, observation: Observation) -> None:
        """What was seen; counters of variants that are gone are gone too."""
        there = {each.key for each in observation.variants}
        with self._lock:
            self._seen, self._decided, self._services = observation, set(), set()
            if observation.complete:
                for counter in (self._scalings, self._limited):
                    for each in [each for each in counter if each[0] not in there]:
                        del counter[each]
                self._last = {key: count for key, count in self._last.items() if key in there}

    def decided(self, decisions: Sequence[Decision], outcomes: Sequence[Outcome]) -> None:
        """Count what was decided, once for each change."""
        with self._lock:
            self._services |= {f"{one.variant.cluster or ''}/{one.variant.service}" for one in decisions}
            fresh = set()
            for decision, found in zip(decisions, outcomes, strict=True):
                if found.code not in {OutcomeCode.DONE, OutcomeCode.SAME}:
                    continue
                key = decision.variant.key
                fresh.add(key)
                self._count(key, decision)
            self._decided |= fresh

    def _count(self, key: Key, decision: Decision) -> None:
        before = self._last.get(key, decision.variant.wanted or 0)
        if decision.desired != before:
            way = "up" if decision.desired > before else "down"
            self._scalings[key, way, decision.reason] += 1
        self._last[key] = decision.desired
        short = decision.facts.get(SHORT, 0)
        if isinstance(short, int | float) and short > 0:
            self._limited[key, str(decision.facts.get("limiter", "capacity"))] += 1

    def text(self, exported: Exported, cluster: str | None) -> bytes:
        """All series in Prometheus' text format.

        Args:
            exported: what is exported now.
            cluster: of this cluster alone; None: of all.
        """
        with self._lock:
            families = [each for each in self._families(exported, cluster) if each.samples]
        return page_of(families)

    def _families(self, exported: Exported, cluster: str | None) -> Iterator[Metric]:
        rows = [each for each in exported.rows if cluster is None or each.key[0] == cluster]
        would = [each for each in exported.would if cluster is None or each.key[0] == cluster]
        yield self._gauge(
            "wva_desired_replicas", "Replicas that the variant is to have.", _LABELS,
            ((row.key, row.labels, row.desired) for row in rows),
        )  # fmt: skip
        yield self._gauge(
            "fleetplan_dry_run_desired_replicas", "Replicas that the variant would have, were this no dry run.",
            _LABELS, ((row.key, row.labels, row.desired) for row in would),
        )  # fmt: skip
        if self._companions and exported.leads:
            yield from self._of_rows(rows)
            yield from self._counters(cluster)
            yield from self._of_engines(cluster)
            yield from self._of_accelerators(cluster)

    def _of_rows(self, rows: Sequence[Row]) -> Iterator[Metric]:
        yield self._gauge(
            "wva_current_replicas", "Replicas that the variant has, those that start among them.", _LABELS,
            ((row.key, row.labels, row.current) for row in rows),
        )  # fmt: skip
        yield self._gauge(
            "wva_desired_ratio", "Desired / current replicas; desired where there are none.", _LABELS,
            ((row.key, row.labels, row.desired / (row.current or 1)) for row in rows),
        )  # fmt: skip
        yield self._gauge(
            "wva_saturation_metrics_up", "Whether the variant was decided on in this cycle.", _LABELS[:2],
            ((row.key, row.labels[:2], float(row.key in self._decided)) for row in rows),
        )  # fmt: skip
        yield from self._of_figures(rows)
        yield self._gauge(
            "wva_models_processed",
            "Services of the last cycle.",
            (),
            [(("", "", ""), (), len(self._services))],
        )

    def _of_figures(self, rows: Sequence[Row]) -> Iterator[Metric]:
        """What the token analyzer says; of a variant that it did not judge there is nothing."""
        told = {
            "wva_required_capacity": ("Capacity that is missing, tokens.", "required_tokens"),
            "wva_spare_capacity": ("Capacity that may go, tokens.", "spare_tokens"),
        }
        for name, (text, figure) in told.items():
            yield self._gauge(
                name, text, ("variant_name", "namespace", "model_name", "unit"),
                (
                    (row.key, (row.key[2], row.key[1], row.model, "continuous"), row.figures[figure])
                    for row in rows if figure in row.figures
                ),
            )  # fmt: skip
        yield self._gauge(
            "wva_saturation_utilization", "Demand / capacity of ready replicas.",
            ("variant_name", "namespace", "model_name", "accelerator_type"),
            (
                (
                    row.key, (row.key[2], row.key[1], row.model, row.accelerator),
                    row.figures["demand_tokens"] / row.figures["capacity_tokens"],
                )
                for row in rows if row.figures.get("capacity_tokens", 0) > 0 and "demand_tokens" in row.figures
            ),
        )  # fmt: skip

    def _counters(self, cluster: str | None) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily

        told = {
            "wva_replica_scaling": (
                "Changes of desired replicas.", ("direction", "reason"),
                [(key, rest, count) for (key, *rest), count in self._scalings.items()],
            ),
            "wva_decisions_limited": (
                "Decisions that got fewer replicas than they asked for.", ("limiter_name",),
                [(key, rest, count) for (key, *rest), count in self._limited.items()],
            ),
        }  # fmt: skip
        for name, (text, further, counts) in told.items():
            family = CounterMetricFamily(name, text, labels=self._names((*_LABELS[:2], *further)))
            for key, rest, count in counts:
                if cluster is None or key[0] == cluster:
                    family.add_metric(self._values(key, (key[2], key[1], *rest)), count)
            yield family

    def _of_engines(self, cluster: str | None) -> Iterator[Metric]:
        seen = self._seen
        if seen is None:
            return
        engines = _of_variants(seen, cluster)
        labels = ("variant_name", "namespace", "model_name")
        sizes = [(variant, _kv_tokens(found)) for variant, found in engines]
        for name, text, place in (
            ("wva_kv_cache_tokens_used", "Tokens in KV caches of the variant.", 0),
            ("wva_kv_cache_tokens_capacity", "Tokens that KV caches of the variant hold.", 1),
        ):
            yield self._gauge(
                name, text, labels,
                (
                    (variant.key, (variant.name, variant.namespace, variant.model), known[place])
                    for variant, known in sizes if known is not None
                ),
            )  # fmt: skip
        yield self._gauge(
            "wva_metrics_freshness_status", "1 for the freshness of the variant's oldest metrics.",
            ("variant_name", "status"),
            ((variant.key, (variant.name, _freshness(found)), 1.0) for variant, found in engines),
        )  # fmt: skip
        pods = Counter(
            ((each.cluster or "", each.namespace, ""), (each.namespace,))
            for each in {one.pod: one for one in seen.engines if one.pod}.values()
            if cluster is None or (each.cluster or "") == cluster
        )
        yield self._gauge(
            "wva_metrics_pods_discovered", "Pods with metrics.", ("namespace",),
            ((key, values, count) for (key, values), count in pods.items()),
        )  # fmt: skip

    def _of_accelerators(self, cluster: str | None) -> Iterator[Metric]:
        seen = self._seen
        if seen is None:
            return
        found: Counter[tuple[Key, tuple[str]]] = Counter()
        for pool in seen.pools:
            if cluster is None or (pool.cluster or "") == cluster:
                gpus = sum(node.gpus * node.count for node in pool.nodes)
                found[(pool.cluster or "", "", ""), (pool.accelerator,)] += gpus
        yield self._gauge(
            "wva_available_gpus", "Accelerators that nodes have, used ones among them.", ("accelerator_type",),
            ((key, values, count) for (key, values), count in found.items()),
        )  # fmt: skip
        up = float(bool(seen.pools))
        yield self._gauge(
            "wva_gpu_discovery_up", "Whether accelerators were found.", (), [(("", "", ""), (), up)]
        )

    def _gauge(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        samples: Iterable[tuple[Key, Sequence[str], float]],
    ) -> Metric:
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(name, text, labels=self._names(labels))
        for key, values, value in samples:
            family.add_metric(self._values(key, values), value)
        return family

    def _names(self, labels: Sequence[str]) -> list[str]:
        more = ["cluster"] if self._several else []
        return [*labels, *more, *(["controller_instance"] if self._instance else [])]

    def _values(self, key: Key, values: Sequence[str]) -> list[str]:
        more = [key[0]] if self._several else []
        told = (*values, *more, *([self._instance] if self._instance else []))
        # A lone surrogate, which JSON may hold, would spoil the whole page.
        return [each if each.isascii() else each.encode("utf-8", "replace").decode() for each in told]


def _of_variants(
    seen: Observation, cluster: str | None
) -> Sequence[tuple[VariantObservation, Sequence[EngineObservation]]]:
    """Each variant of a cluster with its engines."""
    found: dict[Key, list[EngineObservation]] = {}
    for engine in seen.engines:
        found.setdefault((engine.cluster or "", engine.namespace, engine.variant), []).append(engine)
    return [
        (each, found.get(each.key, []))
        for each in seen.variants
        if cluster is None or (each.cluster or "") == cluster
    ]


def _kv_tokens(engines: Sequence[EngineObservation]) -> tuple[float, float] | None:
    """Tokens used and tokens held; None where an engine does not say: a sum without it would be wrong."""
    used = held = 0.0
    for each in engines:
        if each.kv_tokens is None or each.kv_usage is None:
            return None
        used, held = used + each.kv_usage * each.kv_tokens, held + each.kv_tokens
    return (used, held) if engines else None


def _freshness(engines: Sequence[EngineObservation]) -> str:
    ages = [each.age_s for each in engines]
    oldest = None if not ages or None in ages else max(age for age in ages if age is not None)
    return _LIMITS.of(oldest)
