"""The page Fleet now: records of a real loop, a controller that is asked itself, and what is said where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from planner.clock import FakeClock
from planner.control.running.controller import Controller
from planner.control.running.recording import read_records
from planner.errors import ConfigurationError
from planner.ui.fleet.looking import RECORDS, URL, Look, look_at
from planner.ui.fleet.showing import decision_rows, history_rows
from tests.control.controller_builders import START, Told, a_controller, led
from tests.control.test_run_cycles import SCALES, direct


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Records of a service that grew while its replicas were full."""
    folder = tmp_path / "records"
    cluster, source, clock = direct(), Told(kv=0.3), FakeClock(START)
    controller: Controller = a_controller(cluster, source, SCALES, clock=clock, records=folder)
    for kv in (0.3, 0.78, 0.78, 0.5):
        source.kv = kv
        led(controller).cycle(("timer",))
        cluster.settle()
        clock.advance(15.0)
    return folder


def words(page: AppTest) -> str:
    kinds = (page.markdown, page.caption, page.text, page.info, page.warning)
    return "\n".join(str(each.value) for kind in kinds for each in kind).replace("\\", "")


def test_without_a_place_it_says_what_to_name(
    page_of: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(RECORDS, raising=False)
    monkeypatch.delenv(URL, raising=False)
    assert RECORDS in words(page_of("fleet_now", "01-two-variants"))


def test_decisions_have_reasons_and_a_history(
    page_of: Callable[..., AppTest], records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RECORDS, str(records))
    page = page_of("fleet_now", "01-two-variants")
    said = words(page)
    for text in ("one leads", "It carries decisions out", "last record", "Replicas wanted over time"):
        assert text in said
    (table,) = [each.value for each in page.dataframe]
    assert list(table["variant"]) == ["prod/llama-va"]
    assert set(table["reason"]) <= {"Steady", "ScaledUp", "Held"}
    assert {each.label: each.value for each in page.metric}["Variants"] == "1"


def test_the_history_holds_until_the_last_record(records: Path) -> None:
    found = tuple(read_records(records))
    look = look_at(str(records))
    assert look.records == found
    rows = history_rows(look)
    assert [row["desired"] for row in rows if row["changes"]] == [3, 4]
    assert rows[-1]["desired"] == 4
    assert decision_rows(look.status.decisions)[0]["variant"] == "prod/llama-va"
    assert history_rows(Look(look.status)) == []


@pytest.mark.parametrize("place", ["/nowhere/at/all", "http://192.0.2.1:9470", "http://127.0.0.1:1"])
def test_a_place_where_nothing_is_known_is_said(
    page_of: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv(RECORDS, place)
    page = page_of("fleet_now", "01-two-variants")
    assert "This does not work yet" in words(page)


def test_other_machines_are_named_by_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL, raising=False)
    with pytest.raises(ConfigurationError, match="another machine"):
        look_at("http://192.0.2.1:9470")


def test_looking_again_by_itself_is_a_wish(
    page_of: Callable[..., AppTest], records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RECORDS, str(records))
    page = page_of("fleet_now", "01-two-variants")
    (toggle,) = page.toggle
    assert not toggle.value
    toggle.set_value(True).run()
    assert not page.exception
