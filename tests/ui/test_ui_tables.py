"""Tables of a scenario: what is not edited stays, what is edited lands where it belongs, what is cleared is the default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from models.scenario import Scenario
from planner import load_scenario
from planner.errors import ConfigurationError
from planner.scenario import check_scenario
from planner.ui.editing.tables import TABLES, Row, Table, fields_with, rows_of

SHIPPED = sorted(Path("data/scenarios").glob("*.yaml"))
BY_NAME = {table.name: table for table in TABLES}


def fields_of(scenario: Scenario) -> dict[str, Any]:
    return scenario.model_dump(mode="json", exclude_defaults=True)


def edited(scenario: Scenario, name: str, at: str, **cells: Any) -> Scenario:
    """The scenario with cells of one row changed; ``__`` stands for the dot of a path."""
    table = BY_NAME[name]
    rows = rows_of(fields_of(scenario), table)
    row = next(row for row in rows if row["id"] == at)
    row.update({path.replace("__", "."): value for path, value in cells.items()})
    return check_scenario(fields_with(fields_of(scenario), table, rows))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_rows_put_back_unedited_change_nothing(path: Path, table: Table) -> None:
    scenario = load_scenario(path)
    fields = fields_of(scenario)
    assert fields_with(fields, table, rows_of(fields, table)) == fields


@pytest.fixture
def scenario() -> Scenario:
    return load_scenario("data/scenarios/02-contention.yaml")


def test_a_rate_scales_all_buckets_together(scenario: Scenario) -> None:
    service = max(scenario.services, key=lambda each: len(each.buckets))
    new = edited(scenario, "services", service.id, arrival_rps=2 * service.arrival_rps)
    after = next(each for each in new.services if each.id == service.id)
    assert [b.arrival_rps for b in after.buckets] == pytest.approx(
        [2 * b.arrival_rps for b in service.buckets]
    )


def test_a_service_without_traffic_can_get_some(scenario: Scenario) -> None:
    service = scenario.services[0]
    idle = edited(scenario, "services", service.id, arrival_rps=0.0)
    assert idle.services[0].arrival_rps == 0
    assert edited(idle, "services", service.id, arrival_rps=3.0).services[0].arrival_rps == pytest.approx(3.0)


def test_a_nested_field_is_made_and_taken_out_again(scenario: Scenario) -> None:
    service = next(each for each in scenario.services if each.survive is None)
    with_promise = edited(scenario, "services", service.id, survive__share=0.5)
    found = next(each for each in with_promise.services if each.id == service.id)
    assert found.survive is not None
    assert found.survive.share == 0.5
    assert edited(with_promise, "services", service.id, survive__share=None) == scenario


def test_nodes_are_added_changed_and_removed_in_their_pool(scenario: Scenario) -> None:
    table, fields = BY_NAME["nodes"], fields_of(scenario)
    pool = scenario.pools[0]
    rows = rows_of(fields, table)
    added: Row = {"pool": pool.id, "id": "new-node", "gpus": 8, "ready": True, "cordoned": False}
    new = check_scenario(fields_with(fields, table, [*rows, added]))
    assert [node.id for node in new.pools[0].nodes] == [*(node.id for node in pool.nodes), "new-node"]
    assert new.pools[1:] == scenario.pools[1:]
    fewer = check_scenario(fields_with(fields_of(new), table, rows))
    assert fewer == scenario


def test_limits_can_be_made_where_there_were_none(scenario: Scenario) -> None:
    fields = fields_of(scenario.but(limits=type(scenario.limits)()))
    new = check_scenario(
        fields_with(fields, BY_NAME["quotas"], [{"id": "q", "gpus": 10, "accelerator": "H100"}])
    )
    assert [(quota.id, quota.gpus) for quota in new.limits.quotas] == [("q", 10)]
    assert check_scenario(fields_with(fields_of(new), BY_NAME["quotas"], [])).limits.quotas == ()


@pytest.mark.parametrize(
    ("table", "cells"),
    [
        ("services", {"slo__ttft_s": -1.0}),
        ("services", {"arrival_rps": None}),
        ("services", {"min_replicas": 5, "max_replicas": 2}),
        ("pools", {"offering__usd_per_h": -3.0}),
        ("nodes", {"gpus": 0}),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    scenario: Scenario, table: str, cells: dict[str, Any]
) -> None:
    first = rows_of(fields_of(scenario), BY_NAME[table])[0]["id"]
    with pytest.raises(ConfigurationError) as caught:
        edited(scenario, table, first, **cells)
    assert all(finding.path for finding in caught.value.findings)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_says_what_it_means(table: Table) -> None:
    assert [column.path for column in table.columns if column.path != "arrival_rps" and not column.help] == []
    assert [column.label for column in table.columns if not column.label] == []
