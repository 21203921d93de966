"""The screen of ``trace``: pod, decision, record, observation, series, one below the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from models.tracing import Ground, PodTrace, SeenSeries
from planner.cli.screen.layout import Column, bullets, section, show_first, table
from planner.cli.screen.plain import LONGEST, plain
from planner.wording import counted, number

__all__ = ["show_trace"]

_SHOWN: Final = 30
_FOUND: Final = {
    "record": "as records have it",
    "cluster": "as the cluster says",
    "name": "guessed from its name",
}


def show_trace(console: Console, trace: PodTrace, *, every: bool = False) -> None:
    """Print the chain from a pod back to the metric.

    Args:
        console: where.
        trace: what.
        every: all series, not the first ones.
    """
    console.print(Text(f"Pod {plain(trace.pod)}", style="bold"))
    bullets(console, (plain(each, 2 * LONGEST) for each in _head(trace)))
    if trace.came is not None:
        _show_ground(console, "Asked for by", trace.came, every=every)
    if trace.goes is not None:
        _show_ground(console, "Goes first by", trace.goes, every=every)
    if trace.missing:
        section(console, "Missing in the chain", style="bold yellow")
        bullets(console, (plain(each.sentence, 4 * LONGEST) for each in trace.missing))


def _head(trace: PodTrace) -> Iterator[str]:
    if trace.variant:
        where = f"{trace.cluster}: " if trace.cluster else ""
        yield f"variant {where}{trace.namespace}/{trace.variant}, {_FOUND.get(trace.found_by, trace.found_by)}"
    if trace.first_seen_s is not None and trace.last_seen_s is not None:
        yield f"in records from {_moment(trace.first_seen_s)} to {_moment(trace.last_seen_s)}"
    yield f"{counted(trace.records, 'record')} looked through"


def _moment(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _show_ground(console: Console, title: str, ground: Ground, *, every: bool) -> None:
    decision = ground.decision
    section(console, title)
    bullets(console, (plain(each, 4 * LONGEST) for each in _lines(ground)))
    if decision.facts:
        console.print()
        made = table([Column("figure", right=False), Column("value")])
        for name, value in sorted(decision.facts.items()):
            made.add_row(plain(name), plain(number(value) if isinstance(value, int | float) else str(value)))
        console.print(made)
    if ground.series:
        console.print()
        show_first(console, ground.series, made=_series, most=None if every else _SHOWN)


def _lines(ground: Ground) -> Iterator[str]:
    decision = ground.decision
    before = "?" if decision.before is None else decision.before
    yield f"decision {decision.reason}: {before} to {decision.desired} replicas. {decision.message}"
    dry = ", a dry run" if ground.dry_run else ""
    yield (
        f"record {ground.record}: cycle {ground.number} of {ground.controller or 'nobody named'} at "
        f"{_moment(ground.at_s)}, started by {ground.trigger}{dry}"
    )
    for each in ground.outcomes:
        done = "applied" if each.applied else "not applied"
        yield f"outcome of {each.actuator}: {done}{f', {each.message}' if each.message else ''}"
    for link in ground.links:
        yield f"{link.stage} {link.value}{f' of {link.derived_from}' if link.derived_from else ''}"
    for demand in ground.demands:
        figures = {
            name: value
            for name in ("demand", "expected", "capacity", "required", "spare")
            if (value := getattr(demand, name)) is not None
        }
        said = ", ".join(f"{name} {number(value)}" for name, value in figures.items())
        yield f"demand of {demand.namespace}/{demand.model} ({demand.role}): {said} {demand.unit}".rstrip()
    if ground.variant is not None:
        yield (
            f"observation: {ground.variant.ready} ready, {ground.variant.pending} pending, "
            f"{counted(len(ground.engines), 'engine')} of the service"
        )


def _series(rows: Sequence[SeenSeries]) -> Table:
    made = table(
        [
            *(Column(name, right=False) for name in ("of", "value of")),
            Column("was"),
            *(Column(name, right=False) for name in ("how", "series")),
        ]
    )
    for each in rows:
        how = each.how if not each.window_s else f"{each.how} of {each.window_s:g} s"
        made.add_row(
            plain(each.subject),
            plain(each.field),
            number(each.value),
            plain(how),
            plain(" or ".join(each.series[:2])),
        )
    return made
