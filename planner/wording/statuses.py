"""What a status means, in one sentence; levels and phases as phrases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from models.report import Assessment, Comparison, EngineWork
from models.solution import Level, Status
from planner.wording.numbers import number, percent, quantity
from planner.wording.phrases import some_of

__all__ = [
    "engines_sentence",
    "headline",
    "level_figures",
    "level_name",
    "level_rows",
    "promise_sentence",
    "seconds_sentence",
]

LevelRow = tuple[str, str, str, str]
"""Name, value, proven bound, gap."""


_UNSERVED: Final = "unserved"
_NAMED: Final = 8

_NO_PLAN: Final = {
    Status.INFEASIBLE: "No plan keeps every promise.",
    Status.TIMED_OUT: "No plan was found in the time given. There may be one: allow more time.",
    Status.FAILED: "The solver failed; it gave no plan.",
}


def headline(answer: Comparison, *, proves: bool = True, scarce: bool = False) -> str:
    """One sentence on an answer.

    Args:
        answer: what is shown.
        proves: whether its solver bounds what it finds; False for a heuristic.
        scarce: whether it was allowed to leave demand unserved because not all can be served.
    """
    if not answer.solution.has_plan:
        return _without_plan(answer.solution.status, scarce=scarce)
    if answer.assessment is None:
        return "There is a plan, and nobody judged it."
    levels, service = answer.solution.proof.levels, _service(answer.assessment)
    if answer.solution.status is Status.OPTIMAL:
        return f"{service}; no plan is better in the order {_order(levels)}."
    return f"{service}. {_doubt(levels, proves=proves)}"


def answer_name(comparison: Comparison, *, heuristic: bool, scarce: bool) -> str:
    """What an answer is called beside others."""
    solver = comparison.solution.proof.solver
    if heuristic or comparison.assessment is None:
        return solver
    if scarce:
        return f"best under scarcity ({solver})"
    best = "optimum" if comparison.solution.status is Status.OPTIMAL else "best found"
    return f"{best} ({solver})"


def level_name(level: Level) -> str:
    """The name of a level as people read it: ``unserved share, priority 1``."""
    name, *classes = level.name.split("/")
    return ", ".join(
        [name.replace("-", " "), *(re.sub(r"^([a-z]+)(-?\d+)$", r"\1 \2", each) for each in classes)]
    )


def level_rows(levels: Sequence[Level]) -> Iterator[LevelRow]:
    """A row per level; classes of demand that are served in full are one row, since nothing is left to tell apart."""
    for nothing, group in groupby(levels, key=_all_served):
        same = tuple(group)
        if nothing:
            yield _classes_name(same, alone=len(same) == _unserved(levels)), "0 req/s", "0 req/s", "0 %"
        else:
            yield from ((level_name(level), *level_figures(level)) for level in same)


def promise_sentence(services: Sequence[str]) -> str:
    """Promises to serve all demand that a heuristic's plan does not keep."""
    return f"The promise to serve all demand is not kept for {some_of(services, _NAMED)}."


def _all_served(level: Level) -> bool:
    return level.name.startswith(_UNSERVED) and level.value == 0


def _unserved(levels: Sequence[Level]) -> int:
    return sum(level.name.startswith(_UNSERVED) for level in levels)


def _classes_name(levels: Sequence[Level], *, alone: bool) -> str:
    """``unserved``, or where others are not served in full the classes: ``unserved, priority 8 to 3``."""
    classes = list(dict.fromkeys(level_name(level).partition(", ")[2] for level in levels))
    if alone or not all(classes):
        return _UNSERVED
    last = f" to {classes[-1].removeprefix('priority ')}" if len(classes) > 1 else ""
    return f"{_UNSERVED}, {classes[0]}{last}"


def level_figures(level: Level) -> tuple[str, str, str]:
    """Value, proven bound and the distance of the two."""
    bound = "unknown" if level.bound is None else quantity(level.bound, level.unit)
    return quantity(level.value, level.unit), bound, _gap(level)


def seconds_sentence(seconds: Mapping[str, float]) -> str:
    """Wall time by phase: ``0.41 s: size 0.02, formulate 0.01, solve 0.36, check 0.02``."""
    parts = ", ".join(f"{phase} {value:.2f}" for phase, value in seconds.items())
    return f"{sum(seconds.values()):.2f} s: {parts}"


def engines_sentence(engines: Sequence[EngineWork]) -> str:
    """Engines with their wall time: ``engines: column-generation 0.31 s, scip 2.04 s``; of one that worked twice both."""
    seconds: dict[str, float] = {}
    for each in engines:
        seconds[each.engine] = seconds.get(each.engine, 0.0) + each.seconds
    return "engines: " + ", ".join(f"{name} {spent:.2f} s" for name, spent in seconds.items())


def _without_plan(status: Status, *, scarce: bool) -> str:
    if scarce and status is Status.INFEASIBLE:
        return "No plan keeps every limit, even if all demand stays unserved."
    return _NO_PLAN[status]


def _service(assessment: Assessment) -> str:
    if assessment.unserved_rps == 0:
        return "All demand is served"
    worst = percent(assessment.unserved_share_worst)
    return f"{number(assessment.unserved_rps)} req/s stay unserved (up to {worst} of a service)"


def _order(levels: Sequence[Level]) -> str:
    """What was made small, in order; the classes of unserved demand are one."""
    return ", ".join(dict.fromkeys(re.split(r"[-/]", level.name)[0] for level in levels)) or "asked for"


def _doubt(levels: Sequence[Level], *, proves: bool) -> str:
    if not proves:
        return "A heuristic found it; nothing is proven."
    open_levels = [level for level in levels if level.gap is None or level.gap > 0]
    if not open_levels:
        return "The proof that no plan is better was not finished."
    first = open_levels[0]
    known = (
        "no bound is known" if first.gap is None else f"the best there can be is at most {_gap(first)} lower"
    )
    return f"The proof was not finished: in {level_name(first)}, {known}."


def _gap(level: Level) -> str:
    if level.gap is None:
        return "unknown"
    return percent(level.gap) if level.value or not level.gap else quantity(level.gap, level.unit)
