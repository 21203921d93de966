"""Solution files of solvers: HiGHS, CBC, SCIP, Gurobi, plain ``name value`` lines, and JSON objects of numbers.

Read are the values of columns and nothing else: what a solver says of status and objective is judged again anyway.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from planner.errors import ConfigurationError, Finding

__all__ = ["read_solver_solution"]

_KNOWN: Final = (
    "a solution as HiGHS, CBC, SCIP or Gurobi write it, lines 'name value', or a JSON object of numbers"
)
_CBC: Final = re.compile(
    r"^(optimal|infeasible|integer infeasible|stopped|unbounded|feasible)\b.*objective value", re.I
)
_MOST_FINDINGS: Final = 20
_COMMENT: Final = ("#", "\\", "*", "//")

Pairs = Iterator[tuple[int, str, str]]
"""Line number, name, value."""


def read_solver_solution(text: str, *, file: str) -> dict[str, float]:
    """Values by column name.

    Args:
        text: of the file.
        file: its name, for findings.

    Raises:
        ConfigurationError: it is in no format that is known, holds no values, or a line of it cannot be read.
    """
    plain = _json_numbers(text)
    if plain is not None:
        return plain
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1)]
    found: dict[str, float] = {}
    findings: list[Finding] = []
    for number, name, value in _format_of(lines)(lines):
        amount = _number(value)
        if amount is None or not name:
            findings.append(Finding(file, number, "", repr(f"{name} {value}".strip()), _KNOWN))
        elif name in found and found[name] != amount:
            findings.append(Finding(file, number, name, f"{value} after {found[name]:g}", "each name once"))
        else:
            found[name] = amount
    if not found and not findings:
        findings = [Finding(file, None, "", "no values", _KNOWN)]
    if findings:
        raise ConfigurationError.from_findings(findings[:_MOST_FINDINGS])
    return found


def _json_numbers(text: str) -> dict[str, float] | None:
    """A JSON object of which every value is a number; None where it is none."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not document:
        return None
    numbers = {
        key: value
        for key, value in document.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    finite = all(math.isfinite(value) for value in numbers.values())
    return (
        {key: float(value) for key, value in numbers.items()}
        if len(numbers) == len(document) and finite
        else None
    )


def _format_of(lines: list[tuple[int, str]]) -> Callable[[Iterable[tuple[int, str]]], Pairs]:
    head = next((line for _, line in lines if line), "")
    if any(line == "# Primal solution values" for _, line in lines):
        return _highs
    if head.lower().startswith("solution status:"):
        return _scip
    return _cbc if _CBC.match(head) else _plain


def _highs(lines: Iterable[tuple[int, str]]) -> Pairs:
    """Lines between ``# Columns N`` of the primal solution and the next heading."""
    inside = primal = False
    for number, line in lines:
        if line.startswith("# "):
            primal = line == "# Primal solution values" or (
                primal and line.startswith(("# Columns", "# Rows"))
            )
            inside = primal and line.startswith("# Columns")
        elif inside and line:
            yield _pair(number, line)


def _scip(lines: Iterable[tuple[int, str]]) -> Pairs:
    """``name value (obj:c)`` after the lines on status and objective."""
    for number, line in lines:
        if line and not line.lower().startswith(("solution status:", "objective value:", "no solution")):
            yield _pair(number, line.partition("(obj:")[0])


def _cbc(lines: Iterable[tuple[int, str]]) -> Pairs:
    """``[**] index name value reduced-cost`` after one line on the status."""
    for position, (number, line) in enumerate((number, line) for number, line in lines if line):
        words = line.removeprefix("**").split()
        if position == 0 or not words:
            continue
        has_all = len(words) >= 3 and words[0].isdigit()  # noqa: PLR2004 - index, name, value
        yield (number, words[1], words[2]) if has_all else (number, line, "")


def _plain(lines: Iterable[tuple[int, str]]) -> Pairs:
    """``name value`` or ``name = value``; comments and empty lines are left out."""
    for number, line in lines:
        if line and not line.startswith(_COMMENT):
            yield _pair(number, line)


def _pair(number: int, line: str) -> tuple[int, str, str]:
    words = line.replace(" = ", " ").split()
    return (number, words[0], words[1]) if len(words) == 2 else (number, line, "")  # noqa: PLR2004 - name, value


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
