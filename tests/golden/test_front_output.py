"""What ``pareto`` says, on the screen, as CSV and as JSON."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from models.pareto import Axis, ParetoFront, ParetoPoint
from models.solution import Proof, Solution, Status
from planner.cli.front_files import front_csv, front_object
from planner.cli.screen.front import show_front
from planner.cli.terminal import console_on
from planner.wording import front_sentence

Golden = Callable[[str, str], None]
PAGE: Final = Path(__file__).parents[2] / "docs" / "pareto.md"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def a_point(x: float, y: float, **fields: Any) -> ParetoPoint:
    solution = Solution(
        status=Status.OPTIMAL,
        counts={"chat/small@east": 3},
        nodes_added={"east": 1},
        proof=Proof(solver="auto"),
    )
    known = {"status": Status.OPTIMAL, "gap": 0.0, "cost": x, "unserved_rps": 0.0, "power_w": y, "changes": 4}
    return ParetoPoint.model_validate(
        {"x": x, "y": y, "headroom": 0.25, "solution": solution} | known | fields
    )


def a_front(*points: ParetoPoint, **fields: Any) -> ParetoFront:
    known = {"problem": "two halls", "x": Axis.COST, "y": Axis.POWER, "x_unit": "$/h", "y_unit": "W"}
    stated = {"status": Status.OPTIMAL, "points": points, "complete": True, "derived_from": "f" * 16}
    return ParetoFront.model_validate(known | stated | fields)


FRONTS: Final = {
    "complete": a_front(a_point(20.0, 40_000.0), a_point(22.5, 31_000.0), a_point(31.0, 30_500.0)),
    "open": a_front(
        a_point(20.0, 0.1, power_w=None, headroom=None, gap=None, status=Status.FEASIBLE),
        a_point(31.0, 0.4567, power_w=None),
        y=Axis.HEADROOM, y_unit="share", x_unit="cost", status=Status.FEASIBLE, complete=False,
    ),
    "one": a_front(a_point(20.0, 40_000.0)),
    "none": a_front(status=Status.INFEASIBLE, complete=False),
}  # fmt: skip


@pytest.mark.parametrize("name", FRONTS)
def test_the_screen(name: str, golden: Golden) -> None:
    file = io.StringIO()
    show_front(console_on(file), FRONTS[name])
    golden(f"pareto-{name}-piped.txt", file.getvalue())


def test_a_chart_fits_80_columns() -> None:
    file = io.StringIO()
    show_front(console_on(file), FRONTS["complete"])
    assert max(len(line) for line in file.getvalue().splitlines()[2:20]) <= 80


def test_csv() -> None:
    assert front_csv(FRONTS["open"]).splitlines() == [
        "x,y,status,gap,cost,unserved_rps,power_w,changes,headroom",
        "20.0,0.1,FEASIBLE,,20.0,0.0,,4,",
        "31.0,0.4567,OPTIMAL,0.0,31.0,0.0,,4,0.25",
    ]


def test_the_page_describes_every_key_of_the_json_and_no_other() -> None:
    written = {
        re.sub(r"(replicas|nodes_added)\..+", r"\1.*", path)
        for path in paths(front_object(FRONTS["complete"]))
    }
    described = set(
        re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(encoding="utf-8").partition("--json")[2], re.MULTILINE)
    )
    assert written == described


def paths(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, f"{path}[]")
    else:
        yield path


@pytest.mark.parametrize(
    ("front", "said"),
    [
        (a_front(status=Status.TIMED_OUT), "No plan was found in the time given"),
        (a_front(a_point(1, 1), a_point(2, 0), complete=False), "there may be more between them: --points"),
    ],
)
def test_what_is_said_of_a_front(front: ParetoFront, said: str) -> None:
    assert said in front_sentence(front)
