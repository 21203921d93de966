"""The screen of ``explain``: what binds, what conflicts, and why candidates are out."""

from __future__ import annotations

from itertools import groupby

from rich.console import Console
from rich.text import Text

from models.explanation import BindingRow, Explanation, Rejection
from models.problem import Problem
from planner.cli.screen.layout import Column, bullets, panel, section, table
from planner.wording import (
    conflict_sentence,
    limit_phrase,
    quantity,
    reason_sentence,
    relaxation_sentence,
)

__all__ = ["show_explanation"]


def show_explanation(console: Console, explanation: Explanation, problem: Problem) -> None:
    """Print an explanation; a part that has nothing to say says so in one sentence."""
    if explanation.conflict is not None:
        panel(console, "What conflicts", [conflict_sentence(explanation.conflict)], style="red")
        if explanation.conflict.rows:
            bullets(console, [limit_phrase(row[0], row[1:]) for row in explanation.conflict.rows if row])
    if explanation.relaxations:
        sentences = [relaxation_sentence(each, problem) for each in explanation.relaxations]
        panel(console, "Any one of these makes every promise hold", sentences, style="yellow")
    _show_binding(console, explanation.binding)
    _show_rejected(console, explanation.rejected)


def _show_binding(console: Console, rows: tuple[BindingRow, ...]) -> None:
    section(console, "Limits that bind")
    if not rows:
        console.print("None: every limit has room for one more replica.")
        return
    made = table([Column("limit", right=False), Column("used"), Column("limit is")])
    for row in rows:
        # The phrase says how large the pods are.
        unit = "pod" if row.family == "placement" else row.unit
        phrase = Text(limit_phrase(row.family, row.key))
        made.add_row(phrase, quantity(row.used, unit), quantity(row.limit, unit))
    console.print(made)


def _show_rejected(console: Console, rejected: tuple[Rejection, ...]) -> None:
    section(console, "Variants that are not in the plan")
    if not rejected:
        console.print("None: every variant that was offered is used.")
        return
    ordered = sorted(rejected, key=lambda each: each.service)
    for service, group in groupby(ordered, key=lambda each: each.service):
        console.print(Text(service, style="bold"))
        bullets(console, [_sentence(rejection) for rejection in group])


def _sentence(rejection: Rejection) -> str:
    pool = "" if rejection.pool is None else f" @ {rejection.pool}"
    return f"{rejection.variant}{pool}: {reason_sentence(rejection.reason, rejection.facts)}"
