"""How the command line ends: exit code, what is on stdout and what on stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from models.report import Report
from models.solution import Status
from planner import errors
from planner.cli import app
from planner.cli.files import write_report
from planner.errors import Finding
from tests.reports import (
    a_heuristic_report,
    a_timed_out_report,
    an_infeasible_report,
    an_optimal_report,
)

ROOT: Final = Path(__file__).parents[2]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "FLEETPLAN_DEBUG"):
        monkeypatch.delenv(name, raising=False)


Answer = Callable[[Report | BaseException], None]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Make planning answer with a report, or fail; the scenario is not read."""

    def answer_with(outcome: Report | BaseException) -> None:
        def planned(*_: Any, **__: Any) -> Report:
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setattr("planner.door.load_scenario", lambda *_, **__: None)
        monkeypatch.setattr("planner.planning.plan_scenario", planned)
        monkeypatch.setattr("planner.rolling.with_rollout", lambda report, **_: report)

    return answer_with


def failed() -> Report:
    report = a_timed_out_report()
    return report.but(answer=report.answer.but(solution=report.answer.solution.but(status=Status.FAILED)))


@pytest.mark.parametrize(
    ("report", "code"),
    [(an_optimal_report(), 0), (a_heuristic_report(), 3), (an_infeasible_report(), 3), (a_timed_out_report(), 4),
     (failed(), 1)],
    ids=["optimal", "heuristic-breaks-a-rule", "infeasible", "timed-out", "failed"],
)  # fmt: skip
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["screen", "json"])
def test_the_status_decides(answer: Answer, report: Report, code: int, form: list[str]) -> None:
    answer(report)
    done = run("plan", "any.yaml", *form)
    assert done.exit_code == code
    if form:
        assert json.loads(done.stdout)["status"] == report.answer.solution.status


CODES: Final = (
    (errors.ConfigurationError("change it"), 2), (errors.CatalogError("change it"), 2),
    (errors.PermanentError("never"), 2), (errors.TemporaryError("later"), 4), (errors.SafetyGateError("no"), 5),
    (errors.InternalError("ours"), 1), (RuntimeError("ours"), 1), (KeyboardInterrupt(), 130),
)  # fmt: skip


@pytest.mark.parametrize(("error", "code"), CODES, ids=[type(error).__name__ for error, _ in CODES])
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["screen", "json"])
def test_an_error_is_words_on_stderr_and_nothing_on_stdout(
    answer: Answer, error: BaseException, code: int, form: list[str]
) -> None:
    answer(error)
    done = run("plan", "any.yaml", *form)
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith("fleetplan: ")
    assert "Traceback" not in done.stderr


def test_every_finding_is_printed(answer: Answer) -> None:
    findings = [
        Finding("a.yaml", 3, "services[0].slo.tfft", "unknown key 'tfft'", "ttft, itl, e2e, at", "ttft"),
        Finding("a.yaml", 9, "pools[0].nodes", "-1", "a count"),
    ]
    answer(errors.ConfigurationError.from_findings(findings))
    said = run("plan", "a.yaml").stderr
    for finding in findings:
        assert f"  {finding}\n" in said
    assert "2 problems in a.yaml" in said


def test_a_fault_of_ours_says_how_to_report_it(answer: Answer) -> None:
    answer(RuntimeError("boom"))
    said = run("plan", "any.yaml").stderr
    assert "fault of ours" in said
    assert "RuntimeError: boom" in said
    assert "--debug" in said


