"""People who visit the app with a browser: they reach everything by roles and labels, as people's aids do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

PAGES: Final = {
    "plan": "Plan",
    "what_if": "What-if",
    "trade_offs": "Trade-offs",
    "candidate": "Candidate",
    "moves": "Moves",
    "elastic_ep": "Elastic EP",
    "replay": "Replay",
    "apply": "Apply",
    "fleet_now": "Fleet now",
}
READY_MS: Final = 60_000
COMPILED_MS: Final = 300_000
"""The twin is compiled when it is first used."""

_FOLDS_PX: Final = 768
"""Narrower windows have their navigation folded away."""

_LOOKS: Final = 50
_TRIES: Final = 5
_A_TRY_MS: Final = 6_000
_LOOK_AGAIN_MS: Final = 100
_DRAWN: Final = """() => [
    document.querySelectorAll('[data-testid="stSkeleton"], [data-testid="stSpinner"], [data-testid="stStatusWidget"]').length,
    document.body.innerText.length, document.querySelectorAll('canvas, svg').length,
]"""
_WATCHES_RUNS: Final = """
window.runs = 0;
window.changed = 0;
new MutationObserver(found => { window.runs += found.length; window.changed = performance.now(); }).observe(
    document, {subtree: true, attributes: true, attributeFilter: ['data-test-script-state']});
