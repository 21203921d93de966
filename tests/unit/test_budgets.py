"""The size of files and functions, held to a budget; and what must not be found in them."""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FILES: Final = sorted(path for package in ("models", "planner") for path in (ROOT / package).rglob("*.py"))
FILE_LINES: Final = 500
MEDIAN_FILE_LINES: Final = 150
BODY_LINES: Final = 50
PARAMETERS: Final = 6
BANNED_WORDS: Final = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
BANNED_NAMES: Final = {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}
GROUND: Final = {"models", "pydantic", "pydantic_core", "typing_extensions"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: str) -> Iterator[Function]:
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, Function))


def body_lines(function: Function) -> int:
    """Lines from the first statement after the docstring to the last one."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def parameters(function: Function) -> int:
    """Parameters that a caller may pass: without self and cls, a star counts as one."""
    given = function.args
    names = [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([n for n in names if n not in {"self", "cls"}]) + sum(
        a is not None for a in (given.vararg, given.kwarg)
    )


def excesses(source: str) -> list[str]:
    """What in a file breaks a budget, one phrase each."""
    found = [f"{len(source.splitlines())} lines"] if len(source.splitlines()) > FILE_LINES else []
    for function in functions(source):
        if body_lines(function) > BODY_LINES:
            found.append(f"{function.name}: {body_lines(function)} body lines")
        if parameters(function) > PARAMETERS:
            found.append(f"{function.name}: {parameters(function)} parameters")
    return found + [f"banned word {word}" for word in BANNED_WORDS.findall(source)]


def imported(source: str) -> set[str]:
    """Top-level names of everything that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module.partition(".")[0])
    return names


def a_function(*, lines: int = 1, arguments: int = 0, docstring: str = "") -> str:
    names = ", ".join(f"a{index}" for index in range(arguments))
    doc = f'    """{docstring}"""\n' if docstring else ""
    return f"def f({names}):\n{doc}" + "    pass\n" * lines


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (a_function(lines=50, arguments=6), []),
        (a_function(lines=51), ["f: 51 body lines"]),
        (a_function(lines=50, docstring="One.\n\n    " + "More.\n    " * 30), []),
        (a_function(arguments=7), ["f: 7 parameters"]),
        ("class A:\n    def f(self, a, b, *, c, d, e, g): ...\n", []),
        ("def f(a, b, c, d, e, *rest, **more): ...\n", ["f: 7 parameters"]),
        ("x = 1\n" * 501, ["501 lines"]),
        ("x = 1  # TO" "DO later\n", ["banned word TO" "DO"]),
    ],
)  # fmt: skip
def test_the_measure_sees_what_breaks_a_budget(source: str, found: list[str]) -> None:
    assert excesses(source) == found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_keeps_its_budgets(path: Path) -> None:
    assert excesses(path.read_text(encoding="utf-8")) == []
    assert path.name not in BANNED_NAMES


def test_the_median_file_is_short() -> None:
    assert (
        statistics.median(len(path.read_text(encoding="utf-8").splitlines()) for path in FILES)
        <= MEDIAN_FILE_LINES
    )


def test_nouns_import_pydantic_and_the_standard_library_only() -> None:
    allowed = GROUND | sys.stdlib_module_names
    strangers = {
        path.name: sorted(imported(path.read_text(encoding="utf-8")) - allowed)
        for path in FILES
        if path.is_relative_to(ROOT / "models")
    }
    assert {name: found for name, found in strangers.items() if found} == {}
