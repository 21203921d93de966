"""Elastic variants become what they can be: what stays, sizes and ways with their price, further replicas."""

from __future__ import annotations

from typing import Any

import pytest

from models.elastic import ResizeMode
from models.explanation import Reason
from models.fleet import RunningVariant
from models.llm import Llm
from models.problem import Candidate, Problem
from models.scenario import Scenario
from planner.errors import ConfigurationError
from planner.optimization import solve
from planner.sizing import size
from tests.scenarios import CATALOG, a_pool_entry, a_running, a_scenario, a_service, a_shape, a_variant

MOE = Llm.model_validate(
    {
        "id": "moe",
        "parameters": 4 * 10**11,
        "active_parameters": 2 * 10**10,
        "layers": 60,
        "attention": {"kind": "gqa", "kv_heads": 1, "head_dim": 128},
        "moe": {"experts": 256, "experts_per_token": 8, "routed_parameters": 3.8e11},
    }
)
RATES = [
    {"ranks": 12, "rated_rps": 7.0, "redeployed": True},
    {"ranks": 16, "rated_rps": 9.0},
    {"ranks": 20, "rated_rps": 12.0},
    {"ranks": 24, "rated_rps": 14.0},
]


def moe_scenario(
    *running: RunningVariant, rps: float = 8.0, fields: Any = None, nodes: int = 18, **elastic: Any
) -> Scenario:
    variant = a_variant(
        parallelism={"dp": 16, "ep": 16},
        elastic={"max_ranks": 24, "rates": RATES} | elastic,
        **(fields or {}),
    )
    service = a_service(llm="moe", buckets=(a_shape(rps=rps),), variants=(variant,), headroom={"relative": 0})
    pool = a_pool_entry(nodes=({"id": "n", "gpus": 4, "count": nodes},))
    return a_scenario(*running, services=(service,), llms=(MOE,), pools=(pool,))


def sized(scenario: Scenario) -> Problem:
    return size(scenario, CATALOG)


def named(problem: Problem, name: str) -> Candidate:
    return next(c for c in problem.candidates if c.variant == name)


def way(problem: Problem, ranks: int, mode: str = "C", size_now: int = 16) -> Candidate:
    return named(problem, f"small:{size_now}-{ranks}-{mode}")


def test_nothing_runs_so_it_is_launched_like_any_other() -> None:
    problem = sized(moe_scenario())
    assert [c.variant for c in problem.candidates] == ["small"]
    only = problem.candidates[0]
    assert (only.rated_rps, only.gpus, only.pods_per_replica, only.resize) == (9.0, 16, 16, None)


def test_a_running_replica_stays_goes_one_way_or_has_company() -> None:
    problem = sized(moe_scenario(a_running(1)))
    stays = named(problem, "small")
    assert (stays.current, stays.max_replicas, stays.rated_rps) == (1, 1, 9.0)
    further = named(problem, "small:new")
    assert (further.current, further.max_replicas, further.resize) == (0, None, None)
    in_place = {c.resize.to_ranks for c in problem.candidates if c.resize and c.resize.mode is ResizeMode.ASYNC_GRAPH_REUSE}  # fmt: skip
    assert in_place == set(range(17, 25))
    grown = way(problem, 18)
    assert grown.rated_rps == pytest.approx(10.5)
    assert grown.resize is not None
    assert (grown.resize.of, grown.gpus, grown.resize.moving_gpus) == (stays.id, 18, 18)
    assert grown.startup_s == pytest.approx(grown.resize.lead_s)


def test_a_way_costs_the_requests_that_it_hinders_and_the_accelerators_that_wait() -> None:
    grown = way(sized(moe_scenario(a_running(1), request_value_usd=0.01)), 20)
    assert grown.resize is not None
    assert grown.resize.hindered_requests == pytest.approx(8.0 * grown.resize.downtime_s)
    expected = grown.resize.hindered_requests * 0.01 + grown.resize.idle_gpu_seconds / 3600 * 2.0
    assert grown.startup_cost == pytest.approx(expected)


def test_sizes_that_cannot_be_reached_in_place_are_redeployed_and_say_why() -> None:
    problem = sized(moe_scenario(a_running(1)))
    assert not [c for c in problem.candidates if c.variant == "small:16-12-C"]
    anew = way(problem, 12, "redeploy")
    assert anew.rated_rps == 7.0
    assert anew.resize is not None
    assert (anew.resize.moving_gpus, anew.resize.downtime_s) == (28, 0)
    refused = [r for r in problem.rejected if r.reason is Reason.SIZE_NOT_REACHABLE]
    assert [(r.facts["from_ranks"], r.facts["to_ranks"]) for r in refused] == [(16, 12)]
    assert "256 experts" in str(refused[0].facts["because"])


