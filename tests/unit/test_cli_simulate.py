"""``fleetplan simulate``: screens, JSON, folders, exit codes; nothing is left half written."""

from __future__ import annotations

import csv
import importlib
import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from planner.cli import tables
from planner.cli.app import app

ROOT: Final = Path(__file__).parents[2]
SCENARIO: Final = ROOT / "data" / "scenarios" / "01-two-variants.yaml"
LINE: Final = "poisson:rate=3,duration=3m,input=normal(2000,500),output=uniform(10,300)"


def simulate(*arguments: object, trace: str = LINE) -> Result:
    given = ["simulate", str(SCENARIO), "--trace", trace, "--solver", "greedy", *map(str, arguments)]
    return CliRunner().invoke(app, given)


def test_policies_stand_side_by_side() -> None:
    done = simulate("--policy", "static,hpa", "--policy", "kpa")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[5:8]] == ["static", "hpa", "kpa"]
    for part in ("promises", "TTFT p95", "replicas on average (most at once)", "steps of the roofline"):
        assert part in done.stdout


def test_json_is_one_object_and_the_same_for_the_same_seed() -> None:
    one, again = (
        simulate("--json", "--policy", "hpa", "--seed", 4),
        simulate("--json", "--policy", "hpa", "--seed", 4),
    )
    assert one.stdout == again.stdout
    found = json.loads(one.stdout)
    assert (found["kind"], found["seed"], len(found["runs"])) == ("replay", 4, 1)
    total = found["runs"][0]["total"]
    assert total["arrivals"] == total["done"] + sum(total["failed"].values()) + total["unfinished"]
    assert found["steps"][0]["origin"] == "given"
    assert simulate("--json", "--policy", "hpa", "--seed", 5).stdout != one.stdout


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_folder_holds_figures_tables_pictures_and_a_trace(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "run"
    done = simulate("--policy", "static,hpa", "-o", folder, "--tables", form, "--chrome-trace")
    assert done.exit_code == 0, done.output
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    per_policy = {f"{name}.{form}" for name in ("requests", "services", "variants", "replicas")} | {
        "chrome-trace.json"
    }
    pictures = {f"{name}.{end}" for name in ("traffic", "replicas", "kv", "ttft") for end in ("png", "svg")}
    expected = (
        {"summary.json"}
        | pictures
        | {f"{policy}/{name}" for policy in ("static", "hpa") for name in per_policy}
    )
    assert expected <= names
    assert names - expected <= {"failures.png", "failures.svg"}
    arrivals = json.loads((folder / "summary.json").read_text())["runs"][0]["total"]["arrivals"]
    rows = read_table(folder / "static" / f"requests.{form}")
    assert len(rows) == arrivals
    assert {row["service"] for row in rows} == {"chat"}
    assert {row["outcome"] for row in rows} == {"done"}
    assert float(rows[0]["first_token_s"]) > float(rows[0]["arrival_s"])
    seconds = read_table(folder / "static" / f"services.{form}")
    assert sum(int(row["arrivals"]) for row in seconds) >= 0.9 * arrivals
    trace = json.loads((folder / "static" / "chrome-trace.json").read_text())
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == arrivals
    # What we wrote may be replaced as a whole.
    assert simulate("-o", folder, "--tables", form, "--no-plots").exit_code == 0
    assert not (folder / "hpa").exists()


def read_table(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8") as file:
            return list(csv.DictReader(file))
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


def test_without_pyarrow_tables_are_csv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert tables.chosen_format(None) == "csv"
    done = simulate("--tables", "parquet")
    assert (done.exit_code, "needs pyarrow" in done.output) == (2, True)


def test_everything_wrong_with_options_is_in_one_message() -> None:
    done = simulate(
        "--policy", "hpaa", "--start", "x", "--slice", "5", "--until", "soon", "--scale", 0, "--epp", "/none",
        "--on-bad-row", "drop", "--routing", "robin", "--chrome-trace",
    )  # fmt: skip
    assert done.exit_code == 2
    for part in (
        "--policy",
        "--start",
        "--slice",
        "--until",
        "scale",
        "/none",
        "--on-bad-row",
        "--routing",
        "--chrome-trace",
    ):
        assert part in done.output


def test_a_bad_trace_ends_with_2_and_leaves_no_folder_behind(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("arrival_s,input_tokens,output_tokens\n0,5,5\n1,x,5\n2,5,5\n")
    folder = tmp_path / "run"
    done = simulate("-o", folder, trace=str(path))
    assert (done.exit_code, f"{path}:3: input_tokens: found 'x'" in done.output) == (2, True)
    assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]
    kept = simulate("--on-bad-row", "skip", trace=str(path))
    assert kept.exit_code == 0
    assert "left out 1 of 3 rows, the first for:" in kept.stdout


@pytest.mark.parametrize("options", [("--slice", "10m:20m"), ("--until", "0.001")])
def test_a_run_without_a_request_is_no_run(tmp_path: Path, options: tuple[str, str]) -> None:
    done = simulate(*options, "-o", tmp_path / "run")
    assert (done.exit_code, "the traffic holds no request" in done.output) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_findings_name_options_and_no_file_that_is_not_theirs(tmp_path: Path) -> None:
    done = simulate("--epp", tmp_path / "none", "--scale", "nan", "--speed", "0", "--slice", "9:3")
    assert done.exit_code == 2
    assert "4 problems:" in done.output
    for option in ("--scale: found nan", "--speed: found 0", "--slice: found 9:3 s"):
        assert option in done.output


def test_options_the_folder_and_the_scenario_are_refused_together(tmp_path: Path) -> None:
    folder = tmp_path / "no" / "run"
    done = simulate("--start", "x", "-o", folder, "--set", "services.chatt.priority=1")
    assert done.exit_code == 2
    for part in ("--start: found 'x'", f"{folder}: found no folder", "services.chatt"):
        assert part in done.output


def test_one_request_is_one(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("arrival_s,input_tokens,output_tokens\n1,5,5\n")
    assert ": 1 request, seed" in simulate(trace=str(path)).stdout


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.cli.run_folder import RunFolder

    def interrupted(self: RunFolder, replay: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "add_summary", interrupted)
    done = simulate("-o", tmp_path / "run")
    assert (done.exit_code, list(tmp_path.iterdir())) == (130, [])


@pytest.mark.parametrize("kind", ["file", "strangers", "missing"])
def test_a_folder_that_is_not_ours_is_refused_before_anything_runs(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "there"
    if kind == "file":
        target.write_text("mine")
    elif kind == "strangers":
        target.mkdir()
        (target / "diary.txt").write_text("mine")
    else:
        target = tmp_path / "no" / "there"
    done = simulate("-o", target)
    assert done.exit_code == 2
    assert str(target) in done.output
    if kind == "strangers":
        assert (target / "diary.txt").read_text() == "mine"
        assert simulate("-o", target, "--force", "--no-plots").exit_code == 0


def test_a_saved_plan_can_be_replayed(tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    assert (
        CliRunner().invoke(app, ["plan", str(SCENARIO), "--solver", "greedy", "-o", str(saved)]).exit_code
        == 0
    )
    done = simulate("--plan", saved, "--json")
    assert done.exit_code == 0, done.output
    (tmp_path / "other.json").write_text(
        '{"status": "OPTIMAL", "counts": {"x": 1}, "proof": {"solver": "greedy"}}'
    )
    other = simulate("--plan", tmp_path / "other.json")
    assert (other.exit_code, "candidates that the scenario does not" in other.output) == (2, True)


def test_a_router_of_a_file_and_round_robin_make_a_difference(tmp_path: Path) -> None:
    path = tmp_path / "epp.yaml"
    path.write_text(
        "apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nfeatureGates: [flowControl]\n"
        "plugins: [{type: queue-scorer}, {type: single-profile-handler}]\n"
        "schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]\n"
        "flowControl: {maxRequests: 5, defaultRequestTTL: 1s}\n"
    )
    busy = "poisson:rate=40,duration=2m,input=4000,output=500"
    held = json.loads(simulate("--epp", path, "--json", trace=busy).stdout)
    assert held["runs"][0]["total"]["failed"].keys() <= {"rejected_429", "rejected_503"}
    assert held["runs"][0]["total"]["failed"]["rejected_429"] > 0
    assert any("single-profile-handler" in note for note in held["notes"])
    assert (
        simulate("--routing", "round-robin", "--json").stdout
        != simulate("--routing", "random", "--json").stdout
    )


def test_no_plan_in_time_is_4() -> None:
    from planner.cli.commands import simulate as command
    from planner.errors import TemporaryError

    def late(*given: object, **more: object) -> None:
        raise TemporaryError("no plan was found in the time given")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "_prepared", late)
        assert simulate().exit_code == 4


@pytest.mark.parametrize("options", [("--seed", 2**63), ("--scrape", "1e-12"), ("--routing", "")])
def test_an_option_beyond_all_measure_is_refused(options: tuple[str, object]) -> None:
    done = simulate(*options)
    assert (done.exit_code, options[0] in done.output) == (2, True)
