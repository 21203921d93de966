"""What people do all day, in a real browser, from the first visit to a file in their hands."""

from __future__ import annotations

import json
import os
import random
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from models.scenario import Scenario
from planner.scenario import load_scenario, parse_scenario
from tests.browsing import ROOT, App, by_command, by_streamlit, running
from tests.loopback import free_port
from tests.visiting import PAGES, Visitor

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("browser")]

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
    person.fold_out("Edit the scenario").choose("What to edit", "Text")
    box = person.page.get_by_role("textbox", name="Scenario, YAML")
    box.fill(change(box.input_value()))
    box.press("Tab")
    return person.press(button)


def named(person: Visitor, name: str, button: str = "Apply text") -> Visitor:
    """Give the scenario another name, which is the heading of its page then."""
    line = f"name: {json.dumps(name, ensure_ascii=False)}"
    return rewrite(person, lambda text: re.sub("^name: .*", lambda _: line, text, flags=re.MULTILINE), button)


def heading(person: Visitor, text: str) -> Visitor:
    """Wait for the heading of a page."""
    person.page.get_by_role("heading", level=1, name=text).wait_for()
    return person.settled()


def draft_of(person: Visitor) -> Scenario:
    """The open draft, as its download has it."""
    person.fold_out("Open or keep")
    return parse_scenario(person.downloaded("Download draft"), name="draft")


def prices(person: Visitor) -> dict[str, float | None]:
    """What a GPU costs in every pool of the open draft that says so, $/h."""
    return {pool.id: pool.offering.usd_per_h for pool in draft_of(person).pools if pool.offering}


def test_from_what_cannot_be_to_a_plan_to_a_comparison_to_a_file(visitor: Visits, capped: App) -> None:
    person = visitor(at=capped).open().solved().sees("What conflicts")
    before = load_scenario(POWER_CAP)
    person.press("Apply").can("Undo").sees("OPTIMAL")
    assert draft_of(person).limits.power[0].cap_w > before.limits.power[0].cap_w
    person.visit("what_if").fill("New name", "cheap").press("Duplicate").can("Undo: add “cheap”").visit(
        "plan"
    )
    rewrite(person, lambda text: text.replace("cap_w: ", "cap_w: 9"), "Apply text and solve")
    person.can("Undo").solved().visit("what_if").sees("Side by side").drawn()
    kept = json.loads(person.downloaded("Download all drafts"))
    caps = {each["name"]: each["scenario"]["limits"]["power"][0]["cap_w"] for each in kept["drafts"]}
    assert caps["cheap"] > caps[before.name] > before.limits.power[0].cap_w


def test_a_cell_of_a_pool_is_edited_applied_and_undone(visitor: Visits) -> None:
    person = visitor().open().solved()
    before = prices(person)
    person.fold_out("Edit the scenario").page.get_by_role("tab", name="Pools").click()
    person.write_cell("h200", "price, $/GPU-h", "7.25").press("Apply and solve").can("Undo")
    assert prices(person) == {**before, "h200": 7.25}
    person.press("Undo").can("Redo")
    assert prices(person) == before


def test_two_people_do_not_see_each_others_edits_and_a_reload_keeps_the_work(visitor: Visits) -> None:
    one, other = visitor().open().solved(), visitor().open().solved()
    heading(named(one, "mine alone"), "mine alone")
    assert "mine alone" not in other.reload().text()
    heading(one.reload(), "mine alone")
    heading(other.open(one.page.url), "mine alone").sees("This address was made for another browser")
    assert other.page.url != one.page.url
    other.press("Got it").page.get_by_text("another browser").wait_for(state="hidden")


def test_two_tabs_of_one_workspace_lose_nothing(visitor: Visits) -> None:
    first = visitor().open().solved()
    second = Visitor(first.page.context.new_page(), first.url).open(first.page.url)
    assert second.page.url == first.page.url
    heading(named(first, "from tab one"), "from tab one")
    heading(named(second, "from tab two"), "from tab two").sees(
        "Another tab changed this workspace meanwhile"
    )
    heading(first.reload(), "from tab one")
    heading(second.reload(), "from tab two")
    assert second.page.url != first.page.url


def test_a_link_opens_the_draft_for_somebody_else_and_back_goes_back(visitor: Visits) -> None:
    person = visitor().open().solved()
    heading(named(person, "passed on"), "passed on").visit("what_if")
    person.page.get_by_text("Make the link").click()
    link = person.page.get_by_test_id("stCode").last.inner_text().strip()
    other = heading(visitor().open(link), "passed on")
    assert "d=" not in other.page.url
    person.page.go_back()
    heading(person, "passed on")


def test_a_dot_of_the_staircase_opens_its_plan(visitor: Visits) -> None:
    person = visitor().open().solved().visit("trade_offs").prepared("trade_offs")
    chart = person.page.get_by_test_id("stVegaLiteChart").first
    dots = chart.locator('[aria-roledescription="circle"], [aria-roledescription="point"]')
    assert dots.count() > 2
    person.does(lambda: dots.nth(1).click(force=True)).button("Open as a draft").wait_for()
    person.page.get_by_text(re.compile(r"^2: ")).or_(
        person.page.locator('input[value^="2: "]')
    ).first.wait_for()


