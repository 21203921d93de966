"""What every screen is made of: sections, sentences, and tables that fold names and never cut them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

__all__ = ["Column", "PipeConsole", "bullets", "numbered", "panel", "section", "show_first", "table"]

_Row = TypeVar("_Row")
_FRAME: Final = 4
_FAR: Final = 1000
_GAP: Final = 2
_NAME: Final = 12
"""Columns of the screen that a name keeps beside its figures, or as many as it needs."""


class PipeConsole(Console):
    """A console that leaves it to the edge of the program what a broken pipe means."""

    def on_broken_pipe(self) -> None:
        """Let the error go on; rich would end the process."""
        raise  # noqa: PLE0704 - rich calls this while it handles the error


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: figures stand right, names left."""

    header: str
    right: bool = True


class FigureTable(Table):
    """A table that never cuts a figure: names are folded, and where that is not enough each figure has a line."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Rows where they fit, else lines."""
        if self._fits(console, options):
            yield from super().__rich_console__(console, options)
        else:
            yield from self._lines()

    def _fits(self, console: Console, options: ConsoleOptions) -> bool:
        wide = options.update(width=_FAR)
        needed = 0
        for column in self.columns:
            cells = (column.header, *column.cells)
            widest = max(Measurement.get(console, wide, cell).maximum for cell in cells)
            needed += _GAP + (widest if column.justify == "right" else min(widest, _NAME))
        return needed - _GAP <= options.max_width

    def _lines(self) -> RenderResult:
        for row in zip(*(column.cells for column in self.columns), strict=True):
            for index, (column, cell) in enumerate(zip(self.columns, row, strict=True)):
                if index == 0 and column.justify == "left":
                    yield cell
                elif _plain(cell):
                    header = " ".join(_plain(column.header).split())
                    yield Padding(Text.assemble(f"{header}: ", _text(cell)), (0, 0, 0, _GAP), expand=False)


def _text(cell: RenderableType) -> Text:
    inner = cell.renderable if isinstance(cell, Padding) else cell
    return inner if isinstance(inner, Text) else Text(str(inner))


def _plain(cell: RenderableType) -> str:
    return _text(cell).plain


def table(columns: Sequence[Column]) -> Table:
    """A table without frame, a line below its header; a name that is too long goes on in the next line."""
    made = FigureTable(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False
    )
    for column in columns:
        made.add_column(
            column.header, justify="right" if column.right else "left", overflow="fold", no_wrap=column.right
        )
    return made


def show_first(
    console: Console,
    rows: Sequence[_Row],
    *,
    made: Callable[[Sequence[_Row]], RenderableType],
    most: int | None,
) -> None:
    """Print what is made of the first rows, and how many more there are.

    Args:
        console: where.
        rows: all of them.
        made: a table of some.
        most: rows at most; None: all.
    """
    console.print(made(rows[:most]))
    if most is not None and len(rows) > most:
        console.print(f"and {len(rows) - most} more; --all shows them")


def section(console: Console, title: str, *, style: str = "bold") -> None:
    """An empty line and a title."""
    console.print()
    console.print(Text(title, style=style))


def bullets(console: Console, sentences: Iterable[str], *, style: str = "") -> None:
    """Sentences below one another; one that goes on in the next line is indented."""
    for sentence in sentences:
        console.print(Text(_bullet(sentence, console.width), style=style), soft_wrap=True)


def numbered(console: Console, sentences: Iterable[str]) -> None:
    """As :func:`bullets`, with numbers from 1."""
    for number, sentence in enumerate(sentences, start=1):
        console.print(Text(_bullet(sentence, console.width, mark=f"{number}. ")), soft_wrap=True)


def panel(console: Console, title: str, sentences: Iterable[str], *, style: str) -> None:
    """Sentences that must not be overlooked: in a frame on a terminal, below a title elsewhere."""
    if not console.is_terminal:
        section(console, title)
        bullets(console, sentences)
        return
    body = "\n".join(_bullet(sentence, console.width - _FRAME) for sentence in sentences)
    console.print()
    console.print(
        Panel(Text(body), title=Text(title, style=f"bold {style}"), title_align="left", border_style=style)
    )


def _bullet(sentence: str, width: int, *, mark: str = "- ") -> str:
    return textwrap.fill(
        sentence,
        width,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )
