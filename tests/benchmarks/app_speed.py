"""How long the app lets people wait: ``python tests/benchmarks/app_speed.py [start|solve|large|memory] ...``.

A real Chromium visits an app that was started for this with a cache of its own. Without arguments all parts are
measured: the start, a solve again of the example by click to picture, every page of 1,008 services (the example's
twelve, 84 times), and the memory after 100 solves. Each part prints lines; seconds are of a wall clock, CPU time is the
server's own.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

import yaml
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))

from planner.scenario import dump_scenario, load_scenario
from tests.browsing import CHROMIUM, FLAGS, ROOT, App, by_command, running
from tests.loopback import free_port
from tests.visiting import PAGES, Visitor

EXAMPLE: Final = ROOT / "data" / "scenarios" / "02-contention.yaml"
TIMES: Final = 84
REPEATS: Final = 5
SOLVES: Final = 100


@contextmanager
def visited(scenario: Path | None = None) -> Iterator[tuple[App, Visitor, float]]:
    """An app, somebody who has not yet gone there, and when the app was told to start, s."""
    port = free_port()
    with sync_playwright() as started, tempfile.TemporaryDirectory() as cache:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        page = browser.new_context(
            viewport={"width": 1400, "height": 1000}, reduced_motion="reduce"
        ).new_page()
        began = time.perf_counter()
        file = "" if scenario is None else str(scenario)
        with running(by_command(port), folder=Path(cache), port=port, scenario=file) as app:
            yield app, Visitor(page, app.url), began
        browser.close()


def start() -> None:
    """From the command to a heading, and to a plan that is proven."""
    answers, interactive, solved = [], [], []
    for _ in range(REPEATS):
        with visited() as (_, person, began):
            answers.append(time.perf_counter() - began)
            person.page.goto(person.url)
            person.page.get_by_role("heading", level=1).first.wait_for()
            interactive.append(time.perf_counter() - began)
            person.page.locator("text=OPTIMAL").first.wait_for()
            solved.append(time.perf_counter() - began)
    said("start: server answers", answers)
    said("start: heading of the first page", interactive)
    said("start: proven plan of the example", solved)


def solve() -> None:
    """From the click on *Apply text and solve* to the figures and pictures of the new plan."""
    with visited() as (_, person, _):
        person.open().solved().drawn()
        waited = [solved_again(person, number) for number in range(REPEATS)]
    said("solve again: click to picture", waited)


def solved_again(person: Visitor, number: int) -> float:
    """Seconds from the click to the picture of a plan for a little more traffic."""
    person.fold_out("Edit the scenario").choose("What to edit", "Text")
    box = person.page.get_by_role("textbox", name="Scenario, YAML")
    before = person.metric("Cost")
    fields = yaml.safe_load(box.input_value())
    fields["name"] = f"again {number}"
    pool = next(pool for pool in fields["pools"] if pool["id"] == "h100")
    pool["offering"] = {**pool.get("offering", {}), "usd_per_h": 4.0 + number}
    box.fill(yaml.safe_dump(fields, sort_keys=False))
    box.press("Tab")
    person.page.wait_for_timeout(500)
    began = time.perf_counter()
    person.button("Apply text and solve").click()
    person.page.wait_for_function(
        """before => {
            const app = document.querySelector('[data-testid="stApp"]');
            const cost = document.querySelector('[data-testid="stMetricValue"]');
            return cost && cost.innerText.trim() !== before && app.dataset.testScriptState === 'notRunning'
                && document.body.innerText.includes('OPTIMAL')
                && !document.querySelector('[data-stale="true"]')
                && document.querySelector('[data-testid="stVegaLiteChart"] canvas, [data-testid="stVegaLiteChart"] svg');
        }""",
        arg=before,
    )
    took = time.perf_counter() - began
    person.settled()
    return took


def large() -> None:
    """Every page of 1,008 services: wall time to a page that stands still, and CPU time of the server."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.yaml"
        path.write_text(many(), encoding="utf-8")
        with visited(path) as (app, person, _):
            timed("large: first visit", app, person.open)
            person.solved().drawn()
            timed("large: plan, solved", app, person.reload)
            timed("large: tables to edit", app, lambda: person.fold_out("Edit the scenario").drawn())
            timed("large: as text", app, lambda: person.choose("What to edit", "Text").drawn())
            timed("large: narrowed to a name", app, lambda: narrowed(person))
            for name, title in PAGES.items():
                timed(f"large: {title}", app, lambda name=name: person.visit(name))


def narrowed(person: Visitor) -> None:
    """Find one service in the table of changes."""
    box = person.page.get_by_label("Find a service, variant or pool")
    box.fill("coding-7")
    person.does(lambda: box.press("Enter"))


def many() -> str:
    """The example's services, many times, with as many nodes."""
    fields = yaml.safe_load(dump_scenario(load_scenario(EXAMPLE)))
    fields["name"] = f"{12 * TIMES} services"
    fields["services"] = [
        {
            **service,
            "id": f"{service['id']}-{number}",
            "variants": [bare(each) for each in service["variants"]],
        }
        for service in fields["services"]
        for number in range(TIMES)
    ]
    fields["fleet"]["running"] = [
        {**each, "service": f"{each['service']}-{number}"}
        for each in fields["fleet"]["running"]
        for number in range(TIMES)
    ]
    for pool in fields["pools"]:
        pool["nodes"] = [
            {**node, "id": f"{node['id']}-{number}", "fabric_domain": f"{node['fabric_domain']}-{number}"}
            if node.get("fabric_domain")
            else {**node, "id": f"{node['id']}-{number}"}
            for node in pool["nodes"]
            for number in range(TIMES)
        ]
    return yaml.safe_dump(fields, sort_keys=False)


def bare(variant: dict[str, Any]) -> dict[str, Any]:
    """A variant without its object in a cluster, which only one can have."""
    return {name: value for name, value in variant.items() if name != "object"}


def memory() -> None:
    """Resident memory of the server and its workers while the example is solved again and again."""
    with visited() as (app, person, _):
        person.open().solved()
        for number in range(1, SOLVES + 1):
            solved_again(person, number)
            if number % 10 == 0:
                print(f"memory: after {number} solves {resident_mb(app)}", flush=True)


def resident_mb(app: App) -> str:
    """Memory of the server, and of all its workers."""
    workers = [App(app.url, app.folder, pid).resident_mb() for pid in app.workers()]
    return f"server {app.resident_mb():.0f} MB, workers {' + '.join(f'{each:.0f}' for each in workers)} MB"


def timed(what: str, app: App, gesture: Callable[[], object]) -> None:
    """Print what a gesture takes."""
    cpu, wall = cpu_s(app), time.perf_counter()
    gesture()
    print(
        f"{what}: {time.perf_counter() - wall:.2f} s, CPU of the server {cpu_s(app) - cpu:.2f} s", flush=True
    )


def cpu_s(app: App) -> float:
    """CPU time of the server so far, without its workers, s."""
    fields = Path(f"/proc/{app.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def said(what: str, seconds: list[float]) -> None:
    """Print the middle of some measurements, and how far they lie apart."""
    print(f"{what}: {median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})", flush=True)


PARTS: Final = {"start": start, "solve": solve, "large": large, "memory": memory}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
