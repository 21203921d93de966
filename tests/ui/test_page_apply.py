"""The page Apply: off by default, compared with the cluster, carried out after the right words, and undone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from planner.clock import SystemClock
from planner.ui.allowing import APPLY
from planner.ui.carrying import runs as carrying
from tests.app_pages import over, press
from tests.kube_objects import a_node
from tests.live_objects import LiveCluster, a_workload

PATIENCE_S = 60.0


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LiveCluster:
    """What scenario 01 runs on, in memory; whatever is asked for is ready at the next look."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    objects = [a_node("n1", 64), a_workload("llama-a100", 3, namespace="serving")]
    objects.append(a_workload("llama-h100", 2, namespace="serving"))
    found = LiveCluster(objects, SystemClock(), start_s=0.0, end_s=0.0)
    monkeypatch.setattr(carrying, "connect", lambda route, context: {"": found.api})
    return found


def opened(page_of: Callable[..., AppTest]) -> AppTest:
    """The page with the waves of scenario 01."""
    return over(over(page_of("apply", "01-two-variants"), "plan"), "apply-moves")


def words(page: AppTest) -> str:
    """All that is written on a page."""
    kinds = (page.markdown, page.caption, page.text, page.info, page.warning, page.success)
    return "\n".join(str(each.value) for kind in kinds for each in kind)


def typed(page: AppTest, text: str) -> AppTest:
    """The page when a confirmation was typed."""
    next(field for field in page.text_input if field.label == "Confirmation").set_value(text).run()
    assert not page.exception, page.exception
    return page


def code_on(page: AppTest) -> str:
    """What is asked for."""
    line = next(each.value for each in page.markdown if "type `" in each.value)
    return str(line).partition("type `")[2].partition("`")[0]


def carried_out(page: AppTest) -> AppTest:
    """The page when nothing more happens."""
    clock = SystemClock()
    end_s = clock.monotonic_s() + PATIENCE_S
    while not (last := carrying.runs().last) or not last.over:
        assert clock.monotonic_s() < end_s
        clock.sleep(0.05)
    page.run()
    assert not page.exception, page.exception
    return page


def counts(cluster: LiveCluster) -> tuple[int, int]:
    return cluster.wanted("llama-a100", "serving"), cluster.wanted("llama-h100", "serving")


def test_it_is_off_by_default_and_says_how_to_turn_it_on(
    page_of: Callable[..., AppTest], cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(APPLY, raising=False)
    page = opened(page_of)
    assert f"Start the app with {APPLY}=1" in words(page)
    assert any("kubectl" in each.value for each in page.code)
    assert not [button for button in page.button if button.label in {"Compare (dry run)", "Apply"}]
    assert cluster.calls == []


def test_it_is_compared_carried_out_after_the_right_words_and_undone(
    page_of: Callable[..., AppTest], cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(APPLY, "1")
    page = press(opened(page_of), "Compare (dry run)")
    assert "that differ from the cluster" in words(page)
    assert {method for method, _ in cluster.calls} == {"GET"}
    before = counts(cluster)
    button = next(each for each in page.button if each.label == "Apply")
    assert button.disabled
    code = code_on(page)
    assert next(each for each in typed(page, "apply 000000").button if each.label == "Apply").disabled
    page = carried_out(press(typed(page, code), "Apply"))
    after = counts(cluster)
    assert after != before
    assert "the clusters have what the plan says" in words(page).replace("\\", "")
    (record,) = (tmp_path / "state" / "fleetplan" / "applied").glob("*.jsonl")
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    assert (lines[0]["message"], lines[-1]["kind"]) == ("from the app", "done")
    undo = code_on(page)
    assert undo.startswith("undo ")
    carried_out(press(typed(page, undo), "Lead back"))
    assert counts(cluster) == before


def test_a_cluster_that_is_not_what_the_plan_started_from_has_no_button(
    page_of: Callable[..., AppTest], cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(APPLY, "yes")
    cluster.set("Deployment", "llama-a100", {"spec": {"replicas": 9}}, "serving")
    page = press(opened(page_of), "Compare (dry run)")
    assert "asks for 9 replicas, where the plan starts from 3" in words(page)
    assert not [button for button in page.button if button.label == "Apply"]


def test_a_plan_without_objects_says_what_is_missing(
    page_of: Callable[..., AppTest], cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(APPLY, "1")
    page = over(over(page_of("apply", "05-prefill-decode"), "plan"), "apply-moves")
    assert "object in the variants" in words(page)
    assert cluster.calls == []
