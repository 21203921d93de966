"""The screen of ``apply``: what differs from the cluster, what forbids it, what happens, what drifts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from models.applied import ApplyEvent, ApplyEventKind, ApplyReview, Drift, FieldChange
from planner.cli.screen.layout import Column, bullets, panel, section, show_first, table
from planner.cli.screen.plain import LONGEST, plain
from planner.wording import counted, time_span

__all__ = ["drift_sentence", "event_line", "show_drift", "show_review"]

_SHOWN: Final = 60
_NOTHING: Final = "–"


def show_review(console: Console, review: ApplyReview, *, every: bool = False) -> None:
    """Print what carrying a plan out would do now.

    Args:
        console: where.
        review: what.
        every: all changes, not the first ones.
    """
    console.print(Text(_headline(review), style="bold" if not review.refusals else "bold red"))
    if review.changes:
        console.print()
        show_first(console, review.changes, made=_changes, most=None if every else _SHOWN)
    if review.refusals:
        panel(
            console,
            "What forbids it",
            (plain(each.sentence, 4 * LONGEST) for each in review.refusals),
            style="red",
        )
    if review.notes:
        section(console, "Not done here")
        bullets(console, (plain(each, 4 * LONGEST) for each in review.notes))


def _changes(rows: Sequence[FieldChange]) -> Table:
    made = table(
        [
            Column("wave"),
            *(Column(name, right=False) for name in ("object", "field")),
            Column("now"),
            Column("then"),
        ]
    )
    for each in rows:
        made.add_row(
            str(each.wave or "end"),
            plain(each.object),
            plain(each.field),
            plain(each.before or _NOTHING),
            plain(each.after or _NOTHING),
        )
    return made


def _headline(review: ApplyReview) -> str:
    if review.refusals:
        return "The plan cannot be carried out now. Nothing was changed."
    if review.done:
        return "The cluster has what the plan says."
    fields = counted(len(review.changes), "field")
    if review.next_wave > 1:
        return f"It goes on with wave {review.next_wave} of {review.waves}: {fields} to write."
    return f"{counted(review.waves, 'wave')}, {fields} to write."


def event_line(event: ApplyEvent) -> str:
    """One line of what happens; who began it is said in the record."""
    if event.kind is ApplyEventKind.BEGUN:
        return ""
    return plain(
        f"{event.kind}: {event.message}" if event.kind is not ApplyEventKind.WAVE else event.message, 800
    )


def drift_sentence(drift: Drift) -> str:
    """How an object differs from the plan."""
    found = "is gone" if drift.wanted is None else f"asks for {drift.wanted}, {drift.ready} ready"
    since = f", for {time_span(drift.for_s)}" if drift.for_s else ""
    return plain(f"{drift.object}: planned {drift.planned}, {found}{since}", 400)


def show_drift(console: Console, drifts: Iterable[Drift], checked: int) -> None:
    """Print planned versus actual."""
    found = [*drifts]
    if not found:
        console.print(Text(f"As planned: {counted(checked, 'object')}.", style="green"))
        return
    section(
        console, f"{len(found)} of {counted(checked, 'object')} differ from the plan", style="bold yellow"
    )
    bullets(console, map(drift_sentence, found))
