"""Forecasts in the loop: what records, status and figures of the controller say of them."""

from __future__ import annotations

from planner.clock import FakeClock
from tests.control.controller_builders import START, Served, Told, a_controller, led

FORETOLD = """
rules: {policy: planner, forecast: true, forecast_season_s: 3600, forecast_lead_s: 120}
forecasting: {step_s: 60, history_s: 10800}
records: {heartbeat_s: 1}
"""


def test_records_and_figures_tell_who_is_believed() -> None:
    """At first there is no history; after an hour of even traffic the forecast counts."""
    clock = FakeClock(START)
    controller = led(a_controller(Served(), Told(), FORETOLD, clock=clock))
    record = controller.cycle(("timer",))
    told = {each.forecast for each in record.demands}
    assert told == {"there is no history yet"}
    assert {each.expected for each in record.demands} == {None}
    page = controller.metrics(None).decode()
    who = 'model="llama-8b",namespace="prod"'
    assert f"fleetplan_controller_forecast_trusted{{{who}}} 0" in page
    for _ in range(70):
        clock.sleep(60.0)
        record = controller.cycle(("timer",))
    page = controller.metrics(None).decode()
    assert f"fleetplan_controller_forecast_trusted{{{who}}} 1" in page
    assert f'fleetplan_controller_forecast_expected{{{who},unit="req/s"}} 1' in page
    assert f'fleetplan_controller_forecast_observed{{{who},unit="req/s"}} 1' in page


def test_without_a_forecast_there_are_no_figures_of_one() -> None:
    controller = led(a_controller(Served(), Told()))
    record = controller.cycle(("timer",))
    assert {(each.expected, each.forecast) for each in record.demands} <= {(None, "")}
    assert "forecast" not in controller.metrics(None).decode()


def test_it_is_turned_on_by_a_setting_of_one_service() -> None:
    clock = FakeClock(START)
    text = "overrides: [{model: llama-8b, forecast: true}]"
    controller = led(a_controller(Served(), Told(), text, clock=clock))
    controller.cycle(("timer",))
    assert "forecast_trusted" in controller.metrics(None).decode()
