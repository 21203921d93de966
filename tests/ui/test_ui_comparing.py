"""Drafts side by side: quick changes, what differs in inputs and plans, and the row of drafts with its way back."""

from __future__ import annotations

from typing import Any

import pytest

from models.report import Report
from models.saturation import SaturationThresholds
from models.scenario import Scenario
from planner import load_scenario
from planner.catalog import Catalog
from planner.charts import save_chart
from planner.charts.comparison import comparison_chart
from planner.errors import ConfigurationError
from planner.planning import known_catalog, plan_scenario
from planner.ui.comparing.controls import EVERYTHING, Change, Control, changed, named, nodes_of, targets_of
from planner.ui.comparing.figures import NOT_SOLVED, figures_of, rows_of
from planner.ui.comparing.inputs import input_changes
from planner.ui.comparing.passing_on import address_of
from planner.ui.comparing.why import plan_change
from planner.ui.workspace import DRAFTS_LIMIT, Draft, Workspace


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario("data/scenarios/02-contention.yaml")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return known_catalog()


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    small = load_scenario("data/scenarios/01-two-variants.yaml")
    dearer = changed(small, Change(Control.DEMAND, amount=1.5), known_catalog())
    return {"as it is": plan_scenario(small), "more": plan_scenario(dearer)}


def h100(scenario: Scenario) -> Any:
    return next(pool for pool in scenario.pools if pool.id == "h100")


@pytest.mark.parametrize(
    ("change", "name", "said"),
    [
        (Change(Control.DEMAND, "agents", 2), "agents demand × 2", "services.agents.buckets.all.demand (req/s): 20 → 40"),
        (
            Change(Control.DEMAND, amount=1.5),
            "demand × 1.5",
            "services: demand (req/s) of agents, assistant, classify, coding and 8 more: × 1.5",
        ),
        (Change(Control.PRICE, "h100", 0.5), "h100 prices × 0.5", "pools.h100.offering.usd_per_h: none → 1.925"),
        (Change(Control.SLO, "search", 1.5), "search promises × 1.5", "services.search.slo.ttft_s: 3 → 4.5"),
        (Change(Control.NODES, "h100", 12), "h100 12 nodes", "pools.h100.nodes.h100.count: 9 → 12"),
        (
            Change(Control.TAU, amount=0.9),
            "τ 0.9",
            "services: tau_kv of agents, assistant, classify, coding and 8 more: 0.8 → 0.9",
        ),
        (Change(Control.GAMMA, "search", 0.2), "search γ 0.2", "services.search.thresholds.gamma_kv: 0.1 → 0.2"),
        (
            Change(Control.FIELD, text="limits.spend=900\n\nservices.agents.priority=+2"),
            "limits.spend=900, services.agents.priority=+2",
            "services.agents.priority: 8 → 10",
        ),
        (
            Change(Control.FIELD, text="services.agents.slo.ttft=*1.5"),
            "services.agents.slo.ttft=*1.5",
            "services.agents.slo.ttft_s: 3 → 4.5",
        ),
    ],
)  # fmt: skip
def test_a_change_has_a_name_and_is_seen_in_the_inputs(
    scenario: Scenario, catalog: Catalog, change: Change, name: str, said: str
) -> None:
    assert named(change) == name
    assert said in input_changes(scenario, changed(scenario, change, catalog))


def test_a_power_cap_is_over_every_pool_where_there_is_none(scenario: Scenario, catalog: Catalog) -> None:
    (target,) = targets_of(scenario, Control.POWER)
    (cap,) = changed(scenario, Change(Control.POWER, target, 1e5), catalog).limits.power
    assert (cap.cap_w, len(cap.pools)) == (1e5, len(scenario.pools))
    again = changed(
        scenario.but(limits=scenario.limits.but(power=(cap,))), Change(Control.POWER, target, 5e4), catalog
    )
    assert [domain.cap_w for domain in again.limits.power] == [5e4]


@pytest.mark.parametrize("wanted", [0, 3, 8, 9, 10, 40])
def test_a_pool_has_as_many_ready_nodes_as_asked_for(
    scenario: Scenario, catalog: Catalog, wanted: int
) -> None:
    if wanted == nodes_of(h100(scenario)):
        with pytest.raises(ConfigurationError, match="changes nothing"):
            changed(scenario, Change(Control.NODES, "h100", wanted), catalog)
        return
    new = changed(scenario, Change(Control.NODES, "h100", wanted), catalog)
    assert nodes_of(h100(new)) == wanted
    assert len({node.id for node in h100(new).nodes}) == len(h100(new).nodes)


