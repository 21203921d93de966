"""Values of an observation with the series that they are worked out of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from models.observation import EngineObservation, TrafficObservation
from models.tracing import SeenSeries
from planner.control.collectors.names import ENGINE_MEASURES, ROUTER_MEASURES, Measure, engine_of

__all__ = ["series_of"]


def series_of(
    engines: Iterable[EngineObservation], traffic: Iterable[TrafficObservation], *, engine: str
) -> tuple[SeenSeries, ...]:
    """Everything that engines and routers said, each with the series that it may be from.

    Args:
        engines: of one service.
        traffic: of that service.
        engine: ``vllm`` or ``sglang``; series of the other are left out.
    """
    return (
        *(each for one in engines for each in _of(one, one.instance, ENGINE_MEASURES, engine)),
        *(each for one in traffic for each in _of(one, f"{one.namespace}/{one.model}", ROUTER_MEASURES, "")),
    )


def _of(
    seen: EngineObservation | TrafficObservation, subject: str, measures: Sequence[Measure], engine: str
) -> Iterator[SeenSeries]:
    for measure in measures:
        value = getattr(seen, measure.field, None)
        if value is None:
            continue
        ways = [way for way in measure.ways if not engine or engine_of(way.series[0]) in {engine, ""}]
        yield SeenSeries(
            subject=subject,
            field=measure.field,
            value=float(value),
            how=measure.how.value,
            window_s=measure.window_s,
            series=tuple(dict.fromkeys(name for way in ways for name in way.series)),
        )
