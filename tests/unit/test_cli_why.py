"""``explain``, ``pareto``, ``export`` and ``check`` together, from a scenario file to what a person reads."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, Final

import highspy
import pytest
from typer.testing import CliRunner, Result

from planner.cli import app
from planner.optimization.backends.greeting import let_highs_greet

FOLDER: Final = Path(__file__).parents[2] / "data" / "scenarios"
TWO_VARIANTS: Final = str(FOLDER / "01-two-variants.yaml")
POWER_CAP: Final = str(FOLDER / "03-power-cap.yaml")
QUOTA: Final = str(FOLDER / "07-quota-and-physical.yaml")


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def explained(*words: str) -> dict[str, Any]:
    done = run("explain", *words, "--json")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_worth_is_found_only_when_asked() -> None:
    found = explained(QUOTA, "--worth")
    worth = {(each["family"], *each["key"]): each for each in found["worth"]}
    assert worth["quota", "shop-h100"]["one"]["level"] is None
    first = worth["quota", "shop-h100"]["first"]
    assert (first["amount"], first["level"], first["unit"], first["evidence"]) == (4, "cost", "$/h", "proven")
    assert first["value"] == pytest.approx(13.6)
    assert explained(QUOTA)["worth"] == []


def test_worth_on_the_screen() -> None:
    done = run("explain", QUOTA, "--worth")
    assert "What a little more is worth" in done.stdout
    assert "+4 GPUs: cost: 13.6 $/h less" in done.stdout


def test_an_answer_that_was_saved_is_looked_at_as_closely(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    assert run("plan", QUOTA, "-o", str(path)).exit_code == 0
    saved, fresh = explained(str(path), "--worth"), explained(QUOTA, "--worth")
    # Nothing can be sized again from a saved answer.
    assert saved["worth"] == [each for each in fresh["worth"] if each["family"] != "slo"]
    assert (saved["runners_up"], saved["differences"]) == (fresh["runners_up"], fresh["differences"])


def test_what_greedy_does_differently_and_what_it_costs() -> None:
    (difference,) = explained(QUOTA)["differences"]
    assert difference["name"] == "greedy"
    assert difference["unserved_rps"] > 0
    counts = {each["candidate"]: (each["replicas"], each["theirs"]) for each in difference["allocations"]}
    assert counts["lab-mail/h100-tp4@h100"] == (2, 1)


def test_what_would_serve_all_is_told_beside_a_plan_that_does_not() -> None:
    done = run("plan", POWER_CAP, "--allow-unserved")
    assert done.exit_code == 0
    assert "Raise the power cap of fleet from 116 kW to 123.6 kW: allows a plan at 922.5 $/h." in done.stdout


def test_plans_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "today.json"
    run("plan", TWO_VARIANTS, "-o", str(path))
    more = "services.chat.traffic.rate=*1.5"
    done = run("plan", TWO_VARIANTS, "--set", more, "--against", str(path), "--json")
    (difference,) = json.loads(done.stdout)["explanation"]["differences"]
    assert difference["name"] == "today"
    assert difference["cost"] < 0
    assert "chat/va-h100@h100" in {each["candidate"] for each in difference["allocations"]}
    screen = run("plan", TWO_VARIANTS, "--set", more, "--against", str(path)).stdout
    assert "What today does differently" in screen


def test_a_front_as_a_table_for_plotting() -> None:
    done = run("pareto", TWO_VARIANTS, "--x", "cost", "--y", "power", "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert done.exit_code == 0
    assert [(float(row["x"]), float(row["y"])) for row in rows] == [
        (23.0, 21200.0), (23.5, 19400.0), (24.0, 17600.0), (25.5, 17400.0),
    ]  # fmt: skip
    assert {row["status"] for row in rows} == {"OPTIMAL"}


def test_a_front_in_a_file(tmp_path: Path) -> None:
    as_json, as_csv = tmp_path / "front.json", tmp_path / "front.csv"
    for path in (as_json, as_csv):
        assert run("pareto", TWO_VARIANTS, "--y", "changes", "-o", str(path)).exit_code == 0
    document = json.loads(as_json.read_text(encoding="utf-8"))
    assert (document["complete"], document["y"]["name"], len(document["points"])) == (True, "changes", 3)
    assert len(as_csv.read_text(encoding="utf-8").splitlines()) == 4


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([POWER_CAP], 3, "No plan keeps every promise"),
        ([TWO_VARIANTS, "--x", "costs"], 2, "did you mean 'cost'?"),
        ([TWO_VARIANTS, "--y", "cost"], 2, "another axis than --x"),
        ([TWO_VARIANTS, "--points", "1"], 2, "at least 2"),
        ([TWO_VARIANTS, "--json", "--csv"], 2, "not both"),
    ],
)
def test_fronts_that_end_otherwise(words: list[str], code: int, said: str) -> None:
    done = run("pareto", *words)
    assert done.exit_code == code
    assert said in done.stdout + done.stderr


def solved(program: Path, solution: Path) -> None:
    let_highs_greet()
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(program)) != highspy.HighsStatus.kError
    highs.run()
    highs.writeSolution(str(solution), 0)


@pytest.mark.parametrize("name", ["program.lp", "program.mps"])
def test_there_and_back_through_another_solver(name: str, tmp_path: Path) -> None:
    program, solution = tmp_path / name, tmp_path / "answer.sol"
    assert run("export", QUOTA, "-o", str(program)).exit_code == 0
    assert program.read_text(encoding="utf-8").startswith("Minimize" if name.endswith("lp") else "NAME")
    solved(program, solution)
    done = run("check", QUOTA, str(solution))
    assert (done.exit_code, done.stdout) == (0, "Every rule holds.\n")


def test_a_plan_of_ones_own_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"chat/va-h100@h100": 1}', encoding="utf-8")
    done = run("check", TWO_VARIANTS, str(path))
    assert done.exit_code == 3
    assert "chat" in done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n(chat.va.h100@h100) 1.5\n", "1.5; allowed: a whole number"),
        ("what is this file\n", "what is this file"),
    ],
)
def test_a_solution_that_is_none(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "answer.sol"
    path.write_text(text, encoding="utf-8")
    done = run("check", TWO_VARIANTS, str(path))
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_level_that_is_none() -> None:
    done = run("export", TWO_VARIANTS, "--level", "powr")
    assert done.exit_code == 2
    assert "did you mean 'power'?" in done.stderr


def test_a_level_holds_those_before_it(tmp_path: Path) -> None:
    done = run("export", TWO_VARIANTS, "--level", "power", "--format", "lp")
    assert "level(cost)" in done.stdout
    assert "level(cost)" not in run("export", TWO_VARIANTS).stdout
