"""Schedules of resizes: called as long before the load as they take, once for what comes meanwhile, back when all is calm."""

from __future__ import annotations

from typing import Any

import pytest

from models.elastic import ElasticDeployment, ElasticEngine, ElasticShape, RankRate, ResizeMode
from models.resizing import ResizeEstimate, ScheduledCall
from planner.elastic import ResizeQuestion, Room, estimate_resize
from planner.elastic.scheduling import Expected, ScheduleQuestion, schedule

C = ResizeMode.ASYNC_GRAPH_REUSE
RATES = tuple(RankRate(ranks=n, rated_rps=r) for n, r in ((16, 14.0), (20, 17.0), (24, 20.0)))
SHAPE = ElasticShape(experts=384, launch_ranks=16, max_ranks=24, rank_group=4)


def takes(before: int, after: int) -> ResizeEstimate:
    return estimate_resize(ResizeQuestion(mode=C, from_ranks=before, to_ranks=after))


def question(current: int = 16, **fields: Any) -> ScheduleQuestion:
    figures: dict[str, Any] = {
        "deployment": ElasticDeployment(max_ranks=24, rates=RATES),
        "shape": SHAPE,
        "current": current,
        "now_s": 1000.0,
        "estimate": takes,
    }
    return ScheduleQuestion(**(figures | fields))


def rates(*values: float, step_s: float = 60.0) -> Expected:
    return Expected(start_s=1000.0, step_s=step_s, rates_rps=values)


def scheduled(asked: ScheduleQuestion, expected: Expected) -> tuple[ScheduledCall, ...]:
    return schedule(asked, expected).calls


def test_it_is_called_for_as_long_before_as_it_takes() -> None:
    calls = scheduled(question(), rates(*[8.0] * 10, *[16.0] * 50))
    assert [(each.from_ranks, each.to_ranks, each.mode) for each in calls] == [(16, 20, C)]
    way = takes(16, 20)
    assert calls[0].needed_s == 1600.0
    assert calls[0].call_s == pytest.approx(1600.0 - way.total.high_s - way.balance.expected_s)
    assert (calls[0].late_s, calls[0].short_rps) == (0, 0)


def test_what_should_have_been_called_for_is_called_now_and_says_how_late() -> None:
    calls = scheduled(question(), rates(8.0, *[16.0] * 59))
    assert calls[0].call_s == 1000.0
    assert calls[0].late_s == pytest.approx(takes(16, 20).total.high_s + 10 - 60, abs=0.1)


def test_one_call_covers_what_comes_while_it_runs() -> None:
    calls = scheduled(question(), rates(*[8.0] * 10, 16.0, 19.0, *[19.0] * 40))
    assert [(each.from_ranks, each.to_ranks) for each in calls] == [(16, 24)]


def test_a_slow_rise_takes_two_calls() -> None:
    calls = scheduled(question(), rates(*[8.0] * 10, *[16.0] * 40, *[19.0] * 40))
    assert [(each.from_ranks, each.to_ranks) for each in calls] == [(16, 20), (20, 24)]


def test_it_shrinks_when_nothing_needs_the_ranks_for_half_an_hour_and_not_for_less() -> None:
    calm = scheduled(question(24), rates(*[19.0] * 5, *[8.0] * 60))
    assert [(each.from_ranks, each.to_ranks, each.needed_s) for each in calm] == [(24, 16, 1300.0)]
    assert scheduled(question(24), rates(*[19.0] * 5, *[8.0] * 20, *[19.0] * 60)) == ()
    assert scheduled(question(24), rates(*[8.0] * 20)) == ()


def test_beyond_the_largest_size_it_goes_there_and_says_what_is_short() -> None:
    calls = scheduled(question(), rates(*[8.0] * 10, *[30.0] * 50))
    assert (calls[0].to_ranks, calls[0].short_rps) == (24, pytest.approx(10.0))
    assert len(calls) == 1
    assert schedule(question(), rates(*[8.0] * 10, *[30.0] * 50)).short_rps == pytest.approx(10.0)
    nowhere = schedule(question(24), rates(*[30.0] * 5))
    assert (nowhere.calls, nowhere.short_rps) == ((), pytest.approx(10.0))


@pytest.mark.parametrize(
    "fields",
    [
        {"deployment": ElasticDeployment(max_ranks=24, rates=RATES, engine=ElasticEngine(elastic=False))},
        {"deployment": ElasticDeployment(max_ranks=24)},
        {"room": Room([2])},
    ],
)
def test_where_nothing_can_be_resized_nothing_is_scheduled(fields: dict[str, Any]) -> None:
    assert scheduled(question(**fields), rates(*[8.0] * 10, *[16.0] * 50)) == ()


def test_the_size_of_now_that_carries_all_stays() -> None:
    assert scheduled(question(), rates(*[13.0] * 30)) == ()
