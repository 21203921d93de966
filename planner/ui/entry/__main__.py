"""``python -m planner.ui.entry run app.py``: Streamlit's server, with the app on its way before a visitor comes.

A browser needs a second to load its part of the app. Meanwhile the modules of ours are loaded here, and a worker
process loads the solvers, so that the first page has nothing to wait for.
"""

from __future__ import annotations

import gc
import threading
from importlib import import_module
from typing import Final

from streamlit.web import cli

__all__ = ["main"]

_FIRST_PAGE: Final = ("planner.ui.pages", "planner.ui.answers.plan", "planner.ui.editing.panel")
_DRAWING: Final = ("pandas", "altair")


def main() -> None:
    """Serve until ended."""
    gc.disable()  # what is loaded stays: looking through it again and again takes a tenth of a start
    # Streamlit is imported whole by now: two threads that import one package from two ends would meet half of it.
    threading.Thread(target=_load, name="fleetplan-loading", daemon=True).start()
    cli.main(prog_name="streamlit")


def _load() -> None:
    try:
        import_module("planner.ui.frame")
        import_module("planner.ui.session").workers()
        for name in (*_FIRST_PAGE, *_DRAWING):
            import_module(name)
    finally:
        gc.freeze()
        gc.enable()


if __name__ == "__main__":
    main()
