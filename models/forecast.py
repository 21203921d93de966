"""Demand to come: quantiles over the next steps, by whom, and how well that did in the past."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from models.ids import Name
from models.units import Count, EpochSeconds, PositiveSeconds, Share
from models.value import Value

__all__ = ["Backtest", "Forecast", "Quantile"]


class Quantile(Value):
    """One quantile over the horizon."""

    level: Share = Field(description="share of futures that lie at or below it")
    values: tuple[float, ...] = Field(description="one for each step, in the unit of the series")


class Backtest(Value):
    """How a method did on the past: rolling origins, never on what it was fitted to."""

    method: Name = Field(description="who forecast")
    origins: Count = Field(description="moments from which it forecast")
    mase: float | None = Field(
        None,
        description="mean absolute error over that of the seasonal naive method in the past; None: undefined",
    )
    pinball: float | None = Field(
        None, description="mean pinball loss over levels and steps; None: no origin"
    )
    coverage: float | None = Field(
        None,
        description="share of what came that lay between the lowest and the highest level; None: no origin",
    )


class Forecast(Value):
    """Quantiles of the next steps of one series."""

    method: Name = Field(description="who made it")
    made_at_s: EpochSeconds = Field(description="end of what was known, seconds of the epoch")
    step_s: PositiveSeconds = Field(description="length of a step, s")
    quantiles: tuple[Quantile, ...] = Field(min_length=1, description="the lowest level first")
    backtest: Backtest | None = Field(None, description="how the method did on this series; None: too short")
    notes: tuple[str, ...] = Field((), description="what is to be known of it, in sentences")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        levels = [each.level for each in self.quantiles]
        if levels != sorted(set(levels)):
            raise ValueError("give each level once, the lowest first")
        if len({len(each.values) for each in self.quantiles}) > 1:
            raise ValueError("all levels have the same number of steps")
        return self

    @property
    def horizon(self) -> int:
        """Steps."""
        return len(self.quantiles[0].values)

    def at(self, level: float) -> tuple[float, ...]:
        """Values of a level; between two in proportion, beyond the outermost the outermost."""
        below = [each for each in self.quantiles if each.level <= level]
        above = [each for each in self.quantiles if each.level >= level]
        low, high = (below or above)[-1 if below else 0], (above or below)[0 if above else -1]
        if low.level == high.level:
            return low.values
        part = (level - low.level) / (high.level - low.level)
        return tuple(a + (b - a) * part for a, b in zip(low.values, high.values, strict=True))
