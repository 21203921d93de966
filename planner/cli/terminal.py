"""Two consoles: answers on stdout, everything else on stderr."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TextIO

from planner.clock import Clock, SystemClock

if TYPE_CHECKING:
    from rich.console import Console

    from planner.optimization.protocol import Progress, ProgressEvent

__all__ = [
    "complain",
    "console_on",
    "err_console",
    "note",
    "out_console",
    "shown_progress",
    "shown_status",
    "spell_out_what_cannot_be_written",
    "use_color",
]

_WIDE: Final = 10_000
_LINE_EVERY_S: Final = 5.0
_SPELLED: Final = "fleetplan-spelled"
_SPELLINGS: Final = {"→": "->", "×": "x", "–": "-", "≥": ">=", "·": "."}
_COLOR: ContextVar[bool | None] = ContextVar("color", default=None)


def use_color(wanted: bool | None) -> None:
    """Colors always, never, or (None) on a terminal unless the variable NO_COLOR is set."""
    _COLOR.set(wanted)


def out_console() -> Console:
    """Where answers go."""
    return console_on(sys.stdout)


def err_console() -> Console:
    """Where notes, progress and complaints go."""
    return console_on(sys.stderr)


def console_on(file: TextIO) -> Console:
    """A console on a stream.

    On a terminal it is as wide as that. Into a pipe or file it is as wide as a line needs, so that no name is
    folded and no sentence broken; the variable COLUMNS says otherwise.
    """
    from planner.cli.screen.layout import PipeConsole

    wanted = _COLOR.get()
    width = None if file.isatty() or os.environ.get("COLUMNS", "").isdigit() else _WIDE
    return PipeConsole(
        file=file,
        width=width,
        highlight=False,
        emoji=False,
        markup=False,
        force_terminal=wanted or None,
        no_color=None if wanted is None else not wanted,
        soft_wrap=False,
    )


def spell_out_what_cannot_be_written() -> None:
    """Let streams of a small character set show ``->`` for an arrow, and never end the program."""
    codecs.register_error(_SPELLED, _spelled)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_SPELLED)


def _spelled(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unwritten = error.object[error.start : error.end]
    return "".join(_SPELLINGS.get(letter, "?") for letter in unwritten), error.end


def note(text: str) -> None:
    """Something worth knowing that is no part of the answer."""
    err_console().print(text, style="dim")


def complain(text: str) -> None:
    """What went wrong."""
    console = err_console()
    console.print("fleetplan: ", style="bold red", end="")
    console.print(text, soft_wrap=True)


@contextmanager
def shown_progress(*, quiet: bool = False, clock: Clock | None = None) -> Iterator[Progress]:
    """Progress of a plan, as :func:`shown_status` shows it."""
    with shown_status("planning", quiet=quiet, clock=clock) as show:
        yield lambda event: show(lambda: _progress_line(event))


@contextmanager
def shown_status(
    title: str, *, quiet: bool = False, clock: Clock | None = None
) -> Iterator[Callable[[Callable[[], str]], None]]:
    """How far something is: one line on a terminal that is gone afterwards; elsewhere a line every few seconds.

    What is yielded takes whoever makes the line, and asks for it only where it is shown.

    Args:
        title: until the first line.
        quiet: nothing where no terminal watches, e.g. since a program reads the answer.
        clock: tells when a line is due.
    """
    from rich.text import Text

    console = err_console()
    if not console.is_terminal:
        yield (lambda line: None) if quiet else _Lines(console, clock or SystemClock())
        return
    with console.status(title) as status:
        yield lambda line: status.update(Text(line()))


class _Lines:
    """A plain line of progress whenever some seconds have passed since the last one."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._next_s = clock.monotonic_s() + _LINE_EVERY_S

    def __call__(self, line: Callable[[], str]) -> None:
        """Print the line where one is due."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._next_s:
            self._next_s = now_s + _LINE_EVERY_S
            self._console.print(line())


def _progress_line(event: ProgressEvent) -> str:
    from planner.wording import number, percent

    found = "no plan yet" if event.value is None else f"found {number(event.value)}"
    bound = "" if event.bound is None else f", proven ≥ {number(event.bound)}"
    gap = "" if event.gap is None else f", gap {percent(event.gap)}"
    patterns = "" if event.columns is None else f", {event.columns} patterns"
    return f"{event.solver}: {event.level}, {found}{bound}{gap}{patterns} ({event.seconds:.0f} s)"
