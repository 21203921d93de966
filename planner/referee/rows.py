"""A row of the rules with its two sides computed: it becomes a violation, a use of a limit, or both."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from models.report import RowUse, Violation
from planner.referee.tolerance import exceeds, falls_short

__all__ = ["Row", "figure"]

_WHOLE_FROM = 1e6


def figure(number: float | Fraction) -> str:
    """A number as a sentence shows it: six significant digits at most, or all before the point; thousands in groups."""
    value = float(number)
    return f"{value:,.0f}" if abs(value) >= _WHOLE_FROM else f"{value:,.6g}"


@dataclass(frozen=True, slots=True)
class Row:
    """``found`` against ``allowed``, both in ``unit``.

    Attributes:
        family: family of the rules, e.g. ``gpus``.
        key: which row of the family.
        found: what the solution has.
        allowed: the limit; a ceiling, or with ``least`` a floor.
        unit: unit of both sides.
        say: the sentence, with ``{found}`` and ``{allowed}`` where the figures go.
        least: ``allowed`` is a floor.
        step: what one more replica uses at least (for capacity rows: what one replica less takes at least);
            None: this row is no limit that candidates share, so its use is not reported.
    """

    family: str
    key: tuple[str, ...]
    found: Fraction
    allowed: Fraction
    unit: str
    say: str
    least: bool = False
    step: Fraction | None = None

    @property
    def broken(self) -> bool:
        """Whether the row does not hold."""
        broken = falls_short if self.least else exceeds
        return broken(self.found, self.allowed)

    def violation(self) -> Violation:
        """This row as a broken rule."""
        return Violation(
            family=self.family,
            key=self.key,
            found=float(self.found),
            allowed=float(self.allowed),
            unit=self.unit,
            text=self.say.format(found=figure(self.found), allowed=figure(self.allowed)),
        )

    def use(self) -> RowUse | None:
        """This row as the use of a limit (of a floor: what is owed of what is there); None where candidates share none."""
        if self.step is None:
            return None
        used, limit = (self.allowed, self.found) if self.least else (self.found, self.allowed)
        return RowUse(
            family=self.family,
            key=self.key,
            used=float(used),
            limit=float(limit),
            unit=self.unit,
            step=float(self.step),
        )
