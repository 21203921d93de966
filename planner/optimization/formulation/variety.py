"""At most so many variants of a service run at once: columns that tell which do, and rows that count them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from models.ids import VariantId
from models.problem import Candidate, Demand
from models.variant import Role
from planner.optimization.formulation.index import Index, replicas, runs
from planner.optimization.program import Column, Key, Row

__all__ = ["variety_columns", "variety_rows"]


def variety_columns(index: Index) -> Iterator[Column]:
    """One column of 0 or 1 for each variant of a service whose variants are counted."""
    for demand, role, variants in _counted(index):
        for variant in variants:
            yield Column(runs(demand, role, variant), 0, 1)


def variety_rows(index: Index, upper: Mapping[Key, int]) -> Iterator[Row]:
    """n[c] ≤ upper[c]·x[v]  for the candidates c of variant v, and  Σ_v x[v] ≤ max_variants  per role.

    ``upper`` bounds the columns n.
    """
    for demand, role, variants in _counted(index):
        for variant, candidates in variants.items():
            flag = runs(demand, role, variant)
            for candidate in candidates:
                n = replicas(candidate)
                yield Row(("variants", demand.service, role, candidate.id), {flag: upper[n], n: -1}, lower=0)
        flags = {runs(demand, role, variant): 1 for variant in variants}
        yield Row(("variants", demand.service, role), flags, upper=demand.max_variants)


def _counted(index: Index) -> Iterator[tuple[Demand, Role, dict[VariantId, list[Candidate]]]]:
    """Roles of services whose variants are more than may run, with the candidates of each variant."""
    for demand in index.problem.demands:
        if demand.max_variants is None:
            continue
        for role in Role:
            variants: dict[VariantId, list[Candidate]] = {}
            for candidate in index.role(demand, role):
                variants.setdefault(candidate.variant, []).append(candidate)
            if len(variants) > demand.max_variants:
                yield demand, role, variants
