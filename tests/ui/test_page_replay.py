"""The page Replay: traffic is asked for in a form, played in a worker process, and laid out policy by policy."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from models.scenario import Scenario
from planner.errors import ConfigurationError, TemporaryError
from planner.replaying import POLICIES
from planner.scenario import load_scenario
from planner.traces.spec import KINDS
from planner.ui.replaying.asking import POLICY_NAMES, QUESTION
from planner.ui.replaying.playing import policy_rows, promise_rows
from planner.ui.replaying.traffic import SHAPES, TRACES, Traffic, kept_trace, planned_lines, typed_lines
from planner.ui.replaying.wanted import FOLDERS, Played, Wanted, replay_task
from planner.ui.store import default_folder
from planner.ui.tasks.replay import run
from planner.ui.uploads import Upload
from planner.ui.workspace import How
from tests.app_pages import goes_on_when_pressed, over, press

PATIENCE_S = 300.0
LITTLE = "poisson:rate=2,duration=30s,input=500,output=50"


class Watcher:
    """Somebody who looks on, and wants an end after so many first answers."""

    def __init__(self, ends_after: int = 99) -> None:
        self.partials: list[str] = []
        self.events: list[object] = []
        self._ends_after = ends_after

    def progress(self, event: object) -> None:
        self.events.append(event)

    def partial(self, value: str) -> None:
        self.partials.append(value)

    def stopped(self) -> bool:
        return len(self.partials) >= self._ends_after


@pytest.fixture
def small() -> Scenario:
    return load_scenario("data/scenarios/01-two-variants.yaml")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def page(page_of: Callable[..., AppTest]) -> AppTest:
    return page_of("replay", "01-two-variants")


def words(page: AppTest) -> str:
    parts = [*page.markdown, *page.caption, *page.info, *page.text, *page.header, *page.error]
    return "\n".join(each.value for each in parts)


def typed(page: AppTest, text: str) -> AppTest:
    next(each for each in page.radio if each.label == "Traffic from").set_value("In a line").run()
    page.text_area[0].input(text)
    return press(page, "Replay")


def played(
    scenario: Scenario, *policies: str, lines: tuple[str, ...] = (LITTLE,), ends_after: int = 99
) -> Played:
    wanted = Wanted(traffic=Traffic(lines=lines), policies=policies)
    return Played.model_validate_json(
        run(replay_task(scenario, How(), wanted).arguments, Watcher(ends_after))
    )


def test_an_empty_page_says_what_to_do(page: AppTest) -> None:
    assert "Choose traffic and policies" in words(page)


def test_traffic_in_a_line_is_played_under_each_policy_and_laid_out(page: AppTest) -> None:
    page = over(typed(page, LITTLE), QUESTION, patience_s=PATIENCE_S)
    assert {"Policies beside each other", "Over time"} <= {each.value for each in page.header}
    rows = page.dataframe[0].value
    assert [*rows["policy"]] == ["static", "hpa"]
    assert (rows["done"] > 0).all()
    assert "No request failed" in words(page)
    assert goes_on_when_pressed(page, "Replay", QUESTION)


def test_what_is_wrong_with_a_line_names_the_field_and_no_option_of_a_command(page: AppTest) -> None:
    page = over(typed(page, "poisson:rate=fast,duration=30s,input=500"), QUESTION, patience_s=PATIENCE_S)
    said = words(page)
    assert "traffic: rate" in said
    assert "traffic: output" in said
    assert "--trace" not in said


def test_a_line_that_names_a_file_is_refused_before_anything_is_played(page: AppTest) -> None:
    page = typed(page, "/etc/passwd\npoisson:rate=1,duration=1m,lengths=/etc/passwd")
    assert words(page).count("which names a file") == 2
    assert not page.session_state["fleetplan.asked"]


def test_no_policy_is_told_in_a_sentence(page: AppTest) -> None:
    page.multiselect[0].set_value([])
    assert "Policies: choose at least one" in words(press(page, "Replay"))


def test_every_policy_of_the_twin_has_a_name_here() -> None:
    assert {*POLICY_NAMES} == {*POLICIES}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_brings_the_requests_of_every_service(shape: str, small: Scenario) -> None:
    lines = planned_lines(small, shape, minutes=1, times=0.5)
    assert [line.partition("=")[0] for line in lines] == [service.id for service in small.services]
    assert lines[0].partition("=")[2].partition(":")[0] in KINDS
    figures = played(small, "static", lines=lines)
    assert figures.told.runs[0].total.arrivals > 0


def test_tables_of_all_policies_come_along(small: Scenario) -> None:
    found = played(small, "static", "hpa")
    path = default_folder() / FOLDERS / found.archive
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        names = {*archive.namelist()}
        requests = archive.read("hpa/requests.csv").decode().splitlines()
    assert {
        "summary.json",
        "static/requests.csv",
        "hpa/services.csv",
        "hpa/variants.csv",
        "hpa/replicas.csv",
    } <= names
    assert len(requests) == 1 + found.told.runs[1].total.arrivals


def test_a_stop_keeps_the_policies_that_are_through(small: Scenario) -> None:
    found = played(small, "static", "hpa", ends_after=1)
    assert [each.policy for each in found.told.runs] == ["static"]
    assert found.missing == ("hpa",)
    with pytest.raises(TemporaryError, match="before one policy"):
        played(small, "static", ends_after=0)


def test_rows_show_every_figure_and_broken_promises_first(small: Scenario) -> None:
    crowd = "poisson:rate=400,duration=60s,input=2000,output=400"
    told = played(small, "static", lines=(crowd,)).told
    row = policy_rows(told)[0]
    assert row["done"] + row["failed"] + row["unfinished"] == told.runs[0].total.arrivals
    kept = [each["kept"] for each in promise_rows(told)]
    assert kept[0] == "broken"
    assert kept == sorted(kept)


def test_a_trace_of_a_visitor_is_kept_under_its_content_and_played(small: Scenario, tmp_path: Path) -> None:
    text = "arrival_s,input_tokens,output_tokens\n" + "".join(f"{k},300,20\n" for k in range(20))
    name = kept_trace(Upload("mine.csv", text.encode()), default_folder())
    assert name == kept_trace(Upload("mine.csv", text.encode()), default_folder())
    wanted = Wanted(traffic=Traffic(file=name), policies=("static",))
    found = Played.model_validate_json(run(replay_task(small, How(), wanted).arguments, Watcher()))
    assert found.told.runs[0].total.arrivals == 20
    assert found.told.traces == ("mine.csv",)


def test_traces_that_nobody_brings_again_are_forgotten(tmp_path: Path) -> None:
    def brought(number: int) -> Path:
        return tmp_path / TRACES / kept_trace(Upload("mine.csv", f"{number}".encode()), tmp_path)

    first, second = brought(0), brought(1)
    for each, hours in ((first, 3), (second, 2)):
        os.utime(each.parent, (each.stat().st_mtime - hours * 3600,) * 2)
    assert brought(0) == first
    latest = [brought(number) for number in range(2, 51)]
    assert [each.is_file() for each in (first, second, *latest)] == [True, False, *[True] * len(latest)]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("../x.csv", b"a", "a name of letters"),
        ("x.exe", b"a", ".csv or .jsonl"),
        ("x.csv", b"\xff", "UTF-8"),
        ("x.csv", b"a" * 20_000_001, "20 MB"),
    ],
)
def test_files_that_are_no_trace_are_refused(name: str, content: bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=says):
        kept_trace(Upload(name, content), tmp_path)


@pytest.mark.parametrize("file", ["../../etc/passwd", "/etc/passwd", "nothing/there.csv"])
def test_a_file_outside_of_the_kept_ones_is_never_opened(file: str, small: Scenario) -> None:
    wanted = Wanted(traffic=Traffic(file=file), policies=("static",))
    with pytest.raises(ConfigurationError, match="upload it again"):
        run(replay_task(small, How(), wanted).arguments, Watcher())


def test_traffic_without_requests_or_with_too_many_is_refused(small: Scenario) -> None:
    with pytest.raises(ConfigurationError, match="no request"):
        played(small, "static", lines=("constant:rate=0.001,duration=1s,input=1,output=1",))
    with pytest.raises(ConfigurationError, match=r"more than 1,000,000"):
        played(small, "static", lines=("constant:rate=100000,duration=11s,input=1,output=1",))


def test_lines_are_bare_lines() -> None:
    assert typed_lines(f"\n  {LITTLE} \n\n") == (LITTLE,)
    with pytest.raises(ConfigurationError, match="no line"):
        typed_lines(" \n")
