"""Screens of ``elastic``: sizes, ways, checks, and a resize on its way."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Console
from rich.text import Text

from models.forecast import Forecast
from models.resize_operation import OperationPhase, ResizeOperation
from models.resizing import (
    ElasticPicture,
    Pace,
    Preflight,
    PreflightVerdict,
    ResizeEstimate,
    Schedule,
    ScheduledCall,
    SizeLine,
)
from planner.cli.screen.layout import Column, bullets, numbered, section, table
from planner.cli.screen.plain import plain
from planner.wording import counted, number, time_span

__all__ = [
    "entry_line",
    "show_operation",
    "show_preflight",
    "show_schedule",
    "show_sizes",
    "show_steps",
    "show_ways",
]

_NOTHING: Final = "–"
_EXACT_S: Final = 1e-9
_STYLES: Final = {
    PreflightVerdict.OK: "green",
    PreflightVerdict.WARNING: "yellow",
    PreflightVerdict.UNKNOWN: "yellow",
    PreflightVerdict.REFUSED: "bold red",
}


def show_sizes(console: Console, picture: ElasticPicture) -> None:
    """Print every size of a deployment: reachable or why not, and what the way there takes."""
    rests = "" if picture.pool else " (does not run)"
    way = f"resizes by {picture.mode.value}" if picture.mode else "cannot be resized in place"
    engine = picture.deployment.engine
    head = f"{picture.name}{rests}: {counted(picture.current, 'rank')}, {way} ({engine.dialect.value} {engine.version})"
    console.print(Text(plain(head), style="bold"))
    console.print()
    made = table(
        [
            Column("ranks"),
            Column("GPUs"),
            Column("experts beside"),
            Column("req/s"),
            Column("in place", right=False),
            Column("downtime"),
            Column("lead time"),
            Column("why not", right=False),
        ]
    )
    for line in picture.lines:
        made.add_row(*_size_row(picture, line))
    console.print(made)
    if picture.notes:
        section(console, "To be known")
        bullets(console, [plain(note) for note in picture.notes])


def _size_row(picture: ElasticPicture, line: SizeLine) -> list[str]:
    ranks = line.verdict.ranks
    here = ranks == picture.current
    way = line.ways[0] if line.ways and line.verdict.reachable else None
    return [
        str(ranks),
        str(ranks * picture.shape.tensor_parallel),
        _NOTHING if line.verdict.redundant_experts is None else str(line.verdict.redundant_experts),
        _NOTHING if line.rated_rps is None else number(line.rated_rps, 3),
        "now" if here else way.mode.value if way is not None else "no",
        _NOTHING if way is None else time_span(way.downtime.expected_s),
        _NOTHING if way is None else time_span(way.lead_s),
        plain(" ".join(line.texts)),
    ]


def show_ways(console: Console, ways: Sequence[ResizeEstimate], *, own: str) -> None:
    """Print ways side by side.

    Args:
        console: where.
        ways: what.
        own: which of them the engine goes in place.
    """
    made = table(
        [
            Column("way", right=False),
            Column("without service"),
            Column("total"),
            Column("experts moved after"),
            Column("idle GPU-s"),
            Column("GPUs held"),
        ]
    )
    for way in ways:
        made.add_row(
            f"{way.mode.value}{' (this engine)' if way.mode.value == own else ''}",
            _pace(way.downtime),
            _pace(way.total),
            _pace(way.balance),
            number(way.idle_gpu_seconds, 3),
            str(way.peak_gpus),
        )
    console.print(made)
    told = list(dict.fromkeys(text for way in ways for text in way.assumptions))
    if told:
        section(console, "What the times rest on")
        bullets(console, [f"{text[0].upper()}{text[1:]}." for text in map(plain, told)])


def _pace(pace: Pace) -> str:
    if pace.high_s - pace.low_s < _EXACT_S:
        return time_span(pace.expected_s) if pace.expected_s else "none"
    return f"{time_span(pace.expected_s)} ({number(pace.low_s, 3)}–{number(pace.high_s, 3)})"


def show_preflight(console: Console, preflight: Preflight) -> None:
    """Print every check with what to change."""
    made = table([Column("check", right=False), Column("", right=False), Column("finding", right=False)])
    for check in preflight.checks:
        made.add_row(
            check.name, Text(check.verdict.value, style=_STYLES[check.verdict]), plain(check.finding, 400)
        )
    console.print(made)
    changes = [f"{check.name}: {check.change}" for check in preflight.checks if check.change]
    if changes:
        section(console, "What to change")
        bullets(console, [plain(change, 400) for change in changes])


def show_steps(console: Console, operation: ResizeOperation, commands: Sequence[str]) -> None:
    """Print what a resize would do, in order, with the very calls."""
    sizes = f"{operation.from_ranks} to {operation.to_ranks} ranks"
    console.print(Text(plain(f"{operation.deployment}: {sizes}"), style="bold"))
    first, last = operation.from_ranks, operation.to_ranks - 1
    if operation.grows:
        before = [f"have accelerators under ranks {first} to {last}, and wait until they are there"]
        after = ["see that all ranks answer as before", f"send traffic to ranks {first} to {last}"]
    else:
        before = [
            f"send no new requests to ranks {operation.to_ranks} and above, and wait until they are empty"
        ]
        after = [
            "see that the others answer as before",
            f"give back what is under ranks {operation.to_ranks} and above",
        ]
    at_once = " at once, one to each rank" if len(commands) > 1 else ""
    numbered(
        console, [*before, f"send {counted(len(commands), 'call')}{at_once} (never a second time)", *after]
    )
    section(console, "Calls")
    for command in commands:
        console.print(Text(plain(command, 2000)), soft_wrap=True)


def show_schedule(console: Console, picture: ElasticPicture, made: Forecast, found: Schedule) -> None:
    """Print when to call for which size, by whose forecast, and how good that was."""
    past = made.backtest
    how = "never tried on the past" if past is None else f"tried {past.origins} times on the past"
    if past is not None and past.mase is not None:
        how += f", off {number(past.mase, 2)} times as much as looking a season back"
    console.print(Text(plain(f"forecast: {made.method}, {how}"), style="bold"))
    for told in made.notes:
        console.print(plain(told))
    if found.short_rps:
        console.print(
            Text(f"{number(found.short_rps, 3)} req/s find no size that carries them.", style="bold red")
        )
    if not found.calls:
        stays = f"The size of now, {counted(picture.current, 'rank')}, stays."
        console.print(stays if found.short_rps else f"{stays[:-1]}: it carries all of it.")
        return
    console.print()
    made_table = table(
        [
            Column("call at (UTC)", right=False),
            Column("from"),
            Column("to"),
            Column("by"),
            Column("needed at (UTC)", right=False),
            Column("expected req/s"),
            Column("carries"),
            Column("", right=False),
        ]
    )
    for call in found.calls:
        made_table.add_row(
            _clock(call.call_s),
            str(call.from_ranks),
            str(call.to_ranks),
            call.mode.value,
            _clock(call.needed_s),
            number(call.rate_rps, 3),
            number(call.carries_rps, 3),
            _warning(call),
        )
    console.print(made_table)


def _clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")


def _warning(call: ScheduledCall) -> str:
    told = []
    if call.late_s:
        told.append(f"{time_span(call.late_s)} too late: call now")
    if call.short_rps:
        told.append(f"{number(call.short_rps, 3)} req/s too few")
    return "; ".join(told)


def show_operation(console: Console, operation: ResizeOperation) -> None:
    """Print how far a resize is and what is true."""
    head = f"{operation.deployment}: {operation.from_ranks} to {operation.to_ranks} ranks, {operation.phase.value}"
    bad = operation.phase in (OperationPhase.NEEDS_PEOPLE, OperationPhase.ABANDONED)
    console.print(Text(plain(head), style="bold red" if bad else "bold"))
    serving = operation.serving_ranks
    console.print("ranks seen to serve: " + (str(serving) if serving is not None else "not known"))
    if operation.way_out:
        console.print(Text(plain(f"what to do: {operation.way_out}", 600)))
    section(console, "History")
    bullets(console, [entry_line(operation, i) for i in range(len(operation.history))])


def entry_line(operation: ResizeOperation, index: int) -> str:
    """One line of its history, with the seconds since it was ordered."""
    entry = operation.history[index]
    return plain(f"{entry.at_s - operation.started_s:.0f} s, {entry.phase.value}: {entry.text}", 600)
