"""What holds for HPA, KEDA and KPA whatever they are told and shown."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from models.autoscaling import (
    HpaBehavior,
    HpaMetric,
    HpaSpec,
    KedaSpec,
    KpaSpec,
    MetricSource,
    PolicySelect,
    PolicyType,
    ScalingPolicy,
    ScalingRules,
    TargetType,
)
from planner.simulation.autoscaling import (
    HpaHistory,
    HpaTarget,
    KedaMemory,
    KpaMemory,
    PodFigure,
    Tolerances,
    poll,
    reconcile,
    scale,
)
from planner.simulation.autoscaling.hpa_metrics import per_pod

untimed = settings(deadline=None)  # a busy machine is no failure

figures = st.floats(0, 100, allow_nan=False)
policies = st.builds(
    ScalingPolicy,
    type=st.sampled_from(PolicyType),
    value=st.integers(1, 150),
    period_s=st.sampled_from([15.0, 60.0]),
)
rules = st.builds(
    ScalingRules,
    stabilization_s=st.none() | st.sampled_from([0.0, 60.0]),
    policies=st.lists(policies, max_size=2).map(tuple),
    select=st.sampled_from(PolicySelect),
)
behaviors = st.none() | st.builds(HpaBehavior, up=rules, down=rules)
METRICS = (
    HpaMetric(name="waiting", source=MetricSource.PODS, target=3),
    HpaMetric(name="held", source=MetricSource.EXTERNAL, target=5),
    HpaMetric(name="full", source=MetricSource.EXTERNAL, target_type=TargetType.VALUE, target=1),
)


@st.composite
def specs(draw: st.DrawFn) -> HpaSpec:
    least = draw(st.integers(1, 4))
    return HpaSpec(
        min_replicas=least,
        max_replicas=least + draw(st.integers(0, 8)),
        metrics=tuple(draw(st.lists(st.sampled_from(METRICS), min_size=1, max_size=3, unique=True))),
        behavior=draw(behaviors),
    )


def a_target(asked: int, shown: list[tuple[list[float | None], float | None, float | None]]) -> HpaTarget:
    pods, held, full = shown[0]
    return HpaTarget(
        asked=asked,
        existing=asked,
        ready=asked,
        pods={"waiting": [PodFigure(one) for one in pods][:asked]},
        external={"held": held, "full": full},
    )


shows = st.lists(
    st.tuples(
        st.lists(st.none() | figures, min_size=1, max_size=8), st.none() | figures, st.none() | figures
    ),
    min_size=1,
    max_size=8,
)


@untimed
@given(spec=specs(), shown=shows, start=st.integers(1, 15))
def test_hpa_stays_in_its_bounds(spec: HpaSpec, shown: list[Any], start: int) -> None:
    history, asked = HpaHistory(), start
    for cycle in range(len(shown)):
        found = reconcile(spec, history, target=a_target(asked, shown[cycle:]), now_s=15.0 * cycle)
        history, asked = found.history, found.replicas
        assert spec.min_replicas <= asked <= spec.max_replicas


@untimed
@given(spec=specs(), shown=shows, start=st.integers(1, 12))
def test_nothing_shrinks_that_an_unreadable_metric_may_hold(
    spec: HpaSpec, shown: list[Any], start: int
) -> None:
    start = min(max(start, spec.min_replicas), spec.max_replicas)
    target = a_target(start, shown)
    unreadable = any(
        all(one.value is None for one in target.pods["waiting"])
        if metric.source is MetricSource.PODS
        else target.external[metric.name] is None
        for metric in spec.metrics
    )
    if unreadable:
        assert reconcile(spec, HpaHistory(), target=target, now_s=0.0).replicas >= start


@untimed
@given(
    shown=st.lists(st.integers(0, 40).map(float), min_size=1, max_size=8),
    silent=st.integers(1, 4),
)
def test_silent_pods_only_ever_bring_the_count_nearer(shown: list[float], silent: int) -> None:
    pods, current = [PodFigure(one) for one in shown], len(shown) + silent
    blind = per_pod([*pods, *[PodFigure(None)] * silent], 10, current=current, tolerances=Tolerances())
    assert blind is not None
    mean = sum(shown) / len(shown)
    if mean == 10:
        # The controller itself takes silent pods for idle there, and so removes some.
        return
    if mean < 10:
        # At their target they want as many of themselves.
        told = per_pod([*pods, *[PodFigure(0.0)] * silent], 10, current=current, tolerances=Tolerances())
        assert told is not None
        assert told <= blind <= current
    else:
        told = per_pod([*pods, *[PodFigure(mean)] * silent], 10, current=current, tolerances=Tolerances())
        assert told is not None
        assert current <= blind <= max(told, current)


@untimed
@given(
    least=st.integers(0, 4),
    asked=st.integers(0, 8),
    shown=st.lists(st.none() | figures, min_size=1, max_size=8),
)
def test_a_poll_of_keda_moves_to_zero_or_its_minimum_only(
    least: int, asked: int, shown: list[float | None]
) -> None:
    spec = KedaSpec(min_replicas=least, max_replicas=8, triggers=(METRICS[1],), cooldown_s=30)
    memory = KedaMemory(created_s=0.0)
    for cycle, figure in enumerate(shown):
        count, memory = poll(spec, memory, asked=asked, figures={"held": figure}, now_s=30.0 * cycle)
        assert count in {asked, least, 0, 1}
        if figure is None or least:
            assert count >= min(asked, max(least, 1))
        asked = count


@untimed
@given(
    shown=st.lists(st.none() | figures, min_size=1, max_size=60),
    least=st.integers(0, 3),
    delay_s=st.sampled_from([0.0, 10.0]),
)
def test_kpa_stays_in_its_bounds_and_halves_at_most(
    shown: list[float | None], least: int, delay_s: float
) -> None:
    spec = KpaSpec(target=5, min_replicas=least, max_replicas=9, scale_down_delay_s=delay_s)
    memory, ready = KpaMemory(), 4
    for tick, figure in enumerate(shown):
        count, memory = scale(spec, memory, ready=ready, figure=figure, now_s=2.0 * tick)
        if count is not None:
            assert least <= count <= 9
            assert count >= ready // 2
            ready = count
