"""axe-core looks at every page as a browser shows it, light and dark, and finds nothing that keeps people out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.visiting import PAGES, Visitor

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("browser")]

AXE: Final = os.environ.get("FLEETPLAN_AXE", "")
AXE_THERE: Final = Path(AXE).is_file()
AXE_MISSING: Final = "set FLEETPLAN_AXE to axe.min.js, e.g. of: npm install --prefix .axe axe-core"
NEEDS_AXE: Final = pytest.mark.skipif(not AXE_THERE, reason=AXE_MISSING)
COUNTED: Final = {"serious", "critical"}
RUN: Final = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
    found => [found.impact, found.id, found.help, found.nodes.map(node => node.html.slice(0, 160))])"""


def violations(visitor: Visitor) -> list[str]:
    visitor.page.evaluate(Path(AXE).read_text(encoding="utf-8"))
    return [
        f"{impact} {rule}: {says}: {where}"
        for impact, rule, says, where in visitor.page.evaluate(RUN)
        if impact in COUNTED or rule == "heading-order"
    ]


def test_every_page_is_for_everybody_and_its_pictures_are_kept(
    visitor: Callable[..., Visitor], shots: Path
) -> None:
    """Light and dark, wide and narrow; the pictures are for people to look at."""
    person = visitor().open().solved()
    found: dict[str, list[str]] = {}
    for name in PAGES:
        person.visit(name).prepared(name)
        for scheme in ("light", "dark"):
            person.page.emulate_media(color_scheme=scheme)
            found[f"{name} {scheme}"] = violations(person.drawn()) if AXE_THERE else []
            for width, called in ((1400, "wide"), (400, "narrow")):
                person.widened(width).picture(shots / f"{name}-{scheme}-{called}.png")
                found[f"{name} {called}"] = person.wider_than_the_window()
        person.widened(1400)
    assert {name: each for name, each in found.items() if each} == {}
    if not AXE_THERE:
        pytest.skip(f"pictures were kept, but axe-core did not look: {AXE_MISSING}")


@NEEDS_AXE
def test_no_way_to_edit_keeps_anybody_out(visitor: Callable[..., Visitor]) -> None:
    person = visitor().open().solved().fold_out("Edit the scenario")
    parts = ("Tables", "Add", "Text", "How to solve")
    assert {part: violations(person.choose("What to edit", part).drawn()) for part in parts} == {
        part: [] for part in parts
    }


@NEEDS_AXE
def test_what_is_shown_to_who_errs_keeps_nobody_out(visitor: Callable[..., Visitor]) -> None:
    person = visitor(dark=True).open("?d=1.nothing").solved()
    assert violations(person) == []


def test_the_page_says_its_language_and_every_chart_and_table_its_name(
    visitor: Callable[..., Visitor],
) -> None:
    person = visitor().open().solved().drawn()
    assert person.page.locator("html").get_attribute("lang") == "en"
    unnamed: list[Any] = person.page.evaluate(
        """() => [...document.querySelectorAll('[data-testid="stDataFrame"], [data-testid="stVegaLiteChart"]')]
            .filter(each => !each.getAttribute('aria-label') && !each.querySelector('[aria-label]'))
            .map(each => each.outerHTML.slice(0, 200))"""
    )
    assert unnamed == []
