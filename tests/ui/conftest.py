"""The app without a browser: real worker processes, a folder of its own for every test, nothing left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from planner.ui import session
from planner.ui.jobs import Workers

_PAGES = Path("planner/ui/pages").resolve()
_SCENARIOS = Path("data/scenarios").resolve()
_ALONE = """
import runpy
from planner.ui import session
session.open_workspace()
runpy.run_path({path!r})
"""


@pytest.fixture(scope="module")
def shared_workers() -> Iterator[Workers]:
    """One worker process for the tests of a page; it ends with them."""
    made = Workers(1)
    yield made
    made.close()


@pytest.fixture
def ground(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_workers: Workers
) -> Iterator[Callable[[Path | str], None]]:
    """Says which scenario first visits open, a path or the name of an example; every test has a folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    st.cache_resource.clear()
    monkeypatch.setattr(session, "workers", lambda: shared_workers)

    def opens(scenario: Path | str) -> None:
        path = scenario if isinstance(scenario, Path) else _SCENARIOS / f"{scenario}.yaml"
        monkeypatch.setenv("FLEETPLAN_UI_SCENARIO", str(path))

    yield opens
    st.cache_resource.clear()


@pytest.fixture
def app_of(ground: Callable[[Path | str], None]) -> Callable[..., AppTest]:
    """Opens the whole app with a scenario, on its first page or another one."""

    def opened(scenario: Path | str, page: str = "") -> AppTest:
        ground(scenario)
        app = AppTest.from_file(str(Path("app.py").resolve()), default_timeout=60).run()
        return app.switch_page(str(_PAGES / f"{page}.py")).run() if page else app

    return opened


@pytest.fixture
def page_of(ground: Callable[[Path | str], None]) -> Callable[..., AppTest]:
    """Opens one page without the frame around it, with a scenario and parameters of the address."""

    def opened(page: str, scenario: Path | str, **parameters: str) -> AppTest:
        ground(scenario)
        app = AppTest.from_string(_ALONE.format(path=str(_PAGES / f"{page}.py")), default_timeout=60)
        for name, value in parameters.items():
            app.query_params[name] = value
        app.run()
        assert not app.exception, app.exception
        return app

    return opened
