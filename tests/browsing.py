"""A server of the app and a Chromium that visits it, reached by roles and labels as people's aids reach it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from planner.clock import SystemClock

ROOT: Final = Path(__file__).parents[1]
CHROMIUM: Final = next(
    (found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None
)
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-prefers-reduced-motion",
)
PAGES: Final = {
    "plan": "Plan",
    "what_if": "What-if",
    "trade_offs": "Trade-offs",
    "candidate": "Candidate",
    "moves": "Moves",
}
READY_MS: Final = 60_000
_LOOK_AGAIN_S: Final = 0.05
_START_S: Final = 120.0
_LOOKS: Final = 50
_DRAWN: Final = """() => [
    document.querySelectorAll('[data-testid="stSkeleton"], [data-testid="stSpinner"], [data-testid="stStatusWidget"]').length,
    document.body.innerText.length, document.querySelectorAll('canvas, svg').length,
]"""


@dataclass(frozen=True, slots=True)
class App:
    """A server that runs.

    Attributes:
        url: where it listens.
        folder: its cache; workspaces lie in ``fleetplan/ui`` below.
        pid: of the server.
    """

    url: str
    folder: Path
    pid: int

    def workers(self) -> list[int]:
        """Processes that the server started to compute."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/children")
        return [int(child) for thread in threads for child in thread.read_text(encoding="utf-8").split()]

    def resident_mb(self) -> float:
        """Memory of the server, MB."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024


def by_command(port: int) -> list[str]:
    """The entry ``fleetplan ui``."""
    return [str(Path(sys.executable).parent / "fleetplan"), "ui", "--no-browser", "--port", str(port)]


def by_streamlit(port: int, script: Path = ROOT / "app.py") -> list[str]:
    """The entry ``streamlit run app.py``."""
    return [
        sys.executable, "-m", "streamlit", "run", str(script),
        "--server.port", str(port), "--server.headless", "true",
    ]  # fmt: skip


@contextmanager
def running(command: Sequence[str], *, folder: Path, port: int, scenario: str = "") -> Iterator[App]:
    """The app, until the block ends.

    Args:
        command: that becomes the server.
        folder: where it keeps workspaces.
        port: it was told to listen on.
        scenario: file that first visits open; empty: the example.
    """
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    environment.pop("FLEETPLAN_UI_SCENARIO", None)
    if scenario:
        environment["FLEETPLAN_UI_SCENARIO"] = scenario
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            list(command), cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _wait_until_it_answers(port, process, folder / "server.log")
            yield App(f"http://127.0.0.1:{port}", folder, process.pid)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def _wait_until_it_answers(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    clock = SystemClock()
    ends_s = clock.monotonic_s() + _START_S
    while clock.monotonic_s() < ends_s:
        if process.poll() is not None:
            break
        try:
            with closing(HTTPConnection("127.0.0.1", port, timeout=2)) as asked:
                asked.request("GET", "/_stcore/health")
                if asked.getresponse().status == HTTPStatus.OK:
                    return
        except OSError:
            clock.sleep(_LOOK_AGAIN_S)
    raise AssertionError(
        f"the server did not come up:\n{log.read_text(encoding='utf-8', errors='replace')[-3000:]}"
    )


class Visitor:
    """One tab, and what a person does in it.

    Args:
        page: of Playwright.
        url: of the app.
    """

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.url = url
        page.set_default_timeout(READY_MS)

    def open(self, place: str = "") -> Visitor:
        """Go to an address of the app and wait for the heading of a page."""
        self.page.goto(f"{self.url}/{place}")
        return self.settled()

    def visit(self, name: str) -> Visitor:
        """Follow the link of a page in the navigation."""
        self._navigation()
        self.page.get_by_role("link", name=PAGES[name], exact=True).click()
        self.page.wait_for_url(f"**/{name}*" if name != "plan" else f"{self.url}/?*")
        return self.settled()

    def settled(self) -> Visitor:
        """Wait until there is a heading and no script runs."""
        self.page.get_by_role("heading", level=1).first.wait_for()
        self.page.wait_for_function(
            """() => {
                const app = document.querySelector('[data-testid="stApp"]');
                return app && app.dataset.testScriptState === 'notRunning'
                    && !document.querySelector('[data-stale="true"]');
            }"""
        )
        return self

    def drawn(self) -> Visitor:
        """Wait until charts and tables are drawn, and nothing of the page is still to come."""
        for _ in range(_LOOKS):
            before = self.page.evaluate(_DRAWN)
            self.page.wait_for_timeout(400)
            if before == self.settled().page.evaluate(_DRAWN) and not before[0]:
                break
        return self

    def solved(self) -> Visitor:
        """Wait until a plan with its proof is shown."""
        self.page.locator("text=/OPTIMAL|FEASIBLE|INFEASIBLE|TIMED_OUT/").first.wait_for()
        return self.settled()

    def press(self, label: str, *, exact: bool = True) -> Visitor:
        """Press a button."""
        self.button(label, exact=exact).click()
        self.page.wait_for_timeout(150)
        return self.settled()

    def button(self, label: str, *, exact: bool = True) -> Any:
        """A button whose name ends with a label; its symbol is part of the name."""
        pattern = re.compile(rf"(^|\s){re.escape(label)}$" if exact else re.escape(label))
        return self.page.get_by_role("button", name=pattern).first

    def fold_out(self, label: str) -> Visitor:
        """Open a part of the page that is folded."""
        self.page.locator("summary", has_text=label).first.click()
        self.page.wait_for_timeout(150)
        return self.settled()

    def choose(self, group: str, label: str) -> Visitor:
        """Choose one of a few."""
        self.page.get_by_role("radiogroup", name=group).get_by_text(label, exact=True).click()
        self.page.wait_for_timeout(150)
        return self.settled()

    def sees(self, text: str | re.Pattern[str]) -> Visitor:
        """Wait for a text."""
        self.page.get_by_text(text).first.wait_for()
        return self

    def metric(self, label: str) -> str:
        """The figure under a label."""
        box = self.page.get_by_test_id("stMetric").filter(has_text=label).first
        figure: str = box.get_by_test_id("stMetricValue").inner_text()
        return figure

    def text(self) -> str:
        """All that the page says."""
        found: str = self.page.get_by_test_id("stMain").inner_text()
        return found

    def picture(self, path: Path) -> Visitor:
        """Keep a picture of the whole page, however long; it scrolls inside of the window."""
        size = self.page.viewport_size
        long = self.page.evaluate("""() => document.querySelector('[data-testid="stMain"]').scrollHeight""")
        self.page.set_viewport_size({"width": size["width"], "height": max(size["height"], int(long) + 10)})
        self.drawn().page.screenshot(path=path)
        self.page.set_viewport_size(size)
        return self

    def _navigation(self) -> None:
        """On narrow screens the navigation is folded away."""
        link = self.page.get_by_test_id("stSidebarNav")
        if not link.is_visible():
            self.page.get_by_test_id("stExpandSidebarButton").click()
