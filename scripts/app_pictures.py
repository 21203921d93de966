"""Draw every page of the app as a browser shows it: app_pictures.py FOLDER [WIDTH] [light|dark].

Starts the app on a free port with a cache of its own, visits each page with the first example, and writes
``app-NAME.png``. Pages about a cluster are shown beside a controller and a cluster of tests.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browsing import CHROMIUM, FLAGS, by_command, running
from tests.live_app import SCENARIO, a_fleet, live_variables
from tests.loopback import free_port
from tests.visiting import PAGES, Visitor

COLORS: Final = 128
HEIGHT: Final = 1000
LONGEST: Final = 1500
"""Pictures show the upper part of pages that are longer, px."""


LIVE: Final = ("apply", "fleet_now")
"""Pages about a cluster."""


def main() -> None:
    """Visit and draw."""
    folder = Path(sys.argv[1])
    width = int(sys.argv[2]) if len(sys.argv) > 2 else 1280  # noqa: PLR2004 - the second argument
    scheme = "dark" if "dark" in sys.argv[3:] else "light"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])

        def visitor(url: str) -> Visitor:
            context = browser.new_context(
                viewport={"width": width, "height": HEIGHT}, color_scheme=scheme, reduced_motion="reduce"
            )
            return Visitor(context.new_page(), url).open().solved()

        port = free_port()
        with running(by_command(port), folder=Path(cache), port=port) as app:
            person = visitor(app.url)
            for name in PAGES:
                if name not in LIVE:
                    draw(person.visit(name).prepared(name), name, folder)
        port = free_port()
        with (
            live_variables(a_fleet(), Path(cache)) as more,
            running(by_command(port), folder=Path(cache), port=port, scenario=SCENARIO, more=more) as app,
        ):
            person = visitor(app.url).visit("apply").prepared("apply").press("Compare (dry run)")
            draw(person.sees("that differ from the cluster"), "apply", folder)
            draw(person.visit("fleet_now").sees("History").drawn(), "fleet_now", folder)
        browser.close()


def draw(person: Visitor, name: str, folder: Path) -> None:
    """Keep the upper part of a page."""
    path = folder / f"app-{name.replace('_', '-')}.png"
    person.picture(path)
    with Image.open(path) as picture:
        top = picture.convert("RGB").crop((0, 0, picture.width, min(picture.height, LONGEST)))
        fewer = top.quantize(COLORS)
    fewer.save(path, optimize=True)


if __name__ == "__main__":
    main()
