"""``-o``: a new file, or one that the command wrote before; nothing else is ever replaced."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from planner.cli import app
from planner.cli.files import read_report, write_report
from planner.cli.outputs import Output, begins_with
from planner.errors import ConfigurationError
from tests.builders import a_candidate
from tests.reports import an_optimal_report
from tests.rollouts import a_report_of, one_variant

MARK: Final = "# ours\n"
FOREIGN: Final = "root:x:0:0\n"


def an_output(path: Path, **fields: Any) -> Output:
    return Output(path=path, ours=begins_with(MARK), **fields)


def only_files(folder: Path) -> dict[str, str]:
    return {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir() if each.is_file()}


@pytest.mark.parametrize("old", [None, "", f"{MARK}old\n"], ids=["new", "empty", "ours"])
def test_a_new_file_or_one_of_ours_is_written(tmp_path: Path, old: str | None) -> None:
    path = tmp_path / "out"
    if old is not None:
        path.write_text(old, encoding="utf-8")
    an_output(path).write(f"{MARK}new\n")
    assert only_files(tmp_path) == {"out": f"{MARK}new\n"}


def test_what_is_not_ours_is_kept_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text(FOREIGN, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"a file that this command did not write.*--force"):
        an_output(path).write(MARK)
    assert only_files(tmp_path) == {"out": FOREIGN}
    an_output(path, force=True).write(MARK)
    assert only_files(tmp_path) == {"out": MARK}


@pytest.mark.parametrize("force", [False, True])
def test_an_input_is_never_replaced_by_whatever_name(tmp_path: Path, force: bool) -> None:
    source, link, hard = tmp_path / "in", tmp_path / "link", tmp_path / "hard"
    source.write_text(MARK, encoding="utf-8")
    link.symlink_to(source)
    hard.hardlink_to(source)
    for path in (source, link, hard, tmp_path / "." / "in"):
        with pytest.raises(ConfigurationError, match="the file that this command reads"):
            an_output(path, inputs=(source,), force=force).write(f"{MARK}new")
    assert source.read_text(encoding="utf-8") == MARK


def a_folder(path: Path) -> None:
    path.mkdir()


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def a_loop(path: Path) -> None:
    path.symlink_to(path)


def a_link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to(path.with_name("pipe"))


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("make", "found"),
    [
        (os.mkfifo, "a named pipe"),
        (a_folder, "a folder"),
        (a_socket, "a socket"),
        (a_link_to_a_pipe, "a named pipe"),
        (a_loop, "leads nowhere"),
    ],
)
def test_what_is_no_regular_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], found: str, force: bool
) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    path = Path("out")
    make(path)
    kind = path.lstat().st_mode
    with pytest.raises(ConfigurationError, match=found):
        an_output(path, force=force).write(MARK)
    assert path.lstat().st_mode == kind


def test_a_terminal_is_a_device(tmp_path: Path) -> None:
    leader, follower = os.openpty()
    try:
        link = tmp_path / "out"
        link.symlink_to(os.ttyname(follower))
        with pytest.raises(ConfigurationError, match="found a device"):
            an_output(link, force=True).check()
    finally:
        os.close(leader)
        os.close(follower)


@pytest.mark.parametrize("old", [None, MARK], ids=["missing", "ours"])
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path, old: str | None) -> None:
    real, link = tmp_path / "far" / "real", tmp_path / "out"
    real.parent.mkdir()
    if old is not None:
        real.write_text(old, encoding="utf-8")
    link.symlink_to(real)
    an_output(link).write(f"{MARK}new")
    assert link.is_symlink()
    assert only_files(real.parent) == {"real": f"{MARK}new"}


def test_a_link_to_a_file_of_others_is_refused(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "out"
    real.write_text(FOREIGN, encoding="utf-8")
    link.symlink_to(real)
    with pytest.raises(ConfigurationError, match="did not write"):
        an_output(link).write(MARK)
    assert real.read_text(encoding="utf-8") == FOREIGN


def test_the_null_device_takes_everything_and_stays(tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    an_output(link).write(MARK)
    assert link.is_symlink()
    assert stat.S_ISCHR(link.stat().st_mode)


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1"])
def test_standard_output_by_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    an_output(Path(name)).write("once\n")
    with an_output(Path(name)).at_once() as temporary:
        temporary.write_text("twice\n", encoding="utf-8")
    assert capsys.readouterr().out == "once\ntwice\n"
    assert only_files(tmp_path) == {}


@pytest.mark.parametrize(("executable", "mode"), [(False, 0o640), (True, 0o751)])
def test_a_file_keeps_its_mode_and_a_program_may_be_run(tmp_path: Path, executable: bool, mode: int) -> None:
    path = tmp_path / "out"
    path.write_text(MARK, encoding="utf-8")
    path.chmod(0o640)
    an_output(path, executable=executable).write(MARK)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("executable", [False, True])
def test_a_new_file_is_as_open_as_any_other(tmp_path: Path, executable: bool) -> None:
    (tmp_path / "plain").write_text("", encoding="utf-8")
    plain = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    an_output(tmp_path / "ours", executable=executable).write("")
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == (
        plain | (plain & 0o444) >> 2 if executable else plain
    )


@pytest.mark.parametrize(
    ("name", "found"),
    [("", "a folder"), ("missing/answer.json", "no folder"), ("file/answer.json", "no folder")],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, name: str, found: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=found):
        an_output(tmp_path / name).check()


def test_a_failure_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    path.write_text(MARK, encoding="utf-8")

    def full(_: Path, __: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ConfigurationError, match="No space left on device"):
        an_output(path).write("new")
    assert only_files(tmp_path) == {"out": MARK}


SCENARIO: Final = Path(__file__).parents[2] / "data" / "scenarios" / "01-two-variants.yaml"
MEASURED: Final = "model,gpu,engine,isl,osl,concurrency\n"  # read only after the target was checked


def an_answer(folder: Path) -> Path:
    path = folder / "answer.json"
    write_report(
        path, a_report_of(one_variant(3, a_candidate(variant="bare", pool="west")), {"chat/small@east": 5})
    )
    return path


def calls(folder: Path) -> dict[str, tuple[Path, list[str]]]:
    """Every command with ``-o``: its input, and its arguments."""
    scenario, table = folder / "scenario.yaml", folder / "table.csv"
    scenario.write_text(SCENARIO.read_text(encoding="utf-8"), encoding="utf-8")
    table.write_text(MEASURED, encoding="utf-8")
    answer = an_answer(folder)
    return {
        "plan": (scenario, ["plan", str(scenario)]),
        "pareto": (scenario, ["pareto", str(scenario), "--points", "2"]),
        "export": (scenario, ["export", str(scenario)]),
        "import": (table, ["import", "aiconfigurator", str(table)]),
        "commands": (answer, ["commands", str(answer)]),
        "commands yaml": (answer, ["commands", str(answer), "--format", "yaml"]),
    }


COMMANDS: Final = ("plan", "pareto", "export", "import", "commands", "commands yaml")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_replaces_a_file_of_others_or_its_own_input(tmp_path: Path, name: str) -> None:
    source, arguments = calls(tmp_path)[name]
    foreign, before = tmp_path / "passwd", source.read_text(encoding="utf-8")
    foreign.write_text(FOREIGN, encoding="utf-8")
    for path, found in ((foreign, "did not write"), (source, "this command reads")):
        done = invoke(*arguments, "-o", str(path))
        assert (done.exit_code, done.stdout) == (2, "")
        assert found in done.stderr
    assert invoke(*arguments, "-o", str(source), "--force").exit_code == 2
    assert source.read_text(encoding="utf-8") == before
    assert foreign.read_text(encoding="utf-8") == FOREIGN


@pytest.mark.parametrize("name", ["plan", "pareto", "export", "commands", "commands yaml"])
def test_every_command_replaces_what_it_wrote_and_with_force_more(tmp_path: Path, name: str) -> None:
    _, arguments = calls(tmp_path)[name]
    path = tmp_path / "out"
    path.write_text(FOREIGN, encoding="utf-8")
    assert invoke(*arguments, "-o", str(path), "--force").exit_code in {0, 3}
    path.write_text(f"{path.read_text(encoding='utf-8')} ", encoding="utf-8")
    assert invoke(*arguments, "-o", str(path)).exit_code in {0, 3}
    assert not path.read_text(encoding="utf-8").endswith(" ")


@pytest.mark.parametrize("suffix", ["csv", "mps"])
def test_other_formats_are_known_again(tmp_path: Path, suffix: str) -> None:
    command = {"csv": "pareto", "mps": "export"}[suffix]
    _, arguments = calls(tmp_path)[command]
    for _ in range(2):
        assert invoke(*arguments, "-o", str(tmp_path / f"out.{suffix}")).exit_code == 0


@pytest.mark.parametrize("name", ["plan", "pareto"])
def test_one_document_on_standard_output(tmp_path: Path, name: str) -> None:
    _, arguments = calls(tmp_path)[name]
    done = invoke(*arguments, "-o", "-")
    assert done.exit_code == 0
    assert done.stdout.startswith("{")
    assert invoke(*arguments, "-o", "-", "--json").exit_code == 2


def test_a_saved_answer_to_compare_with_is_an_input(tmp_path: Path) -> None:
    scenario, arguments = calls(tmp_path)["plan"]
    saved = tmp_path / "saved.json"
    write_report(saved, an_optimal_report())
    done = invoke(*arguments, "--against", str(saved), "-o", str(saved))
    assert (done.exit_code, read_report(saved)) == (2, an_optimal_report())
    assert scenario.exists()
