"""The page What-if: a change in a new draft, all of them solved, compared, passed on and taken back."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from planner.ui import session
from planner.ui.sharing import link_of
from planner.ui.workspace import Draft, How

_PATIENCE_S = 90.0


@pytest.fixture
def visit(page_of: Callable[..., AppTest]) -> Callable[..., AppTest]:
    """Opens the page with an example."""
    return partial(page_of, "what_if", "01-two-variants")


def press(page: AppTest, label: str) -> AppTest:
    next(button for button in page.button if button.label.startswith(label)).click().run()
    assert not page.exception, page.exception
    return page


def words(page: AppTest) -> str:
    parts = [*page.markdown, *page.caption, *page.info, *page.text, *page.header]
    return "\n".join(each.value for each in parts)


def token_of(page: AppTest) -> str:
    found = page.query_params["w"]
    return found if isinstance(found, str) else found[0]


def names(page: AppTest) -> list[str]:
    return [draft.name for draft in page.session_state["fleetplan.workspace"].drafts]


def solved(page: AppTest) -> AppTest:
    press(page, "Solve ")
    for key in page.session_state["fleetplan.asked"].values():
        job = session.workers().wait(key, _PATIENCE_S)
        assert job is not None
        assert job.over
    page.run()
    assert not page.exception, page.exception
    return page


def table(page: AppTest) -> Any:
    return page.dataframe[0].value.set_index("draft")


def test_one_draft_alone_says_what_to_do(visit: Any) -> None:
    page = visit()
    assert "There is one draft" in words(page)
    assert "What changed, and why" not in words(page)


def test_a_change_in_a_new_draft_is_solved_and_compared_and_told_why(visit: Any) -> None:
    page = visit()
    page.number_input[0].set_value(1.5)
    press(page, "Change in a new draft")
    assert names(page)[1:] == ["demand × 1.5"]
    assert "Solve both" in words(page)
    page = solved(page)
    rows = table(page)
    assert list(rows["status"]) == ["OPTIMAL", "OPTIMAL"]
    assert rows.iloc[1]["difference"] == pytest.approx(rows.iloc[1]["cost, $/h"] - rows.iloc[0]["cost, $/h"])
    assert "× 1\\.5" in words(page) or "→" in words(page)
    assert "By service" in words(page)
    assert not [button for button in page.button if button.label.startswith("Solve ")]


def test_a_bad_change_is_refused_in_a_sentence_and_changes_nothing(visit: Any) -> None:
    page = visit()
    page.selectbox(key="control").set_value("Any field").run()
    page.text_area[0].set_value("limit.spend=9\nservices.nobody.priority=3")
    press(page, "Change the open draft")
    assert "Nothing was changed" in words(page)
    assert "did you mean" in words(page)
    assert len(names(page)) == 1
    assert not page.session_state["fleetplan.workspace"].draft.past


def test_a_change_of_the_open_draft_is_a_step_that_undo_takes_back(visit: Any) -> None:
    page = visit()
    press(page, "Change the open draft")
    draft = page.session_state["fleetplan.workspace"].draft
    assert draft.undone().scenario.services[0].arrival_rps * 1.2 == pytest.approx(
        draft.scenario.services[0].arrival_rps
    )


def test_drafts_are_duplicated_renamed_deleted_and_that_taken_back(visit: Any) -> None:
    page = visit()
    (first,) = names(page)
    page.text_input[0].set_value("mine")
    press(page, "Duplicate")
    assert names(page) == [first, "mine"]
    page.text_input[0].set_value("<b>bold</b> **x**")
    press(page, "Rename")
    assert names(page) == [first, "<b>bold</b> **x**"]
    press(page, "Delete")
    assert names(page) == [first]
    press(page, "Undo: delete")
    press(page, "Undo: rename")
    assert names(page) == [first, "mine"]
    press(page, "Rename")
    assert "Type the new name first" in words(page)


def test_a_link_holds_the_open_draft_and_opens_as_a_workspace_of_its_own(visit: Any) -> None:
    page = visit()
    page.toggle(key="make-link").set_value(True).run()
    address = page.code[0].value
    assert token_of(page) not in address
    held = address.partition("d=")[2]
    other = visit(d=held)
    assert names(other) == names(page)
    assert token_of(other) != token_of(page)
    assert "d" not in other.query_params


def test_a_bad_link_says_so_and_opens_an_example(visit: Any) -> None:
    page = visit(d="1.nothing")
    assert len(names(page)) == 1
    assert "the link" in str(page.session_state["fleetplan.link-fault"])


def test_a_link_wins_over_a_token_so_that_nobody_is_led_into_anothers_workspace(visit: Any) -> None:
    page = visit()
    token = token_of(page)
    scenario = page.session_state["fleetplan.workspace"].draft.scenario
    other = visit(w=token, d=link_of(Draft(name="theirs", scenario=scenario), How()))
    assert names(other) == ["theirs"]
    assert token_of(other) != token


def test_another_browser_goes_on_with_a_copy(visit: Any) -> None:
    page = visit()
    page.text_input[0].set_value("mine")
    press(page, "Duplicate")
    token = token_of(page)
    other = visit(w=token)
    assert names(other) == names(page)
    assert token_of(other) != token
    press(other, "Delete")
    assert names(visit(w=token)) == names(page)


def test_all_drafts_come_back_from_their_file(visit: Any, tmp_path: Path) -> None:
    page = visit()
    press(page, "Change in a new draft")
    workspace = page.session_state["fleetplan.workspace"]
    from planner.ui.sharing import file_of

    content = file_of(workspace.drafts, workspace.how)
    assert len(json.loads(content)["drafts"]) == 2
    page.file_uploader[0].upload("mine.json", content, "application/json").run()
    press(page, "Add its drafts")
    assert len(names(page)) == 4
