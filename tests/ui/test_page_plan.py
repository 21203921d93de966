"""The page Plan: what a visitor sees and does, with real solves in a worker process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from planner.ui import session
from planner.ui.jobs import Workers

SCENARIOS = Path("data/scenarios").resolve()


@pytest.fixture(scope="module")
def shared_workers() -> Iterator[Workers]:
    made = Workers(1)
    yield made
    made.close()


@pytest.fixture
def visit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_workers: Workers) -> Iterator[Any]:
    """Opens the app with a scenario, as a first visit does; every visit has a folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    st.cache_resource.clear()
    monkeypatch.setattr(session, "workers", lambda: shared_workers)

    def opened(name: str) -> AppTest:
        monkeypatch.setenv("FLEETPLAN_UI_SCENARIO", str(SCENARIOS / f"{name}.yaml"))
        return solved(AppTest.from_file(str(Path("app.py").resolve()), default_timeout=60).run())

    yield opened
    st.cache_resource.clear()


def solved(page: AppTest) -> AppTest:
    """The page when nothing is being solved any more."""
    for _ in range(60):
        assert not page.exception, page.exception
        key = page.session_state["fleetplan.asked"]["plan"]
        job = session.workers().wait(key, 1.0)
        if job is not None and job.over:
            return page.run()
    raise AssertionError("never solved")


def words(page: AppTest) -> str:
    parts = [
        *page.markdown,
        *page.caption,
        *page.warning,
        *page.info,
        *page.error,
        *page.text,
        *page.subheader,
    ]
    return "\n".join(each.value for each in parts)


def press(page: AppTest, label: str) -> AppTest:
    return next(button for button in page.button if button.label == label).click().run()


def edit(page: AppTest, part: str) -> AppTest:
    page.session_state["editing"] = True
    page.session_state["editing-part"] = part
    return page.run()


def metric(page: AppTest, label: str) -> str:
    return next(each.value for each in page.metric if each.label == label)


def test_a_first_visit_shows_a_solved_plan_against_now(visit: Any) -> None:
    page = visit("02-contention")
    assert [title.value for title in page.title] == ["02 contention"]
    assert "OPTIMAL" in words(page)
    assert metric(page, "Unserved") == "0 req/s"
    assert next(each.delta for each in page.metric if each.label == "Cost")
    assert {"Now → planned", "Which node holds which replica"} <= {each.value for each in page.subheader}
