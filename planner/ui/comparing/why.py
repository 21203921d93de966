"""What differs between the plans of two drafts, and which limits and services are behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from models.explanation import BindingRow, Difference
from models.problem import CostUnit
from models.report import Report
from planner.planning import differences
from planner.wording import (
    binding_sentence,
    conflict_sentence,
    difference_sentence,
    limit_phrase,
    quantity,
    some_of,
)

__all__ = ["PlanChange", "plan_change"]

_NAMED: Final = 5
_NOISE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class PlanChange:
    """How a plan differs from another.

    Attributes:
        difference: figures of the second minus those of the first; None: one of them has no plan.
        sentences: what it amounts to and what is behind it.
    """

    difference: Difference | None
    sentences: tuple[str, ...]


def plan_change(before: Report, after: Report, name: str) -> PlanChange:
    """What the second plan does differently.

    Args:
        before: of the draft to compare with.
        after: of the other one.
        name: of the other draft.
    """
    found = differences(before, [after.shown.but(name="other")])
    difference = found[0] if found else None
    return PlanChange(difference, tuple(_sentences(before, after, difference, name)))


def _sentences(before: Report, after: Report, difference: Difference | None, name: str) -> Iterator[str]:
    if difference is None:
        yield "One of the two has no plan, so there is nothing to compare."
    elif before.problem.cost_unit is not after.problem.cost_unit:
        yield "Their costs have different units, so they cannot be compared."
    else:
        said = difference_sentence(difference, after.problem.cost_unit)
        yield f"{name}{said.removeprefix('other')}"
        yield from _services(before, after)
    if after.explanation.conflict is not None:
        yield conflict_sentence(after.explanation.conflict)
    yield from _limits(before, after)


def _services(before: Report, after: Report) -> Iterator[str]:
    """The services whose cost moved most."""
    if before.shown.assessment is None or after.shown.assessment is None:
        return
    old = {each.service: each.cost for each in before.shown.assessment.services}
    new = {each.service: each.cost for each in after.shown.assessment.services}
    moved = {name: new.get(name, 0.0) - old.get(name, 0.0) for name in dict.fromkeys([*new, *old])}
    most = sorted((name for name in moved if abs(moved[name]) > _NOISE), key=lambda name: -abs(moved[name]))
    if not most:
        return
    unit = "$/h" if after.problem.cost_unit is CostUnit.USD_PER_H else ""
    parts = [f"{name} {'+' if moved[name] > 0 else ''}{quantity(moved[name], unit)}" for name in most]
    yield f"By service: {some_of(parts, _NAMED)}."


def _limits(before: Report, after: Report) -> Iterator[str]:
    """Limits that bind in one of the two alone."""
    old, new = _binding(before), _binding(after)
    begun = [row for key, row in new.items() if key not in old]
    for row in begun[:_NAMED]:
        yield f"It binds now: {binding_sentence(row)}"
    if len(begun) > _NAMED:
        yield f"{len(begun) - _NAMED} more limits bind now."
    ended = [limit_phrase(row.family, row.key) for key, row in old.items() if key not in new]
    if ended:
        yield f"No longer binding: {some_of(ended, _NAMED)}."


def _binding(report: Report) -> dict[tuple[str, tuple[str, ...]], BindingRow]:
    return {(row.family, row.key): row for row in report.explanation.binding}
