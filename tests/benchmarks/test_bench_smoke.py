"""The benchmark still runs: tiny instances, once, with no word on time; and what it reckons is reckoned right."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Final

import pytest

from tests.benchmarks.measure import CLOSING, OPENING, in_own_process, main, run_all, written
from tests.benchmarks.melange import by_slices
from tests.benchmarks.records import Event, LevelEnd, Record, Task, bounds_of, final_gap, load, save, time_to
from tests.benchmarks.registry import Family, instance
from tests.benchmarks.solve_one import REPLAN, measured
from tests.benchmarks.tables import detail_table, draw, replan_table, summary_table

pytestmark = pytest.mark.benchmark

TASK: Final = Task("tight", 20, "auto", 60.0)


def a_record(
    solver: str = "auto", *events: tuple[float, str, float | None, float | None], **fields: object
) -> Record:
    levels = (LevelEnd("unserved", 0.0, 0.0), LevelEnd("cost", 100.0, 99.95))
    told = tuple(Event(*event) for event in events)
    return replace(
        Record(replace(TASK, solver=solver), "FEASIBLE", levels=levels, events=told, total_s=9.0), **fields
    )


def test_the_time_to_a_gap_is_when_the_last_level_up_to_the_cost_is_within_it() -> None:
    record = a_record(
        "auto", (0.5, "unserved", 3.0, 0.0), (1.0, "unserved", 0.0, 0.0), (1.5, "cost", 120.0, 60.0),
        (2.0, "cost", 105.0, 99.0), (3.0, "cost", 100.0, 99.9), (4.0, "power", 5.0, None),
    )  # fmt: skip
    assert [time_to(record, gap) for gap in (0.1, 0.01, 0.001)] == [2.0, 3.0, 3.0]
    assert time_to(record, 0.0001) is None


def test_an_unserved_level_that_is_not_proven_leaves_the_cost_without_a_time() -> None:
    levels = (LevelEnd("unserved", 5.0, 4.0), LevelEnd("cost", 100.0, 100.0))
    assert time_to(a_record("auto", (1.0, "cost", 100.0, 100.0), levels=levels), 0.1) is None
    assert time_to(a_record("auto", levels=()), 0.1) is None


def test_the_gap_at_the_end_counts_bounds_of_others_as_far_as_the_plans_are_equal() -> None:
    mine = a_record(levels=(LevelEnd("unserved", 5.0, 1.0), LevelEnd("cost", 100.0, 50.0)))
    equal = a_record("scip", levels=(LevelEnd("unserved", 5.0, 5.0), LevelEnd("cost", 101.0, 99.0)))
    other = a_record("pulp", levels=(LevelEnd("unserved", 6.0, 4.0), LevelEnd("cost", 90.0, 90.0)))
    assert final_gap(mine, bounds_of(mine, [])) == pytest.approx(0.8)
    assert final_gap(mine, bounds_of(mine, [equal])) == pytest.approx(0.01)
    assert final_gap(mine, bounds_of(mine, [other])) == pytest.approx(0.5)
    assert final_gap(a_record(levels=()), {}) == inf


def test_results_are_read_as_they_were_written_and_a_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    record = a_record("scip", (1.0, "cost", 1.0, None), notes=("n",), again={"cold_s": 1.0, "warm_s": 0.5})
    save(path, a_record("auto"))
    save(path, record)
    path.write_text(path.read_text() + json.dumps(asdict(record))[:40])
    assert load(path) == [a_record("auto"), record]


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    asked, said = list[Task](), list[str]()

    def solve(task: Task) -> Record:
        asked.append(task)
        return Record(task, "OPTIMAL")

    path, first, second = tmp_path / "results.jsonl", TASK, replace(TASK, solver="scip")
    run_all([first], path, solve=solve, say=said.append)
    records = run_all([first, second], path, solve=solve, say=said.append)
    assert asked == [first, second]
    assert [record.task for record in records] == [first, second]
    assert [line.endswith("(as before)") for line in said] == [False, True, False]


def test_a_solve_in_its_own_process_leaves_a_record() -> None:
    record = in_own_process(Task("scarce-45", 3, "scip", 3.0, gap=0.05))
    assert record.status in ("OPTIMAL", "FEASIBLE")
    assert record.violations == 0
    assert record.peak_mib > 50
    assert record.events
    assert {level.name for level in record.levels} >= {"cost", "power", "changes"}
    assert in_own_process(replace(TASK, family="nonsense")).status == "CRASHED"


def test_planning_again_measures_both_ways() -> None:
    record = measured(Task(REPLAN, 2, "column-generation", 3.0, gap=0.05))
    assert set(record.again) == {"cold_s", "warm_s", "cold_gap", "warm_gap"}
    assert record.violations == 0


def test_slices_never_cost_less_than_continuous_shares() -> None:
    problem = instance(Family.ONE_SERVICE_60, 4)
    sliced = by_slices(problem, seconds=5.0, gap=0.01)
    ours = measured(Task("one-service-60", 4, "scip", 5.0))
    assert sliced.cost is not None
    assert ours.cost is not None
    assert ours.cost <= sliced.cost + 1e-6


def test_tables_show_what_was_cut(tmp_path: Path) -> None:
    quick = a_record("auto", (1.0, "unserved", 0.0, 0.0), (2.0, "cost", 100.0, 99.95))
    cut = a_record("pulp", levels=())
    (row,) = summary_table([quick, cut], "auto").splitlines()[2:]
    assert row.count("> 60 s") == 3
    assert "> 30.0×" in row
    assert "never" in detail_table([quick, cut])
    assert "50%" in replan_table(
        [a_record(again={"cold_s": 1.0, "warm_s": 0.5, "cold_gap": 1e-3, "warm_gap": 1e-4})]
    )
    draw([quick, cut], tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_text().startswith("<svg")


def test_the_page_keeps_what_people_wrote() -> None:
    once = written("# Title\n\nProse.\n", "first")
    assert written(once, "second") == once.replace("first", "second")
    assert once.index("Prose.") < once.index(OPENING) < once.index(CLOSING)


def test_the_command_measures_what_was_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(
        ["--families", "one-service-60", "--sizes", "4", "--solvers", "melange", "--seconds", "2", "--no-starts",
         "--no-write", "--results", str(tmp_path / "r.jsonl")]
    )  # fmt: skip
    out = capsys.readouterr().out
    assert "1/1 one-service-60-4" in out
    assert "| one-service-60-4 | 4 | melange |" in out