"""
_TOO_WIDE: Final = """() => {
    const main = document.querySelector('[data-testid="stMain"]');
    const edge = main.getBoundingClientRect().right + 1;
    const scrolls = each => { for (let at = each; at && at !== main; at = at.parentElement)
        if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(at).overflowX)) return true; return false; };
    return [...main.querySelectorAll('*')].filter(each => each.checkVisibility() && each.getBoundingClientRect().right > edge
        && each.getBoundingClientRect().width > 0 && !scrolls(each)).slice(0, 5).map(each => each.outerHTML.slice(0, 120));
}"""
_HANDED_OVER: Final = "() => new Promise(done => setTimeout(done, 400))"
"""A table gives its form what was typed when 150 ms went by; timers of one page end in their order."""

_IS_STILL: Final = """seen => {
    const app = document.querySelector('[data-testid="stApp"]');
    return app && app.dataset.testScriptState === 'notRunning' && window.runs >= seen
        && performance.now() - window.changed > 150
        && document.querySelector('h1') && !document.querySelector('[data-stale="true"]');
}"""
"""A script that ends to begin anew stands still for a moment."""


class Visitor:
    """One tab, and what a person does in it. Whatever is done waits until the app has answered it, however long.

    Args:
        page: of Playwright.
        url: of the app.
    """

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.url = url
        page.set_default_timeout(READY_MS)
        page.add_init_script(_WATCHES_RUNS)

    def open(self, place: str = "") -> Visitor:
        """Go to an address of the app and wait for the heading of a page."""
        self.page.goto(place if place.startswith("http") else f"{self.url}/{place}")
        return self.settled()

    def reload(self) -> Visitor:
        """Ask for the same address again."""
        self.page.reload()
        return self.settled()

    def visit(self, name: str) -> Visitor:
        """Follow the link of a page in the navigation."""
        self._navigation()
        self.page.get_by_role("link", name=PAGES[name], exact=True).click()
        self.page.wait_for_url(f"**/{name}*" if name != "plan" else f"{self.url}/?*")
        self.page.locator(
            f'[data-testid="stSidebarNavLink"][aria-current="page"]:has-text("{PAGES[name]}")'
        ).wait_for(state="attached")
        return self.settled()

    def settled(self, *, runs: int = 0) -> Visitor:
        """Wait until there is a heading and no script runs.

        Args:
            runs: so many changes of the state of the script have to be seen before, of those that ``does`` counts.
        """
        self.page.wait_for_function(_IS_STILL, arg=runs)
        return self

    def does(self, gesture: Callable[[], object]) -> Visitor:
        """Make a gesture that the app answers by running its script, and wait for the answer."""
        seen = self.page.evaluate("window.runs")
        gesture()
        return self.settled(runs=seen + 1)

    def until(self, gesture: Callable[[], object], holds: Callable[[], bool]) -> Visitor:
        """Make a gesture until something holds: a page that is drawn anew at the wrong moment swallows one."""
        for _ in range(_TRIES):
            gesture()
            waited_ms = 0
            while waited_ms < _A_TRY_MS:
                if holds():
                    return self
                self.page.wait_for_timeout(_LOOK_AGAIN_MS)
                waited_ms += _LOOK_AGAIN_MS
        raise AssertionError("the page does not answer a gesture")

    def drawn(self) -> Visitor:
        """Wait until charts and tables are drawn, and nothing of the page is still to come."""
        for _ in range(_LOOKS):
            before = self.page.evaluate(_DRAWN)
            self.page.wait_for_timeout(300)
            if before == self.settled().page.evaluate(_DRAWN) and not before[0]:
                break
        return self

    def solved(self) -> Visitor:
        """Wait until a plan with its proof is shown."""
        self.page.locator("text=/OPTIMAL|FEASIBLE|INFEASIBLE|TIMED_OUT/").first.wait_for()
        return self.settled()

    def press(self, label: str, *, exact: bool = True) -> Visitor:
        """Press a button."""
        return self.does(self.button(label, exact=exact).click)

    def button(self, label: str, *, exact: bool = True) -> Any:
        """A button whose name ends with a label; its symbol is part of the name."""
        pattern = re.compile(rf"(^|\s){re.escape(label)}$" if exact else re.escape(label))
        return self.page.get_by_role("button", name=pattern).first

    def fold_out(self, label: str) -> Visitor:
        """Open a part of the page that is folded."""
        folded = self.page.locator("details", has=self.page.locator("summary", has_text=label)).first
        self.until(
            lambda: folded.get_attribute("open") is None and folded.locator("summary").first.click(),
            lambda: folded.get_attribute("open") is not None,
        )
        return self.settled()

    def choose(self, group: str, label: str) -> Visitor:
        """Choose one of a few."""
        options = self.page.get_by_role("radiogroup", name=group)
        options.wait_for()
        if options.get_by_role("radio", name=label, exact=True).is_checked():
            return self
        return self.does(options.get_by_text(label, exact=True).click)

    def fill(self, label: str, value: str) -> Visitor:
        """Type into a field of a form."""
        box = self.page.get_by_label(label, exact=True).first
        box.fill(value)
        box.press("Tab")
        return self

    def write_cell(self, row: str, column: str, value: str) -> Visitor:
        """Type into a cell of a table that is seen, by keyboard.

        Args:
            row: what stands in its first cell.
            column: the heading.
            value: what is typed, and what stands there afterwards.
        """
        table = self.page.locator('[data-testid="stDataFrame"]:visible').filter(
            has=self.page.locator("th", has_text=column)
        )
        place = table.locator("th", has_text=column).first.get_attribute("aria-colindex")
        line = table.locator(
            "tr", has=self.page.locator("td", has_text=re.compile(f"^{re.escape(row)}$"))
        ).first
        cell = line.locator(f'td[aria-colindex="{place}"]')

        def types() -> None:
            self.page.keyboard.press("Escape")
            cell.focus()  # the table answers by choosing a cell: the first one, where none was chosen
            chosen = table.locator('td[aria-selected="true"]').first.get_attribute("id")
            (right, down), (x, y) = (
                map(int, each.split("-")[2:]) for each in (cell.get_attribute("id"), chosen)
            )
            self._press_times("ArrowRight" if right > x else "ArrowLeft", abs(right - x))
            self._press_times("ArrowDown" if down > y else "ArrowUp", abs(down - y))
            table.locator(f'td[aria-selected="true"]#{cell.get_attribute("id")}').wait_for(state="attached")
            self.page.keyboard.press("Enter")
            overlay = self.page.locator(".gdg-input")
            overlay.fill(value)
            overlay.press("Enter")

        self.until(types, lambda: cell.inner_text() == value)
        self.page.evaluate(_HANDED_OVER)
        return self

    def downloaded(self, label: str) -> str:
        """The text of the file that a button hands over."""
        files: list[Any] = []

        def comes(file: object) -> None:
            files.append(file)

        self.page.on("download", comes)
        self.until(self.settled().button(label).click, lambda: bool(files))
        return Path(files[0].path()).read_text(encoding="utf-8")

    def sees(self, text: str | re.Pattern[str]) -> Visitor:
        """Wait for a text."""
        self.page.get_by_text(text).first.wait_for()
        return self

    def can(self, label: str) -> Visitor:
        """Wait until a button can be pressed."""
        self.button(label).and_(self.page.locator(":enabled")).wait_for()
        return self.settled()

    def prepared(self, name: str) -> Visitor:
        """The page as it is when somebody has used it: what it is for can be seen."""
        if name == "what_if" and self.page.get_by_text("There is one draft").is_visible():
            self.fill("Times", "0.9").press("Change in a new draft")
            solve = self.button("Solve 1 draft that is not solved")
            solve.wait_for()
            self.until(lambda: solve.is_visible() and solve.click(), lambda: not solve.is_visible())
            self.page.get_by_text("Solve both, and").wait_for(state="hidden")
        for page, part in (
            ("candidate", "What each source says"),
            ("moves", "Commands"),
            ("apply", "On the cluster"),
        ):
            if name == page:
                self.page.get_by_role("heading", name=part).wait_for()
        if name == "trade_offs":
            self.fill("Plans at most", "5").press("Weigh")
            self.button("Stop").wait_for(state="hidden")
            self.page.get_by_label("Plan", exact=True).wait_for()
        if name == "replay":
            self.fill("Minutes", "1").press("Replay")
            self.button("All tables, ZIP").wait_for(timeout=COMPILED_MS)
        return self.drawn()

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

    def widened(self, width: int) -> Visitor:
        """Make the window so wide, px; the navigation comes and goes by itself."""
        self.page.set_viewport_size({"width": width, "height": 1000})
        navigation = self.page.get_by_test_id("stSidebarNav")
        navigation.wait_for(state="visible" if width > _FOLDS_PX else "hidden")
        return self

    def wider_than_the_window(self) -> list[str]:
        """Parts of the page that reach beyond its right edge; those that scroll by themselves do not count."""
        found: list[str] = self.page.evaluate(_TOO_WIDE)
        return found

    def _navigation(self) -> None:
        """On narrow screens the navigation is folded away."""
        link = self.page.get_by_test_id("stSidebarNav")
        if not link.is_visible():
            self.page.get_by_test_id("stExpandSidebarButton").click()

    def _press_times(self, key: str, times: int) -> None:
        for _ in range(times):
            self.page.keyboard.press(key)