def test_nodes_that_replicas_run_on_are_lost_and_can_come_back(scenario: Scenario, catalog: Catalog) -> None:
    few = changed(scenario, Change(Control.NODES, "h100", 3), catalog)
    assert sum(node.count for node in h100(few).nodes if not node.ready) == 6
    assert nodes_of(h100(changed(few, Change(Control.NODES, "h100", 5), catalog))) == 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Change(Control.DEMAND, amount=-1), "greater than or equal to 0"),
        (Change(Control.PRICE, amount=0), "a factor above 0"),
        (Change(Control.SLO, amount=1), "changes nothing"),
        (Change(Control.NODES, "h100", -1), "0 or more"),
        (Change(Control.TAU, amount=1.9), "less than or equal to 1"),
        (Change(Control.TAU, amount=0.05), "must be less than tau_kv"),
        (Change(Control.FIELD, text=""), "changes nothing"),
        (Change(Control.FIELD, text="limit.spend=9\nservices.agent.priority=1"), "2 problems"),
        (Change(Control.FIELD, text="profiles=[/etc/passwd]"), "other profile tables"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_with_a_reason(
    scenario: Scenario, catalog: Catalog, change: Change, said: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        changed(scenario, change, catalog)
    assert said in str(caught.value)


def test_every_control_but_any_field_has_something_to_be_applied_to(scenario: Scenario) -> None:
    for control in Control:
        targets = targets_of(scenario, control)
        assert bool(targets) is (control is not Control.FIELD)
        assert len({*targets}) == len(targets)
    assert EVERYTHING in targets_of(scenario, Control.DEMAND)


def test_parts_that_come_and_go_are_told_by_their_names(scenario: Scenario) -> None:
    fewer = scenario.but(services=scenario.services[1:], name="other", description="other")
    assert any(
        "services.assistant" in said and "taken away" in said for said in input_changes(scenario, fewer)
    )
    assert any("services.assistant" in said and "added" in said for said in input_changes(fewer, scenario))
    assert input_changes(scenario, scenario.but(name="other")) == ()


def test_different_values_are_not_told_of_as_one(scenario: Scenario) -> None:
    taus = (0.7, 0.9)
    services = tuple(
        service.but(thresholds=SaturationThresholds(tau_kv=taus[place])) if place < len(taus) else service
        for place, service in enumerate(scenario.services)
    )
    assert len(input_changes(scenario, scenario.but(services=services))) == 2


def test_figures_stand_beside_each_other_with_the_difference(reports: dict[str, Report]) -> None:
    first, more, missing = figures_of({**reports, "new": None}, "as it is")
    assert (first.difference, missing.status) == (None, NOT_SOLVED)
    assert more.cost is not None
    assert first.cost is not None
    assert more.difference == pytest.approx(more.cost - first.cost)
    wide, narrow = rows_of([first, more, missing], pools=9), rows_of([first, more, missing], pools=0)
    assert len(wide[0]) > len(narrow[0])
    assert narrow[1]["GPUs"] == sum((more.gpus or {}).values())


def test_the_chart_draws_what_is_known(reports: dict[str, Report], tmp_path: Any) -> None:
    rows = rows_of(figures_of({**reports, "new": None}, "as it is"), pools=0)
    chart = comparison_chart(rows, ["unserved, req/s", "changes", "GPUs"], name="draft")
    save_chart(chart, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").stat().st_size > 1_000


def test_a_plan_is_told_from_another_by_cost_service_and_limits(reports: dict[str, Report]) -> None:
    change = plan_change(reports["as it is"], reports["more"], "more")
    assert change.difference is not None
    assert change.difference.cost > 0
    assert change.sentences[0].startswith("more serves as much and costs")
    assert any(said.startswith("By service: ") for said in change.sentences)
    same = plan_change(reports["more"], reports["more"], "more")
    assert same.sentences == ("more serves as much and costs the same.",)


@pytest.mark.parametrize(
    ("url", "becomes"),
    [
        ("http://a:1/what_if", "http://a:1/?d=x"),
        ("http://a:1/what_if?w=secret", "http://a:1/?d=x"),
        ("https://a/base/what_if/", "https://a/base/?d=x"),
        ("https://a/base", "https://a/base/?d=x"),
    ],
)
def test_the_address_of_a_link_holds_the_draft_and_never_the_token(url: str, becomes: str) -> None:
    assert address_of(url, "what_if", "d=x") == becomes


def row_of(scenario: Scenario, *names: str) -> Workspace:
    workspace = Workspace(drafts=(Draft(name=names[0], scenario=scenario),), opened=names[0])
    for name in names[1:]:
        workspace = workspace.added(Draft(name=name, scenario=scenario))
    return workspace


def names_in(workspace: Workspace) -> list[str]:
    return [draft.name for draft in workspace.drafts]


def test_deleting_renaming_and_adding_are_taken_back(scenario: Scenario) -> None:
    row = row_of(scenario, "a", "b", "c")
    deleted = row.removed("b")
    assert names_in(deleted) == ["a", "c"]
    assert names_in(deleted.taken_back()) == ["a", "b", "c"]
    assert deleted.taken_back().opened == "b"
    renamed = row.renamed("c", " x ")
    assert (names_in(renamed), renamed.opened) == (["a", "b", "x"], "x")
    assert renamed.taken_back() == row
    assert names_in(row.taken_back()) == ["a", "b"]
    assert names_in(row.taken_back().taken_back()) == ["a"]
    assert row.taken_back().taken_back().taken_back().steps == ()


def test_taking_back_a_draft_that_was_edited_since_can_be_taken_back_itself(scenario: Scenario) -> None:
    row = row_of(scenario, "a", "b")
    edited = row.put(row.draft.edited(scenario.but(description="mine")))
    gone = edited.taken_back()
    assert names_in(gone) == ["a"]
    assert gone.taken_back().draft.scenario.description == "mine"


def test_names_stay_unique_whatever_is_taken_back(scenario: Scenario) -> None:
    row = row_of(scenario, "a", "b").removed("b").added(Draft(name="b", scenario=scenario))
    row = row.but(steps=row.steps[:-1])
    assert names_in(row.taken_back()) == ["a", "b 2", "b"]
    assert row_of(scenario, "a", "b").renamed("b", "a").drafts[1].name == "a 2"


def test_what_cannot_be_done_changes_nothing(scenario: Scenario) -> None:
    row = row_of(scenario, "a", "b")
    assert row.renamed("b", "  ") == row
    assert row.renamed("none", "x") == row
    assert row.removed("none") == row
    assert row_of(scenario, "a").removed("a") == row_of(scenario, "a")
    full = row_of(scenario, *(f"d{place}" for place in range(DRAFTS_LIMIT))).removed("d3")
    full = full.but(drafts=(*full.drafts, Draft(name="more", scenario=scenario)))
    assert full.taken_back() == full
