"""The page of all reproductions, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from models.reproduction import Claim, Origin, Parameter, Reproduction, Table

__all__ = ["HEAD", "document", "section"]

HEAD = "# Published experiments, reproduced"

_INTRODUCTION = """\
Written by `make reproduction` (`fleetplan reproduce all -o docs`); do not edit. Equal code, seeds and data give equal
bytes. Every experiment runs in the digital twin ([simulation](simulation.md), [autoscalers](autoscaling.md)).

**Origins.** *paper*: the publication states it. *source*: code, documentation or shipped configuration of the system.
*chosen*: nobody states it; the reason is beside it. *fitted*: to one part of what was measured, judged on the other.
*tuned*: nobody states it, and it was set so that the figure named beside it comes out; it is then the same in every other
experiment of its family. Intervals are 95 % (Student's t over seeds).
"""


def document(reproductions: Sequence[Reproduction], *, images: str = "images") -> str:
    """The whole page.

    Args:
        reproductions: in the order of the page.
        images: folder of the pictures, as the page refers to it.
    """
    parts = [HEAD, "", _INTRODUCTION, *_overview(reproductions)]
    told: dict[tuple[Parameter, ...], str] = {}
    for each in reproductions:
        parts += ["", *section(each, images=images, like=told.get(each.parameters))]
        told.setdefault(each.parameters, each.name)
    return "\n".join(parts) + "\n"


def _overview(reproductions: Sequence[Reproduction]) -> Iterator[str]:
    yield "| experiment | what | claims that hold | seeds |"
    yield "|---|---|--:|--:|"
    for each in reproductions:
        held = sum(claim.held for claim in each.claims)
        yield f"| [{each.name}](#{each.name}) | {each.title} | {held} of {len(each.claims)} | {each.seeds} |"


def section(each: Reproduction, *, images: str = "images", like: str | None = None) -> Iterator[str]:
    """Lines of one experiment; ``like``: another one that was told before and has the same parameters."""
    yield from (f"## {each.name}", "", f"{each.title}. Source: {each.source}.")
    if each.claims:
        yield from ("", "| | claim | here |", "|---|---|---|", *map(_claim, each.claims))
    for picture in each.pictures:
        yield from ("", f"![{picture.title}]({images}/{picture.name}.svg)")
    for table in each.tables:
        yield from ("", *_table(table))
    for note in each.notes:
        yield from ("", note)
    if like is not None:
        yield from ("", f"Parameters: those of [{like}](#{like}).")
        return
    yield from (
        "",
        "| parameter | value | origin | |",
        "|---|---|---|---|",
        *map(_parameter, each.parameters),
    )


def _claim(claim: Claim) -> str:
    return f"| {'✓' if claim.held else '✗'} | {_cell(claim.text)} | {_cell(claim.shown)} |"


def _table(table: Table) -> Iterator[str]:
    yield from (f"**{table.title}**", "")
    yield f"| {' | '.join(map(_cell, table.head))} |"
    yield "|" + "---|" + "--:|" * (len(table.head) - 1)
    for row in table.rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _parameter(parameter: Parameter) -> str:
    origin = f"**{parameter.origin}**" if parameter.origin is Origin.TUNED else str(parameter.origin)
    return f"| {_cell(parameter.name)} | {_cell(parameter.value)} | {origin} | {_cell(parameter.why)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
