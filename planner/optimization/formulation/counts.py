"""Rows on counts alone: bounds, safe scale-in, prefill : decode ratios, and changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from models.problem import Candidate, VariantBounds
from models.scenario import Incumbents as IncumbentsRule
from models.variant import Role
from planner.optimization.formulation.index import Index, down, moved, replicas
from planner.optimization.program import Key, Row
from planner.optimization.scaling import exact

__all__ = ["bounds_rows", "change_rows", "change_terms", "ratio_rows", "safe_scale_in_rows"]


def bounds_rows(index: Index) -> Iterator[Row]:
    """Min ≤ Σ n ≤ max  per candidate, per variant over its pools, per service over its candidates."""
    for candidate in index.unusual.bounded:
        key = ("bounds", candidate.id)
        yield Row(key, {replicas(candidate): 1}, candidate.min_replicas, candidate.max_replicas)
    for demand in index.problem.demands:
        group = index.problem.candidates_of[demand.service]
        if demand.min_replicas or demand.max_replicas is not None:
            terms = {replicas(c): 1 for c in group}
            yield Row(("bounds", demand.service), terms, demand.min_replicas, demand.max_replicas)
        for bounds in demand.variants:
            yield from _variant_row(demand.service, bounds, group)


def _variant_row(service: str, bounds: VariantBounds, group: tuple[Candidate, ...]) -> Iterator[Row]:
    if bounds.min_replicas or bounds.max_replicas is not None:
        terms = {replicas(c): 1 for c in group if c.variant == bounds.variant}
        yield Row(("bounds", service, bounds.variant), terms, bounds.min_replicas, bounds.max_replicas)


def safe_scale_in_rows(index: Index) -> Iterator[Row]:
    """n[c] ≥ ready[c]  where the saturation analyzer does not permit scale-in."""
    for candidate in index.unusual.held:
        yield Row(("safe_scale_in", candidate.id), {replicas(candidate): 1}, lower=candidate.current)


def ratio_rows(index: Index) -> Iterator[Row]:
    """min·Σ_decode n ≤ Σ_prefill n ≤ max·Σ_decode n."""
    for demand in index.problem.demands:
        if demand.ratio is None:
            continue
        prefill = [replicas(c) for c in index.role(demand, Role.PREFILL)]
        decode = [replicas(c) for c in index.role(demand, Role.DECODE)]
        for side, bound, sign in (("min", demand.ratio.min, 1), ("max", demand.ratio.max, -1)):
            if bound is not None:
                ratio = exact(bound)
                terms = dict.fromkeys(prefill, sign * ratio.denominator)
                terms |= dict.fromkeys(decode, -sign * ratio.numerator)
                yield Row(("ratio", demand.service, side), terms, lower=0)


def change_rows(index: Index) -> Iterator[Row]:
    """Σ |n[c] − on order[c]| + moves ≤ limit, and  −step_down ≤ n[c] − on order[c] ≤ step_up  per candidate."""
    problem = index.problem
    for candidate in index.unusual.moving:
        if candidate.on_order:
            # down = max(0, on order - n): everything that counts changes makes it as small as this row allows.
            yield Row(
                ("change", candidate.id, "down"),
                {down(candidate): 1, replicas(candidate): 1},
                lower=candidate.on_order,
            )
        yield from _step_row(candidate)
    if problem.max_changes is not None:
        terms, constant = change_terms(index)
        yield Row(("change",), terms, upper=problem.max_changes - constant)


def _step_row(candidate: Candidate) -> Iterator[Row]:
    up, step_down = candidate.max_step_up, candidate.max_step_down
    if up is None and step_down is None:
        return
    lower = None if step_down is None else candidate.on_order - step_down
    upper = None if up is None else candidate.on_order + up
    yield Row(("change", candidate.id), {replicas(candidate): 1}, lower, upper)


def change_terms(index: Index) -> tuple[dict[Key, int], int]:
    """Σ |n − on order| + moves as terms and a constant:  |n − o| = n − o + 2·down."""
    terms: dict[Key, int] = defaultdict(int)
    constant = 0
    movable = index.tracked if index.problem.incumbents_rule is IncumbentsRule.MOVABLE else frozenset()
    for candidate in index.problem.candidates:
        if candidate.resize is not None:
            continue  # what it was before goes: that is the change
        terms[replicas(candidate)] += 1
        constant -= candidate.on_order
        if candidate.on_order:
            terms[down(candidate)] += 2
        if candidate.id in movable:
            terms[moved(candidate)] += 1
    return dict(terms), constant
