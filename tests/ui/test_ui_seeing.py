"""A live fleet as a draft of the app: observed by a button where that is allowed, with what is assumed beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from planner.clock import FakeClock
from planner.ui.allowing import OBSERVE
from planner.ui.seeing import PROMETHEUS, observe_now
from tests.app_pages import press
from tests.kube_objects import a_node, an_hpa, notes
from tests.live_objects import LiveCluster, a_workload, served_cluster


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveCluster]:
    """One variant behind an annotated HPA, as the kubeconfig of this machine leads to it."""
    monkeypatch.delenv(PROMETHEUS, raising=False)
    hpa = an_hpa(
        "chat", "chat", namespace="llm", least=1, annotations=notes("meta-llama/Llama-3.1-8B-Instruct")
    )
    found = LiveCluster([a_node("n1", 8), a_workload("chat", 2), hpa], FakeClock())
    with served_cluster(found, tmp_path) as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        yield found


def test_what_the_cluster_says_is_observed(cluster: LiveCluster) -> None:
    seen = observe_now()
    assert [(each.name, each.wanted, each.accelerator) for each in seen.variants] == [("chat", 2, "H100")]
    assert [pool.accelerator for pool in seen.pools] == ["H100"]


def test_it_is_off_by_default(
    app_of: Callable[..., AppTest], cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(OBSERVE, raising=False)
    app = app_of("01-two-variants")
    assert not [button for button in app.sidebar.button if button.label == "Observe now"]
    assert any(OBSERVE in each.value for each in app.sidebar.caption)
    assert cluster.calls == []


def test_a_button_opens_a_draft_with_what_is_assumed(
    app_of: Callable[..., AppTest], cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OBSERVE, "1")
    app = press(app_of("01-two-variants"), "Observe now")
    assert app.sidebar.selectbox[0].value == "observed"
    assert any("no promises on latency are known" in each.value for each in app.sidebar.markdown)


def test_a_context_that_is_not_there_is_said(
    app_of: Callable[..., AppTest], cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OBSERVE, "1")
    app = app_of("01-two-variants")
    next(field for field in app.text_input if field.key == "observe-context").set_value("nowhere").run()
    app = press(app, "Observe now")
    assert any("Nothing was opened." in each.value for each in app.text)
