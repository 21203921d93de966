"""Options on waves: what ``plan`` saves is what ``commands`` carries out, unless other limits are asked for."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from models.plan import WaveLimits
from models.report import FewestMoves, Report
from planner.cli import app
from planner.cli.files import read_report, write_report
from planner.cli.screen.way import show_way
from planner.manifests import render_script, route_of
from planner.planning import judge
from planner.rolling import plan_rollout, with_rollout
from tests.builders import a_candidate, a_demand, a_problem
from tests.reports import a_comparison
from tests.rollouts import a_report_of, an_object, one_variant

SCENARIO = Path(__file__).parents[2] / "data" / "scenarios" / "01-two-variants.yaml"
EAST = "chat/small@east"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def planned(*arguments: object) -> dict[str, Any]:
    done = run("plan", SCENARIO, "--json", *arguments)
    assert done.exit_code == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def a_report() -> Report:
    return a_report_of(one_variant(3), {EAST: 7})


def saved(folder: Path, report: Report) -> Path:
    path = folder / "answer.json"
    write_report(path, report)
    return path


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        (["--max-step-gpus", "4"], WaveLimits(max_step_gpus=4)),
        (["--max-surge-gpus", "8", "--max-surge-replicas", "2"], WaveLimits(max_surge_gpus=8, max_surge_replicas=2)),
        (["--max-unavailable", "0", "--drain", "5"], WaveLimits(max_unavailable=0, drain_s=5.0)),
        ([], WaveLimits()),
    ],
)  # fmt: skip
def test_limits_of_the_options_are_those_of_the_plan(options: list[str], limits: WaveLimits) -> None:
    assert planned(*options)["rollout"]["limits"] == limits.model_dump(mode="json")


@pytest.mark.parametrize(
    "options",
    [["--max-step-gpus", "0"], ["--max-surge-gpus", "-1"], ["--drain", "-1"], ["--max-unavailable", "x"],
     ["--within", "2"], ["--within", "a lot"], ["--max-step-gpus", "3"]],
)  # fmt: skip
def test_what_means_nothing_is_refused(options: list[str]) -> None:
    done = run("plan", SCENARIO, *options)
    assert (done.exit_code, done.stdout) == (2, "")


@pytest.mark.parametrize(("within", "share"), [("1%", 0.01), ("0.05", 0.05), ("5 %", 0.05)])
def test_the_width_is_a_share(within: str, share: float) -> None:
    assert planned("--within", within)["fewest_moves"]["within"] == share


def test_no_width_looks_for_nothing() -> None:
    assert planned("--within", "0")["fewest_moves"] is None


def test_the_saved_waves_are_carried_out(tmp_path: Path) -> None:
    report = a_report()
    stepwise = plan_rollout(report, limits=WaveLimits(max_step_gpus=1))
    path = saved(tmp_path, report.but(rollout=stepwise))
    script = render_script(route_of(report.problem, stepwise))
    assert script.count("if begin ") > render_script(route_of(report.problem, plan_rollout(report))).count(
        "echo 'wave"
    )
    assert run("commands", path).stdout == script


def test_limits_of_commands_go_before_the_saved_ones_one_by_one(tmp_path: Path) -> None:
    report = a_report()
    limits = WaveLimits(max_step_gpus=2, drain_s=5.0)
    path = saved(tmp_path, report.but(rollout=plan_rollout(report, limits=limits)))
    wanted = plan_rollout(report, limits=limits.but(max_step_gpus=1))
    assert run("commands", path, "--max-step-gpus", 1).stdout == render_script(
        route_of(report.problem, wanted)
    )


def test_plan_saves_its_waves(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert run("plan", SCENARIO, "--max-step-gpus", 4, "-o", path).exit_code == 0
    rollout = read_report(path).rollout
    assert rollout is not None
    assert run("commands", path).stdout.count("if begin ") == len(rollout.waves) > 1


def a_report_with_a_plan_near_by() -> Report:
    """Four replicas run; the answer replaces all of them to save a little, the plan near by none but one."""
    old = a_candidate(variant="old", current=4, cost=1.005, object=an_object("old"))
    new = a_candidate(variant="new", object=an_object("new"))
    problem = a_problem([a_demand(rps=4.0)], [old, new])
    other = a_comparison(problem, "fewest-moves", {old.id: 3, new.id: 1})
    near = with_rollout(a_report_of(problem, {}).but(answer=other), within=0.0).rollout
    return a_report_of(problem, {new.id: 4}).but(
        beside=(other,), fewest_moves=FewestMoves(within=0.01, name="fewest-moves", rollout=near)
    )


def test_the_plan_near_by_is_carried_out_when_asked_for(tmp_path: Path) -> None:
    path = saved(tmp_path, a_report_with_a_plan_near_by())
    assert "deployment/new --current-replicas=0 --replicas=4" in run("commands", path).stdout
    assert (
        "deployment/new --current-replicas=0 --replicas=1" in run("commands", path, "--fewest-moves").stdout
    )


def test_without_a_plan_near_by_that_is_said(tmp_path: Path) -> None:
    done = run("commands", saved(tmp_path, a_report()), "--fewest-moves")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no plan that changes less" in done.stderr


def shown(report: Report, *, everything: bool) -> str:
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    show_way(console, report, everything=everything)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(("everything", "number"), [(False, 12), (True, 14)])
def test_many_waves_are_folded_unless_all_are_asked_for(everything: bool, number: int) -> None:
    report = with_rollout(judged(a_report_of(one_variant(0), {EAST: 14})), limits=WaveLimits(max_step_gpus=1))
    text = shown(report, everything=everything)
    assert text.count("start 1 × chat/small on east") == number
    assert ("... and 2 more waves; --all shows them" in text) is not everything


@pytest.mark.parametrize(("everything", "number"), [(False, 10), (True, 12)])
def test_many_steps_are_folded_unless_all_are_asked_for(everything: bool, number: int) -> None:
    names = [f"s{index:02}" for index in range(12)]
    problem = a_problem([a_demand(name, 1.0) for name in names], [a_candidate(name) for name in names])
    report = with_rollout(judged(a_report_of(problem, {f"{name}/small@east": 1 for name in names})))
    text = shown(report, everything=everything)
    assert text.count("/small on east") == number
    assert ("and 2 more steps" in text) is not everything


def judged(report: Report) -> Report:
    """A report made by hand, as one of a heuristic that keeps every limit: nothing is looked for near by."""
    return report.but(answer=judge(report.problem.but(allow_unserved=True), "greedy", report.answer.solution))


def test_waves_that_took_too_long_are_said_to_be_missing() -> None:
    report = a_report().but(seconds={"rollout": 15.0})
    assert "not worked out in the time given" in shown(report, everything=True)
    assert shown(a_report(), everything=True) == ""
