"""The page of reproductions: what is said of claims, parameters and figures, and how the command writes it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from models.reproduction import Claim, Origin, Parameter, Picture, Point, Reproduction, Table
from planner.charts.reproductions import picture_chart
from planner.cli.app import app
from planner.errors import ConfigurationError
from planner.reproduction import EXPERIMENTS, document, reproduce
from planner.reproduction.intervals import estimate
from planner.reproduction.wva_parameters import cluster_parameters
from planner.reproduction.wva_setup import Cluster


def picture(**changes: Any) -> Picture:
    points = (
        Point(x="2 req/s", y=1.0, series="ours", low=0.9, high=1.1, panel="served"),
        Point(x="2 req/s", y=1.2, series="published WVA", panel="served"),
        Point(x="2 req/s", y=3.0, series="ours", panel="replicas"),
    )
    fields = {
        "name": "a-picture",
        "title": "Bars",
        "kind": "bars",
        "x": "offered",
        "y": "req/s",
        "points": points,
    }
    return Picture.model_validate(fields | changes)


def an_experiment(**changes: Any) -> Reproduction:
    fields = {
        "name": "wva-fig9",
        "title": "An experiment",
        "source": "a paper",
        "seeds": 3,
        "parameters": (
            Parameter(name="rate", value="2 req/s", origin=Origin.PAPER),
            Parameter(name="speed", value="3 ms", origin=Origin.TUNED, why="figure 4"),
        ),
        "tables": (Table(title="Served", head=("", "a|b"), rows=(("x", "1"),)),),
        "pictures": (picture(),),
        "claims": (
            Claim(text="it holds", held=True, shown="1 < 2"),
            Claim(text="it does not", held=False, shown="2 < 1"),
        ),
        "notes": ("A word.",),
    }
    return Reproduction.model_validate(fields | changes)


def test_the_page_says_which_claims_hold_and_which_parameters_were_tuned() -> None:
    page = document([an_experiment()])
    for line in (
        "| [wva-fig9](#wva-fig9) | An experiment | 1 of 2 | 3 |",
        "| ✓ | it holds | 1 < 2 |",
        "| ✗ | it does not | 2 < 1 |",
        "| rate | 2 req/s | paper |  |",
        "| speed | 3 ms | **tuned** | figure 4 |",
        "|  | a\\|b |",
        "![Bars](images/a-picture.svg)",
        "A word.",
    ):
        assert line in page.splitlines()


def test_parameters_that_two_experiments_share_are_told_once() -> None:
    page = document([an_experiment(), an_experiment(name="wva-fig10")])
    assert page.count("| speed | 3 ms |") == 1
    assert "Parameters: those of [wva-fig9](#wva-fig9)." in page


@pytest.mark.parametrize(
    ("values", "mean", "half"),
    [
        ([2.0], 2.0, math.nan),
        ([1.0, 3.0], 2.0, 12.706),
        ([1.0, 2.0, 3.0], 2.0, 2.484),
        ([1.0, math.nan, 3.0], 2.0, 12.706),
        ([math.nan], math.nan, math.nan),
    ],
)
def test_intervals_are_students(values: list[float], mean: float, half: float) -> None:
    found = estimate(values)
    assert found.mean == pytest.approx(mean, nan_ok=True)
    assert found.half == pytest.approx(half, rel=1e-3, nan_ok=True)


def test_an_interval_is_told_only_where_there_is_one() -> None:
    assert estimate([0.5]).text(1, scale=100) == "50.0"
    assert estimate([1.0, 1.0]).text(1) == "1.0 ± 0.0"
    assert estimate([math.nan]).text(1) == "–"
    assert estimate([0.5]).low is None


def test_bars_have_whiskers_and_published_ones_are_gray() -> None:
    chart = json.dumps(picture_chart(picture()).to_dict())
    assert "#999999" in chart
    assert '"rule"' in chart
    assert "replicas, req/s" in chart


def test_lines_are_drawn_over_a_number() -> None:
    points = tuple(Point(x=float(x), y=1.0, series="ours") for x in range(3))
    chart = picture_chart(picture(kind="lines", points=points)).to_dict()
    assert chart["vconcat"][0]["encoding"]["x"]["type"] == "quantitative"


def test_every_parameter_that_nobody_states_has_a_reason() -> None:
    for parameter in cluster_parameters(Cluster(), 5):
        assert parameter.origin in {Origin.PAPER, Origin.SOURCE} or parameter.why or parameter.name == "seeds"
    assert any(parameter.origin is Origin.TUNED for parameter in cluster_parameters(Cluster(), 5))


def test_unknown_experiments_are_named_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'wva-fig4'"):
        reproduce("wva-fig44")
    with pytest.raises(ConfigurationError, match="at least 1"):
        reproduce("wva-fig4", seeds=0)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["reproduce", *arguments])


def test_the_command_lists_its_experiments() -> None:
    assert run("list").stdout.split() == [*EXPERIMENTS]


def test_the_command_refuses_before_it_runs(tmp_path: Path) -> None:
    (tmp_path / "reproduction-elastic-ep-timings.md").write_text("mine", encoding="utf-8")
    for arguments, said in (
        (("elastic",), "elastic"),
        (("elastic-ep-timings", "-o", str(tmp_path / "none")), "no folder"),
        (("elastic-ep-timings", "-o", str(tmp_path)), "reproduction-elastic-ep-timings.md"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert said in result.stderr


def test_the_command_asks_for_what_draws_before_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.cli.pictures.find_spec", lambda name: None)
    monkeypatch.setattr("planner.cli.commands.reproduce._run", lambda options: pytest.fail("it ran"))
    result = run("elastic-ep-timings", "-o", str(tmp_path))
    assert (result.exit_code, "figures need altair and vl_convert" in result.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_page_figures_and_json(tmp_path: Path) -> None:
    result = run("elastic-ep-timings", "--seeds", "1", "--json", "-o", str(tmp_path))
    assert result.exit_code == 0
    (found,) = json.loads(result.stdout)["reproductions"]
    assert Reproduction.model_validate(found).seeds == 1
    assert (
        (tmp_path / "reproduction-elastic-ep-timings.md")
        .read_text(encoding="utf-8")
        .startswith("# Published")
    )
    assert (tmp_path / "images/reproduction-elastic-ep-timings.svg").read_bytes().startswith(b"<svg")
