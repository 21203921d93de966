"""The screen of ``explain``: what binds, what conflicts, and why candidates are out."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from models.explanation import BindingRow, Difference, Explanation, Rejection, Worth
from models.problem import CostUnit, Problem
from planner.cli.screen.layout import Column, bullets, panel, section, table
from planner.wording import (
    NOTHING_ENOUGH,
    amount_phrase,
    conflict_rows,
    conflict_sentence,
    difference_sentence,
    gain_phrase,
    is_worth_nothing,
    limit_phrase,
    money,
    number,
    quantity,
    rejection_sentence,
    relaxation_sentence,
    runner_up_sentence,
    together_sentences,
    worth_phrase,
    worthless_sentence,
)

__all__ = ["show_conflict", "show_differences", "show_explanation"]


def show_explanation(
    console: Console, explanation: Explanation, problem: Problem, *, has_plan: bool = True
) -> None:
    """Print an explanation; a part that has nothing to say says so in one sentence.

    Args:
        console: where.
        explanation: what.
        problem: that is explained.
        has_plan: without one there is nothing that binds, and nothing that is used or not.
    """
    show_conflict(console, explanation, problem)
    if has_plan:
        _show_binding(console, explanation.binding)
    if has_plan or explanation.rejected:
        _show_rejected(console, explanation.rejected, problem.cost_unit)
    if explanation.runners_up:
        section(console, "Variants that nearly are")
        bullets(console, [runner_up_sentence(each, problem.cost_unit) for each in explanation.runners_up])
    if explanation.worth:
        _show_worth(console, explanation.worth)
    show_differences(console, explanation.differences, problem)


def show_conflict(console: Console, explanation: Explanation, problem: Problem) -> None:
    """What conflicts, and what would do: single limits, or several together."""
    if explanation.conflict is None:
        return
    panel(console, "What conflicts", [conflict_sentence(explanation.conflict)], style="red")
    bullets(console, conflict_rows(explanation.conflict))
    if explanation.relaxations:
        sentences = [relaxation_sentence(each, problem) for each in explanation.relaxations]
        panel(console, "Any one of these makes every promise hold", sentences, style="yellow")
    if explanation.together:
        heading, sentences = together_sentences(explanation.together, problem)
        panel(console, heading, sentences, style="yellow")
    if len(explanation.conflict.families) > 1 and not explanation.relaxations and not explanation.together:
        console.print(Text(NOTHING_ENOUGH))


def show_differences(console: Console, differences: Iterable[Difference], problem: Problem) -> None:
    """What other answers do differently, allocation by allocation."""
    for each in differences:
        section(console, f"What {each.name} does differently")
        console.print(Text(difference_sentence(each, problem.cost_unit)))
        if each.allocations:
            console.print()
            console.print(_allocations(each, problem))
        if each.services:
            made = table([Column("unserved req/s", right=False), Column("here"), Column(each.name)])
            for service in each.services:
                made.add_row(service.service, number(service.unserved_rps), number(service.theirs))
            console.print()
            console.print(made)


def _allocations(difference: Difference, problem: Problem) -> Table:
    """Replicas here and there, and what the other spends more."""
    unit = "$/h more" if problem.cost_unit is CostUnit.USD_PER_H else "cost more"
    made = table([Column("replicas", right=False), Column("here"), Column(difference.name), Column(unit)])
    for each in difference.allocations:
        made.add_row(
            Text(each.candidate, overflow="fold"), str(each.replicas), str(each.theirs), money(each.cost)
        )
    return made


def _show_worth(console: Console, worths: tuple[Worth, ...]) -> None:
    """A line per limit that is worth something, and one sentence on the others."""
    section(console, "What a little more is worth")
    telling = [worth for worth in worths if not is_worth_nothing(worth)]
    if telling:
        headers = ("limit", "one step", "worth", "first step that pays")
        made = table([Column(header, right=False) for header in headers])
        for worth in telling:
            made.add_row(
                Text(worth_phrase(worth), overflow="fold"),
                amount_phrase(worth, worth.one),
                gain_phrase(worth.one),
                _first(worth),
            )
        console.print(made)
    nothing = [worth for worth in worths if is_worth_nothing(worth)]
    if nothing:
        console.print(Text(worthless_sentence(nothing)))


def _first(worth: Worth) -> str:
    if worth.first is None or worth.first.amount == worth.one.amount:
        return ""
    return f"{amount_phrase(worth, worth.first)}: {gain_phrase(worth.first)}"


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


def _show_rejected(console: Console, rejected: tuple[Rejection, ...], cost_unit: CostUnit) -> None:
    section(console, "Variants that are not in the plan")
    if not rejected:
        console.print("None: every variant that was offered is used.")
        return
    ordered = sorted(rejected, key=lambda each: each.service)
    for service, group in groupby(ordered, key=lambda each: each.service):
        console.print(Text(service, style="bold"))
        bullets(console, [rejection_sentence(rejection, cost_unit) for rejection in group])
