"""``elastic``: sizes with reasons, checks with what to change, a dry run with the calls, and resizes carried out."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from planner.cli.app import app
from tests.elastic_standins import StandIn, serving

SCENARIO = """
name: elastic
services:
  chat:
    llm: DeepSeek-V3
    traffic: {rate: 11 req/s, input: 2048, output: 512}
    variants:
      moe:
        accelerator: GB200
        dp: 4
        ep: 4
        elastic:
          max_ranks: 8
          rates: [{ranks: 4, rated_rps: 9.5}, {ranks: 8, rated_rps: 17}, {ranks: 2, rated_rps: 4, redeployed: true}]
pools:
  rack: {accelerator: GB200, nodes: {count: 4, gpus: 4}}
current:
  chat/moe@rack: {replicas: 1}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "elastic.yaml"
    path.write_text(SCENARIO)
    return path


def run(*words: object) -> Any:
    return CliRunner().invoke(app, ["elastic", *map(str, words), "--no-color"])


def test_sizes_say_what_can_be_reached_and_why_the_others_cannot(scenario: Path) -> None:
    said = run("sizes", scenario)
    assert said.exit_code == 0
    assert "4 ranks, resizes by C" in said.stdout
    assert "Fewer than 4 ranks cannot hold all 256 experts" in said.stdout
    lines = {
        each["verdict"]["ranks"]: each
        for each in json.loads(run("sizes", scenario, "--json").stdout)["lines"]
    }
    assert lines[6]["rated_rps"] == pytest.approx(13.25)
    assert [way["mode"] for way in lines[6]["ways"]] == ["C", "redeploy", "restart"]
    assert [way["mode"] for way in lines[2]["ways"]] == ["redeploy", "restart"]
    assert max(lines) == 8


@pytest.mark.parametrize(("to", "code", "says"), [(8, 0, "C (this engine)"), (9, 5, "--elastic-ep-max-dp-size 9"), (2, 5, "redeploy at 2 ranks")])  # fmt: skip
def test_checks_say_what_to_change(scenario: Path, to: int, code: int, says: str) -> None:
    said = run("check", scenario, "--to", to)
    assert said.exit_code == code
    assert says in said.stdout
    assert "open endpoint" in said.stdout


def test_a_running_resize_is_seen_by_the_check(scenario: Path) -> None:
    with serving(StandIn("sglang", size=4)) as standin:
        standin.pending = 6
        text = SCENARIO.replace(
            "max_ranks: 8", "max_ranks: 8\n          engine: {dialect: sglang, version: 0.5.23}"
        )
        scenario.write_text(text)
        said = run("check", scenario, "--to", 8, "--url", standin.urls[0])
        assert said.exit_code == 5
        assert "A resize is running" in said.stdout


def test_a_dry_run_sends_nothing_and_shows_the_calls(scenario: Path, tmp_path: Path) -> None:
    with serving(StandIn("internal", size=4)) as standin:
        said = run("resize", scenario, "--to", 6, "--url", standin.urls[0], "--record", tmp_path / "r.json")
        assert said.exit_code == 0
        assert f"{standin.urls[0]}/scale_elastic_ep" in said.stdout
        assert standin.orders == []
        assert not (tmp_path / "r.json").exists()


def test_a_resize_is_carried_out_and_its_record_tells(scenario: Path, tmp_path: Path) -> None:
    record = tmp_path / "r.json"
    with serving(StandIn("internal", size=4)) as standin:
        way = ("--url", standin.urls[0], "--record", record)
        said = run("resize", scenario, "--to", 6, "--yes", *way)
        assert (said.exit_code, standin.size, len(standin.orders)) == (0, 6, 1), said.output
        assert "all ranks get traffic" in said.stderr
        assert "ranks seen to serve: 6" in run("status", "--record", record).stdout
        again = run("resize", scenario, "--to", 6, "--yes", *way)
        assert (again.exit_code, len(standin.orders)) == (0, 1), again.output


