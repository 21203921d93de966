"""The page Candidate: what a visitor sees of a variant, worked out in a real worker process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from planner.ui import session

SCENARIOS = Path("data/scenarios").resolve()

TOO_LARGE = """
name: too large
services:
  chat:
    llm: Qwen3-32B
    slo: {ttft: 3 s, itl: 50 ms, at: mean}
    traffic: {rate: 2 req/s, input: 1000, output: 400}
    variants:
      small: {accelerator: L4, tp: 1}
      big_one_: {accelerator: H100, tp: 2}
pools:
  cheap: {accelerator: L4, nodes: {c: {gpus: 4}}}
  dear: {accelerator: H100, nodes: {d: {gpus: 8}}}
"""


@pytest.fixture
def visit(app_of: Callable[..., AppTest]) -> Callable[[Path], AppTest]:
    """Opens the page with a scenario."""
    return lambda path: done(app_of(path, "candidate"))


def done(page: AppTest) -> AppTest:
    """The page when its variant was looked at."""
    for _ in range(60):
        assert not page.exception, page.exception
        key = page.session_state["fleetplan.asked"]["candidate"]
        job = session.workers().wait(key, 1.0)
        if job is not None and job.over:
            return page.run()
    raise AssertionError("never looked at")


def words(page: AppTest) -> str:
    return "\n".join(each.value for each in (*page.markdown, *page.caption, *page.text, *page.header))


def choose(page: AppTest, label: str, value: str) -> AppTest:
    box = next(each for each in page.selectbox if each.label == label)
    return done(box.set_value(value).run())


def metrics(page: AppTest) -> dict[str, str]:
    return {each.label: each.value for each in page.metric}


def figures(page: AppTest) -> dict[str, Any]:
    table = next(frame.value for frame in page.dataframe if "figure" in frame.value.columns)
    return {row["figure"]: row for row in table.to_dict("records")}


def test_a_first_look_shows_a_candidate_with_the_origin_of_each_number(visit: Any) -> None:
    page = visit(SCENARIOS / "02-contention.yaml")
    assert [title.value for title in page.title] == ["Candidate"]
    assert "candidate" in words(page)
    shown = figures(page)
    assert shown["rated rate of this shape"]["origin"] == "measured"
    assert "within a factor of" in shown["rated rate of this shape"]["nearest measured"]
    assert shown["KV capacity of a replica"]["origin"] == "modeled"
    assert shown["price of a replica"]["source"].startswith("list price of the accelerator (S")
    assert metrics(page)["Time to start"] == "3 min"
    assert {"Memory of a replica", "Latency over load", "What each source says"} <= {
        each.value for each in page.header
    }


def test_another_service_and_variant_are_looked_at(visit: Any) -> None:
    page = visit(SCENARIOS / "05-prefill-decode.yaml")
    names = next(each for each in page.selectbox if each.label == "Service").options
    page = choose(page, "Service", names[-1])
    variants = next(each for each in page.selectbox if each.label == "Variant").options
    assert variants
    assert "Latency over load" in words(page)


def test_what_does_not_fit_says_by_how_much_and_what_would(visit: Any, tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text(TOO_LARGE)
    page = choose(visit(path), "Variant", "small")
    text = words(page)
    assert "**Does not fit:**" in text
    assert "No candidate here" in text
    assert "weights would fit" in text.replace("\\", "") or "would fit" in text
    assert "What does not fit has no latency." in text
    assert metrics(page)["KV cache, tokens"] == "unknown"
    page = choose(page, "Variant", "big_one_")
    assert "big\\_one\\_ @ dear" in words(page)
    assert metrics(page)["KV cache, tokens"] != "unknown"


def test_another_shape_is_asked_in_a_form(visit: Any) -> None:
    page = visit(SCENARIOS / "02-contention.yaml")
    before = figures(page)["rated rate of this shape"]["value"]
    page = choose(page, "Request shape", "another shape")
    next(each for each in page.number_input if each.label == "Output, tokens").set_value(2000)
    page = done(next(each for each in page.button if each.label == "Look").click().run())
    after = figures(page)
    assert after.get("rated rate of this shape", {}).get("value") != before
