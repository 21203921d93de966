"""What people do on a page of the app where there is no browser, and what they wait for."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from planner.ui import session

__all__ = ["over", "press"]

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
