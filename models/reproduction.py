"""What reproducing a published experiment yields: parameters with their origin, figures beside the published ones, claims."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from models.ids import Name
from models.value import Value

__all__ = ["Claim", "Origin", "Parameter", "Picture", "Point", "Reproduction", "Table"]


class Origin(StrEnum):
    """Where the value of a parameter is from."""

    PAPER = "paper"
    """The publication that is reproduced states it."""
    SOURCE = "source"
    """Code, documentation or shipped configuration of the system that is reproduced."""
    CHOSEN = "chosen"
    """Nobody states it; chosen for the reason given, without looking at the published figure."""
    FITTED = "fitted"
    """Fitted to one part of what was measured; judged on the other."""
    TUNED = "tuned"
    """Nobody states it; set so that a named figure comes out, then the same in all other experiments."""


class Parameter(Value):
    """One setting of an experiment."""

    name: str = Field(min_length=1, description="what is set, in words")
    value: str = Field(min_length=1, description="its value with the unit")
    origin: Origin = Field(description="who says so")
    why: str = Field("", description="place in the source, or the reason of a choice")


class Claim(Value):
    """A statement of the publication, or of ours, and whether the twin shows it."""

    text: str = Field(min_length=1, description="the statement")
    held: bool = Field(description="whether the runs show it")
    shown: str = Field(description="the figures that decide")


class Table(Value):
    """Figures as text, ready to print."""

    title: str = Field(description="what the rows are")
    head: tuple[str, ...] = Field(min_length=1, description="names of the columns, with units")
    rows: tuple[tuple[str, ...], ...] = Field(description="one text per column")


class Point(Value):
    """A mark of a picture."""

    x: float | str = Field(description="category of a bar, or place on the axis to the right")
    y: float = Field(description="height")
    series: str = Field(description="whose it is")
    low: float | None = Field(None, description="lower end of the interval; None: there is none")
    high: float | None = Field(None, description="upper end")
    panel: str = Field("", description="which of several charts below one another")


class Picture(Value):
    """A chart as data."""

    name: Name = Field(description="of the file, without suffix")
    title: str = Field(description="what it shows")
    kind: Literal["bars", "lines"] = Field(description="bars by category, or lines over an axis")
    x: str = Field(description="title of the axis to the right, with the unit")
    y: str = Field(description="title of the axis upwards, with the unit")
    points: tuple[Point, ...] = Field(min_length=1, description="all marks")


class Reproduction(Value):
    """A published experiment, run again in the twin."""

    name: Name = Field(description="what it is called on the command line")
    title: str = Field(description="what it is, in one line")
    source: str = Field(description="publication and place")
    seeds: int = Field(ge=1, description="runs with different chance behind each figure")
    parameters: tuple[Parameter, ...] = Field(description="every setting, with its origin")
    tables: tuple[Table, ...] = Field((), description="figures of ours beside the published ones")
    pictures: tuple[Picture, ...] = Field((), description="the same as charts")
    claims: tuple[Claim, ...] = Field((), description="statements, each with whether it holds here")
    notes: tuple[str, ...] = Field((), description="what has to be said about it, one paragraph each")
