"""``fleetplan observe``: a table of engines, what is missing, and an observation that can be replayed."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from models.observation import Observation, QuotaObservation, TrafficObservation
from planner.cli.app import app
from planner.cli.screen.observation import show_observation
from tests.loopback import free_port
from tests.page_servers import an_engine_page, served

EMPTY = json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}).encode()


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["observe", *map(str, arguments)])


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "llama-0.prom"
    path.write_text(an_engine_page(kv_cache_usage_perc=0.25))
    return path


def test_pages_become_a_table_with_freshness(page: Path) -> None:
    shown = run("--metrics", page)
    assert shown.exit_code == 0
    line = next(line for line in shown.stdout.splitlines() if line.startswith("llama-0"))
    assert "fresh" in line
    assert "25 %" in line
    assert "16,000" in line
    assert "?" in line  # a rate needs two pages, and is not zero


def test_several_files_may_follow_one_option(page: Path, tmp_path: Path) -> None:
    other = tmp_path / "llama-1.prom"
    other.write_text(an_engine_page())
    assert "2 engines" in run("--metrics", page, other).stdout


def test_an_observation_is_written_and_read_back_as_it_was(page: Path, tmp_path: Path) -> None:
    saved = tmp_path / "seen.json"
    assert run("--metrics", page, "-o", saved).exit_code == 0
    first = json.loads(saved.read_text())
    again = json.loads(run("--metrics", saved, "--json").stdout)
    assert again["engines"] == first["engines"]
    assert again["at_s"] == first["at_s"]
    assert run("--metrics", page, "-o", saved).exit_code == 0  # its own file may be replaced


def test_a_file_of_others_is_not_replaced(page: Path) -> None:
    refused = run("--metrics", page, "-o", page)
    assert refused.exit_code == 2
    assert page.read_text() == an_engine_page(kv_cache_usage_perc=0.25)


def test_an_engine_is_read_twice_for_its_rates() -> None:
    with served() as engine:
        grown = iter(range(1, 100))
        engine.answer = lambda *_: (200, {}, an_engine_page(at=next(grown)).encode())
        shown = json.loads(run("--endpoint", f"127.0.0.1:{engine.port}", "--for", "0.05", "--json").stdout)
    assert shown["engines"][0]["request_rps"] > 0
    assert shown["complete"] is True


def test_a_source_that_does_not_answer_ends_with_try_again() -> None:
    port = free_port()
    assert run("--endpoint", f"127.0.0.1:{port}", "--for", "0").exit_code == 4


def test_a_prometheus_is_asked_with_the_token_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEETPLAN_PROMETHEUS_TOKEN", "t0ken-of-mine")
    with served() as prometheus:
        prometheus.answer = lambda *_: (200, {}, EMPTY)
        shown = run("--prometheus", prometheus.url)
        sent = [headers.get("Authorization") for _, _, headers, _ in prometheus.asked]
    assert shown.exit_code == 0
    assert set(sent) == {"Bearer t0ken-of-mine"}
    assert "t0ken" not in shown.output


def test_the_self_check_ends_with_3_where_something_is_absent() -> None:
    def answer(path: str, *_: Any) -> Any:
        names = {"status": "success", "data": []}
        return 200, {}, json.dumps(names).encode() if "label" in path else EMPTY

    with served() as prometheus:
        prometheus.answer = answer
        shown = run("--prometheus", prometheus.url, "--check")
    assert shown.exit_code == 3
    assert "no PodMonitor or ServiceMonitor" in shown.output


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--prometheus", "http://127.0.0.1:1", "--endpoint", "a:1"),
        ("--prometheus", "http://127.0.0.1:1", "more"),
    ],
)
def test_exactly_one_source_is_asked_for(arguments: tuple[str, ...]) -> None:
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert "exactly one of" in refused.output


def test_every_option_that_does_not_fit_is_told_at_once() -> None:
    refused = run("--context", "east")
    assert refused.exit_code == 2
    assert "exactly one of" in refused.output
    assert "--kubernetes beside --context" in refused.output


def test_a_name_cannot_steer_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a.prom"
    path.write_text(an_engine_page(model="\x1b[2Jevil"))
    assert "\x1b[2J" not in run("--metrics", path).stdout


def test_only_the_first_engines_are_shown_unless_all_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "many.prom"
    path.write_text("".join(an_engine_page(engine=str(rank)) for rank in range(50)))
    assert "and 10 more" in run("--metrics", path).stdout
    assert "and 10 more" not in run("--metrics", path, "--all").stdout


def test_what_is_left_out_is_told_of_every_table() -> None:
    seen = Observation(
        at_s=0.0,
        traffic=tuple(TrafficObservation(model=f"m{n}", namespace="a") for n in range(43)),
        quotas=tuple(
            QuotaObservation(namespace=f"n{n}", resource="requests.nvidia.com/gpu", hard=1, used=0)
            for n in range(45)
        ),
    )
    told = [_shown(seen, every=every) for every in (False, True)]
    assert ["and 3 more; --all shows them" in text for text in told] == [True, False]
    assert ["and 5 more; --all shows them" in text for text in told] == [True, False]


def _shown(seen: Observation, *, every: bool) -> str:
    console = Console(file=io.StringIO(), width=120)
    show_observation(console, seen, every=every)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()
