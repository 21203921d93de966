"""Parts that come and go, rules of a whole scenario, and words on a page; no screen is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from models.scenario import Scenario
from planner import load_scenario
from planner.errors import ConfigurationError
from planner.optimization import SOLVERS
from planner.scenario import check_scenario
from planner.ui.editing.how import SOLVER_NAMES
from planner.ui.editing.parts import with_copied_pool, with_copied_service, with_new_pool, without_strays
from planner.ui.editing.rules import fields_with_rules
from planner.ui.editing.tables import TABLES, fields_with, rows_of
from planner.ui.words import plain, said, spaced

SHIPPED = sorted(Path("data/scenarios").glob("*.yaml"))
RUNNING = next(table for table in TABLES if table.name == "running")


def fields_of(scenario: Scenario) -> dict[str, Any]:
    return scenario.model_dump(mode="json", exclude_defaults=True)


@pytest.fixture(params=SHIPPED, ids=lambda path: path.stem)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    return load_scenario(request.param)


def without(fields: dict[str, Any], part: str, name: str) -> dict[str, Any]:
    return {**fields, part: [each for each in fields[part] if each["id"] != name]}


def test_every_service_can_be_copied(scenario: Scenario) -> None:
    for service in scenario.services:
        new = check_scenario(with_copied_service(fields_of(scenario), service.id, name="copy", factor=2.0))
        copy = new.services[-1]
        assert copy.arrival_rps == pytest.approx(2 * service.arrival_rps)
        assert [variant.id for variant in copy.variants] == [variant.id for variant in service.variants]
        assert all(variant.object is None for variant in copy.variants)
        assert new.services[:-1] == scenario.services


def test_every_pool_can_be_copied_and_is_empty(scenario: Scenario) -> None:
    for pool in scenario.pools:
        new = check_scenario(with_copied_pool(fields_of(scenario), pool.id, name="copy"))
        copy = new.pools[-1]
        assert sum(node.gpus * node.count for node in copy.nodes) == sum(
            node.gpus * node.count for node in pool.nodes
        )
        assert all(node.foreign_gpus == 0 for node in copy.nodes)
        assert new.pools[:-1] == scenario.pools


def test_a_pool_of_the_catalog_is_made(scenario: Scenario) -> None:
    fields = with_new_pool(
        fields_of(scenario), name="new", accelerator="H100", nodes=3, gpus=8, usd_per_h=2.5
    )
    pool = check_scenario(fields).pools[-1]
    assert (pool.accelerator, pool.nodes[0].count, pool.nodes[0].gpus) == ("H100", 3, 8)
    assert pool.offering.usd_per_h == 2.5


def test_what_goes_takes_its_running_replicas_along() -> None:
    scenario = load_scenario("data/scenarios/02-contention.yaml")
    before = fields_of(scenario)
    fewer = check_scenario(without_strays(without(before, "services", "coding"), before))
    assert {row.service for row in fewer.fleet.running} == {each.id for each in fewer.services}
    smaller = check_scenario(without_strays(without(before, "pools", "gb200"), before))
    assert {row.pool for row in smaller.fleet.running} == {"h100", "h200"}


def test_what_named_nothing_before_is_reported_and_not_swept() -> None:
    scenario = load_scenario("data/scenarios/02-contention.yaml")
    before = fields_of(scenario)
    rows = [*rows_of(before, RUNNING), {"service": "nobody", "variant": "v", "pool": "h100", "replicas": 1}]
    with pytest.raises(ConfigurationError, match="nobody"):
        check_scenario(without_strays(fields_with(before, RUNNING, rows), before))


def test_fewer_running_replicas_leave_fewer_details() -> None:
    scenario = load_scenario("data/scenarios/01-two-variants.yaml")
    service, pool = scenario.services[0], scenario.pools[0]
    row = {
        "service": service.id,
        "variant": service.variants[0].id,
        "pool": pool.id,
        "replicas": 3,
        "details": [{"kv_usage": 0.5}] * 3,
    }
    fields = {**fields_of(scenario), "fleet": {"running": [row]}}
    rows = rows_of(fields, RUNNING)
    rows[0]["replicas"] = 1
    (edited,) = fields_with(fields, RUNNING, rows)["fleet"]["running"]
    assert (edited["replicas"], len(edited["details"])) == (1, 1)


def test_rules_that_are_as_by_default_are_left_out(scenario: Scenario) -> None:
    limits, objective = scenario.limits, scenario.objective
    rules: dict[tuple[str, str], object] = {
        ("", "mode"): str(scenario.mode),
        ("limits", "incumbents"): str(limits.incumbents),
        ("limits", "power_basis"): str(limits.power_basis),
        ("limits", "spend_usd_per_h"): limits.spend_usd_per_h,
        ("limits", "max_changes"): limits.max_changes,
        ("objective", "horizon_h"): objective.horizon_h,
        ("objective", "tolerance"): objective.tolerance,
        ("objective", "levels"): [str(level) for level in objective.levels],
    }
    assert fields_with_rules(fields_of(scenario), rules) == fields_of(scenario)


def test_rules_land_where_they_belong() -> None:
    scenario = load_scenario("data/scenarios/02-contention.yaml")
    rules = {
        ("", "mode"): "unconstrained",
        ("limits", "spend_usd_per_h"): 900.0,
        ("limits", "max_changes"): None,
        ("objective", "levels"): ["cost", "power"],
    }
    new = check_scenario(fields_with_rules(fields_of(scenario), rules))
    assert str(new.mode) == "unconstrained"
    assert new.limits.spend_usd_per_h == 900.0
    assert [str(level) for level in new.objective.levels] == ["cost", "power"]


@pytest.mark.parametrize(
    ("rule", "value", "path"),
    [
        (("limits", "spend_usd_per_h"), "lots", "limits.spend_usd_per_h"),
        (("limits", "max_changes"), -1, "limits.max_changes"),
        (("objective", "levels"), [], "objective"),
    ],
)
def test_rules_that_cannot_be_are_named_with_their_place(
    rule: tuple[str, str], value: object, path: str
) -> None:
    fields = fields_of(load_scenario("data/scenarios/02-contention.yaml"))
    with pytest.raises(ConfigurationError, match=path):
        check_scenario(fields_with_rules(fields, {rule: value}))


def test_all_solvers_that_come_along_can_be_chosen() -> None:
    assert set(SOLVER_NAMES) == {*SOLVERS.names()}


def test_thousands_are_told_apart_by_thin_spaces_and_names_stay_bare_text() -> None:
    assert spaced("1,234,567.5 W of a,b and 12,34") == "1\u202f234\u202f567.5 W of a,b and 12,34"
    assert said("1,234 * x") == "1\u202f234 \\* x"
    assert plain("<b>") == "\\<b\\>"
