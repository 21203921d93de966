"""``commands``: from a saved answer to a script, a file or a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from models.report import Report
from planner.cli import app
from planner.cli.files import write_report
from planner.cli.folders import write_folder
from planner.errors import ConfigurationError
from planner.manifests import MADE_BY, render_kustomize, render_manifests, render_script, route_of
from planner.rolling import plan_rollout
from tests.builders import a_candidate, a_demand, a_pool, a_problem, fully_served
from tests.reports import a_heuristic_report, a_timed_out_report, an_infeasible_report, an_optimal_report
from tests.rollouts import a_report_of, an_object, one_variant, undone

EAST = "chat/small@east"
SCENARIO = Path(__file__).parents[2] / "data" / "scenarios" / "01-two-variants.yaml"
FILES = {"kustomization.yaml": f"{MADE_BY}\na: 1\n", "llm.deployment.a.yaml": f"{MADE_BY}\nb: 2\n"}


def a_report() -> Report:
    return a_report_of(one_variant(3, a_candidate(variant="bare", pool="west", current=1)), {EAST: 5})


def commands(folder: Path, *more: str, report: Report | None = None) -> Result:
    path = folder / "answer.json"
    write_report(path, report or a_report())
    return CliRunner().invoke(app, ["commands", str(path), *more])


@pytest.mark.parametrize("undo", [False, True])
def test_each_format_is_what_its_renderer_says(tmp_path: Path, undo: bool) -> None:
    report = a_report()
    plan = plan_rollout(report)
    route = undone(report.problem, plan) if undo else route_of(report.problem, plan)
    more = ["--undo"] if undo else []
    assert commands(tmp_path, *more).stdout == render_script(route)
    assert commands(tmp_path, "--format", "yaml", *more).stdout == render_manifests(route)
    stream = commands(tmp_path, "--format", "kustomize", *more).stdout
    assert all(f"# file: {name}\n{text}" in stream for name, text in render_kustomize(route).items())


def test_what_is_left_out_is_noted(tmp_path: Path) -> None:
    done = commands(tmp_path)
    assert (done.exit_code, done.stderr) == (
        3,
        "left out: chat/bare has no object in the scenario\n"
        "wave 2: Not done here, for want of an object: chat/bare in pool west, from 1 to 0 replicas.\n",
    )


@pytest.mark.parametrize("bare", [0, 1])
def test_what_is_left_out_and_stays_is_no_reason_to_fail(tmp_path: Path, bare: int) -> None:
    problem = one_variant(3, a_candidate(variant="bare", pool="west", current=bare))
    done = commands(tmp_path, report=a_report_of(problem, {EAST: 5, "chat/bare@west": bare}))
    assert (done.exit_code, "Not done" in done.stderr) == (0, False)


@pytest.mark.parametrize("form", ["kubectl", "yaml", "kustomize"])
def test_counts_that_a_control_plane_has_to_emit_are_noted(tmp_path: Path, form: str) -> None:
    report = a_report_of(one_variant(3, scaler="variantautoscaling"), {EAST: 5})
    done = commands(tmp_path, "--format", form, report=report)
    series = 'wva_desired_replicas{variant_name="chat-small",namespace="llm",accelerator_type="H100"} 5'
    assert (done.exit_code, done.stderr) == (0, f"the control plane has to emit {series}\n")


def test_a_script_may_be_run(tmp_path: Path) -> None:
    path = tmp_path / "plan.sh"
    commands(tmp_path, "-o", str(path))
    assert os.access(path, os.X_OK)


def test_a_file_is_written(tmp_path: Path) -> None:
    path = tmp_path / "plan.sh"
    done = commands(tmp_path, "-o", str(path))
    assert (done.exit_code, done.stdout) == (3, "")
    assert path.read_text(encoding="utf-8") == commands(tmp_path).stdout


def test_a_folder_is_written_and_written_anew(tmp_path: Path) -> None:
    folder = tmp_path / "plan"
    assert commands(tmp_path, "--format", "kustomize", "-o", str(folder)).exit_code == 3
    there = {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir()}
    assert set(there) == {"kustomization.yaml", "llm.deployment.chat-small.yaml"}
    assert commands(tmp_path, "--format", "kustomize", "--undo", "-o", str(folder)).exit_code == 3
    back = {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir()}
    assert back.keys() == there.keys()
    assert back != there


@pytest.mark.parametrize(("waves", "calls"), [("0", 0), ("1", 2), ("9", 2)])
def test_the_first_waves_alone(tmp_path: Path, waves: str, calls: int) -> None:
    lines = commands(tmp_path, "--waves", waves).stdout.splitlines()
    assert len([line for line in lines if line.startswith(("kubectl ", "asks "))]) == calls


def test_a_cluster_that_no_pool_names_is_refused(tmp_path: Path) -> None:
    done = commands(tmp_path, "--cluster", "eu")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no pool names its cluster" in done.stderr


@pytest.mark.parametrize(
    "report", [a_timed_out_report(), an_infeasible_report()], ids=["timed out", "infeasible"]
)
def test_an_answer_without_a_plan_is_refused(tmp_path: Path, report: Report) -> None:
    done = commands(tmp_path, report=report)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"status {report.answer.solution.status}" in done.stderr


def test_a_fleet_without_any_object_is_refused(tmp_path: Path) -> None:
    done = commands(tmp_path, report=an_optimal_report())
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no object in chat/llama-70b-a100-tp4" in done.stderr


def test_a_plan_that_breaks_rules_is_written_and_told(tmp_path: Path) -> None:
    report = a_report()
    figures = a_heuristic_report().answer.assessment
    done = commands(tmp_path, report=report.but(answer=report.answer.but(assessment=figures)))
    assert done.exit_code == 3
    assert "kubectl -n llm scale" in done.stdout


def contents(folder: Path) -> dict[str, str]:
    return {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir()}


@pytest.mark.parametrize("before", [None, {}, {"old.yaml": f"{MADE_BY}\n"}], ids=["missing", "empty", "ours"])
def test_a_folder_of_ours_is_replaced_as_a_whole(tmp_path: Path, before: dict[str, str] | None) -> None:
    folder = tmp_path / "plan"
    if before is not None:
        folder.mkdir()
    for name, text in (before or {}).items():
        (folder / name).write_text(text, encoding="utf-8")
    write_folder(folder, FILES, mark=MADE_BY)
    assert contents(folder) == FILES
    assert [each.name for each in tmp_path.iterdir()] == ["plan"]


@pytest.mark.parametrize(
    ("name", "text"), [("mine.yaml", "kind: Secret\n"), (".hidden", ""), ("a", f" {MADE_BY}")]
)
def test_a_folder_with_files_of_others_is_left_alone(tmp_path: Path, name: str, text: str) -> None:
    folder = tmp_path / "plan"
    write_folder(folder, FILES, mark=MADE_BY)
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"files that are not ours: {name}"):
        write_folder(folder, {"kustomization.yaml": MADE_BY}, mark=MADE_BY)
    assert contents(folder) == FILES | {name: text}


def test_folders_and_links_in_a_folder_are_not_ours(tmp_path: Path) -> None:
    folder = tmp_path / "plan"
    (folder / "inner").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="not ours: inner, link"):
        write_folder(folder, FILES, mark=MADE_BY)


@pytest.mark.parametrize(
    ("name", "found"), [("file", "a file"), ("missing/plan", "no folder"), (".", "the folder we are in")]
)
def test_a_folder_that_cannot_be_ours_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, found: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with pytest.raises(ConfigurationError, match=found):
        write_folder(Path(name), FILES, mark=MADE_BY)


def test_a_failure_while_writing_leaves_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "plan"
    write_folder(folder, {"kustomization.yaml": MADE_BY}, mark=MADE_BY)
    rename = Path.rename

    def full(path: Path, target: Path) -> Path:
        if path.name == "new":
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(ConfigurationError, match="No space left on device"):
        write_folder(folder, FILES, mark=MADE_BY)
    assert contents(folder) == {"kustomization.yaml": MADE_BY}
    assert [each.name for each in tmp_path.iterdir()] == ["plan"]


def test_from_a_scenario_file_to_commands(tmp_path: Path) -> None:
    scenario = SCENARIO.read_text(encoding="utf-8").replace("        object: llama-h100\n", "")
    path, answer = tmp_path / "scenario.yaml", tmp_path / "answer.json"
    path.write_text(scenario, encoding="utf-8")
    assert CliRunner().invoke(app, ["plan", str(path), "-o", str(answer)]).exit_code == 0
    done = CliRunner().invoke(app, ["commands", str(answer)])
    assert done.exit_code == 3
    assert "kubectl -n serving scale deployment/llama-a100 --current-replicas=3 --replicas=8\n" in done.stdout
    assert "Left out, for want of an object in the scenario: chat/va-h100." in done.stdout


def test_a_plan_that_ends_early_is_written_as_far_as_it_goes_and_told(tmp_path: Path) -> None:
    small = a_candidate(current=16, object=an_object("small"))
    large = a_candidate(variant="large", object=an_object("large"))
    problem = a_problem((a_demand(rps=16.0),), (small, large), (a_pool(nodes=2),))
    done = commands(tmp_path, report=a_report_of(problem, {large.id: 16}, served=fully_served(problem)))
    assert done.exit_code == 3
    assert "The waves end before the solution is reached" in done.stderr
    assert "The waves end before the solution is reached" in done.stdout
