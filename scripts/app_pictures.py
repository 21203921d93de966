"""Draw every page of the app as a browser shows it: app_pictures.py FOLDER [WIDTH] [light|dark].

Starts the app on a free port with a cache of its own, visits each page with the first example, and writes
``app-NAME.png``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browsing import CHROMIUM, FLAGS, by_command, free_port, running
from tests.visiting import PAGES, Visitor

COLORS: Final = 128
HEIGHT: Final = 1000
LONGEST: Final = 1500
"""Pictures show the upper part of pages that are longer, px."""


def main() -> None:
    """Visit and draw."""
    folder = Path(sys.argv[1])
    width = int(sys.argv[2]) if len(sys.argv) > 2 else 1280  # noqa: PLR2004 - the second argument
    scheme = "dark" if "dark" in sys.argv[3:] else "light"
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    with (
        tempfile.TemporaryDirectory() as cache,
        running(by_command(port), folder=Path(cache), port=port) as app,
        sync_playwright() as started,
    ):
        browser = started.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        context = browser.new_context(
            viewport={"width": width, "height": HEIGHT}, color_scheme=scheme, reduced_motion="reduce"
        )
        person = Visitor(context.new_page(), app.url).open().solved()
        for name in PAGES:
            path = folder / f"app-{name.replace('_', '-')}.png"
            person.visit(name).prepared(name).picture(path)
            with Image.open(path) as picture:
                top = picture.convert("RGB").crop((0, 0, picture.width, min(picture.height, LONGEST)))
                fewer = top.quantize(COLORS)
            fewer.save(path, optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
