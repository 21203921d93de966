"""Sensitivity: inputs moved one at a time, ranked by what they do, and honest where promises break."""

from __future__ import annotations

from typing import Any

import pytest

from models.hardware import NodeGrowth, Offering
from models.saturation import SaturationThresholds
from models.scenario import Scenario
from models.sensitivity import Lever, LeverKind, Sensitivity
from models.solution import Status
from models.variant import Cost
from models.workload import Slo
from planner import load_scenario
from planner.errors import ConfigurationError
from planner.optimization.protocol import SolveOptions
from planner.planning import known_catalog, plan_scenario
from planner.sensitivity import How, Step, levers_of, list_prices, moved, sensitivity

EXACTLY = SolveOptions(gap=0.0, time_limit_s=60.0)


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario("data/scenarios/01-two-variants.yaml")


@pytest.fixture(scope="module")
def found(scenario: Scenario) -> Sensitivity:
    return sensitivity(scenario, 0.2, most=1, how=How(options=EXACTLY))


def lever(kind: LeverKind, target: str | None = None) -> Lever:
    return Lever(kind=kind, target=target)


def changed(scenario: Scenario, kind: LeverKind, factor: float, target: str | None = None) -> Scenario:
    new = moved(scenario, lever(kind, target), factor, list_prices(scenario, known_catalog()))
    assert new is not None
    return new[0]


def with_service(scenario: Scenario, **fields: Any) -> Scenario:
    first, *others = scenario.services
    return scenario.but(services=(first.but(**fields), *others))


def test_the_unmoved_answer_is_that_of_the_plan(scenario: Scenario, found: Sensitivity) -> None:
    plan = plan_scenario(scenario, options=EXACTLY).answer.assessment
    assert plan is not None
    assert found.base.cost == pytest.approx(plan.cost)
    assert (found.base.status, found.complete) == (Status.OPTIMAL, True)


def test_each_side_is_the_answer_to_the_moved_scenario(scenario: Scenario, found: Sensitivity) -> None:
    for swing in found.swings:
        for side in swing.sides:
            again = moved(scenario, swing.lever, side.factor, list_prices(scenario, known_catalog()))
            assert again is not None
            report = plan_scenario(again[0], options=EXACTLY)
            assert report.answer.solution.status is side.status
            assert report.shown.assessment is not None
            assert side.cost == pytest.approx(report.shown.assessment.cost)
            assert side.unserved_rps == pytest.approx(report.shown.assessment.unserved_rps)


def test_the_strongest_comes_first(found: Sensitivity) -> None:
    kept = [s for s in found.swings if all(side.status is Status.OPTIMAL for side in s.sides)]
    spans = [
        max(side.cost or 0 for side in (*swing.sides, found.base))
        - min(side.cost or 0 for side in (*swing.sides, found.base))
        for swing in kept
    ]
    assert spans == sorted(spans, reverse=True)
    assert spans[0] > 0


def test_costs_move_as_all_prices_do(found: Sensitivity) -> None:
    (swing,) = (each for each in found.swings if each.lever == lever(LeverKind.PRICE))
    costs = [side.cost for side in swing.sides]
    assert found.base.cost is not None
    assert costs == pytest.approx([found.base.cost * 0.8, found.base.cost * 1.2])


def test_where_promises_break_the_best_plan_under_scarcity_stands_and_comes_first(
    scenario: Scenario, found: Sensitivity
) -> None:
    assert found.base.cost is not None
    tight = scenario.but(limits=scenario.limits.but(spend_usd_per_h=found.base.cost * 1.001))
    first = sensitivity(tight, 0.2, how=How(options=EXACTLY)).swings[0]
    assert first.lever.kind in (LeverKind.DEMAND, LeverKind.PRICE)
    assert first.up is not None
    assert first.up.status is Status.INFEASIBLE
    assert first.up.unserved_rps is not None
    assert first.up.unserved_rps > 0
    assert first.down is not None
    assert first.down.unserved_rps == 0


def test_it_tells_how_far_it_is_and_stops_when_asked(scenario: Scenario) -> None:
    heard: list[Step] = []
    options = SolveOptions(time_limit_s=60.0, cancelled=lambda: len(heard) > 1)
    found = sensitivity(scenario, 0.1, how=How(options=options, told=heard.append))
    assert [step.done for step in heard] == [1, 3]
    assert heard[0].of == 1 + 2 * len(levers_of(scenario))
    assert found == heard[-1].so_far
    assert not found.complete


