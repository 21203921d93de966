"""Workspaces: undo and redo, named variants, and a store that survives a reload and hostile tokens."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from models.scenario import Scenario
from planner import load_scenario
from planner.clock import FakeClock
from planner.ui.browsers import new_token
from planner.ui.store import Saved, Store
from planner.ui.workspace import DRAFTS_LIMIT, Draft, Workspace


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario("data/scenarios/01-two-variants.yaml")


def test_undo_goes_back_step_by_step_and_redo_forward(scenario: Scenario) -> None:
    one, two = scenario.but(name="one"), scenario.but(name="two")
    draft = Draft(name="a", scenario=scenario).edited(one).edited(two)
    assert [d.scenario.name for d in (draft.undone(), draft.undone().undone())] == ["one", scenario.name]
    assert draft.undone().redone() == draft
    assert draft.undone().edited(scenario).future == ()
    assert draft.undone().undone().undone().scenario == scenario


def test_an_edit_that_changes_nothing_is_no_step(scenario: Scenario) -> None:
    draft = Draft(name="a", scenario=scenario)
    assert draft.edited(scenario) is draft


def test_few_steps_of_a_large_scenario_are_remembered(scenario: Scenario) -> None:
    service = scenario.services[0]
    large = scenario.but(services=tuple(service.but(id=f"s{i}") for i in range(2_000)))
    draft = Draft(name="a", scenario=large)
    for step in range(6):
        draft = draft.edited(large.but(name=f"step {step}"))
    assert 1 <= len(draft.past) < 6
    assert draft.past[-1].name == "step 4"


def test_names_of_drafts_stay_unique_and_one_is_always_open(scenario: Scenario) -> None:
    workspace = Workspace.of(scenario).added(Draft(name="b", scenario=scenario))
    workspace = workspace.added(Draft(name="b", scenario=scenario))
    assert [draft.name for draft in workspace.drafts][1:] == ["b", "b 2"]
    assert workspace.opened == "b 2"
    for draft in workspace.drafts:
        workspace = workspace.removed(draft.name)
    assert len(workspace.drafts) == 1
    assert workspace.draft.name == workspace.opened


def test_no_more_drafts_than_can_be_compared(scenario: Scenario) -> None:
    workspace = Workspace.of(scenario)
    for _ in range(DRAFTS_LIMIT - 1):
        workspace = workspace.added(Draft(name="x", scenario=scenario))
    with pytest.raises(ValueError, match="at most"):
        workspace.added(Draft(name="x", scenario=scenario))


def test_a_store_keeps_work_and_two_people_apart(tmp_path: Path, scenario: Scenario) -> None:
    store = Store(tmp_path / "ui")
    mine, yours = new_token(), new_token()
    workspace = Workspace.of(scenario).put(Draft(name="mine", scenario=scenario.but(name="mine")))
    assert store.save(mine, workspace)[0] is Saved.KEPT
    kept = Store(tmp_path / "ui").load(mine)
    assert kept is not None
    assert kept.workspace == workspace
    assert store.load(yours) is None
    assert oct((tmp_path / "ui").stat().st_mode)[-3:] == "700"
    assert [path.suffix for path in (tmp_path / "ui").iterdir()] == [".json"]


@pytest.mark.parametrize(
    "token", ["", "..", "../../etc/passwd", "a" * 21, "a" * 23, "a" * 21 + "/", "a" * 21 + "\n"]
)
def test_a_token_that_we_did_not_make_is_no_file(tmp_path: Path, scenario: Scenario, token: str) -> None:
    store = Store(tmp_path / "ui")
    assert store.save(token, Workspace.of(scenario)) == (Saved.FAILED, None)
    assert store.load(token) is None
    assert not (tmp_path / "ui").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"drafts": []}', b"[1]"])
def test_a_broken_file_counts_as_not_there(tmp_path: Path, scenario: Scenario, content: bytes) -> None:
    store, token = Store(tmp_path), new_token()
    (tmp_path / f"{token}.json").write_bytes(content)
    assert store.load(token) is None
    assert store.save(token, Workspace.of(scenario))[0] is Saved.KEPT
    assert store.load(token) is not None


def test_a_folder_that_cannot_be_written_is_no_crash(tmp_path: Path, scenario: Scenario) -> None:
    (tmp_path / "file").write_text("in the way")
    assert Store(tmp_path / "file").save(new_token(), Workspace.of(scenario)) == (Saved.FAILED, None)


def test_workspaces_of_last_month_are_forgotten(tmp_path: Path, scenario: Scenario) -> None:
    clock = FakeClock(unix_s=100 * 86_400)
    store, old, new = Store(tmp_path, clock=clock), new_token(), new_token()
    assert store.save(old, Workspace.of(scenario))[0] is Saved.KEPT
    os.utime(tmp_path / f"{old}.json", (60 * 86_400, 60 * 86_400))
    assert store.save(new, Workspace.of(scenario))[0] is Saved.KEPT
    assert store.load(old) is None
    assert store.load(new) is not None


def test_what_another_tab_kept_is_never_written_over(tmp_path: Path, scenario: Scenario) -> None:
    store, token = Store(tmp_path), new_token()
    first = Workspace.of(scenario)
    _, here = store.save(token, first)
    there = Store(tmp_path).load(token)
    assert here is not None
    assert there == here
    theirs = first.renamed(scenario.name, "theirs")
    assert store.save(token, theirs, over=there)[0] is Saved.KEPT
    assert store.save(token, first.renamed(scenario.name, "ours"), over=here) == (Saved.OVERTAKEN, None)
    kept = store.load(token)
    assert kept is not None
    assert kept.workspace == theirs
    assert [path.name for path in tmp_path.iterdir()] == [f"{token}.json"]


def test_a_workspace_that_is_gone_from_disk_is_kept_again(tmp_path: Path, scenario: Scenario) -> None:
    store, token = Store(tmp_path), new_token()
    _, here = store.save(token, Workspace.of(scenario))
    (tmp_path / f"{token}.json").unlink()
    assert store.save(token, Workspace.of(scenario), over=here)[0] is Saved.KEPT
