"""Formulation: how a problem becomes an integer program. One function per family; notation in docs/formulation.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from models.problem import Problem
from planner.collecting import collection_paused
from planner.optimization.formulation import budgets, by_length, counts, elastic, physical, traffic
from planner.optimization.formulation.columns import columns, upper_bounds
from planner.optimization.formulation.index import Index
from planner.optimization.formulation.placement import incumbents_rows, placement
from planner.optimization.formulation.variety import variety_columns, variety_rows
from planner.optimization.program import IntegerProgram, Row, assemble

__all__ = ["FAMILIES", "Formulation", "formulate"]

Family = Callable[[Index], Iterator[Row]]

FAMILIES: Final[tuple[Family, ...]] = (
    traffic.demand_rows,
    traffic.rate_rows,
    by_length.rate_rows,
    traffic.headroom_rows,
    by_length.headroom_rows,
    physical.gpus_rows,
    physical.nodes_rows,
    budgets.quota_rows,
    budgets.power_rows,
    budgets.spend_rows,
    counts.bounds_rows,
    counts.safe_scale_in_rows,
    traffic.survive_rows,
    by_length.survive_rows,
    counts.ratio_rows,
    counts.change_rows,
    elastic.elastic_rows,
    elastic.moving_rows,
)
"""Every family whose rows follow from the index alone; placement, incumbents and variants bring columns of their own."""

_LASTING: Final[Mapping[Family, frozenset[str]]] = {
    physical.gpus_rows: frozenset({"candidates", "incumbents", "mode", "pools"}),
    budgets.quota_rows: frozenset({"candidates", "namespaces", "pools", "quotas", "services"}),
    budgets.power_rows: frozenset({"candidates", "mode", "pools", "power", "power_basis"}),
    budgets.spend_rows: frozenset({"candidates", "pools", "spend_usd_per_h"}),
    counts.safe_scale_in_rows: frozenset({"candidates"}),
    elastic.elastic_rows: frozenset({"candidates"}),
    elastic.moving_rows: frozenset({"candidates", "incumbents", "mode", "pools"}),
    counts.change_rows: frozenset(
        {"candidates", "incumbents", "incumbents_rule", "max_changes", "mode", "pools"}
    ),
}
"""Families that no traffic moves, with all the fields of the problem that do."""


@dataclass(frozen=True)
class Formulation:
    """A program with the index that it was made from."""

    index: Index
    program: IntegerProgram


def formulate(
    problem: Problem,
    *,
    families: Iterable[Family] = FAMILIES,
    roomy: bool = False,
    before: Formulation | None = None,
) -> Formulation:
    """The whole program of a problem.

    ``roomy`` leaves the bounds of the columns wide where a row says the same more precisely, so that leaving out that
    row really sets its limit free. ``before`` is of nearly the same problem: what did not change is taken over.
    """
    with collection_paused():
        index = before.index.followed_by(problem) if before is not None else Index(problem)
        bounds = upper_bounds(index, roomy=roomy)
        packing = placement(index, bounds)
        pinned = incumbents_rows(index, bounds)
        rows = [row for family in families for row in _rows_of(index, family)]
        program = assemble(
            [*columns(index, bounds), *variety_columns(index), *packing.columns, *pinned.columns],
            [*rows, *variety_rows(index, bounds), *packing.rows, *pinned.rows],
        )
        return Formulation(index, program)


def _rows_of(index: Index, family: Family) -> Iterable[Row]:
    """The rows of a family; those that the last problem had too where nothing of theirs changed."""
    inputs = _LASTING.get(family)
    return family(index) if inputs is None else index.lasting(family, inputs)
