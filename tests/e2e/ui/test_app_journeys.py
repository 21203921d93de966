"""What people do all day, in a real browser, from the first visit to a file in their hands."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from models.scenario import Scenario
from planner.scenario import load_scenario, parse_scenario
from tests.browsing import PAGES, ROOT, App, Visitor, by_command, by_streamlit, free_port, running

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    # They wait on a browser by the clock, and on a busy machine some give up.
    pytest.mark.skipif(
        not os.environ.get("FLEETPLAN_JOURNEYS"),
        reason="set FLEETPLAN_JOURNEYS=1 on a machine with nothing else to do",
    ),
]

Visits = Callable[..., Visitor]
POWER_CAP: Final = ROOT / "data" / "scenarios" / "03-power-cap.yaml"


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The app as ``fleetplan ui SCENARIO`` would start it, with what cannot be fulfilled."""
    port = free_port()
    folder = tmp_path_factory.mktemp("capped")
    with running(by_command(port), folder=folder, port=port, scenario=str(POWER_CAP)) as found:
        yield found


def rewrite(person: Visitor, change: Callable[[str], str], button: str = "Apply text") -> Visitor:
    """Edit the scenario as text."""
    if not person.page.get_by_role("radiogroup", name="What to edit").is_visible():
        person.fold_out("Edit the scenario")
    person.choose("What to edit", "Text")
    box = person.page.get_by_role("textbox", name="Scenario, YAML")
    box.fill(change(box.input_value()))
    box.press("Control+Enter")
    person.page.wait_for_timeout(300)
    return person.settled().press(button)


def downloaded(person: Visitor, label: str) -> str:
    with person.page.expect_download() as coming:
        person.button(label).click()
    return Path(coming.value.path()).read_text(encoding="utf-8")


def draft_of(person: Visitor) -> Scenario:
    """The open draft, as its download has it."""
    summary = person.page.locator("summary", has_text="Open or keep")
    if not person.button("Download draft").is_visible():
        summary.click()
    return parse_scenario(downloaded(person, "Download draft"), name="draft")


def test_from_what_cannot_be_to_a_plan_to_a_comparison_to_a_file(visitor: Visits, capped: App) -> None:
    person = visitor(at=capped).open().solved().sees("What conflicts")
    before = load_scenario(POWER_CAP)
    assert draft_of(person).limits.power[0].cap_w == before.limits.power[0].cap_w
    person.press("Apply").sees("OPTIMAL")
    assert draft_of(person).limits.power[0].cap_w > before.limits.power[0].cap_w
    person.visit("what_if")
    person.page.get_by_role("textbox", name="New name").fill("cheap")
    person.page.get_by_role("textbox", name="New name").press("Tab")
    person.press("Duplicate")
    person.visit("plan")
    rewrite(person, lambda text: text.replace("cap_w: ", "cap_w: 9"), "Apply text and solve")
    person.solved().visit("what_if").sees("Side by side").drawn()
    kept = json.loads(downloaded(person, "Download all drafts"))
    caps = {each["name"]: each["scenario"]["limits"]["power"][0]["cap_w"] for each in kept["drafts"]}
    assert caps["cheap"] > caps[before.name] > before.limits.power[0].cap_w


def test_a_cell_of_a_pool_is_edited_applied_and_undone(visitor: Visits) -> None:
    person = visitor().open().solved().fold_out("Edit the scenario")
    person.page.get_by_role("tab", name="Pools").click()
    person.drawn()
    before = {pool.id: pool.offering.usd_per_h for pool in draft_of(person).pools if pool.offering}
    grid = person.page.locator('[data-testid="stDataFrameResizable"]:visible').first
    grid.scroll_into_view_if_needed()
    grid.click(position={"x": 220, "y": 55})
    person.page.wait_for_timeout(300)
    grid.dblclick(position={"x": 220, "y": 55})
    person.page.wait_for_timeout(500)
    person.page.keyboard.type("7.25", delay=30)
    person.page.keyboard.press("Enter")
    person.page.wait_for_timeout(500)
    person.press("Apply and solve").solved()
    after = {pool.id: pool.offering.usd_per_h for pool in draft_of(person).pools if pool.offering}
    changed = {name: price for name, price in after.items() if price != before.get(name)}
    assert list(changed.values()) == [7.25]
    person.press("Undo")
    assert {pool.id: pool.offering.usd_per_h for pool in draft_of(person).pools if pool.offering} == before


def test_two_people_do_not_see_each_others_edits_and_a_reload_keeps_the_work(visitor: Visits) -> None:
    one, other = visitor().open().solved(), visitor().open().solved()
    rewrite(one, lambda text: re.sub("^name: .*", "name: mine alone", text, flags=re.MULTILINE))
    one.sees("mine alone")
    other.page.reload()
    assert "mine alone" not in other.settled().text()
    one.page.reload()
    one.settled().sees("mine alone")
    other.page.goto(one.page.url)
    other.settled().sees("This address was made for another browser")
    assert other.page.url != one.page.url


