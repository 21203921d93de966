"""What people do on a page of the app where there is no browser, and what they wait for."""

from __future__ import annotations

from typing import Any

from streamlit.testing.v1 import AppTest

from planner.ui import session

__all__ = ["cut", "goes_on_when_pressed", "over", "press"]

PATIENCE_S = 90.0


def press(page: AppTest, label: str) -> AppTest:
    """The page when a button was pressed; nothing went wrong."""
    next(button for button in page.button if button.label == label).click().run()
    assert not page.exception, page.exception
    return page


def over(page: AppTest, question: str, *, patience_s: float = PATIENCE_S) -> AppTest:
    """The page when a question is answered.

    Args:
        page: on which it was asked.
        question: of the session.
        patience_s: that an answer may take, s.
    """
    job = session.workers().wait(page.session_state["fleetplan.asked"][question], patience_s)
    assert job is not None
    assert job.over
    page.run()
    assert not page.exception, page.exception
    return page


def cut(page: AppTest, question: str, **fields: Any) -> str:
    """Have the answer to a question be what there was when somebody stopped it; the key of its job.

    Args:
        page: on which it was answered.
        question: of the session.
        fields: of the job, where they were others then.
    """
    key: str = page.session_state["fleetplan.asked"][question]
    workers = session.workers()
    with workers._lock:
        workers._put(key, cut=True, **fields)
    return key


def goes_on_when_pressed(page: AppTest, label: str, question: str) -> bool:
    """Whether a button has what somebody stopped worked out to its end."""
    key = cut(page, question)
    over(press(page, label), question)
    job = session.workers().look(key)
    return job is not None and job.result is not None and not job.cut
