"""Bills add up to the cost of the plan, whatever the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.report import Report
from planner import plan
from planner.showback import showback

SHIPPED = sorted(Path("data/scenarios").glob("*.yaml"))


@pytest.fixture(scope="module", params=SHIPPED, ids=lambda path: path.stem)
def report(request: pytest.FixtureRequest) -> Report:
    return plan(request.param)


def test_bills_add_up_to_the_cost_of_the_plan(report: Report) -> None:
    shown = report.shown
    assert shown.assessment is not None
    found = showback(report.problem, shown.solution, shown.assessment)
    assert found.total == pytest.approx(shown.assessment.cost)
    assert sum(bill.total for bill in found.bills) + found.unassigned == pytest.approx(found.total)
    for bill in found.bills:
        assert min(bill.used, bill.headroom, bill.idle, bill.starts) >= 0
        assert bill.used + bill.headroom + bill.idle + bill.starts == pytest.approx(bill.total)


def test_every_service_is_on_one_bill(report: Report) -> None:
    shown = report.shown
    assert shown.assessment is not None
    found = showback(report.problem, shown.solution, shown.assessment)
    named = [service for bill in found.bills for service in bill.services]
    assert sorted(named) == sorted(demand.service for demand in report.problem.demands)


def test_a_service_with_headroom_pays_for_load_headroom_and_the_rest_apart() -> None:
    report = plan(Path("data/scenarios/01-two-variants.yaml"))
    assessment = report.answer.assessment
    assert assessment is not None
    (bill,) = showback(report.problem, report.answer.solution, assessment).bills
    (figures,) = assessment.services
    assert figures.headroom is not None
    assert bill.used == pytest.approx(figures.cost / (1 + figures.headroom))
    asked = report.problem.demands[0].headroom.relative or 0.0
    assert bill.headroom == pytest.approx(
        figures.cost * min(asked, figures.headroom) / (1 + figures.headroom)
    )


def test_a_fleet_that_serves_nothing_is_idle() -> None:
    report = plan(Path("data/scenarios/08-rent-nodes.yaml"))
    nothing = report.answer.solution.but(counts={}, nodes_added={report.problem.pools[-1].id: 1})
    from planner.referee import assess

    found = showback(report.problem, nothing, assess(report.problem, nothing))
    assert sum(bill.used for bill in found.bills) == 0
    assert found.unassigned == pytest.approx(found.total - sum(bill.total for bill in found.bills))
