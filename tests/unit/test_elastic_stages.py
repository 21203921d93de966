"""Times of resizes: the stages give back what was published, measurements go first, and other cases are wider."""

from __future__ import annotations

import pytest

from models.elastic import (
    ElasticEngine,
    Joiners,
    KernelCaches,
    LoadBalancing,
    MeasuredResize,
    ResizeConditions,
    ResizeMode,
)
from models.performance import Origin
from models.resizing import Placement, Stage
from planner.elastic import (
    PUBLISHED,
    ResizeQuestion,
    estimate_resize,
    fit_stages,
    mode_of,
    published_stages,
)

A, B, C = ResizeMode.BLOCKING, ResizeMode.ASYNC, ResizeMode.ASYNC_GRAPH_REUSE


def asked(mode: ResizeMode = C, ranks: tuple[int, int] = (16, 20), **more: object) -> ResizeQuestion:
    return ResizeQuestion(mode=mode, from_ranks=ranks[0], to_ranks=ranks[1], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("one", PUBLISHED, ids=lambda one: f"{one.mode.value}-{one.to_ranks}")
def test_the_stages_give_back_each_published_downtime_and_total(one: MeasuredResize) -> None:
    found = estimate_resize(asked(one.mode, (one.from_ranks, one.to_ranks), slot_gb=2.14, dense_gb=24.8))
    assert found.downtime.expected_s == pytest.approx(one.downtime_s, rel=0.055)
    assert found.total.expected_s == pytest.approx(one.total_s, rel=0.055)
    assert found.downtime.low_s <= one.downtime_s <= found.downtime.high_s
    assert found.total.low_s <= one.total_s <= found.total.high_s
    assert found.origin is Origin.MODELED


def test_residuals_are_those_of_the_fit() -> None:
    seconds, residuals = published_stages()
    assert len(residuals) == 12
    assert max(abs(each.error_s) for each in residuals) == pytest.approx(2.8, abs=0.1)
    assert seconds.activate_s == pytest.approx(0.82, abs=0.01)


def test_stages_that_made_the_figures_are_found_again() -> None:
    seconds, _ = published_stages()
    made = [
        each.but(
            downtime_s=seconds.paused_s(each.mode, grow=each.to_ranks > each.from_ranks),
            total_s=seconds.total_s(each.mode, grow=each.to_ranks > each.from_ranks),
        )
        for each in PUBLISHED
    ]
    again, residuals = fit_stages(made)
    assert max(abs(each.error_s) for each in residuals) == pytest.approx(0, abs=1e-6)
    assert again.join_s == pytest.approx(seconds.join_s)


@pytest.mark.parametrize("few", [PUBLISHED[:1], PUBLISHED[:3], PUBLISHED[3:]])
def test_too_few_figures_fix_no_stages(few: tuple[MeasuredResize, ...]) -> None:
    with pytest.raises(ValueError, match="do not fix every stage"):
        fit_stages(few)


def test_where_each_stage_stands_is_what_tells_the_three_apart() -> None:
    def placed(mode: ResizeMode) -> dict[Stage, Placement]:
        stages = estimate_resize(asked(mode)).stages
        return {each.stage: each.placement for each in stages if each.placement is not Placement.ABSENT}

    assert set(placed(A).values()) == {Placement.PAUSED}
    assert placed(B)[Stage.START_JOINERS] is Placement.BACKGROUND
    assert placed(B)[Stage.WARM_UP] is Placement.PAUSED
    assert placed(C)[Stage.WARM_UP] is Placement.BACKGROUND
    assert placed(C)[Stage.ACTIVATE] is Placement.PAUSED


def test_idle_accelerators_are_those_that_the_source_leads_to() -> None:
    assert estimate_resize(asked(C)).idle_gpu_seconds == pytest.approx(369 + 13, abs=1)
    assert estimate_resize(asked(ResizeMode.RESTART)).idle_gpu_seconds == pytest.approx(3940, abs=1)


def test_a_restart_serves_nobody_and_a_redeploy_holds_both() -> None:
    restart, redeploy = (
        estimate_resize(asked(ResizeMode.RESTART)),
        estimate_resize(asked(ResizeMode.REDEPLOY)),
    )
    assert restart.downtime.expected_s == pytest.approx(197, abs=0.1)
    assert restart.hindered(8) == pytest.approx(8 * 197, abs=1)
    assert (redeploy.downtime.expected_s, redeploy.peak_gpus, restart.peak_gpus) == (0, 36, 20)


def test_what_somebody_measured_goes_first() -> None:
    mine = MeasuredResize(
        mode=C, from_ranks=16, to_ranks=20, downtime_s=1.5, total_s=60, balance_s=4, source="us"
    )
    found = estimate_resize(asked(measured=[mine]))
    assert (found.downtime.expected_s, found.total.expected_s, found.lead_s) == (1.5, 60, 64)
    assert found.origin is Origin.MEASURED
    assert estimate_resize(asked(ranks=(16, 24), measured=[mine])).origin is Origin.MODELED


def test_other_sizes_and_conditions_are_wider_and_say_why() -> None:
    here, there = estimate_resize(asked()), estimate_resize(asked(ranks=(16, 32)))
    assert there.total.high_s / there.total.low_s > here.total.high_s / here.total.low_s
    assert len(there.assumptions) > len(here.assumptions)
    cold = estimate_resize(asked(conditions=ResizeConditions(kernel_caches=KernelCaches.COLD)))
    assert cold.total.expected_s > here.total.expected_s + 30
    assert cold.downtime.expected_s == pytest.approx(here.downtime.expected_s)
    snapshot = estimate_resize(asked(conditions=ResizeConditions(joiners=Joiners.SNAPSHOT)))
    assert snapshot.total.expected_s < here.total.expected_s


def test_weights_that_are_read_slowly_hold_up_a_launch_and_not_a_resize() -> None:
    slow = ResizeConditions(weights_gbps=0.5)
    assert estimate_resize(asked(ResizeMode.RESTART, conditions=slow)).total.expected_s > 250
    assert estimate_resize(asked(conditions=slow)) == estimate_resize(asked()).but(
        assumptions=estimate_resize(asked(conditions=slow)).assumptions
    )


@pytest.mark.parametrize(
    ("engine", "mode"),
    [
        (ElasticEngine(), C),
        (ElasticEngine(version="0.30.0"), C),
        (ElasticEngine(all2all_backend="deepep_low_latency"), B),
        (ElasticEngine(version="0.27.1"), B),
        (ElasticEngine(version="0.23.0"), A),
        (ElasticEngine(version="0.18.2"), None),
        (ElasticEngine(elastic=False), None),
        (ElasticEngine(load_balancing=LoadBalancing.EXTERNAL), C),
    ],
)
def test_version_and_backend_say_which_way_a_resize_goes(
    engine: ElasticEngine, mode: ResizeMode | None
) -> None:
    assert mode_of(engine) is mode
