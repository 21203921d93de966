"""Elastic EP in the twin: what a resize costs those who are served, and what three deployments make of twice the load."""

from __future__ import annotations

import numpy as np
import pytest

from models.elastic import ResizeMode
from models.simulation import Outcome
from planner.reproduction.elastic import PUBLISHED, Deployment
from planner.reproduction.elastic_slo import Scenario, replay, rolling_p95_s
from planner.reproduction.elastic_timings import Seen, Traffic, watch_resize
from tests.twins import a_fleet, a_replica, requests
from tests.twins import replay as replayed

A, B, C, RESTART = (
    ResizeMode.BLOCKING,
    ResizeMode.ASYNC,
    ResizeMode.ASYNC_GRAPH_REUSE,
    ResizeMode.RESTART,
)
CALM = Traffic(rate_rps=2.0, call_s=30.0, duration_s=260.0)
SMALL = Scenario(requests=4_000, step_s=60.0)
"""The load steps up after a minute and stays for four."""


def seen(mode: ResizeMode, *, grow: bool = True) -> Seen:
    return watch_resize(mode, grow=grow, seed=1, given=Deployment(), traffic=CALM)


@pytest.mark.parametrize(("mode", "grow"), PUBLISHED)
def test_a_resize_takes_what_was_published(mode: ResizeMode, grow: bool) -> None:
    found, published = seen(mode, grow=grow), PUBLISHED[mode, grow]
    assert found.downtime_s == pytest.approx(published.downtime_s, abs=0.05)
    assert found.total_s == pytest.approx(published.total_s, abs=0.1)
    assert found.ranks == (20 if grow else 16)


def test_less_downtime_turns_fewer_requests_away() -> None:
    turned_away = [seen(mode).turned_away for mode in (C, B, A, RESTART)]
    assert turned_away == sorted(turned_away)
    assert turned_away[0] < turned_away[1]


def test_only_shrinking_cuts_requests_off_on_ranks_that_leave() -> None:
    grown, shrunk = seen(C), seen(C, grow=False)
    assert grown.lost == shrunk.lost == 0
    refused = CALM.rate_rps * PUBLISHED[C, False].downtime_s
    assert shrunk.turned_away > grown.turned_away + refused


def test_growing_in_place_serves_twice_the_load_and_the_others_do_not() -> None:
    static, restart, elastic = (
        replay(arm, SMALL, Deployment(), seed=2) for arm in ("static 16", "restart to 20", "elastic to 20")
    )
    assert elastic.done == SMALL.requests
    assert elastic.worst_s < SMALL.slo_s
    assert restart.failed > SMALL.high_rps * 100
    assert restart.worst_s == SMALL.failed_s
    assert static.curve[-1, 1] > elastic.curve[-1, 1]


def test_growing_in_place_serves_as_before_until_the_commit() -> None:
    static, elastic = (
        replay(arm, SMALL, Deployment(), seed=3).result for arm in ("static 16", "elastic to 20")
    )
    commit_s = SMALL.call_s + PUBLISHED[C, True].total_s - PUBLISHED[C, True].downtime_s
    before = static.requests["first_token_s"] < commit_s
    assert before.sum() > 1_000
    for column in ("start_s", "first_token_s"):
        assert np.array_equal(static.requests[column][before], elastic.requests[column][before])


def test_a_failed_request_counts_as_a_very_late_one() -> None:
    """One request in four is longer than the whole KV cache, so the 95th percentile is that of failures."""
    arrivals = np.arange(0.0, 60.0, 0.5)
    inputs = np.where(np.arange(len(arrivals)) % 4 == 0, 5_000, 100)
    result = replayed(
        a_fleet(a_replica(kv_blocks=200)), requests(arrivals, inputs, np.full(len(arrivals), 5))
    )
    assert np.sum(result.requests["outcome"] == Outcome.FAILED_500) == 30
    curve = rolling_p95_s(result, window_s=30.0, failed_s=30.0)
    assert curve[0, 0] == 30.0
    assert np.all(curve[:, 1] == 30.0)
