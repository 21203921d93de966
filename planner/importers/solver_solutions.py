"""Solution files of solvers: HiGHS, CBC, SCIP, Gurobi, plain ``name value`` lines, and JSON objects of numbers.

Read are the values of columns and nothing else: what a solver says of status and objective is judged again anyway.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from planner.errors import ConfigurationError, Finding

__all__ = ["Values", "parse_solver_solution", "read_solver_solution"]

_KNOWN: Final = (
    "a solution as HiGHS, CBC, SCIP or Gurobi write it, lines 'name value', or a JSON object of numbers"
)
_CBC: Final = re.compile(
    r"^(optimal|infeasible|integer infeasible|stopped|unbounded|feasible)\b.*objective value", re.I
)
_MOST_FINDINGS: Final = 20
_COMMENT: Final = ("#", "\\", "*", "//")

_Pair = tuple[int | None, str, str]
Pairs = Iterator[_Pair]
"""Line number, name, value; a line that is no pair has no name and is its own value."""


class Values(NamedTuple):
    """What a solution file says.

    Attributes:
        by_name: values by column name; only those that can be read.
        findings: everything else.
    """

    by_name: dict[str, float]
    findings: tuple[Finding, ...]


def read_solver_solution(text: str, *, file: str) -> dict[str, float]:
    """Values by column name.

    Args:
        text: of the file.
        file: its name, for findings.

    Raises:
        ConfigurationError: it is in no format that is known, holds no values, or a line of it cannot be read.
    """
    found = parse_solver_solution(text, file=file)
    if found.findings:
        raise ConfigurationError.from_findings(found.findings)
    return found.by_name


def parse_solver_solution(text: str, *, file: str) -> Values:
    """As :func:`read_solver_solution`, with what is wrong beside what can be read."""
    pairs = _json_pairs(text)
    if pairs is None:
        lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1)]
        pairs = _format_of(lines)(lines)
    found: dict[str, float] = {}
    findings: list[Finding] = []
    for number, name, value in pairs:
        amount = _number(value)
        if not name:
            findings.append(Finding(file, number, "", repr(value), _KNOWN))
        elif amount is None:
            findings.append(Finding(file, number, name, value, "a finite number"))
        elif name in found and found[name] != amount:
            findings.append(Finding(file, number, name, f"{value} after {found[name]:g}", "each name once"))
        else:
            found[name] = amount
    if not found and not findings:
        findings = [Finding(file, None, "", "no values", _KNOWN)]
    more = len(findings) - _MOST_FINDINGS
    if more > 0:
        findings[_MOST_FINDINGS:] = [Finding(file, None, "", f"{more} more problems")]
    return Values(found, tuple(findings))


def _json_pairs(text: str) -> Pairs | None:
    """Names and values of a JSON object, each as often as it stands there; None where it is none."""
    try:
        items = json.loads(text, object_pairs_hook=lambda pairs: pairs)
    except (ValueError, RecursionError):
        return None
    if not text.lstrip().startswith("{"):
        return None
    return ((None, name, _said(value)) for name, value in items)


def _said(value: object) -> str:
    """A value as it stood, if it was a number; any other as a text that is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        if isinstance(value, list):
            return "a list or an object"
        return repr(value)
    try:
        return repr(float(value))
    except OverflowError:
        return "inf"


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
        yield (number, words[1], words[2]) if has_all else (number, "", line)


def _plain(lines: Iterable[tuple[int, str]]) -> Pairs:
    """``name value`` or ``name = value``; comments and empty lines are left out.

    Where the first line is none of these, the file is something else, which is said once.
    """
    pairs = (_pair(number, line) for number, line in lines if line and not line.startswith(_COMMENT))
    first = next(pairs, None)
    if first is not None:
        yield first
        if first[1]:
            yield from pairs


def _pair(number: int, line: str) -> _Pair:
    words = line.replace(" = ", " ").split()
    return (number, words[0], words[1]) if len(words) == 2 else (number, "", line)  # noqa: PLR2004 - name, value


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