def test_no_time_is_no_answer_and_not_complete(scenario: Scenario) -> None:
    found = sensitivity(scenario, 0.1, how=How(options=SolveOptions(time_limit_s=1e-9)))
    assert not found.complete
    assert not found.swings


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 2.0])
def test_a_share_that_is_none_is_refused(scenario: Scenario, share: float) -> None:
    with pytest.raises(ConfigurationError, match="share"):
        sensitivity(scenario, share)


def test_demand_moves_every_shape_of_the_services_it_is_of(scenario: Scenario) -> None:
    new = changed(scenario, LeverKind.DEMAND, 1.1)
    assert [s.arrival_rps for s in new.services] == pytest.approx(
        [s.arrival_rps * 1.1 for s in scenario.services]
    )
    assert new.pools == scenario.pools


def test_promises_that_are_not_made_are_not_moved(scenario: Scenario) -> None:
    new = changed(with_service(scenario, slo=Slo(ttft_s=1.0)), LeverKind.SLO, 0.5)
    assert new.services[0].slo == Slo(ttft_s=0.5)
    bare = scenario.but(services=tuple(s.but(slo=Slo()) for s in scenario.services))
    assert moved(bare, lever(LeverKind.SLO), 2.0, {}) is None


def test_prices_are_the_pools_or_the_catalogs(scenario: Scenario) -> None:
    first, *others = scenario.pools
    priced = first.but(
        offering=Offering(usd_per_h=2.0), growth=NodeGrowth(gpus_per_node=8, usd_per_node_h=3.0)
    )
    new = changed(scenario.but(pools=(priced, *others)), LeverKind.PRICE, 1.5)
    assert new.pools[0].offering.usd_per_h == 3.0
    assert new.pools[0].growth is not None
    assert new.pools[0].growth.usd_per_node_h == 4.5
    listed = scenario.but(pools=(first.but(offering=Offering()), *others))
    prices = list_prices(listed, known_catalog())
    assert changed(listed, LeverKind.PRICE, 2.0).pools[0].offering.usd_per_h == 2 * prices[first.id]


def test_costs_that_variants_state_move_with_all_prices_alone(scenario: Scenario) -> None:
    variants = tuple(v.but(cost=Cost(relative=2.0)) for v in scenario.services[0].variants)
    relative = with_service(scenario, variants=variants)
    assert changed(relative, LeverKind.PRICE, 1.5).services[0].variants[0].cost == Cost(relative=3.0)
    one = moved(relative, lever(LeverKind.PRICE, scenario.pools[0].id), 1.5, {scenario.pools[0].id: 1.0})
    assert one is not None
    assert one[0].services == relative.services


@pytest.mark.parametrize(
    ("kind", "thresholds", "factor", "becomes", "clips"),
    [
        (LeverKind.TAU, {"tau_kv": 0.8}, 1.1, 0.88, False),
        (LeverKind.TAU, {"tau_kv": 0.95}, 1.2, 1.0, True),
        (LeverKind.TAU, {"tau_kv": 1.0}, 1.2, None, False),
        (LeverKind.TAU, {"tau_kv": 0.2, "gamma_kv": 0.15}, 0.5, None, False),
        (LeverKind.GAMMA, {"gamma_kv": 0.1}, 1.5, 0.15, False),
        (LeverKind.GAMMA, {"gamma_kv": 0.0}, 1.5, None, False),
        (LeverKind.GAMMA, {"tau_kv": 0.5, "gamma_kv": 0.4}, 1.5, None, False),
    ],
)
def test_thresholds_stay_where_they_mean_something(
    scenario: Scenario,
    kind: LeverKind,
    thresholds: dict[str, float],
    factor: float,
    becomes: float | None,
    clips: bool,
) -> None:
    one = with_service(scenario, thresholds=SaturationThresholds(**thresholds))
    new = moved(one, lever(kind, one.services[0].id), factor, {})
    if becomes is None:
        assert new is None
        return
    assert new is not None
    after = new[0].services[0].thresholds
    assert (after.tau_kv if kind is LeverKind.TAU else after.gamma_kv) == pytest.approx(becomes)
    assert new[1] is clips


def test_the_parts_that_cost_most_have_levers_of_their_own() -> None:
    scenario = load_scenario("data/scenarios/02-contention.yaml")
    plan = plan_scenario(scenario).answer.assessment
    assert plan is not None
    dearest = max(plan.services, key=lambda each: each.cost).service
    levers = levers_of(scenario, plan, most=1)
    assert lever(LeverKind.DEMAND, dearest) in levers
    assert lever(LeverKind.SLO, dearest) in levers
    assert len(levers) == len(LeverKind) + 3