def test_two_tabs_of_one_workspace_lose_nothing(visitor: Visits) -> None:
    first = visitor().open().solved()
    second = Visitor(first.page.context.new_page(), first.url)
    second.page.goto(first.page.url)
    second.settled()
    assert second.page.url == first.page.url
    rewrite(first, lambda text: re.sub("^name: .*", "name: from tab one", text, flags=re.MULTILINE))
    rewrite(second, lambda text: re.sub("^name: .*", "name: from tab two", text, flags=re.MULTILINE))
    second.sees("Another tab changed this workspace meanwhile")
    for tab, name in ((first, "from tab one"), (second, "from tab two")):
        tab.page.reload()
        tab.settled().sees(name)
    assert second.page.url != first.page.url


def test_a_link_opens_the_draft_for_somebody_else_and_back_goes_back(visitor: Visits) -> None:
    person = visitor().open().solved()
    rewrite(person, lambda text: re.sub("^name: .*", "name: passed on", text, flags=re.MULTILINE))
    person.visit("what_if")
    person.page.get_by_text("Make the link").click()
    link = person.page.get_by_test_id("stCode").last.inner_text().strip()
    other = visitor()
    other.page.goto(link)
    other.settled().sees("passed on")
    assert "d=" not in other.page.url
    person.page.go_back()
    person.page.get_by_role("heading", level=1, name="passed on").wait_for()


def test_files_that_cannot_be_opened_are_named_and_nothing_is_lost(visitor: Visits, tmp_path: Path) -> None:
    person = visitor().open().solved()
    before = draft_of(person)
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: x\nservces: []\npools: [\n", encoding="utf-8")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"name: \xff\xfe")
    aside = tmp_path / "aside.yaml"
    aside.write_text("include: /etc/passwd\nname: x\n", encoding="utf-8")
    for file, says in ((bad, "bad.yaml"), (binary, "text in UTF-8"), (aside, "/etc/passwd")):
        person.page.locator('input[type="file"]').first.set_input_files(file)
        person.page.get_by_text(file.name).first.wait_for()
        person.press("Open files").sees("Nothing was opened")
        assert says in person.page.get_by_test_id("stSidebar").inner_text()
        assert "root:" not in person.page.content()
        person.page.reload()
        person.settled().fold_out("Open or keep")
    assert draft_of(person) == before


def test_names_from_files_are_words_and_nothing_else(visitor: Visits, tmp_path: Path) -> None:
    person = visitor().open().solved()
    name = "<img src=x onerror=alert(1)> **bold** $x^2$ :red[x] [a](javascript:alert(1)) \u202eabc \U0001f600"
    dialogs: list[str] = []
    person.page.on("dialog", lambda each: (dialogs.append(each.message), each.dismiss()))
    rewrite(
        person,
        lambda text: re.sub(
            "^name: .*", lambda _: f"name: {json.dumps(name, ensure_ascii=False)}", text, flags=re.MULTILINE
        ),
    )
    person.settled()
    for page in PAGES:
        person.visit(page).drawn()
        assert person.page.locator('img[src="x"], a[href^="javascript"]').count() == 0
    assert dialogs == []
    assert draft_of(person).name == name
    heading = person.visit("plan").page.get_by_role("heading", level=1).first.inner_text()
    assert "<img src=x onerror=alert(1)> **bold** $x^2$" in heading


def test_a_worker_that_dies_is_told_and_its_work_is_done_on_request(visitor: Visits, tmp_path: Path) -> None:
    port = free_port()
    with running(by_streamlit(port), folder=tmp_path, port=port) as app:
        person = visitor(at=app).open().solved()
        for worker in app.workers():
            os.kill(worker, signal.SIGKILL)
        rewrite(
            person,
            lambda text: re.sub("^name: .*", "name: again", text, flags=re.MULTILINE),
            "Apply text and solve",
        )
        again = person.button("Try again")
        plan = person.page.get_by_text("OPTIMAL").first
        again.or_(plan).first.wait_for()
        if again.is_visible():
            person.press("Try again")
        person.solved().sees("OPTIMAL")


@pytest.mark.parametrize(
    "place", ["?w=../../etc/passwd", "?w=", "?w=%00", "?w=" + "A" * 22, "?d=2.x", "?d=1.AAAA"]
)
def test_an_address_that_somebody_made_up_opens_the_example(visitor: Visits, place: str) -> None:
    person = visitor().open(place).solved()
    assert person.page.get_by_role("heading", level=1).first.inner_text() == "02 contention"
