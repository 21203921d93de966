"""The page Elastic EP: sizes with reasons, ways beside each other, checks, and the calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

SCENARIOS = Path("data/scenarios").resolve()


@pytest.fixture
def page(app_of: Callable[..., AppTest]) -> AppTest:
    return app_of(SCENARIOS / "10-elastic-ep.yaml", "elastic_ep")


def words(page: AppTest) -> str:
    assert not page.exception, page.exception
    return "\n".join(each.value for each in (*page.markdown, *page.caption, *page.header, *page.code))


def table(page: AppTest, column: str) -> list[dict[str, Any]]:
    frame = next(each.value for each in page.dataframe if column in each.value.columns)
    return [dict(row) for row in frame.to_dict("records")]


def to(page: AppTest, ranks: int) -> AppTest:
    box = next(each for each in page.selectbox if each.label == "To ranks")
    return box.set_value(ranks).run()


def test_every_size_is_told_with_why_it_cannot_be_reached(page: AppTest) -> None:
    sizes = {row["ranks"]: row for row in table(page, "why not")}
    assert sizes[16]["in place"] == "now"
    assert sizes[20]["in place"] == "by C"
    assert "cannot hold all 384 experts" in sizes[12]["why not"]
    assert "4 at a time" in sizes[18]["why not"]


def test_ways_stand_beside_each_other_and_the_first_larger_size_is_shown(page: AppTest) -> None:
    assert "From 16 to 20 ranks" in words(page)
    assert "0.82 s without service" in words(page)
    ways = {row["way"]: row for row in table(page, "GPUs held")}
    assert len(ways) == 5
    assert ways["redeploy"]["GPUs held"] == 36
    assert ways["restart"]["without service, s"] > 150
    assert ways["C: graphs kept as well"]["requests hindered"] == pytest.approx(16 * 0.82, rel=0.01)


def test_the_calls_are_there_to_be_copied(page: AppTest) -> None:
    assert '{"new_data_parallel_size": 20}' in words(page)
    assert "fleetplan elastic resize" in words(page)


def test_a_size_out_of_reach_says_what_to_change_and_has_no_calls(page: AppTest) -> None:
    said = words(to(page, 12))
    assert "Not in place" in said
    assert "num_redundant_experts" in said
    assert "curl" not in said


def test_a_draft_without_an_elastic_variant_says_where_there_is_one(app_of: Callable[..., AppTest]) -> None:
    page = app_of(SCENARIOS / "01-two-variants.yaml", "elastic_ep")
    assert "10-elastic-ep" in words(page)