def test_files_that_cannot_be_opened_are_named_and_nothing_is_lost(visitor: Visits, tmp_path: Path) -> None:
    person = visitor().open().solved()
    before = draft_of(person)
    bad, binary, aside = (tmp_path / name for name in ("bad.yaml", "binary.yaml", "aside.yaml"))
    bad.write_text("name: x\nservces: []\npools: [\n", encoding="utf-8")
    binary.write_bytes(b"name: \xff\xfe")
    aside.write_text("include: /etc/passwd\nname: x\n", encoding="utf-8")
    for file, says in ((bad, "bad.yaml"), (binary, "text in UTF-8"), (aside, "/etc/passwd")):
        chooser = person.page.locator('input[type="file"]').first
        person.does(lambda chooser=chooser, file=file: chooser.set_input_files(file))
        person.page.get_by_text(file.name).first.wait_for()
        person.press("Open files").sees("Nothing was opened")
        assert says in person.page.get_by_test_id("stSidebar").inner_text()
        assert "root:" not in person.page.content()
        person.reload().fold_out("Open or keep")
    assert draft_of(person) == before


def test_names_from_files_are_words_and_nothing_else(visitor: Visits, tmp_path: Path) -> None:
    person = visitor().open().solved()
    name = "<img src=x onerror=alert(1)> **bold** $x^2$ :red[x] [a](javascript:alert(1)) \u202eabc \U0001f600"
    dialogs: list[str] = []
    person.page.on("dialog", lambda each: (dialogs.append(each.message), each.dismiss()))
    named(person, name).can("Undo")
    for page in PAGES:
        person.visit(page).drawn()
        assert person.page.locator('img[src="x"], a[href^="javascript"]').count() == 0
    assert dialogs == []
    assert draft_of(person).name == name
    heading = person.visit("plan").page.get_by_role("heading", level=1).first.inner_text()
    assert "<img src=x onerror=alert(1)> **bold** $x^2$" in heading


def test_nobody_else_is_asked_for_anything(visitor: Visits) -> None:
    person = visitor()
    asked: list[str] = []
    person.page.on("request", lambda each: asked.append(each.url))
    person.open().solved()
    for page in PAGES:
        person.visit(page).drawn()
    assert asked
    own = (person.url, "blob:", "data:", person.url.replace("http", "ws", 1))
    assert [url for url in asked if not url.startswith(own)] == []


def test_a_worker_that_dies_is_told_and_its_work_is_done_on_request(visitor: Visits, tmp_path: Path) -> None:
    port = free_port()
    with running(by_streamlit(port), folder=tmp_path, port=port) as app:
        person = visitor(at=app).open().solved()
        for worker in app.workers():
            os.kill(worker, signal.SIGKILL)
        named(person, "again", "Apply text and solve")
        heading(person, "again")
        again = person.button("Try again")
        plan = person.page.get_by_text("OPTIMAL").first
        again.or_(plan).first.wait_for()
        if again.is_visible():
            person.press("Try again")
        person.solved().sees("OPTIMAL")


def far_too_little() -> str:
    """A scenario in which 40 services want three times what there is: nobody proves the best share-out in a minute."""
    chance = random.Random(5)  # noqa: S311 - a fleet, no secret
    kinds = [("H100", 1), ("H100", 2), ("H100", 4), ("H200", 1), ("H200", 2), ("H200", 8)]
    pools = {
        f"p{number}": {
            "accelerator": ("H100", "H200")[number % 2],
            "offering": {"usd_per_h": round(2 + 3 * chance.random(), 4)},
            "nodes": {"count": 12, "gpus": 8},
        }
        for number in range(4)
    }
    services = {
        f"s{number}": {
            "llm": "Qwen3-32B",
            "best_effort": True,
            "priority": chance.randint(1, 3),
            "traffic": {"rate": f"{chance.uniform(6, 90):.3f} req/s", "input": 1000, "output": 400},
            "variants": {
                f"v{place}": {
                    "accelerator": accelerator,
                    "tp": gpus,
                    "capacity": {"rated": f"{gpus**0.9 * (1 + chance.random()):.4f} req/s"},
                }
                for place, (accelerator, gpus) in enumerate(kinds)
            },
        }
        for number in range(40)
    }
    return json.dumps({"name": "far too little", "services": services, "pools": pools})


def test_a_long_solve_is_stopped_and_leaves_the_best_plan_so_far_with_its_bound(
    visitor: Visits, tmp_path: Path
) -> None:
    path, port = tmp_path / "little.yaml", free_port()
    path.write_text(far_too_little(), encoding="utf-8")
    with running(by_command(port), folder=tmp_path, port=port, scenario=str(path)) as app:
        person = visitor(at=app).open().sees(re.compile(r"proven bound \d"))
        person.button("Stop").click()
        person.sees("It was stopped: this is the best plan so far").sees(re.compile("FEASIBLE"))
        assert person.metric("Cost") != "0.00 $/h"
        person.page.get_by_role("tab", name="Proof").click()
        person.page.locator("th", has_text="proven bound").wait_for(state="attached")
        person.press("Solve on").button("Stop").wait_for()


@pytest.mark.parametrize(
    "place", ["?w=../../etc/passwd", "?w=", "?w=%00", "?w=" + "A" * 22, "?d=2.x", "?d=1.AAAA"]
)
def test_an_address_that_somebody_made_up_opens_the_example(visitor: Visits, place: str) -> None:
    person = visitor().open(place).solved()
    assert person.page.get_by_role("heading", level=1).first.inner_text() == "02 contention"
