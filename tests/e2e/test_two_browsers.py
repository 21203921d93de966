"""Real Chromium, two browsers: an address that is passed on gives a copy, and never the owner's workspace."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest

from planner.clock import SystemClock
from planner.ui.launch import command

CHROMIUM: Final = Path("/usr/bin/chromium")
_FLAGS: Final = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
_PATIENCE_S: Final = 60.0

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason="no Chromium on this machine (apt-get install chromium)"
    ),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}
    arguments = [sys.executable, *command(host="127.0.0.1", port=port, headless=True)[1:]]
    with subprocess.Popen(
        arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            yield _answering(f"http://127.0.0.1:{port}")
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=_FLAGS)
        yield browser
        browser.close()


def _answering(address: str) -> str:
    clock = SystemClock()
    end_s = clock.monotonic_s() + _PATIENCE_S
    while clock.monotonic_s() < end_s:
        try:
            with urlopen(f"{address}/_stcore/health", timeout=2):  # noqa: S310 - our own server
                return address
        except (URLError, OSError):
            clock.sleep(0.2)
    raise AssertionError("the app did not start")


def visit(context: Any, url: str) -> Any:
    page = context.new_page()
    page.set_default_timeout(_PATIENCE_S * 1000)
    page.goto(url)
    page.get_by_role("heading", name="What-if", exact=True).wait_for()
    page.wait_for_function("new URL(location).searchParams.get('w')")
    return page


def token(page: Any) -> str:
    return parse_qs(urlsplit(page.url).query)["w"][0]


def duplicate(page: Any, name: str) -> None:
    page.get_by_role("textbox", name="New name").fill(name)
    page.get_by_role("button", name="Duplicate").click()
    page.get_by_role("button", name=f"Undo: add “{name}”").wait_for()


def test_an_address_belongs_to_one_browser(chromium: Any, address: str) -> None:
    mine, yours = chromium.new_context(), chromium.new_context()
    page = visit(mine, f"{address}/what_if")
    duplicate(page, "mine")
    own = token(page)

    other_tab = visit(mine, page.url)
    assert token(other_tab) == own
    other_tab.get_by_role("button", name="Undo: add “mine”").wait_for()

    other = visit(yours, page.url)
    other.wait_for_function(f"new URL(location).searchParams.get('w') !== '{own}'")
    other.get_by_role("button", name="Undo: add “mine”").wait_for()
    duplicate(other, "theirs")
    copied = token(other)
    other.reload()
    other.get_by_role("button", name="Undo: add “theirs”").wait_for()
    assert token(other) == copied

    page.reload()
    page.get_by_role("button", name="Undo: add “mine”").wait_for()
    assert page.get_by_text("theirs").count() == 0
    assert token(page) == own
