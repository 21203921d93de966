"""The page Moves: waves worked out in a real worker process, and commands to read and take along."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from planner.manifests import render_kustomize, route_of
from planner.ui import session
from planner.ui.answers.rendering import zipped
from tests.rollouts import a_fleet, a_fleet_plan

SCENARIOS = Path("data/scenarios").resolve()

STEADY = """
name: steady
services:
  chat:
    llm: Qwen3-32B
    traffic: {rate: 1 req/s, input: 1000, output: 400}
    variants:
      one: {accelerator: H100, tp: 1, capacity: {rated: 2 req/s}}
pools:
  here: {accelerator: H100, nodes: {d: {gpus: 8}}}
fleet:
  running: [{service: chat, variant: one, pool: here, replicas: 1}]
"""


@pytest.fixture
def visit(app_of: Callable[..., AppTest]) -> Callable[[Path], AppTest]:
    """Opens the page with a scenario."""
    return lambda path: done(app_of(path, "moves"))


def done(page: AppTest) -> AppTest:
    """The page when nothing is being worked out any more."""
    for _ in range(60):
        assert not page.exception, page.exception
        asked = page.session_state["fleetplan.asked"]
        jobs = [session.workers().wait(asked[name], 1.0) for name in ("plan", "moves") if name in asked]
        if all(job is not None and job.over for job in jobs):
            page = page.run()
            if "moves" in page.session_state["fleetplan.asked"] and len(jobs) > 1:
                return page
            if any("no plan to move to" in each.value for each in page.markdown):
                return page
    raise AssertionError("never worked out")


def words(page: AppTest) -> str:
    parts = (
        *page.markdown,
        *page.caption,
        *page.text,
        *page.header,
        *page.error,
        *page.info,
        *page.warning,
    )
    return "\n".join(each.value for each in parts)


def radio(page: AppTest, label: str, value: str) -> AppTest:
    return done(next(each for each in page.radio if each.label == label).set_value(value).run())


def metrics(page: AppTest) -> dict[str, str]:
    return {each.label: each.value for each in page.metric}


def code(page: AppTest) -> str:
    return str(page.code[0].value)


def test_waves_are_shown_over_time_with_their_commands(visit: Any) -> None:
    page = visit(SCENARIOS / "02-contention.yaml")
    assert "waves, about" in words(page)
    assert int(metrics(page)["Waves"]) >= 2
    assert {"Steps over time", "GPUs in use", "Every step", "Commands"} <= {
        each.value for each in page.header
    }
    assert code(page).startswith("#!/bin/sh\n# Made by fleetplan.")
    steps = next(frame.value for frame in page.dataframe if "before → after" in frame.value.columns)
    assert set(steps["step"]) <= {"start", "drain", "remove", "await", "cancel", "add nodes", "remove nodes"}


def test_every_format_is_there_to_copy(visit: Any) -> None:
    page = visit(SCENARIOS / "02-contention.yaml")
    assert "kind: " in code(radio(page, "Format", "yaml"))
    text = code(radio(page, "Format", "kustomize"))
    assert "# file: kustomization.yaml" in text
    assert "kind: Component" in text


def test_the_way_back_turns_the_steps_round(visit: Any) -> None:
    page = visit(SCENARIOS / "02-contention.yaml")
    there = metrics(page)
    back = metrics(radio(page, "Direction", "back again"))
    assert back["Replicas stopped"] == there["Replicas started"]
    assert "The way back from the plan" in code(page)


def test_smaller_steps_are_asked_for_in_a_form(visit: Any) -> None:
    page = visit(SCENARIOS / "02-contention.yaml")
    before = int(metrics(page)["Waves"])
    next(each for each in page.number_input if each.label == "GPUs of one step at most").set_value(8)
    page = done(next(each for each in page.button if each.label == "Work out waves").click().run())
    page = done(page)
    assert int(metrics(page)["Waves"]) > before


def test_a_step_that_cannot_be_so_small_is_a_sentence(visit: Any) -> None:
    page = visit(SCENARIOS / "02-contention.yaml")
    next(each for each in page.number_input if each.label == "GPUs of one step at most").set_value(1)
    page = done(next(each for each in page.button if each.label == "Work out waves").click().run())
    assert "This does not work yet" in words(page)
    assert any(each.label == "Try again" for each in page.button)


def test_nothing_to_move_says_so(visit: Any, tmp_path: Path) -> None:
    path = tmp_path / "steady.yaml"
    path.write_text(STEADY)
    page = visit(path)
    assert "Nothing changes: what runs is the plan" in words(page).replace("\\", "")
    assert not page.code


def test_without_objects_it_says_how_to_have_commands(visit: Any) -> None:
    page = visit(SCENARIOS / "04-fragmentation.yaml")
    assert "`object: chat-small`" in words(page)
    assert not page.code


def test_under_scarcity_the_moves_are_those_to_the_best_plan_that_there_is(visit: Any) -> None:
    page = visit(SCENARIOS / "03-power-cap.yaml")
    assert "the best plan under scarcity" in words(page)


def test_a_folder_of_patches_is_an_archive_of_equal_bytes() -> None:
    problem = a_fleet()
    route = route_of(problem, a_fleet_plan())
    clusters = [name for name in route.clusters if name]
    files = render_kustomize(route.in_cluster(clusters[0]) if len(route.clusters) > 1 else route)
    assert zipped(files) == zipped(files)
    with zipfile.ZipFile(io.BytesIO(zipped(files))) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == files


def test_a_way_that_is_stuck_says_why() -> None:
    def page() -> None:
        from planner.ui.answers.moving import Way, show_way
        from tests.rollouts import a_plan, a_stuck, one_variant

        problem = one_variant(3)
        show_way(Way(problem, a_plan(problem, stuck=a_stuck())))

    shown = AppTest.from_function(page, default_timeout=30).run()
    assert not shown.exception
    assert "The waves end before the solution is reached" in shown.error[0].value
    assert "What the next replica would break" in words(shown)
    assert not shown.metric


def test_a_change_of_size_is_one_step_with_its_ranks(visit: Any) -> None:
    page = visit(SCENARIOS / "10-elastic-ep.yaml")
    assert "from 16 to 20 ranks" in words(page)
    steps = next(each.value for each in page.dataframe if "before → after" in each.value.columns)
    assert list(steps["before → after"]) == ["16 → 20 ranks"]
    assert "fleetplan elastic resize" in " ".join([*(each.value for each in page.code), words(page)])
