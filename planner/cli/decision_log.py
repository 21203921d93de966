"""One line on stderr per decision, for whoever collects logs: ``event=planned status=OPTIMAL ...``.

``FLEETPLAN_LOG_LEVEL=INFO`` (or ``DEBUG``) asks for it. The line is ``key=value`` pairs with JSON values where a bare
word would not do, always the same keys in the same order; ``null`` is what nobody knows.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from models.report import Report
    from planner.settings import LogLevel

__all__ = ["log_planned"]

_TOLD: Final = ("DEBUG", "INFO")
_BARE: Final = re.compile(r"[\w.:/+-]+")

Field = str | float | int | None


def log_planned(report: Report, level: LogLevel) -> None:
    """Write the line of a plan, if the level asks for it."""
    if level in _TOLD:
        sys.stderr.write(f"{_line(_planned(report))}\n")


def _planned(report: Report) -> dict[str, Field]:
    shown = report.shown
    assessment = shown.assessment
    dollars = assessment is not None and report.problem.cost_unit.value == "usd_per_h"
    return {
        "level": "info",
        "event": "planned",
        "problem": report.problem.name,
        "status": report.answer.solution.status.value,
        "solver": report.answer.solution.proof.solver,
        "unserved_rps": None if assessment is None else assessment.unserved_rps,
        "cost_usd_per_h": assessment.cost if dollars and assessment is not None else None,
        "power_w": None if assessment is None else assessment.power_w,
        "changes": None if assessment is None else assessment.changes,
        "broken_rules": None if assessment is None else len(assessment.violations),
        "seconds": round(sum(report.seconds.values()), 3),
        "derived_from": report.answer.solution.derived_from,
        "fingerprint": shown.solution.fingerprint,
    }


def _line(fields: dict[str, Field]) -> str:
    return " ".join(f"{key}={_written(value)}" for key, value in fields.items())


def _written(value: Field) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value):
        return value
    return json.dumps(round(value, 6) if isinstance(value, float) else value, ensure_ascii=False)
