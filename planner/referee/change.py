"""Rows on change: how many replicas start, stop or move, in all and per candidate."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from planner.referee.index import Index
from planner.referee.rows import Row

__all__ = ["change", "changes"]


def changes(index: Index, moves: int) -> int:
    """Σ |n_c − on order_c| + moves; a replica that changes its size is one change: it leaves what it was."""
    return moves + sum(
        abs(index.count(candidate) - candidate.on_order)
        for candidate in index.problem.candidates
        if candidate.resize is None
    )


def change(index: Index, moves: int) -> Iterator[Row]:
    """Σ |n_c − on order_c| + moves ≤ limit; −step_down ≤ n_c − on order_c ≤ step_up per candidate."""
    limit = index.problem.max_changes
    if limit is not None:
        yield Row(
            family="change",
            key=(),
            found=Fraction(changes(index, moves)),
            allowed=Fraction(limit),
            unit="change",
            say="At most {allowed} changes are allowed and the plan makes {found}.",
            step=Fraction(1),
        )
    for candidate in index.problem.candidates:
        if candidate.max_step_up is None and candidate.max_step_down is None:
            continue
        step = index.count(candidate) - candidate.on_order
        most = candidate.max_step_up if step > 0 else candidate.max_step_down
        if most is not None and abs(step) > most:
            way = "grow" if step > 0 else "shrink"
            yield Row(
                family="change",
                key=(candidate.id,),
                found=Fraction(abs(step)),
                allowed=Fraction(most),
                unit="replica",
                say=f"Candidate {candidate.id} may {way} by {{allowed}} replicas at once and {way}s by {{found}}.",
            )
