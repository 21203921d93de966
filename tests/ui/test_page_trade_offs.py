"""The page Trade-offs: weigh, pick a plan, take it up as a draft; move inputs and see what the answer hangs on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.app_pages import goes_on_when_pressed, over, press


@pytest.fixture
def page(page_of: Callable[..., AppTest]) -> AppTest:
    """The page with an example."""
    return page_of("trade_offs", "01-two-variants")


def box(page: AppTest, label: str) -> Any:
    return next(each for each in page.selectbox if each.label == label)


def words(page: AppTest) -> str:
    return "\n".join(each.value for each in [*page.markdown, *page.caption, *page.info, *page.text])


def test_an_empty_page_says_what_to_do(page: AppTest) -> None:
    assert "Choose two objectives" in words(page)
    assert "moved one by one" in words(page)


def test_a_plan_of_the_staircase_is_picked_and_taken_up_as_a_draft(page: AppTest) -> None:
    box(page, "Upwards").set_value("Unserved demand")
    press(page, "Weigh")
    over(page, "pareto")
    assert "proven" in words(page)
    assert goes_on_when_pressed(page, "Weigh", "pareto")
    plans = box(page, "Plan")
    assert len(plans.options) > 2
    plans.set_value(2).run()
    assert not page.exception, page.exception
    cost = next(each.value for each in page.metric if each.label == "Cost")
    press(page, "Open as a draft")
    workspace = page.session_state["fleetplan.workspace"]
    assert workspace.opened.endswith("plan 2")
    assert f"{workspace.draft.scenario.limits.spend_usd_per_h:.2f} $/h" == cost
    assert "This is of what the draft was" in words(page)


@pytest.mark.parametrize(
    ("across", "upwards", "said"),
    [("Cost", "Cost", "choose another objective"), ("Headroom", "Unserved demand", "for all demand")],
)
def test_objectives_that_cannot_be_weighed_are_refused(
    page: AppTest, across: str, upwards: str, said: str
) -> None:
    box(page, "To the right").set_value(across)
    box(page, "Upwards").set_value(upwards)
    press(page, "Weigh")
    assert said in words(page)
    assert (
        "pareto" not in page.session_state["fleetplan.asked"]
        if "fleetplan.asked" in page.session_state
        else True
    )


def test_inputs_are_moved_and_ranked(page: AppTest) -> None:
    box(page, "Move each by").set_value("20 %")
    press(page, "Measure")
    over(page, "sensitivity")
    assert goes_on_when_pressed(page, "Measure", "sensitivity")
    assert "Moved by 20 %" in words(page)
    rows = page.dataframe[0].value
    assert {"demand", "prices"} <= {*rows["input"]}
    assert all("× 0.8" in said or "cannot" in said for said in rows["with less of it"])
