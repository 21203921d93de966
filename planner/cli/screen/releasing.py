"""The screen of ``controller release``: what was held, and what became of it."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.text import Text

from planner.cli.screen.layout import Column, table
from planner.cli.screen.plain import plain
from planner.control.running.releasing import Released
from planner.wording import counted

__all__ = ["show_released"]

_LONGEST: Final = 1000


def show_released(console: Console, found: Released, *, done: bool) -> None:
    """Print what was given back.

    Args:
        console: to print on.
        found: what came of it.
        done: it was done; otherwise it would be.
    """
    if found.outcomes:
        made = table([Column(name, right=False) for name in ("by", "variant", "", "what")])
        for each in found.outcomes:
            variant = each.decision.variant
            where = f"{variant.cluster}: " if variant.cluster else ""
            name = f"{where}{variant.namespace}/{variant.name}"
            made.add_row(each.actuator, plain(name, _LONGEST), str(each.code), plain(each.message, _LONGEST))
        console.print(made)
    for finding in found.findings:
        console.print(plain(f"{finding.subject}: {finding.problem}", _LONGEST))
    left = len(found.left)
    if left:
        head = f"{counted(left, 'variant')} could not be given back"
    elif not found.outcomes:
        head = "Nothing is held."
    else:
        number = counted(len(found.outcomes), "variant")
        head = f"{number} given back." if done else f"{number} would be given back; --yes does it."
    console.print(Text(head, style="bold red" if left else "green"))
