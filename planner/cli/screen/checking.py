"""The screen of ``controller check``: problems and notes in the order in which they are best repaired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from planner.cli.screen.layout import Column, table
from planner.cli.screen.plain import plain
from planner.control.running.checking_result import Checked, Verdict
from planner.wording import counted

__all__ = ["show_checks"]

_STYLES: Final = {Verdict.GOOD: "green", Verdict.NOTE: "yellow", Verdict.BAD: "bold red"}
_LONGEST: Final = 1000


def show_checks(console: Console, found: Sequence[Checked], *, every: bool = False) -> None:
    """Print what was looked at.

    Args:
        console: to print on.
        found: in order.
        every: show what is as it should be, too.
    """
    shown = [each for each in found if every or each.verdict is not Verdict.GOOD]
    if shown:
        made = table([Column(name, right=False) for name in ("", "of", "subject", "what", "what to do")])
        for each in shown:
            made.add_row(
                Text(each.verdict, style=_STYLES[each.verdict]),
                each.area,
                *(plain(text, _LONGEST) for text in (each.subject, each.said, each.remedy)),
            )
        console.print(made)
        console.print()
    bad = sum(each.bad for each in found)
    good = sum(each.verdict is Verdict.GOOD for each in found)
    head = (
        f"{counted(bad, 'problem')}, {good} of {len(found)} as it should be"
        if bad
        else "No problem was found."
    )
    console.print(Text(head, style="bold red" if bad else "green"))
