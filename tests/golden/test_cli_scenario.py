"""The first scenario from its file to the screen, with nothing replaced."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from planner.cli import app

SCENARIO: Final = Path(__file__).parents[2] / "data" / "scenarios" / "01-two-variants.yaml"
SECONDS: Final = re.compile(r"\d+\.\d\d s: size.*?(?=\n\n)", re.DOTALL)
TOO_MUCH: Final = ("--set", "services.chat.traffic.rate=40")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "FLEETPLAN_DEBUG"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def planned(*arguments: str | Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run("plan", SCENARIO, "--json", *arguments).stdout)
    return document


def masked(text: str) -> str:
    return SECONDS.sub("0.00 s: size ...", text)


@pytest.mark.parametrize("columns", ["", "80"], ids=["piped", "80"])
def test_the_screen(
    golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    done = run("plan", SCENARIO, "--solver", "cp-sat")
    assert (done.exit_code, done.stderr) == (0, "")
    golden(f"scenario-01-{columns or 'piped'}.txt", masked(done.stdout))


def test_one_entry_of_the_catalog(golden: Callable[[str, str], None]) -> None:
    golden("catalog-show-h100.txt", run("catalog", "show", "H100").stdout)


def test_equal_inputs_give_equal_answers() -> None:
    one, two = planned("--solver", "cp-sat"), planned("--solver", "cp-sat")
    assert one.pop("seconds").keys() == two.pop("seconds").keys()
    assert one == two


def test_what_is_saved_is_checked_and_explained(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    assert run("plan", SCENARIO, "-o", path).exit_code == 0
    assert run("check", SCENARIO, path).stdout == "Every rule holds.\n"
    assert run("explain", path).stdout == run("explain", SCENARIO).stdout
    assert run("check", SCENARIO, path, *TOO_MUCH).exit_code == 3


def test_more_than_the_fleet_can_serve(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    done = run("plan", SCENARIO, "--json", "-o", path, *TOO_MUCH)
    document = json.loads(done.stdout)
    best_effort = document["best_effort"]
    assert done.exit_code == 3
    assert (document["status"], document["objective"], best_effort["status"]) == (
        "INFEASIBLE",
        None,
        "OPTIMAL",
    )
    assert best_effort["objective"]["unserved_rps"] > 0
    assert best_effort["violations"] == []
    assert "gpus" in document["explanation"]["conflict"]["families"]
    assert all(each["verified"] for each in document["explanation"]["relaxations"])
    assert run("check", SCENARIO, path, "--allow-unserved", *TOO_MUCH).exit_code == 0


def test_unserved_demand_that_is_allowed_is_no_failure() -> None:
    done = run("plan", SCENARIO, "--allow-unserved", *TOO_MUCH)
    assert done.exit_code == 0
    assert "unserved" in done.stdout


def test_levels_stand_in_the_order_that_is_asked_for() -> None:
    levels = [level["name"] for level in planned("--objective", "unserved,power,cost")["levels"]]
    assert levels == ["unserved", "power", "cost"]


def test_a_heuristic_by_name_stands_with_what_it_breaks() -> None:
    document = planned("--solver", "cost-aware")
    assert document["status"] == "FEASIBLE"
    assert {violation["family"] for violation in document["violations"]} & {"gpus", "placement"}


def test_a_heuristic_that_leaves_promised_demand_unserved_breaks_no_limit_and_ends_with_3() -> None:
    done = run("plan", SCENARIO, "--solver", "greedy", "--json", *TOO_MUCH)
    document = json.loads(done.stdout)
    assert (done.exit_code, document["status"]) == (3, "FEASIBLE")
    assert (document["violations"], document["unkept_promises"]) == ([], ["chat"])
    said = run("plan", SCENARIO, "--solver", "greedy", *TOO_MUCH).stdout
    assert "The promise to serve all demand is not kept for chat." in said
    assert "Rules that this plan breaks" not in said
    assert run("plan", SCENARIO, "--solver", "greedy", "--allow-unserved", *TOO_MUCH).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan", SCENARIO, "--solver", "cpsat"], "did you mean 'cp-sat'?"),
        (["plan", SCENARIO, "--set", "services.chat.trafic.rate=1"], "did you mean 'traffic'?"),
        (["plan", SCENARIO.parent / "none.yaml"], "no such file"),
        (["schema", "scenarios"], "did you mean 'scenario'?"),
    ],
    ids=["solver", "override", "file", "schema"],
)
def test_a_slip_names_what_was_meant(arguments: list[str | Path], said: str) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_schema_is_json() -> None:
    assert json.loads(run("schema", "scenario").stdout)["$id"] == "fleetplan/1/scenario"


def test_solvers_are_listed() -> None:
    listed = run("plugins").stdout
    assert {"auto", "cp-sat", "pulp", "greedy"} <= {
        line.split()[1] for line in listed.splitlines() if "solver" in line
    }