@pytest.mark.parametrize("way", ["option", "variable"])
def test_the_traceback_is_there_when_asked_for(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    answer(RuntimeError("boom"))
    if way == "variable":
        monkeypatch.setenv("FLEETPLAN_DEBUG", "1")
    said = run("plan", "any.yaml", *(["--debug"] if way == "option" else [])).stderr
    assert "Traceback" in said


@pytest.mark.parametrize(
    "arguments",
    [["plan"], ["plan", "a", "--gap", "7"], ["plan", "a", "--nothing"], ["catalog", "list", "everything"], ["nonsense"],
     ["plan", "a", "--time-limit", "nan"], ["plan", "a", "--threads", "0"], ["plan", "a", "--threads", "257"],
     ["pareto", "a", "--threads", "257"], ["import", "lyrics", "x.csv"], ["import", "aiconfigurator", "x.csv"]],
    ids=" ".join,
)  # fmt: skip
def test_wrong_options_end_with_two(arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")


@pytest.mark.parametrize(
    ("levels", "said"), [("cost,unservd", "unserved"), ("cost,cost", "at most once"), ("", "''")]
)
def test_wrong_objective_levels_end_with_two(answer: Answer, levels: str, said: str) -> None:
    answer(an_optimal_report())
    done = run("plan", "any.yaml", "--objective", levels)
    assert done.exit_code == 2
    assert said in done.stderr


def test_an_answer_is_saved_and_explained_without_the_scenario(answer: Answer, tmp_path: Path) -> None:
    answer(an_optimal_report())
    path = tmp_path / "answer.json"
    assert run("plan", "any.yaml", "-o", path).exit_code == 0
    answer(RuntimeError("planning is not needed"))
    done = run("explain", path)
    assert done.exit_code == 0
    assert "no pool has the accelerator T4" in done.stdout
    explained = run("explain", path, "--json")
    assert len(json.loads(explained.stdout)["rejected"]) == 2


def test_without_an_answer_nothing_is_saved(answer: Answer, tmp_path: Path) -> None:
    answer(a_timed_out_report())
    done = run("plan", "any.yaml", "-o", tmp_path / "answer.json")
    assert done.exit_code == 4
    assert list(tmp_path.iterdir()) == []
    assert "no answer to save" in done.stderr


def test_a_folder_that_is_missing_is_found_before_planning(answer: Answer, tmp_path: Path) -> None:
    answer(RuntimeError("planning must not start"))
    done = run("plan", "any.yaml", "-o", tmp_path / "missing" / "answer.json")
    assert done.exit_code == 2
    assert "no folder" in done.stderr


def test_saved_answers_stand_beside(answer: Answer, tmp_path: Path) -> None:
    path = tmp_path / "last week (final).json"
    write_report(path, an_infeasible_report())
    answer(an_optimal_report())
    document = json.loads(run("plan", "any.yaml", "--json", "--against", path).stdout)
    assert list(document["beside"]) == ["fewest-moves", "greedy", "last-week-final", "now"]
    assert document["beside"]["last-week-final"]["objective"]["unserved_rps"] == 3.5
    screen = run("plan", "any.yaml", "--against", path).stdout
    assert "last-week-final *" in screen
    assert "* answers another problem" in screen


def test_saved_answers_never_take_a_name_that_is_taken(answer: Answer, tmp_path: Path) -> None:
    paths = [tmp_path / "now.json", tmp_path / "old" / "now.json", tmp_path / "greedy.json"]
    paths[1].parent.mkdir()
    for path in paths:
        write_report(path, an_optimal_report())
    answer(an_optimal_report())
    against = [text for path in paths for text in ("--against", str(path))]
    beside = json.loads(run("plan", "any.yaml", "--json", *against).stdout)["beside"]
    assert list(beside) == ["fewest-moves", "greedy", "now-2", "now-3", "greedy-2", "now"]


def test_a_saved_answer_that_cannot_be_read_ends_with_two(answer: Answer, tmp_path: Path) -> None:
    answer(RuntimeError("planning must not start"))
    assert run("plan", "any.yaml", "--against", tmp_path / "missing.json").exit_code == 2


def test_all_that_is_wrong_with_a_plans_options_comes_at_once(answer: Answer, tmp_path: Path) -> None:
    answer(RuntimeError("planning must not start"))
    missing = [tmp_path / name for name in ("one.json", "two.json")]
    arguments = ["--against", missing[0], "--against", missing[1], "--within", "x"]
    done = run("plan", "any.yaml", *arguments, "-o", tmp_path / "none" / "o.json")
    assert done.exit_code == 2
    told = [f"  {path}: found" for path in missing] + ["  --within: found 'x'", "found no folder"]
    assert [each for each in told if each not in done.stderr] == []


def test_colors_are_a_choice(answer: Answer) -> None:
    answer(an_optimal_report())
    assert "\x1b[" in run("plan", "any.yaml", "--color").stdout
    assert "\x1b[" not in run("plan", "any.yaml", "--no-color").stdout
    assert "\x1b[" not in run("plan", "any.yaml").stdout


def test_nobody_reading_on_is_silent() -> None:
    """The reader is gone before the first byte, as with ``| head -0``."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", "import planner.cli; planner.cli.main()", "catalog", "list"]
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_small_character_set_is_served() -> None:
    code = "import planner.cli; from planner.cli.terminal import out_console, spell_out_what_cannot_be_written as s; s(); out_console().print('3 → 5 × TP8 Ω')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=False,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (b"3 -> 5 x TP8 ?\n", b"")


def test_the_command_line_starts_without_solvers() -> None:
    code = "import sys, planner.cli; print(sorted({'ortools', 'pulp', 'highspy', 'numpy', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.parametrize("part", ["accelerators", "llms", "profiles"])
def test_a_part_of_the_catalog_is_listed(part: str) -> None:
    whole, one = run("catalog", "list").stdout, run("catalog", "list", part).stdout
    assert 0 < len(one) < len(whole)
    assert one in whole


@pytest.mark.parametrize(
    ("name", "shown"),
    [("H100", "memory_bytes"), ("h100", "memory_bytes"), ("Qwen3-32B", "attention.kv_heads")],
)
def test_an_entry_is_shown_with_its_sources(name: str, shown: str) -> None:
    done = run("catalog", "show", name)
    assert done.exit_code == 0
    assert shown in done.stdout
    assert "Sources" in done.stdout


def test_an_entry_that_nobody_knows_names_the_nearest() -> None:
    done = run("catalog", "show", "H1000")
    assert done.exit_code == 2
    assert "did you mean 'H100'?" in done.stderr


def test_explaining_an_infeasible_answer_ends_as_planning_it_did(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    write_report(path, an_infeasible_report())
    done = run("explain", path)
    assert done.exit_code == 3
    assert "Raise the power cap of hall-1 from 28.5 kW to 33.62 kW" in done.stdout


def a_measured_table(path: Path) -> Path:
    """One row of AIConfigurator's table: 10 requests for 1 s + 100 x 90 ms, hence 1 req/s."""
    row = {
        "id": "qwen_tp2_epnone_1", "silicon_data_source": "x; silicon_concurrency=10; y", "backend": "vllm",
        "backend_version": "0.1", "model_path": "Qwen/Qwen3-32B", "system": "h100_sxm", "precision": "fp8",
        "mode": "agg", "isl": "1000", "osl": "101", "batch_size": "", "tp_size": "2", "pp_size": "1",
        "attention_dp_size": "", "moe_tp_size": "", "moe_ep_size": "", "prefill_num_workers": "",
        "decode_num_workers": "", "silicon_ttft_ms": "1000", "silicon_tpot_ms": "90",
    }  # fmt: skip
    row |= {f"{role}_{name}": "" for role in ("prefill", "decode")
            for name in ("batch_size", "tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")}  # fmt: skip
    path.write_text(f"{','.join(row)}\n{','.join(row.values())}\n", encoding="utf-8")
    return path


def test_measured_tables_become_one_profile(tmp_path: Path) -> None:
    tables = [a_measured_table(tmp_path / "one.csv"), a_measured_table(tmp_path / "two.csv")]
    profile = tmp_path / "profile.csv"
    done = run("import", "aiconfigurator", *tables[:1], "-o", profile)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == f"1 point written to {profile}\n"
    assert len(profile.read_text(encoding="utf-8").splitlines()) == 2


def test_a_table_that_cannot_be_read_writes_nothing(tmp_path: Path) -> None:
    profile = tmp_path / "profile.csv"
    done = run("import", "aiconfigurator", tmp_path / "missing.csv", "-o", profile)
    assert (done.exit_code, profile.exists()) == (2, False)


FULL: Final = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["schema", "scenario"], ["--help"], ["--version"]], ids=" ".join)
def test_a_full_disk_is_said_and_no_fault_of_ours(arguments: list[str]) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from planner.cli import main; main()", *arguments],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT,
        )  # fmt: skip
    assert done.returncode == 4
    assert done.stderr == "fleetplan: could not write to standard output: No space left on device\n"


def test_a_closed_output_is_said_before_anything_is_computed() -> None:
    script = 'exec "$0" -c "from planner.cli import main; main()" plan no-such-file >&-'
    done = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (
        4, "fleetplan: could not write to standard output: it is closed\n",
    )  # fmt: skip


def test_a_format_that_nobody_knows_is_answered_with_those_there_are() -> None:
    done = run("import", "aiconfigurater")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "allowed: aiconfigurator, " in done.stderr
    assert "did you mean 'aiconfigurator'?" in done.stderr