@pytest.mark.parametrize(
    ("dialect", "says"), [("internal", "still calling"), ("external", "the engine says preparing")]
)
def test_while_a_call_takes_its_time_it_is_told_how_far_it_is(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: str, says: str
) -> None:
    monkeypatch.setattr("planner.cli.commands.elastic._EVERY_S", 0.1)
    engine = "{load_balancing: external, data_parallel_backend: mp}" if dialect == "external" else "0.33.0"
    scenario.write_text(SCENARIO.replace("max_ranks: 8", f"max_ranks: 8\n          engine: {engine}"))
    with serving(StandIn(dialect, size=4, prepare_s=1.5)) as standin:
        urls = [word for url in standin.urls for word in ("--url", url)]
        said = run("resize", scenario, "--to", 6, "--yes", *urls, "--record", tmp_path / "r.json")
        assert said.exit_code == 0, said.output
        assert says in said.stderr


def test_what_is_left_to_people_says_the_way_out_and_goes_on_after_it(scenario: Path, tmp_path: Path) -> None:
    record = tmp_path / "r.json"
    with serving(StandIn("internal", size=4, fault="wrong size")) as standin:
        way = ("--url", standin.urls[0], "--record", record)
        said = run("resize", scenario, "--to", 6, "--yes", *way)
        assert said.exit_code == 4, said.output
        assert "restart it at the last good size" in said.stdout
        assert run("status", "--record", record).exit_code == 4
        refused = run("resize", scenario, "--to", 7, "--yes", *way)
        assert refused.exit_code == 5
        assert "needs people" in refused.stderr
        standin.fault, standin.size, standin.labels = "", 4, 4
        assert run("resume", "--record", record).exit_code == 0
        state = json.loads(run("status", "--record", record, "--json").stdout)
        assert state["phase"] == "settling"
        assert len(standin.orders) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("resize", "--to", "6", "--yes"), "--url: found no address"),
        (("resize", "--to", "6", "--url", "http://127.0.0.1:9", "--yes"), "--record: found no place"),
        (("resize", "--to", "6", "--url", "http://127.0.0.1:9", "--kubernetes", "moe"), "NAMESPACE/NAME"),
        (("sizes", "--variant", "chat/mo"), "did you mean"),
    ],
)
def test_what_is_missing_is_named(scenario: Path, words: tuple[str, ...], says: str) -> None:
    said = run(words[0], scenario, *words[1:])
    assert said.exit_code == 2
    assert says in said.stderr


def test_a_scenario_without_an_elastic_variant_says_what_would_do(tmp_path: Path) -> None:
    path = tmp_path / "plain.yaml"
    path.write_text(SCENARIO[: SCENARIO.index("        elastic:")] + SCENARIO[SCENARIO.index("pools:") :])
    said = run("sizes", path)
    assert said.exit_code == 2
    assert "a variant with elastic" in said.stderr


def daily(path: Path, *, most: float, days: int = 5) -> Path:
    lines = ["time,rate"]
    for minute in range(0, days * 1440, 5):
        wave = (1 - math.cos(2 * math.pi * minute / 1440)) / 2
        lines.append(f"{1_796_000_400 + minute * 60},{most * wave:.3f}")
    path.write_text("\n".join(lines))
    return path


def test_a_schedule_calls_before_the_load_of_the_day_comes_and_back_after_it(
    scenario: Path, tmp_path: Path
) -> None:
    series = daily(tmp_path / "load.csv", most=13.0)
    way = ("--series", series, "--step", 300, "--horizon", 24)
    said = run("schedule", scenario, *way)
    assert said.exit_code == 0, said.output
    assert "seasonal-naive" in said.stdout
    calls = json.loads(run("schedule", scenario, *way, "--json").stdout)["calls"]
    sizes = [4, *(each["to_ranks"] for each in calls)]
    assert (sizes[0], max(sizes), sizes[-1]) == (4, 6, 4)
    assert sizes[: sizes.index(6) + 1] == sorted(sizes[: sizes.index(6) + 1])
    assert 90 < calls[0]["needed_s"] - calls[0]["call_s"] < 250


def test_a_load_beyond_every_size_is_told_and_fails(scenario: Path, tmp_path: Path) -> None:
    said = run(
        "schedule", scenario, "--series", daily(tmp_path / "l.csv", most=30.0), "--step", 300, "--horizon", 24
    )
    assert said.exit_code == 3
    assert "find no size that carries them" in said.stdout


def test_lines_of_a_series_that_cannot_be_read_are_all_named(scenario: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("time,rate\nx,1\n5,-3\n")
    said = run("schedule", scenario, "--series", bad)
    assert said.exit_code == 2
    assert "bad.csv:2" in said.stderr
    assert "bad.csv:3" in said.stderr
