"""The benchmark still runs: the smallest instance of each family, once, with no word on time."""

from __future__ import annotations

from typing import Final

import pytest

from models.solution import Proof, Solution, Status
from planner.optimization.protocol import SolveOptions
from tests.benchmarks.measure import (
    SOLVED_BY,
    Measured,
    instances_table,
    main,
    measured,
    starts_table,
    written,
)
from tests.benchmarks.registry import Family, Instance

pytestmark = pytest.mark.benchmark

QUICK: Final = SolveOptions(time_limit_s=5.0, gap=0.05)


@pytest.mark.parametrize("family", [Family.AMPLE, Family.SCARCE_45])
def test_the_smallest_instance_runs_with_every_solver(family: Family) -> None:
    rows = list(measured([Instance(family, 2)], SOLVED_BY, QUICK))
    assert [row.solver for row in rows] == list(SOLVED_BY)
    assert all(row.assessment is not None and row.assessment.violations == () for row in rows)


def a_row(solver: str, solve_s: float, status: Status = Status.TIMED_OUT) -> Measured:
    return Measured(
        "tight-10", 120, solver, 0.01, solve_s, 0.02, Solution(status=status, proof=Proof(solver=solver))
    )


def test_the_table_compares_with_the_fastest() -> None:
    _, _, first, second = instances_table([a_row("pulp", 2.0), a_row("cp-sat", 5.0)]).splitlines()
    assert first == "| tight-10 | 120 | pulp | 0.010 | 2.00 | 1.0 | 0.020 | TIMED_OUT | – | – | – |"
    assert second == "| tight-10 | 120 | cp-sat | 0.010 | 5.00 | 2.5 | 0.020 | TIMED_OUT | – | – | – |"
    assert starts_table({"import planner": 0.125}).splitlines()[2] == "| `import planner` | 0.12 |"


def test_only_what_stands_between_the_marks_is_written() -> None:
    page = written("# Title\n\nWords.\n", "one")
    again = written(page + "\nAfter.\n", "two")
    assert again == page.replace("one", "two") + "\nAfter.\n"
    assert again.startswith("# Title\n\nWords.\n")


def test_an_unknown_size_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--sizes", "11"])
    assert "invalid choice" in capsys.readouterr().err
