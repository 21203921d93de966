"""What was seen of engines and routers, before it is said whose they are: rows by place, values by field."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from planner.control.collectors.label_names import LabelNames
from planner.control.collectors.names import (
    COMPLETED,
    DISPATCH,
    ENGINE_MEASURES,
    POWER,
    ROUTER_MEASURES,
    STARTED,
    WORKER_LABELS,
)

__all__ = ["LONGEST_LABEL", "Place", "RouterRow", "Row", "Sightings", "believed", "certain", "without_rank"]

LONGEST_LABEL: Final = 1024
_RANKED_POD: Final = re.compile(r"-rank-\d+$")
_TWO: Final = 2.0
"""Fields bounded below this are shares, of which 1 is the most."""
_BOUNDS: Final = {
    each.field: each.bounds
    for each in (*ENGINE_MEASURES, COMPLETED, *ROUTER_MEASURES, DISPATCH, STARTED, POWER)
}
_SPREAD: Final = frozenset({"token_rate", "request_rps", "running", "waiting", "waiting_now", "power_w"})
"""Values of a pod that its ranks share; of the others each rank has the pod's."""


class Place(NamedTuple):
    """Where a series is from; equal for all series of one engine.

    Attributes:
        namespace: of the pod; empty: unknown.
        pod: its name; empty: unknown.
        instance: address that was scraped.
        rank: data-parallel rank as the engine writes it; empty: none.
        cluster: empty: the only one.
    """

    namespace: str
    pod: str
    instance: str
    rank: str = ""
    cluster: str = ""

    @property
    def whole(self) -> Place:
        """The place without its rank."""
        return Place(self.namespace, self.pod, self.instance, "", self.cluster)


@dataclass(slots=True)
class Row:
    """One engine: what it serves, how old its newest sample is (s), and its values by field.

    A value that is NaN was there and says nothing, e.g. a mean over no request.
    """

    model: str = ""
    variant: str = ""
    engine: str = ""
    worker: str = ""
    age_s: float | None = None
    values: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls, labels: Mapping[str, str], names: LabelNames, *, engine: str, age_s: float | None = None
    ) -> Self:
        """The engine that labels of a series speak of.

        Args:
            labels: of a series that tells that it is there.
            names: how the scrape calls them.
            engine: its kind.
            age_s: of the sample, s; None: unknown.
        """
        return cls(
            model=labels.get("model_name", "")[:LONGEST_LABEL],
            variant=labels.get(names.variant, "")[:LONGEST_LABEL],
            engine=engine,
            worker=next((labels[name] for name in WORKER_LABELS if name in labels), ""),
            age_s=age_s,
        )


@dataclass(slots=True)
class RouterRow:
    """What one endpoint picker says of one model; ``namespace`` is empty where its series have none."""

    cluster: str
    namespace: str
    pool: str
    model: str
    values: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, labels: Mapping[str, str], names: LabelNames) -> Self:
        """Whom a series of a router speaks of: the model that requests go to, else the one they ask for."""
        return cls(
            cluster=labels.get(names.cluster or "", names.cluster_name or ""),
            namespace=labels.get("exported_namespace") or labels.get(names.namespace, ""),
            pool=labels.get("inference_pool") or labels.get("name", ""),
            model=(labels.get("target_model_name") or labels.get("model_name", ""))[:LONGEST_LABEL],
        )


@dataclass(slots=True)
class Sightings:
    """Everything that one reading found.

    Attributes:
        rows: engines by place.
        extras: values of a process that its engines share, by place without rank.
        routers: by endpoint picker and model.
        power_w: draw by cluster, namespace and pod, W.
        dispatch_rps: requests sent by routers, by cluster, namespace, pod and port, req/s.
        completed: requests completed in the retention period, by cluster, namespace and served model.
        ignored: values that no engine can have, by field.
    """

    rows: dict[Place, Row] = field(default_factory=dict)
    extras: dict[Place, dict[str, float]] = field(default_factory=dict)
    routers: list[RouterRow] = field(default_factory=list)
    power_w: dict[tuple[str, str, str], float] = field(default_factory=dict)
    dispatch_rps: dict[tuple[str, str, str, str], float] = field(default_factory=dict)
    completed: dict[tuple[str, str, str], float] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)

    def believe(self, name: str, value: float) -> float | None:
        """The value of a field; NaN where it says nothing, None (and counted) where no engine can have it."""
        kept = believed(name, value)
        if kept is None:
            self.ignored[name] = self.ignored.get(name, 0) + 1
        return kept

    def share_extras(self) -> None:
        """Give ranks what their process says as a whole: rates and counts evenly, means and times to each.

        A row without rank beside rows with one is such a whole, and no engine of its own.
        """
        ranks: dict[Place, list[Row]] = {}
        for place, row in self.rows.items():
            if place.rank:
                ranks.setdefault(place.whole, []).append(row)
        for whole in [place for place in self.rows if not place.rank and place in ranks]:
            _lend(self.rows.pop(whole).values, ranks[whole])
        for whole, values in self.extras.items():
            alone = self.rows.get(whole)
            _lend(values, ranks.get(whole, [] if alone is None else [alone]))
        self.extras.clear()


def _lend(values: dict[str, float], rows: Iterable[Row]) -> None:
    sharing = list(rows)
    for row in sharing:
        for name, value in values.items():
            row.values.setdefault(name, value / len(sharing) if name in _SPREAD else value)


def believed(name: str, value: float) -> float | None:
    """A value inside the bounds of its field (a share a little above 1 is 1); NaN as it is; None: not believed."""
    low, high = _BOUNDS[name]
    if low <= value <= high:
        return min(value, 1.0) if high < _TWO else value
    return value if math.isnan(value) else None


def certain(name: str) -> tuple[float, float]:
    """Smallest and largest value of a field that :func:`believed` gives back as it is."""
    low, high = _BOUNDS[name]
    return low, min(high, 1.0) if high < _TWO else high


def without_rank(pod: str) -> str:
    """The name of a pod: routers that know data-parallel ranks add them to it."""
    return _RANKED_POD.sub("", pod)
