"""A server for all tests of a process, and browsers with nothing in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.browsing import CHROMIUM, FLAGS, App, by_command, running
from tests.loopback import free_port
from tests.visiting import Visitor

SHOTS: Final = Path(__file__).parents[3] / ".screenshots"


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The app as ``fleetplan ui`` starts it."""
    port = free_port()
    with running(by_command(port), folder=tmp_path_factory.mktemp("app"), port=port) as found:
        yield found


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A Chromium of this machine."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here; on Debian: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="the Python package playwright is not installed")
    with api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield browser
        browser.close()


_FAILED: Final = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether a test failed, so that what was seen then is kept."""
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


@pytest.fixture
def visitor(
    chromium: Any, app: App, shots: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Visitor]]:
    """Makes people, each with a browser profile of their own; where a test fails, what they saw is kept."""
    contexts: list[Any] = []

    def new(*, at: App = app, width: int = 1400, dark: bool = False) -> Visitor:
        context = chromium.new_context(
            viewport={"width": width, "height": 1000},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            accept_downloads=True,
        )
        contexts.append(context)
        return Visitor(context.new_page(), at.url)

    yield new
    for number, context in enumerate(contexts):
        if request.node.stash.get(_FAILED, False) and context.pages:
            name = re.sub(r"\W+", "-", request.node.name)
            context.pages[-1].screenshot(path=shots / f"failed-{name}-{number}.png")
        context.close()


@pytest.fixture
def shots() -> Path:
    """Where pictures of pages are kept; not in version control."""
    SHOTS.mkdir(exist_ok=True)
    return SHOTS
