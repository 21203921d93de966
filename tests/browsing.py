"""A server of the app, and a Chromium to visit it with."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

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
_LOOK_AGAIN_S: Final = 0.05
_START_S: Final = 120.0


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
def running(
    command: Sequence[str],
    *,
    folder: Path,
    port: int,
    scenario: str = "",
    more: Mapping[str, str] | None = None,
) -> Iterator[App]:
    """The app, until the block ends.

    Args:
        command: that becomes the server.
        folder: where it keeps workspaces.
        port: it was told to listen on.
        scenario: file that first visits open; empty: the example.
        more: variables that it is started with.
    """
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    environment.pop("FLEETPLAN_UI_SCENARIO", None)
    environment |= more or {}
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
