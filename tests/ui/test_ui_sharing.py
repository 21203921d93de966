"""Links and files hold drafts whole, and nothing of a stranger's is taken before it is looked at."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from models.scenario import Scenario
from planner import load_scenario
from planner.errors import ConfigurationError
from planner.ui.sharing import LINK_LIMIT, Shared, file_of, link_of, opened_file, opened_link
from planner.ui.uploads import LIMIT_BYTES, Upload
from planner.ui.workspace import DRAFTS_LIMIT, Draft, How

HOW = How(time_limit_s=7, allow_unserved=True)


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario("data/scenarios/02-contention.yaml")


def packed(document: object) -> str:
    return f"1.{base64.urlsafe_b64encode(zlib.compress(json.dumps(document).encode())).decode()}"


def shared(scenario: Scenario, **changes: Any) -> dict[str, Any]:
    document = json.loads(file_of([Draft(name="a", scenario=scenario)], HOW))
    return document | changes


def refused_link(text: str, folder: Path) -> str:
    with pytest.raises(ConfigurationError) as caught:
        opened_link(text, folder)
    return str(caught.value)


def test_a_link_holds_the_draft_and_how_it_is_solved_but_no_steps_back(
    scenario: Scenario, tmp_path: Path
) -> None:
    draft = Draft(name="a", scenario=scenario).edited(scenario.but(description="other"))
    link = link_of(draft, HOW)
    assert opened_link(link, tmp_path) == Shared((Draft(name="a", scenario=draft.scenario),), HOW)
    assert len(link) < 3_000
    assert not any(tmp_path.iterdir())


def test_a_file_holds_all_drafts(scenario: Scenario, tmp_path: Path) -> None:
    drafts = (Draft(name="a", scenario=scenario), Draft(name="b", scenario=scenario.but(name="x")))
    upload = Upload("drafts.json", file_of(drafts, HOW))
    assert opened_file(upload, tmp_path) == Shared(drafts, HOW)


def test_tables_come_along_and_no_path_does(scenario: Scenario, tmp_path: Path) -> None:
    table = tmp_path / "mine" / "my table.csv"
    table.parent.mkdir()
    table.write_text("llm,accelerator\n")
    draft = Draft(name="a", scenario=scenario.but(profiles=(str(table),)))
    link = link_of(draft, HOW)
    assert str(tmp_path) not in file_of([draft], HOW).decode()
    (profile,) = opened_link(link, tmp_path / "theirs").drafts[0].scenario.profiles
    assert Path(profile).is_relative_to(tmp_path / "theirs")
    assert Path(profile).read_text() == "llm,accelerator\n"


def test_two_tables_of_one_name_stay_two(scenario: Scenario, tmp_path: Path) -> None:
    paths = []
    for name in ("one", "two"):
        paths.append(tmp_path / name / "t.csv")
        paths[-1].parent.mkdir()
        paths[-1].write_text(name)
    draft = Draft(name="a", scenario=scenario.but(profiles=tuple(map(str, paths))))
    again = opened_link(link_of(draft, HOW), tmp_path).drafts[0].scenario
    assert [Path(profile).read_text() for profile in again.profiles] == ["one", "two"]


def test_a_draft_too_large_for_a_link_is_told_to_go_as_a_file(scenario: Scenario) -> None:
    letters = Random(0).randbytes(12_000).hex()  # noqa: S311 - letters that cannot be packed
    with pytest.raises(ConfigurationError, match=r"too large for a link.*as a file"):
        link_of(Draft(name="a", scenario=scenario.but(description=letters)), HOW)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no draft"),
        ("1", "no draft"),
        ("x.abc", "no draft"),
        ("9.abc", "version 9"),
        ("1.", "cut off"),
        ("1.!!!", "cut off"),
        ("1.AAAA", "damaged"),
        ("1." + "A" * LINK_LIMIT, "at most"),
        (packed([]), "another kind"),
        (packed({"format": "fleetplan drafts", "version": 2}), "version 2"),
        (packed({"format": "fleetplan drafts", "version": 1, "drafts": []}), "no drafts"),
        (packed({"format": "fleetplan drafts", "version": 1, "drafts": [3, {"scenario": {}}]}), "2 problems"),
    ],
)
def test_a_bad_link_is_refused_with_a_reason(text: str, said: str, tmp_path: Path) -> None:
    assert said in refused_link(text, tmp_path)


def test_a_cut_link_is_refused(scenario: Scenario, tmp_path: Path) -> None:
    assert "cut off" in refused_link(link_of(Draft(name="a", scenario=scenario), HOW)[:-40], tmp_path)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * 10_000_000, 9)).decode()
    assert "when unpacked" in refused_link(f"1.{bomb}", tmp_path)


def test_values_inside_values_without_an_end_are_refused(scenario: Scenario, tmp_path: Path) -> None:
    deep = '{"format":"fleetplan drafts","version":1,"drafts":' + "[" * 100_000
    with pytest.raises(ConfigurationError, match="1 problem"):
        opened_file(Upload("x.json", deep.encode()), tmp_path)


@pytest.mark.parametrize(
    "profiles", [["/etc/passwd"], ["../../secret.csv"], "/etc/passwd", [3], [["a"]], {"a": 1}]
)
def test_no_file_of_this_machine_is_taken_from_a_link(
    scenario: Scenario, tmp_path: Path, profiles: object
) -> None:
    document = shared(scenario)
    document["drafts"][0]["scenario"]["profiles"] = profiles
    assert "profiles" in refused_link(packed(document), tmp_path)


@pytest.mark.parametrize("tables", [{"../x.csv": "a"}, {"x.exe": "a"}, {"x.csv": 3}, [], {"x.csv": "\ud800"}])
def test_tables_have_plain_names_and_texts(scenario: Scenario, tmp_path: Path, tables: object) -> None:
    assert "problem" in refused_link(packed(shared(scenario, tables=tables)), tmp_path)
    assert not any(tmp_path.iterdir())


def test_all_that_is_wrong_with_all_drafts_is_said_at_once(scenario: Scenario, tmp_path: Path) -> None:
    document = shared(scenario)
    broken: Mapping[str, Any] = document["drafts"][0]["scenario"]
    document["drafts"] = [
        {"name": "one", "scenario": {**broken, "services": []}},
        {"name": "two", "scenario": {**broken, "pools": [{**broken["pools"][0], "accelerator": "H1O0"}]}},
    ]
    said = refused_link(packed(document), tmp_path)
    assert "'one'" in said
    assert "'two'" in said


@pytest.mark.parametrize("how", [{"solver": 3}, {"time_limit_s": 1e9}, {"unknown": 1}, []])
def test_a_way_to_solve_that_cannot_be_is_refused(scenario: Scenario, tmp_path: Path, how: object) -> None:
    assert "how" in refused_link(packed(shared(scenario, how=how)), tmp_path)


def test_a_file_that_is_too_large_or_holds_too_many_is_refused(scenario: Scenario, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="21 MB"):
        opened_file(Upload("x.json", b" " * (LIMIT_BYTES + 1_000_000)), tmp_path)
    document = shared(scenario)
    many = shared(scenario, drafts=document["drafts"] * (DRAFTS_LIMIT + 1))
    with pytest.raises(ConfigurationError, match=f"at most {DRAFTS_LIMIT}"):
        opened_file(Upload("x.json", json.dumps(many).encode()), tmp_path)
