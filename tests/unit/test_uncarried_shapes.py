"""A request shape that no candidate carries is infeasible, and named with every variant's reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from models.explanation import Reason
from models.problem import Problem
from planner.catalog import load_catalog
from planner.cli.app import app
from planner.planning import services_without_candidates, shapes_without_candidates
from planner.scenario import load_scenario
from planner.sizing import size


def a_grid(short: float, long: float) -> dict[str, Any]:
    rates = [(100, 10, short), (2000, 500, long)]
    return {"by_shape": [{"input_tokens": i, "output_tokens": o, "rated_rps": rate} for i, o, rate in rates]}


def a_scenario(folder: Path, *, small: tuple[float, float], big: tuple[float, float], long: float) -> Path:
    traffic = {
        "short": {"rate": 10, "input": 100, "output": 10},
        "long": {"rate": long, "input": 2000, "output": 500},
    }
    variants = {
        "small": {"accelerator": "A10G", "capacity": a_grid(*small), "cost": {"usd_per_h": 1}},
        "big": {"accelerator": "H100", "capacity": a_grid(*big), "cost": {"usd_per_h": 4}},
    }
    chat = {"llm": "Llama-3.1-8B", "traffic": traffic, "routing": "by_length", "variants": variants}
    pools = {"a": {"accelerator": "A10G"}, "h": {"accelerator": "H100"}}
    path = folder / "s.yaml"
    path.write_text(
        yaml.safe_dump({"mode": "unconstrained", "services": {"chat": chat}, "pools": pools}),
        encoding="utf-8",
    )
    return path


def sized(path: Path) -> Problem:
    return size(load_scenario(path), load_catalog())


def test_a_shape_that_some_variant_carries_is_no_concern(tmp_path: Path) -> None:
    problem = sized(a_scenario(tmp_path, small=(2, 0), big=(9, 1), long=1))
    assert problem.rejected == tuple(
        each for each in problem.rejected if each.reason is not Reason.SHAPE_NOT_CARRIED
    )
    assert shapes_without_candidates(problem) == ()


def test_a_shape_that_none_carries_is_named_with_each_reason(tmp_path: Path) -> None:
    problem = sized(a_scenario(tmp_path, small=(2, 0), big=(9, 0), long=1))
    told = [each for each in problem.rejected if each.reason is Reason.SHAPE_NOT_CARRIED]
    assert {each.variant for each in told} == {"small", "big"}
    assert {each.facts["request_shape"] for each in told} == {"2000 × 500"}
    ((service, bucket),) = shapes_without_candidates(problem)
    assert (service, bucket.id) == ("chat", "long")


def test_nothing_arrives_so_nothing_is_missed(tmp_path: Path) -> None:
    problem = sized(a_scenario(tmp_path, small=(2, 0), big=(9, 0), long=0))
    assert shapes_without_candidates(problem) == ()


def test_rates_that_are_all_zero_leave_the_service_without_candidates(tmp_path: Path) -> None:
    problem = sized(a_scenario(tmp_path, small=(0, 0), big=(0, 0), long=1))
    assert problem.candidates == ()
    assert {each.reason for each in problem.rejected} >= {Reason.SHAPE_NOT_CARRIED}
    assert "chat" in services_without_candidates(problem)
    assert shapes_without_candidates(problem) == ()


@pytest.mark.parametrize("rates", [((2.0, 0.0), (9.0, 0.0)), ((0.0, 0.0), (0.0, 0.0))])
def test_the_plan_is_infeasible_and_no_count_is_absurd(
    tmp_path: Path, rates: tuple[tuple[float, float], tuple[float, float]]
) -> None:
    path = a_scenario(tmp_path, small=rates[0], big=rates[1], long=1)
    shown = CliRunner().invoke(app, ["plan", str(path)])
    assert shown.exit_code == 3
    assert "No variant can serve" in shown.output
    assert "chat" in shown.output
    assert "carries no requests of 2000 × 500 tokens" in " ".join(shown.output.split()) or rates[0][0] == 0
    answer = json.loads(CliRunner().invoke(app, ["plan", str(path), "--json"]).stdout)
    assert answer["status"] == "INFEASIBLE"
    counts = [row["replicas"] for row in answer["best_effort"]["allocations"]]
    assert sum(counts) <= 5


def test_the_screen_names_the_shape_and_every_variant(tmp_path: Path) -> None:
    path = a_scenario(tmp_path, small=(2, 0), big=(9, 0), long=1)
    shown = " ".join(CliRunner().invoke(app, ["plan", str(path)]).output.split())
    assert "the requests of 2,000 input × 500 output tokens of chat" in shown
    for variant in ("small @ a", "big @ h"):
        assert variant in shown