def test_a_size_beside_what_was_measured_has_no_rate_and_is_not_offered() -> None:
    problem = sized(moe_scenario(a_running(1), max_ranks=32))
    assert max(c.resize.to_ranks for c in problem.candidates if c.resize) == 24


def test_a_grown_replica_is_known_by_its_size() -> None:
    problem = sized(moe_scenario(a_running(1, ranks=20)))
    stays = named(problem, "small:20")
    assert (stays.current, stays.gpus, stays.rated_rps) == (1, 20, 12.0)
    back = way(problem, 16, size_now=20)
    assert back.resize is not None
    assert back.resize.of == stays.id
    assert named(problem, "small").max_replicas is None


def test_aborted_requests_count_where_nobody_drains() -> None:
    fields = {"capacity": {"residence_s": 10.0}}
    rates: list[Any] = []
    wide = moe_scenario(a_running(1, ranks=20), rates=rates, fields=fields, engine={"drains": False})
    kind = moe_scenario(a_running(1, ranks=20), rates=rates, fields=fields, engine={"drains": True})
    rude = way(size(wide, CATALOG, rate=_rate), 16, size_now=20).resize
    polite = way(size(kind, CATALOG, rate=_rate), 16, size_now=20).resize
    assert rude is not None
    assert polite is not None
    assert rude.hindered_requests - polite.hindered_requests == pytest.approx(8.0 * 10.0 * 4 / 20)


def _rate(_question: Any) -> Any:
    from tests.scenarios import a_rating

    return a_rating(9.0)


@pytest.mark.parametrize(
    ("engine", "mode"),
    [({}, "C"), ({"version": "0.27.1"}, "B"), ({"version": "0.23.0"}, "A"), ({"elastic": False}, None)],
)
def test_the_engine_says_which_way_it_goes(engine: dict[str, Any], mode: str | None) -> None:
    problem = sized(moe_scenario(a_running(1), engine=engine))
    modes = {c.resize.mode.value for c in problem.candidates if c.resize}
    assert modes - {"redeploy", "restart"} == ({mode} if mode else set())
    assert "redeploy" in modes


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        (moe_scenario(fields={"max_replicas": 2}), "bounds of an elastic variant"),
        (moe_scenario(fields={"capacity": {"rated_rps": 3}}), "a capacity beside rates by size"),
        (a_scenario(a_running(1, ranks=20)), "which is not elastic"),
        (a_scenario(services=(a_service(variants=(a_variant(elastic={}),)),)), "which has no experts"),
    ],
)
def test_contradictions_are_told(scenario: Scenario, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        sized(scenario)


@pytest.mark.parametrize(
    ("rps", "size_now", "chosen"),
    [(8.0, 16, "small"), (11.5, 16, "small:16-20-C"), (13.5, 16, "small:16-23-C"), (8.0, 20, "small:20-16-C")],
)  # fmt: skip
def test_the_plan_takes_the_smallest_size_that_carries_the_load(
    rps: float, size_now: int, chosen: str
) -> None:
    problem = sized(moe_scenario(a_running(1, ranks=size_now), rps=rps, request_value_usd=0.0001))
    counts = solve(problem, solver="pulp").solution.counts
    assert counts == {f"chat/{chosen}@east": 1}


def test_where_a_resize_hinders_more_than_a_replica_costs_there_is_another_replica() -> None:
    """0.27 serves nobody for 58 s; 32 accelerators hold two deployments of 16, and no redeploy beside the old one."""

    def counts(value: float) -> dict[str, int]:
        few = [{"ranks": 16, "rated_rps": 9.0}, {"ranks": 20, "rated_rps": 12.0}]
        scenario = moe_scenario(
            a_running(1), rps=11.0, nodes=8, request_value_usd=value, engine={"version": "0.27.1"}, rates=few
        )
        return dict(solve(sized(scenario), solver="pulp").solution.counts)

    assert counts(1.0) == {"chat/small@east": 1, "chat/small:new@east": 1}
    assert counts(0.001) == {"chat/small:16-19-B@east": 1}
